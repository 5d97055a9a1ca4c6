"""Other people score about 1 and shuffled people about 0, in every ability; a model that fails costs no other its own.

Shares of one simulated study each: tolerances are about three standard errors of a share there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import shannon_game as sg
from shannon_game.estimators import guesses
from shannon_game.estimators.documents import ceiling_share
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.boards import reading_times as board_reading_times
from shannon_game.experiments.boards.abilities import DEFINITIONS, Asked, BesidePeopleSettings, Measured, UnitScores
from shannon_game.experiments.boards.first_guesses import first_guesses
from shannon_game.experiments.boards.next_words import next_words
from shannon_game.experiments.boards.odds import odds
from shannon_game.experiments.boards.reading_times import reading_times
from shannon_game.experiments.harness.result import ExperimentResult
from tests.experiments.tiny_language_models import write_models


def asked(folder: Path, **settings: object) -> Asked:
    return Asked.by(BesidePeopleSettings(n_splits=10, store=folder, **settings))


def share(one: UnitScores, ability: str, player: str) -> float:
    its = DEFINITIONS[ability, one.score]
    assert one.floor is not None
    assert one.ceiling is not None
    values = np.atleast_2d(one.of_player[player])
    known = np.isfinite(values).all(axis=0)
    ends = (np.atleast_2d(part)[:, known] for part in (one.floor, one.ceiling))
    return ceiling_share(
        values[:, known], *ends, group=one.group[known], lower_is_better=its.lower_is_better, n_replicates=20
    ).share


def test_next_words(tmp_path: Path) -> None:
    how: dict[str, Any] = {"n_items": 80, "vocab_size": 300, "n_answers": 40, "n_samples": 20, "families": ["same"]}
    study = sg.cloze_simulated(**how)
    # contexts of eight kinds, each with words of its kind
    words = [f"{word}{kind}" for word in study["word_text"].to_numpy() for kind in "abcdefgh"]
    codes = {"response_word": study["response_item"], "sample_word": study["entry_item"][study["sample_entry"]]}
    study = study.drop_dims("word").assign(
        word_text=("word", np.array(words, dtype=object)),
        **{name: (study[name].dims, study[name].to_numpy() * 8 + at.to_numpy() % 8) for name, at in codes.items()},
    )
    moved = study.assign(entry_item=("entry", (study["entry_item"].to_numpy() + 3) % 80))
    for its, expected, tolerance in ((study, 1.0, 0.15), (moved, 0.0, 0.25)):
        scores = {one.score: one for one in next_words(its, {}, asked(tmp_path)).scores}
        for score in ("tvd", "jensen_shannon", "modal_word"):
            assert share(scores[score], "next_words", "same") == pytest.approx(expected, abs=tolerance), score
        few, some = (share(scores["modal_word"], "next_words", f"majority_{n}") for n in (1, 5))
        assert few < some < 1
    assert "majority_20" not in scores["modal_word"].of_player


def test_odds(tmp_path: Path) -> None:
    how: dict[str, Any] = {"n_items": 100, "n_reference_items": 100, "vocab_size": 200, "n_candidates": 8}
    people = {"noise_median_nats": 0.3, "slope_log_sd": 0.1, "bias": False, "lapses": False}
    study = sg.simulated(**how, n_participants=40, excess_nats={"human": 0.2}, participants=people)
    items = study["item"].to_numpy().tolist()
    at = np.array([items.index(item) for item in study["response_item"].to_numpy()])
    candidate, report = study["response_candidate"].to_numpy(), study["report"].to_numpy()
    person = np.unique(study["participant"].to_numpy().astype(str), return_inverse=True)[1]
    rng, found = np.random.default_rng(0), []
    half = rng.permutation(40) < 20
    for others in (report, rng.permutation(report)):
        # one half of the people as a model: their mean log-odds of each pair, or even odds where none of them saw it
        logit = np.log((1 - others) / others)
        own = half[person]
        total, n = np.zeros((len(items), 8)), np.zeros((len(items), 8))
        np.add.at(total, (at[own], candidate[own]), logit[own])
        np.add.at(n, (at[own], candidate[own]), 1)
        logprob = study["candidate_logprob"].to_numpy().copy()
        place = study["model"].to_numpy().tolist().index("lm-weak")
        logprob[place] = study["target_logprob"].to_numpy()[place][:, None] + total / np.maximum(n, 1)
        its = study.assign(candidate_logprob=(study["candidate_logprob"].dims, logprob))
        rest = its.isel(response=np.flatnonzero(~own))
        scores = {one.score: one for one in odds(rest, {}, asked(tmp_path)).scores}
        found.append(share(scores["points"], "odds", "lm-weak"))
    assert found[0] == pytest.approx(1, abs=0.35)
    # reports of other pairs are worse than always 50%, as they are as sure
    assert found[1] < 0.2


def test_first_guesses(tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(0), []
    tokens = [f"w{number}" for number in range(12)]
    for document in range(20):
        for position in range(8):
            target, chance = str(rng.choice(tokens)), rng.beta(2, 2)
            for person in range(16):
                said = target if rng.random() < chance else str(rng.choice(tokens))
                rows.append((f"p{person}", f"d{document}", position, target, said))
    table = pd.DataFrame(rows, columns=["participant", "document", "position", "target", "guess"])
    own = table["participant"].isin([f"p{person}" for person in range(8)])
    study, places = sg.guess_study(table[~own]), table[own].groupby(["document", "position"], sort=False)
    hits = dict(iter(places))
    keys = list(zip(study["item_document"].to_numpy(), study["item_position"].to_numpy(), strict=True))
    right = np.array([(hits[key]["guess"] == hits[key]["target"]).mean() for key in keys])
    target, said = (np.array([hits[key][name].iloc[0] for key in keys]) for name in ("target", "guess"))
    study = guesses.with_model_answers(study, "others", hit=right)
    study = guesses.with_model_answers(study, "shuffled", hit=rng.permutation(said) == target)
    # a table of guesses has no text that a model could go on
    found = first_guesses(
        study, BesidePeopleSettings(models={"m": {"source": "folder", "path": "m"}}).models, asked(tmp_path)
    )
    assert "no language model can play it" in found.left_out["m"]
    (scores,) = found.scores
    assert share(scores, "first_guesses", "others") == pytest.approx(1, abs=0.1)
    assert share(scores, "first_guesses", "shuffled") == pytest.approx(0, abs=0.15)
    # five of them are right more often than one is
    assert share(scores, "first_guesses", "majority_5") > 1.2


@pytest.fixture
def reading() -> xr.Dataset:
    """Times of 12 readers, 6 of whom the study has; what the others took stands in the attributes."""
    rng, rows = np.random.default_rng(3), []
    texts = {f"t{at}": ["w" * int(n) for n in rng.integers(1, 9, 60)] for at in range(8)}
    for name, words in texts.items():
        hard = rng.normal(0, 40, len(words))
        for reader in range(12):
            ms = 300 + 5 * np.array([len(word) for word in words]) + hard + rng.normal(0, 30, len(words))
            rows += [(name, at, word, t, f"r{reader}") for at, (word, t) in enumerate(zip(words, ms, strict=True), 1)]
    table = pd.DataFrame(rows, columns=["text", "word_num", "word", "ms", "participant"])
    own = table["participant"].isin([f"r{reader}" for reader in range(6)])
    others = table[~own].groupby(["text", "word_num"], as_index=False).agg(surprisal_nats=("ms", "mean"))
    study = sg.text_study(pd.DataFrame({"id": list(texts), "text": map(" ".join, texts.values())}), id_field="id")
    times = {f"reading_{name}": ("reading", table[own][name].to_numpy()) for name in table}
    return study.assign(times).assign_attrs(
        others=others.rename(columns={"text": "document"}).assign(model="m", sum_bits=np.nan)
    )


def test_reading_times(reading: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others, rng = reading.attrs.pop("others"), np.random.default_rng(0)
    shuffled = others.assign(surprisal_nats=rng.permutation(others["surprisal_nats"]))
    few = others.assign(surprisal_nats=others["surprisal_nats"].where(others["word_num"] < 9))
    frames = {"others": others, "shuffled": shuffled, "few": few}

    def surprisal(study: xr.Dataset, models: dict[str, Any], **_: object) -> ExperimentResult:
        (name,) = models
        return ExperimentResult(pd.DataFrame(), xr.Dataset(), {}, "", tables={"words": frames[name]})

    monkeypatch.setattr(board_reading_times, "surprisal", surprisal)
    found = reading_times(reading, dict.fromkeys(frames), asked(tmp_path))  # type: ignore[arg-type]
    (scores,) = found.scores
    # the mean of six readers, where the ceiling has three
    assert 0.9 < share(scores, "reading_times", "others") < 1.6
    assert share(scores, "reading_times", "shuffled") == pytest.approx(0, abs=0.1)
    # the others keep the words that one model lacks
    assert found.left_out == {"few": "has a surprisal of 64 of 480 words"}
    frames = {"few": few.assign(surprisal_nats=np.nan)}
    with pytest.raises(InputError, match="few: has a surprisal of 0 of 480 words"):
        reading_times(reading, dict.fromkeys(frames), asked(tmp_path))  # type: ignore[arg-type]


@pytest.mark.torch
def test_a_model_that_fails_is_left_out_alone(reading: xr.Dataset, tmp_path: Path) -> None:
    reading.attrs.pop("others")
    write_models(tmp_path / "models")
    models = {name: {"source": "folder", "path": str(tmp_path / "models" / name)} for name in ("a", "gone")}
    ask = asked(tmp_path / "store", models=models)
    answers = [(f"the cook {verb} the", word, f"t{verb}") for verb in ("saw", "ate") for word in ("soup", "pot") * 4]
    text = guesses.examples.guess_study()
    tokens = np.array([f" w{position}" for position in text["item_position"].to_numpy()], dtype=object)
    comparison = sg.simulated(n_items=6, n_reference_items=10, vocab_size=50, n_candidates=5, n_participants=4)
    words = {name: np.array([f" {word}" for word in values.ravel().astype(str)], dtype=object).reshape(values.shape)
             for name in ("target_token", "candidate_token") for values in [comparison[name].to_numpy()]}  # fmt: skip
    comparison = comparison.assign({name: (comparison[name].dims, values) for name, values in words.items()})
    found: dict[str, Measured] = {
        "next_words": next_words(
            sg.cloze_study(pd.DataFrame(answers, columns=["context", "response", "text_id"])), ask.settings.models, ask
        ),
        "reading_times": reading_times(reading, ask.settings.models, ask),
        "odds": odds(
            comparison.assign(context=("item", np.array(["the cook"] * comparison.sizes["item"], dtype=object))),
            ask.settings.models,
            ask,
        ),
        "first_guesses": first_guesses(text.assign(target_token=("item", tokens)), ask.settings.models, ask),
    }
    for ability, its in found.items():
        assert "gone" in its.left_out, ability
        assert "gone" in str(its.left_out["gone"]), ability
        assert its.scores[0].of_player.keys() & {"a", "gone"} == {"a"}, ability
