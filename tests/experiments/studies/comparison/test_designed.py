"""The loader of designed studies: its config file, its models, its belief, and wrong configs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from shannon_game.estimators.comparison import QuestionDesign
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.job import load_study
from shannon_game.experiments.studies.comparison.designed import DesignedSettings, designed_simulated
from tests.experiments.command import config
from tests.same import assert_same_study

TINY: dict[str, Any] = {
    "n_items": 6,
    "vocab_size": 150,
    "design": {"n_draws": 3, "n_answers": 4, "n_comparisons": 5, "n_participants": 9},
}


def test_every_setting_of_design_and_people_has_its_default() -> None:
    ours = DesignedSettings()
    for group, theirs in ((ours.design, QuestionDesign()), (ours.participants, ParticipantPopulation())):
        assert {name: getattr(group, name) for name in vars(theirs)} == vars(theirs)


def test_the_command_gives_what_the_function_gives() -> None:
    overrides = ["study.n_items=6", "study.vocab_size=150", "seed=3", "study.participants.slope_median=.5"]
    overrides += [f"study.design.{name}={value}" for name, value in TINY["design"].items()]
    study = load_study(config("+exp=human_loss", "study=designed", *overrides).study, kind="comparison")
    assert_same_study(study, designed_simulated(**TINY, seed=3, participants={"slope_median": 0.5}))
    assert json.loads(study.attrs["design"])["n_draws"] == 3


def test_the_models_know_every_token_that_was_asked_about() -> None:
    study = designed_simulated(**TINY)
    assert study["model"].values.tolist() == ["lm-weak", "lm-medium", "lm-strong"]
    assert study.attrs["generator"] == "lm-medium"
    whole = study["reference_logprob"]
    assert_allclose(np.exp(whole.values.astype(float)).sum(axis=1), 1, atol=1e-4)
    own = study["candidate_logprob"].sel(model="lm-medium")
    for item, column in zip(*np.nonzero(study["candidate_source"].values != "padding"), strict=True):
        token = str(study["candidate_token"].values[item, column])
        assert_allclose(own.values[item, column], whole.isel(item=item).sel(token=token), atol=1e-6)
    assert (study["kl_nats"].sel(model="lm-medium") == 0).all()
    assert (study["kl_nats"].sel(model="lm-weak") > 0).all()


def test_the_generator_of_the_run_draws() -> None:
    study = load_study(config("+exp=human_loss", "study=designed", "generator.name=lm-strong").study, kind="comparison")
    assert study.attrs["generator"] == "lm-strong"
    assert (study["kl_nats"].sel(model="lm-strong") == 0).all()


@pytest.mark.parametrize("model", ["lm-weak", "lm-medium", "lm-strong"])
def test_people_may_believe_what_a_model_does(model: str) -> None:
    study = designed_simulated(**TINY, belief=model)
    assert_allclose(study["human_target_logprob"], study["target_logprob"].sel(model=model), atol=1e-6)


def test_a_sharper_belief_is_a_normalised_power() -> None:
    # two candidates' log-ratio is multiplied by the exponent, whatever the normaliser
    plain, sharp = (designed_simulated(**TINY, belief="lm-medium", belief_exponent=k) for k in (1.0, 2.0))
    ratio = [study["target_logprob"].sel(model="lm-medium") for study in (plain, sharp)]
    assert_allclose(ratio[0], ratio[1])
    whole = sharp["reference_logprob"].values.astype(float)
    normaliser = np.log(np.exp(2 * whole).sum(axis=1))
    assert_allclose(sharp["human_target_logprob"], 2 * ratio[1] - normaliser, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"n_item": 3}, "unknown setting 'n_item'; did you mean 'n_items'"),
        ({"n_items": 0}, "n_items: is 0"),
        ({"belief": "gpt2"}, "belief: is 'gpt2', should be one of human, lm-weak"),
        ({"belief_exponent": 0.0}, r"belief_exponent: is 0\.0"),
        ({"generator": "human"}, "generator: is 'human'"),
        ({"design": {"n_answer": 3}}, "design: unknown setting 'n_answer'; did you mean 'n_answers'"),
        ({"design": {"n_answers": 40}}, "n_answers: is 40, which needs 40 participants an item"),
        ({"design": {"scale": "ruler"}}, "unknown rounding 'ruler'"),
        ({"participants": {"slope_median": 0}}, "slope_median: is 0"),
        ({"private_sd_nats": -1.0}, r"private_sd_nats: is -1\.0"),
        ({"bots": 2.0}, r"bots: is 2\.0"),
        ({"player": "equation_5"}, "player: is 'equation_5', should be one of belief, equation_6"),
        ({"entropy_nats": 50.0}, r"entropy_nats: is 50\.0, which cannot be reached"),
        ({"n_items": 10**6, "vocab_size": 10**6}, "vocab_size"),
    ],
    ids=repr,
)
def test_wrong_configs_are_named(change: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        designed_simulated(**TINY | change)
