"""Ranks among whole words: by hand from the words' probabilities, for models of two tokenizers at the same places."""

from __future__ import annotations

from pathlib import Path

import pytest

from shannon_game import written
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
