"""Language models in front of the pages: an endpoint answers what the pages show, and the answers are a study."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shannon_game.experiments.collect.games.practice import obvious_words
from shannon_game.experiments.studies.collected.loader import collected_study
from shannon_game.experiments.studies.comparison.simulated import simulated
from shannon_game.inference.text.prompts import shown
from tests.experiments.collect.test_players import TINY
from tests.experiments.command import behind_endpoint, run_experiment
from tests.inference.api.fake_server import serving
from tests.inference.api.talking_server import TalkingEndpoint

pytestmark = pytest.mark.usefixtures("api_key")
_COMPARISON = re.compile(r"Text: (.*)\n\nA: (.*)\nB: (.*)\n(.*)", re.DOTALL)
Says = Callable[[str, str], tuple[str, dict[str, float]]]


def overrides(url: str, folder: Path, *more: str) -> list[str]:
    settings = {
        "experiment.n_players": 2,
        "experiment.api_store": folder / "answers.db",
        "experiment.store": folder / "store",
        "experiment.database": f"sqlite:///{folder / 'c.sqlite'}",
    }
    given = [f"{name}={value}" for name, value in settings.items()]
    return ["+exp=collect", *TINY, "experiment.players=model", *behind_endpoint(url), *given, *more]


def knowing() -> tuple[Says, list[str]]:
    """Gives the target 90%, types the target's word, and does what a check asks for; keeps what it was asked."""
    study = simulated(n_items=12, n_reference_items=12, n_candidates=4, vocab_size=80)
    targets = {
        str(context).strip(): str(target)
        for context, target in zip(study["context"].values, study["target_token"].values, strict=True)
    }
    targets |= {context: f" {word}" for context, word in obvious_words().items()}
    asked: list[str] = []

    def says(system: str, user: str) -> tuple[str, dict[str, float]]:
        asked.append(user)
        check = re.search(r"please choose (\d+)%|please type the word (\w+)\.", user)
        if check:
            return check[1] or check[2], {}
        if found := _COMPARISON.search(user):
            context, a, _, _ = found.groups()
            return ("90%" if a == shown(targets[context.strip()]) else "10%"), {}
        return "word", {}

    return says, asked


def test_a_model_plays_through_the_pages(tmp_path: Path) -> None:
    says, asked = knowing()
    with serving(TalkingEndpoint(says)) as endpoint:
        more = ("experiment.game=[comparison,cloze]", "experiment.attention_share=0.25")
        result = run_experiment(*overrides(endpoint.url, tmp_path, *more))
    url = f"sqlite:///{tmp_path / 'c.sqlite'}"
    # of equal tokens the game answers by itself
    study = collected_study(url=url, most_failed_checks=0)
    drawn = study["report"].values[~study["automatic"].values]
    assert set(drawn.round(6)) == {0.9}
    assert len(set(study["participant"].values.tolist())) == 2
    words = collected_study(url=url, game="cloze")
    assert set(words["word_text"].values[words["response_word"].values].tolist()) == {"word"}
    assert any("This question checks that you are reading" in user for user in asked)
    # nothing but the page: no probability of any model, no right answer
    assert all("logprob" not in user for user in asked)
    assert result.table["game"].tolist() == ["comparison", "cloze"]
    assert result.table["true_perplexity"].isna().all()
    # nothing but what is said of every estimate
    assert not [text for text in result.warnings if "session" in text or "left" in text]


def test_a_model_plays_every_other_game_and_the_slider(tmp_path: Path) -> None:
    """It draws one of three words, one more often than the others, and says 90% of A whatever it is."""
    said: list[str] = []

    def says(system: str, user: str) -> tuple[str, dict[str, float]]:
        said.append(user)
        if _COMPARISON.search(user):
            return "90%", {}
        return ("bo", "bo", "boba", "zu,")[len(said) % 4], {}

    study = simulated(n_items=12, n_reference_items=12, n_candidates=4, vocab_size=80)
    vocabulary = tmp_path / "vocabulary.jsonl"
    tokens = [*study["target_token"].values.tolist(), " bo", " boba", "zu"]
    vocabulary.write_text("\n".join(json.dumps(token) for token in tokens))
    more = (
        "experiment.game=[comparison,top1,guess_until_right,bets]", "experiment.scale=slider",
        "experiment.attention_share=0", f"experiment.vocabulary={vocabulary}", "experiment.most_guesses=3",
    )  # fmt: skip
    with serving(TalkingEndpoint(says)) as endpoint:
        result = run_experiment(*overrides(endpoint.url, tmp_path, *more, "experiment.tries=8"))
    assert result.table["n_answers"].tolist()[1:] == [2 * 4, 2 * 4, 2 * 4]
    url = f"sqlite:///{tmp_path / 'c.sqlite'}"
    compared = collected_study(url=url)
    own = ~compared["automatic"].values
    expected = np.where(compared["target_side"].values[own] == "A", 0.9, 0.1)
    # nearer than half a step of the slider
    report = compared["report"].values[own]
    np.testing.assert_allclose(np.log(report / (1 - report)), np.log(expected / (1 - expected)), atol=0.051)
    assert set(collected_study(url=url, game="top1")["guess"].values.tolist()) <= {" bo", " boba", "zu"}
    guesses = collected_study(url=url, game="guess_until_right")
    assert any("It is not: " in user for user in said)
    assert guesses.sizes["response"] > 8
    bets = collected_study(url=url, game="bets")
    # a word's chips are its share of the draws
    stakes = bets["bet_stake"].values[bets["bet_word"].values == "bo"]
    assert len(stakes) == 8
    assert 0.3 < stakes.mean() < 0.7


def test_what_cannot_be_read_is_asked_for_again(tmp_path: Path) -> None:
    says, _ = knowing()
    before: dict[str, int] = {}

    def stammering(system: str, user: str) -> tuple[str, dict[str, float]]:
        before[user] = before.get(user, 0) + 1
        return ("Well...", {}) if before[user] == 1 else says(system, user)

    with serving(TalkingEndpoint(stammering)) as endpoint:
        run_experiment(*overrides(endpoint.url, tmp_path, "experiment.game=comparison"))
    drawn = collected_study(url=f"sqlite:///{tmp_path / 'c.sqlite'}")
    assert set(drawn["report"].values[~drawn["automatic"].values].round(6)) == {0.9}
    # the same question a second time is another draw, at a temperature that gives other answers
    again = [body for body in endpoint.bodies if "seed" in body]
    assert len({body["seed"] for body in again}) > 1
    assert all(body["temperature"] == 1.0 for body in again)
