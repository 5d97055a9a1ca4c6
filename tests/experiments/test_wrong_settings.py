"""What questions refuse before anything is fitted: their settings, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.tvd.settings import TvdSettings
from shannon_game.experiments.documents.surprisal import SurprisalSettings
from tests.experiments.command import TINY, run_experiment

CLOZE = (
    *("study=cloze_simulated", "study.n_items=6", "study.items_per_text=2", "study.n_answers=12"),
    *("study.vocab_size=40", "study.n_samples=30"),
)
SBC = ("of=sbc", "study.n_items=40", "study.n_reference_items=40", "study.vocab_size=300", "study.n_candidates=40")
BETS = ("study.n_items=20", "study.n_participants=6", "study.n_answers=10", "study.vocab_size=60")
GIVEN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("perplexity", "calibration", "human_loss"), TINY),
    **dict.fromkeys(("tvd", "reproduce"), CLOZE),
    "recovery": SBC,
    "bet_perplexity": ("experiment.posterior=false",),
    "ard": ("study=cloze_simulated", "study.n_items=24", "study.items_per_text=6", "players=[factors]"),
    "design": ("study.n_items=30", "study.vocab_size=60", "experiment.contexts=[20,30]"),
}


WRONG = [
    ("perplexity", ["players=[human,human]"], "name each player once"),
    ("perplexity", ["rounding=custom", "rounding.values=[0,.5]"], "strictly between 0 and 1"),
    ("perplexity", ["+rounding.values=[0.1,0.9]"], "set rounding=custom"),
    ("perplexity", ["n=99"], "n: is 99, but item"),
    ("perplexity", ["vary=rounding", "experiment.schemes=[none,worse]"], "unknown rounding 'worse'"),
    ("perplexity", ["vary=bootstrap", "estimator=jackknife"], "estimator: is 'jackknife'"),
    ("perplexity", ["vary=sample_size", "estimator=rao_blackwell"], "estimator: is 'rao_blackwell'"),
    ("calibration", ["players=[lm-weak]"], "players: does nothing: calibration reads of the run's settings seed"),
    ("calibration", ["+experiment.priors.sigma=1"], "sigma"),
    ("human_loss", ["experiment.anchor=answers"], "anchor: is 'answers', but nobody answered freely"),
    ("human_loss", ["rounding=none"], "grid 'none'"),
    ("human_loss", ["experiment.leave_out=[-372181953]"], "unknown participant '-372181953'"),
    ("human_loss", ["+experiment.priors.sigmas=1"], "sigmas"),
    ("recovery", ["sampler=pymc"], "only nutpie"),
    ("recovery", ["experiment.n_ranked=5000"], "n_ranked"),
    ("recovery", [], "replicates"),
    ("ard", ["experiment.predictors=[mood]"], "unknown predictor 'mood'; choose one of: human_entropy"),
    ("ard", ["experiment.target_answers=50"], "no context has 68 answers"),
    ("ard", ["experiment.measured=[oracle_tvd,oracle_tvd]"], "experiment.measured: is .* list of names, each once"),
    ("tvd", ["players=[gpt9]"], "unknown model 'gpt9'; choose one of: mixture, factors"),
    ("tvd", ["n=[100]"], "needs at least twice the largest number"),
    ("tvd", ["experiment.item=9:9"], "no such context and no text '9'"),
    ("tvd", ["experiment.item=1", "n=[3]"], "one of them at a time"),
    ("reproduce", ["experiment.of=tvd"], "holds no stored results"),
    ("design", ["experiment.games=[bet]"], "unknown game 'bet'; did you mean 'bets'"),
    ("design", ["experiment.budget_minutes=null"], "budget_minutes: is null, and budget_money too"),
    ("design", ["experiment.pilot=nowhere.nc"], "nowhere.nc is no file"),
    ("bet_perplexity", [*BETS, "experiment.back_offs=[gpt]"], "unknown back_off 'gpt'"),
    ("bet_perplexity", [*BETS, "experiment.edges=[0,0.5]"], "should rise from 0 to 1"),
    ("bet_perplexity", ["study=simulated"], "is 'simulated', a comparison study; bet_perplexity needs a bet study"),
]


@pytest.mark.parametrize(("question", "overrides", "message"), WRONG)
def test_wrong_settings(question: str, overrides: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_experiment(f"+exp={question}", *GIVEN[question], *overrides)


ENDPOINT = {"source": "api", "base_url": "http://localhost:1/v1", "model": "m"}


@pytest.mark.parametrize(
    ("models", "message"),
    [(["api"], "'source': 'api'"), ([{**ENDPOINT, "name": "x"}], "choose one of: source, base_url, model")],
)
def test_an_endpoint_that_python_names_wrongly(models: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SurprisalSettings(models=models)


def test_one_distance_is_a_list_of_it() -> None:
    assert TvdSettings(distance="kl_nats").distance == ("kl_nats",)
