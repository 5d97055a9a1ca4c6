"""Ranks among whole words: by hand from the words' probabilities, for models of two tokenizers at the same places."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from shannon_game import rules, word_ranks, written
from shannon_game.estimators.documents.rules import COLOURS
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.rankings.word_ranks import EVERYTHING
from shannon_game.inference.lm import ModelSettings, encode, load_language_model, word_log_probs
from tests.experiments.command import prepared
from tests.experiments.tiny_language_models import named

pytestmark = pytest.mark.torch

pytest.importorskip("torch")


def overrides(root: Path, store: Path, *more: str) -> list[str]:
    return [
        *("+exp=word_ranks", "study=texts", f"study.path={root / 'texts'}", "model=[]", *named(root, "a", "d")),
        *("experiment.n_places=5", "experiment.context_words=6", "experiment.n_candidates=8", "experiment.top_k=4"),
        *(f"experiment.store={store}", "output.dpi=40", *more),
    ]


def test_ranks_are_those_of_the_words_probabilities(root: Path, tmp_path: Path) -> None:
    job = prepared(*overrides(root, tmp_path / "store"))
    result = job.run()
    assert result.table["split"].tolist()[0] == EVERYTHING
    rows = result.tables["items"]
    assert rows.groupby("model").size().to_dict() == {"a": 5, "d": 5}
    # the same places for both, whatever their tokens
    of = {name: its.reset_index(drop=True) for name, its in rows.groupby("model")}
    assert (of["a"][["document", "word"]] == of["d"][["document", "word"]]).all(axis=None)
    texts = dict(zip(job.study["document"].to_numpy(), job.study["text"].to_numpy(), strict=True))
    model = load_language_model(
        ModelSettings(name="a", source="folder", path=str(root / "a"), device="cpu", bos="<|endoftext|>")
    )
    place = of["a"].iloc[0]
    words = texts[place["document"]].split(" ")
    n_candidates = int(result.table["n_candidates"].iloc[0])
    assert 8 <= n_candidates <= 13
    # one of the places in the text where this word has six words before it
    scores = []
    for at in range(6, len(words)):
        if words[at].strip(".,") == place["word"]:
            context = " ".join(words[at - 6 : at])
            scores.append(float(word_log_probs(model, encode(model, [context]), [[place["word"]]])["logprob"][0]))
    assert min(abs(score - place["logprob_nats"]) for score in scores) < 1e-4
    row = result.table.set_index(["model", "split"]).loc[("a", EVERYTHING)]
    assert row["top1_accuracy"] == pytest.approx((of["a"]["rank"] == 1).mean())
    assert row["reciprocal"] == pytest.approx((1 / of["a"]["rank"]).mean())
    assert (of["a"]["logprob_of_candidates_nats"] >= of["a"]["logprob_nats"] - 1e-9).all()


def test_texts_that_a_model_writes(root: Path) -> None:
    model = ModelSettings(name="a", source="folder", path=str(root / "a"), device="cpu", bos="<|endoftext|>")
    given = {"path": root / "texts", "writer": model, "prompt_words": 8, "max_tokens": 30}
    study = written(**given, seed=1)
    of = {name: study["text"].to_numpy()[study["split"].to_numpy() == name].tolist() for name in ("people", "a")}
    assert len(of["people"]) == len(of["a"]) >= 1
    for by_people, by_model in zip(of["people"], of["a"], strict=True):
        assert len(by_people.split()) == len(by_model.split()) >= 1
        assert by_people != by_model
    # what people wrote goes on from the beginning
    source = {path.name: path.read_text().split() for path in (root / "texts").rglob("*.txt")}
    for name, text in zip(study["document"].to_numpy(), study["text"].to_numpy(), strict=True):
        if name.startswith("people/"):
            assert source[name.rsplit("/", 1)[1]][8 : 8 + len(text.split())] == text.split()
    assert written(**given, seed=1).identical(study)
    assert not written(**given, seed=2).equals(study)
    with pytest.raises(InputError, match="prompt_words: is 500, and no text has more words"):
        written(path=root / "texts", writer=model, prompt_words=500)


class Reader:
    """Follows the rules in the last so many words, and lifts the colour that it finds above its own taste."""

    def __init__(self, n_words: int, nats: float, erratic: float = 0.0) -> None:
        self.n_words, self.nats, self.erratic = n_words, nats, erratic

    def next_word(self, contexts: list[str], words: list[list[str]]) -> list[np.ndarray]:
        found = []
        for context, some in zip(contexts, words, strict=True):
            read = " ".join(context.split()[-self.n_words :])
            thing = re.search(r"The colour of the (\w+) is", read)[1]
            # a text and its control ask about one thing, and end alike
            rng = np.random.default_rng([*read[-60:].encode()])
            logit = rng.normal(0, 1, len(some))
            logit[[word == colour_of(thing, read) for word in some]] += self.nats
            logit *= np.exp(self.erratic * rng.normal())
            found.append(logit - np.logaddexp.reduce(logit))
        return found


def colour_of(thing: str, text: str) -> str | None:
    """Follow chains, what is ruled out, and conditions that hold."""
    while (kind := re.search(rf"Every {thing} is an? (\w+)\.", text)) is not None:
        thing = kind[1]
    if (said := re.search(rf"(?:If the ([a-z ]+), e|E)very {thing} is (\w+)\.", text)) is not None:
        return said[2] if said[1] is None or f"The {said[1]}." in text else None
    if (two := re.search(rf"Every {thing} is (\w+) or (\w+)\.", text)) is None:
        return None
    return next((one for one, other in (two.groups(), two.groups()[::-1]) if f"No {thing} is {other}." in text), None)


def effects(n_texts: int, noise: list[int], reader: Reader, **given: Any) -> pd.DataFrame:
    """Gain and effect of the rules, which come first, by split and score."""
    study = rules(n_texts=n_texts, noise=noise, seed=1, place="first", **given)
    result = word_ranks(study, models={"reader": reader}, places="last", candidates=COLOURS)
    return result.tables["controls"].set_index(["split", "score"])


@pytest.mark.parametrize("inference", ["chain", "exclusion", "condition"])
def test_a_reader_of_the_rules_is_told_from_one_who_stops_reading(inference: str) -> None:
    """Sixteen thousand tokens: 1,400 sentences of noise between rules and question."""
    for n_words, knows in ((100_000, True), (2_000, False)):
        found = effects(6, [1, 1400], Reader(n_words, nats=20.0), n_steps=2, inferences=[inference])["gain"]
        near, far = found["1 sentence of noise"], found["1,400 sentences of noise"]
        assert near["logprob_of_candidates_nats"] > 1
        assert near["average"] > 0.1
        assert (far["logprob_of_candidates_nats"] > 1) == (far["average"] > 0.1) == knows
        assert knows or far.abs().max() == 0


def test_which_of_two_scores_sees_what_a_reader_knows() -> None:
    """Steady evidence shows in the probability; confidence that is erratic blurs the probability, not the ranks.

    Of 4,000 drawn pairs the effects are 6.5 and 0.6, and 0.2 and 2.4; the factor of 3 leaves half of that to chance.
    """
    steady = effects(60, [1], Reader(1000, nats=0.5))["effect"]["1 sentence of noise"]
    assert steady["logprob_of_candidates_nats"] > 3 * steady["reciprocal"] > 0
    erratic = effects(60, [1], Reader(1000, nats=4.0, erratic=2.0))["effect"]["1 sentence of noise"]
    assert erratic["reciprocal"] > 3 * erratic["logprob_of_candidates_nats"] > 0
