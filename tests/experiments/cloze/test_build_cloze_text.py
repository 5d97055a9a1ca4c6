"""Models behind an endpoint in a cloze study: words asked for one by one, and in a list."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from shannon_game import cloze_file
from shannon_game.estimators.cloze.words import FAILED
from tests.experiments.cloze.test_tvd_exact import TABLE
from tests.experiments.command import behind_endpoint, prepared
from tests.inference.api.fake_server import serving
from tests.inference.api.talking_server import TalkingEndpoint

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("api_key")]


def built(tmp_path: Path, endpoint: TalkingEndpoint, *more: str) -> dict[str, Counter[str]]:
    """Words of the endpoint's player by context, as the study that was written has them."""
    (tmp_path / "answers.csv").write_text(TABLE, encoding="utf-8")
    job = prepared(
        *("+exp=build_cloze", "study=cloze_table", f"study.path={tmp_path / 'answers.csv'}"),
        *behind_endpoint(endpoint.url, concurrency=1),
        *(f"experiment.{name}={tmp_path / name}" for name in ("store", "api_store")),
        *more,
    )
    result = job.run()
    result.writers["study.nc"](tmp_path / "study.nc")
    study = cloze_file(path=str(tmp_path / "study.nc"))
    words = study["word_text"].to_numpy()
    found: dict[str, Counter[str]] = {str(text): Counter() for text in study["context"].to_numpy()}
    contexts = study["context"].to_numpy()[study["entry_item"].to_numpy()]
    for entry, word, count in zip(
        *(study[f"sample_{name}"].to_numpy().tolist() for name in ("entry", "word", "count")), strict=True
    ):
        found[str(contexts[entry])][str(words[word])] += count
    return found


def test_words_are_drawn_one_a_call(tmp_path: Path) -> None:
    calls: list[str] = []

    def says(system: str, user: str) -> tuple[str, dict[str, float]]:
        calls.append(user)
        return (" road.", "two words")[len(calls) % 2], {}

    with serving(TalkingEndpoint(says)) as endpoint:
        found = built(tmp_path, endpoint, "experiment.n_samples=4")
    assert len(calls) == 4 * len(found)
    assert all(words == {"road.": 2, FAILED: 2} for words in found.values())


def test_one_answer_lists_words(tmp_path: Path) -> None:
    """The paper's prompt is one system message with the context and the number in it."""

    def says(system: str, user: str) -> tuple[str, dict[str, float]]:
        assert re.search(r"which 3 words are plausible continuations to the context '.+'", system, re.DOTALL)
        return "1. road\n2. two words\n- river, sea, tree", {}

    with serving(TalkingEndpoint(says)) as endpoint:
        found = built(tmp_path, endpoint, "experiment.n_listed=3", "prompt=plausible_words")
        assert sum(endpoint.charged.values()) == len(found)
    assert all(words == {"road": 1, "river": 1, "sea": 1} for words in found.values())
