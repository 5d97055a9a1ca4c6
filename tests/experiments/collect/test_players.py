"""Players that are not people: through a real server, by the command, and what their pages say."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from starlette.applications import Starlette

from shannon_game.estimators.comparison.simulation.participants import LAPSE_REPORTS
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.players.crowd import Crowd, play_all
from shannon_game.experiments.collect.players.demonstration import PlayedRow, players_of
from shannon_game.experiments.collect.players.people import simulated_people
from shannon_game.experiments.collect.players.world import world_of
from shannon_game.experiments.collect.settings import CollectSettings, PlayerPopulation
from shannon_game.experiments.studies.collected.loader import collected_study
from shannon_game.experiments.studies.comparison.simulated import simulated
from tests.experiments.command import run_experiment

TINY = (
    *("study=simulated", "study.n_items=12", "study.n_reference_items=12", "study.n_candidates=4"),
    *("study.vocab_size=80", "experiment.n_questions=4", "experiment.training_rounds=1", "experiment.n_players=3"),
)
BOTH = "experiment.game=[comparison,cloze]"


def test_the_command_serves_lets_them_play_and_sets_the_truth_beside(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'c.sqlite'}"
    command = ("+exp=collect", *TINY, BOTH, "experiment.players=simulated", f"experiment.database={url}")
    result = run_experiment(*command)
    assert list(result.table.columns) == [one.name for one in PlayedRow.columns]
    assert result.table["game"].tolist() == ["comparison", "cloze"]
    row = result.table.iloc[0]
    study = simulated(n_items=12, n_reference_items=12, n_candidates=4, vocab_size=80)
    found = collected_study(url=url)
    asked = found["item_id"].to_numpy().astype(int)
    truth = np.exp(-study["human_target_logprob"].to_numpy()[asked].mean())
    assert row["true_perplexity"] == pytest.approx(truth)
    # training rounds and attention checks are sent, and do not count
    assert result.table["n_answers"].tolist() == [3 * 4, 3 * 4]
    assert row["n_sent"] >= 3 * (1 + 1 + 4) - 3
    assert row["verdict"] in ("enough draws", "doubtful", "too few")
    about = "too few" if row["verdict"] == "too few" else "the verdict on people counts"
    assert any(about in warning for warning in result.warnings)
    assert row["perplexity_lower"] < row["perplexity"] < row["perplexity_upper"]
    result.writers["study.nc"](tmp_path / "study.nc")
    assert (tmp_path / "study.nc").stat().st_size > 0
    # what they left is a study like any other
    again = run_experiment("+exp=perplexity", "study=collected", f"study.url={url}", "players=human")
    exact = again.table[again.table["rounding"] == "none"]
    assert exact["perplexity"].item() == pytest.approx(row["perplexity"])
    # nobody plays twice, and players who would answer otherwise are another study's
    assert run_experiment(*command).table["n_answers"].tolist() == [3 * 4, 3 * 4]
    with pytest.raises(InputError, match=r"population: is .*noise_nats.*was launched with .*collection=NAME"):
        run_experiment(*command, "experiment.population.noise_nats=0.1")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("experiment.belief=nobody", "unknown belief 'nobody'"),
        ("experiment.players=robots", "players: is 'robots'"),
        ("experiment.population.slope_median=0", "slope_median"),
        ("experiment.population.bots=1", "bots"),
        (
            "experiment.contexts=99",
            r"contexts: is 99, .*and \d+ contexts of the study can be asked in comparison, cloze",
        ),
    ],
)
def test_settings_of_players_are_checked(tmp_path: Path, setting: str, message: str) -> None:
    url = f"experiment.database=sqlite:///{tmp_path / 'c.sqlite'}"
    with pytest.raises(InputError, match=message):
        run_experiment("+exp=collect", *TINY, BOTH, "experiment.players=simulated", url, setting)


@pytest.mark.parametrize("store_reference", [True, False])
@pytest.mark.parametrize("belief", ["human", "lm-weak", "lm-medium"])
def test_a_belief_is_a_distribution_that_gives_known_tokens_their_probabilities(
    belief: str, store_reference: bool
) -> None:
    study = simulated(n_items=6, n_reference_items=6, n_candidates=3, vocab_size=50, store_reference=store_reference)
    world = world_of(study, belief)
    for item in range(6):
        logprob, place = world.logprob(item), world.vocabulary.place
        assert np.logaddexp.reduce(logprob) == pytest.approx(0, abs=1e-5)
        np.testing.assert_allclose(
            [logprob[place[t]] for t in world.known(item)], list(world.known(item).values()), atol=1e-5
        )


def test_free_answers_are_draws_of_the_whole_belief() -> None:
    """5,000 people answer one item: shares of all 40 tokens, known to the study or not, by a chi-square of 39."""
    study = simulated(n_items=2, n_reference_items=2, n_candidates=2, vocab_size=40, store_reference=True)
    settings = PlayerPopulation(exponent=0.5, noise_nats=0.5)
    world = world_of(study, "assumed", population=settings)
    people, n = simulated_people(world, ParticipantPopulation(), 1, 0), 5_000
    drawn = [world.vocabulary.place[people.word(number, 1)] for number in range(n)]
    expected = n * np.exp(world.logprob(1))
    assert np.sum((np.bincount(drawn, minlength=40) - expected) ** 2 / expected) < 39 + 5 * np.sqrt(2 * 39)
    # ln h is the generator's, flatter, as a design assumes it
    g = study["reference_logprob"].to_numpy()[1]
    assert 0.2 < np.polyfit(g, world.logprob(1), 1)[0] < 0.8


def test_the_stated_share_of_players_are_bots_and_have_no_belief() -> None:
    study = simulated(n_items=30, n_reference_items=30, n_candidates=3, vocab_size=200, store_reference=True)
    world = world_of(study)
    settings = CollectSettings(players="simulated", game="cloze", n_players=20, population={"bots": 0.2})
    people = next(iter(players_of(study, settings).values())).people  # type: ignore[attr-defined]
    assert len(people.bots) == 4
    bot, human = min(people.bots), next(number for number in range(20) if number not in people.bots)
    reports = [[people.report(who, at, 0) for at in range(30)] for who in (bot, human)]
    # a bot's reports have nothing to do with the item, and its words are none that people would type
    assert set(reports[0]) <= set(LAPSE_REPORTS)
    log_odds = world.target_logprob - world.candidate_logprob[:, 0]
    assert abs(np.corrcoef(reports[0], log_odds)[0, 1]) < 0.5 < np.corrcoef(reports[1], log_odds)[0, 1]
    place = world.vocabulary.place
    typed = [np.mean([world.logprob(at)[place[people.word(who, at)]] for at in range(30)]) for who in (bot, human)]
    assert typed[0] < typed[1] - 1


def test_players_play_from_a_notebook_too() -> None:
    """A notebook's event loop runs already."""

    def nobody(*_: object) -> None:
        raise AssertionError

    async def cell() -> Crowd:
        return play_all([("P1", nobody)], "cloze", application=Starlette())  # type: ignore[list-item]

    inside = asyncio.run(cell())
    assert inside.problems == play_all([("P1", nobody)], "cloze", application=Starlette()).problems  # type: ignore[list-item]
    assert inside.n_sent.total() == 0
    assert len(inside.problems) == 1
    assert "404" in inside.problems[0]
