"""Scores of models beside people against plain loops, on studies whose answers, draws and reports are known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import shannon_game as sg
from shannon_game.estimators import cloze, guesses
from shannon_game.estimators.comparison.reports import report_from_log_ratio
from shannon_game.estimators.documents import ceiling_share
from shannon_game.experiments.boards.abilities import Asked, BesidePeopleSettings, UnitScores
from shannon_game.experiments.boards.first_guesses import first_guesses
from shannon_game.experiments.boards.next_words import next_words, people_of
from shannon_game.experiments.boards.odds import odds
from shannon_game.experiments.boards.reading_times import reading_times
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.inference.lm.settings import OwnSettings
from tests.experiments.command import ROOT
from tests.oracles import boards

SPLITS = 3
TEXTS = ["the cook stirred the soup", "the pilot landed the plane", "she opened the door", "he ate the soup"]
SAID = {"the cook stirred the": ("soup", "pot", "soup", "pan"), "he ate": ("the", "soup", "a", "the")}


def asked(folder: Path, **settings: object) -> Asked:
    return Asked.by(BesidePeopleSettings(n_splits=SPLITS, store=folder, **settings))


def by_score(scores: tuple[UnitScores, ...]) -> dict[str, UnitScores]:
    return {one.score: one for one in scores}


def counted(counts: cloze.WordCounts, part: np.ndarray, context: int) -> dict[str, int]:
    rows = np.flatnonzero((counts.context == context) & (part > 0))
    return {str(counts.word[row]): int(part[row]) for row in rows}


def test_next_words_of_samples(tmp_path: Path) -> None:
    study, ask = sg.cloze_simulated(n_items=14, vocab_size=40, n_answers=20, n_samples=25), asked(tmp_path)
    found, people = by_score(next_words(study, {}, ask).scores), people_of(study, ask)
    halves = people.halves
    for name, model in people.words.models.items():
        drawn = cloze.subsampled_words(halves, model.counts, rng=rng_for(0, "words drawn"))
        for context in range(14):
            tvd, modal = [], []
            for split in range(SPLITS):
                first = counted(halves.counts, halves.first[split], context)
                words = counted(halves.counts, drawn[split], context)
                words["another"] = 10 - sum(words.values())
                tvd.append(boards.tvd(first, words))
                # the first of a model's most frequent words is its mode
                its = counted(model.counts, model.counts.count, context)
                modal.append(boards.modes(first).get(max(its, key=lambda word: its[word]), 0.0))
            assert found["tvd"].of_player[name][context] == pytest.approx(np.mean(tvd), abs=1e-6)
            assert found["modal_word"].of_player[name][context] == pytest.approx(np.mean(modal), abs=1e-6)
    for context in range(14):
        pairs = [
            (counted(halves.counts, a, context), counted(halves.counts, b, context))
            for a, b in zip(halves.first, halves.second, strict=True)
        ]
        own = found["jensen_shannon"].ceiling[context]
        assert own == pytest.approx(np.mean([boards.jensen_shannon(*pair) for pair in pairs]), abs=1e-6)


def test_next_words_of_an_ngram_model(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    rows = [(context, word, f"t{at}") for at, (context, words) in enumerate(SAID.items()) for word in words * 3]
    study = sg.cloze_study(pd.DataFrame(rows, columns=["context", "response", "text_id"]))
    model = {"source": "ngram", "path": str(tmp_path / "texts.txt"), "order": 1}
    ask = asked(tmp_path / "store", models={"unigram": model})
    found, people = by_score(next_words(study, ask.settings.models, ask).scores), people_of(study, ask)
    p = boards.kneser_ney_unigram(" ".join(TEXTS).split(), len(TEXTS))
    counts, halves = people.counts, people.halves
    answers = [{word: words.count(word) * 3 for word in words} for words in SAID.values()]
    for context, words in enumerate(SAID.values()):
        unknown = {word for word in words if word not in p}
        q = {word: p[""] / len(unknown) if word in unknown else p[word] for word in words}
        floor = boards.unigram(answers, ["t0", "t1"], f"t{context}")
        nats, base = [], []
        for part in halves.first:
            first = {str(people.words.strings[int(code)]): n for code, n in counted(counts, part, context).items()}
            nats.append(boards.cross_entropy(first, q))
            base.append(boards.cross_entropy(first, floor))
        assert found["cross_entropy"].of_player["unigram"][context] == pytest.approx(np.mean(nats), abs=1e-6)
        assert found["cross_entropy"].floor[context] == pytest.approx(np.mean(base), abs=1e-6)
        share = {word: words.count(word) / 4 for word in words}
        exact = 1 - sum(min(share[word], q[word]) for word in share)
        assert found["exact_tvd"].of_player["unigram"][context] == pytest.approx(exact, abs=1e-6)


class Guesser:
    """An engine that gives the first of the words asked for most, and all others equally much."""

    whole_words = True

    def __init__(self, first: float, begins: str) -> None:
        self.first, self.begins = first, begins

    def next_word(self, contexts: list[str], words: list[list[str]]) -> list[list[float]]:
        del contexts
        return [[math.log(self.first), *[math.log(1e-6)] * (len(some) - 1)] for some in words]

    def generate(self, prompts: list[str], **how: object) -> list[str]:
        del how
        return [self.begins] * len(prompts)


def test_a_modal_word_is_peoples_only_where_no_other_can_be_more_probable(tmp_path: Path) -> None:
    rows = [(context, "soup") for context in ("She ate the", "He stirred the") for _ in range(4)]
    study = sg.cloze_study(pd.DataFrame(rows, columns=["context", "response"]))
    for first, begins, expected in ((0.01, ", and", 0), (0.01, " piano", 0), (0.01, " soup", 1), (0.6, ", and", 1)):
        models = {"guesser": OwnSettings(name="guesser", target="Guesser", given=Guesser(first, begins))}
        found = by_score(next_words(study, models, asked(tmp_path)).scores)
        assert found["modal_word"].of_player["guesser"].tolist() == [expected] * 2, (first, begins)


def test_odds_of_models_and_of_people(tmp_path: Path) -> None:
    study = sg.simulated(n_items=10, n_reference_items=20, vocab_size=200, n_candidates=30, n_participants=8)
    found = by_score(odds(study, {}, asked(tmp_path)).scores)
    items = study["item"].to_numpy().tolist()
    at = [items.index(item) for item in study["response_item"].to_numpy()]
    candidate = study["response_candidate"].to_numpy()
    generator = study.sel(model=study.attrs["generator"])
    g_target, g_candidate = generator["target_logprob"].to_numpy()[at], generator["candidate_logprob"].to_numpy()
    equal = study["candidate_token"].to_numpy()[at, candidate] == study["target_token"].to_numpy()[at]
    names = found["loss"].unit.astype(int).tolist()
    for player in ("lm-weak", "lm-strong", None):
        report = study["report"].to_numpy()
        if player is not None:
            its = study.sel(model=player)
            ratio = its["candidate_logprob"].to_numpy()[at, candidate] - its["target_logprob"].to_numpy()[at]
            report = report_from_log_ratio(ratio)
        said = np.where(equal, 0.5, report).tolist()
        item = study["response_item"].to_numpy().tolist()
        loss = boards.loss(list(zip(item, said, g_candidate[at, candidate].tolist(), strict=True)))
        points = boards.points(list(zip(item, said, g_target.tolist(), strict=True)))
        for score, plain in (("loss", loss), ("points", points)):
            one = found[score]
            ours = one.ceiling if player is None else one.of_player[player]
            assert ours is not None
            np.testing.assert_allclose(ours.mean(axis=0), [plain[name] for name in names], atol=1e-6)
    # 50% for everything: each candidate counts as 1 / g
    even = boards.loss([(i, 0.5, x) for i, x in zip(item, g_candidate[at, candidate].tolist(), strict=True)])
    np.testing.assert_allclose(found["loss"].floor.mean(axis=0), [even[name] for name in names], atol=1e-6)


def test_people_are_above_the_most_frequent_token(tmp_path: Path) -> None:
    study = guesses.with_model_answers(guesses.examples.guess_study(), "all", hit=[1] * 48)
    tokens = np.array([f" w{position}" for position in study["item_position"].to_numpy()], dtype=object)
    study = study.assign(target_token=("item", tokens))
    (found,) = first_guesses(study, {}, asked(tmp_path)).scores
    assert found.of_player["all"].mean() == 1
    answers = study["correct"].to_numpy()
    by_item = pd.Series(answers).groupby(study["response_item"].to_numpy()).mean()
    assert found.ceiling.mean() == pytest.approx(by_item.mean())
    assert ceiling_share(found.of_player["all"], found.floor, found.ceiling, group=found.group).share >= 1


def test_reading_times_count_texts_by_their_words(tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(1), []
    texts = {f"t{at}": ["w" * int(n) for n in rng.integers(1, 9, 20 + at)] for at in range(4)}
    for reader in range(6):
        for name, words in texts.items():
            ms = 300 + 20 * np.array([len(word) % 4 for word in words]) + rng.normal(0, 20, len(words))
            rows += [(name, at, word, t, f"r{reader}") for at, (word, t) in enumerate(zip(words, ms, strict=True), 1)]
    study = sg.text_study(pd.DataFrame({"id": list(texts), "text": map(" ".join, texts.values())}), id_field="id")
    columns = zip(("text", "word_num", "word", "ms", "participant"), zip(*rows, strict=True), strict=True)
    study = study.assign({f"reading_{name}": ("reading", np.array(cells)) for name, cells in columns})
    (tmp_path / "texts.txt").write_text("\n".join(map(" ".join, texts.values())), encoding="utf-8")
    model = {"source": "ngram", "path": str(tmp_path / "texts.txt"), "order": 1}
    ask = asked(tmp_path / "store", models={"unigram": model})
    (found,) = reading_times(study, ask.settings.models, ask).scores
    words = sg.surprisal(study, models={"unigram": model}, store=tmp_path / "store").tables["words"]
    gain = sg.reading_gain(study, words)
    assert found.of_player["unigram"].mean() == pytest.approx(gain.gain_nats_per_word)
    assert found.ceiling.mean() == pytest.approx(gain.ceiling, rel=0.1)


def test_the_shipped_cards_are_of_todays_definitions() -> None:
    board = sg.board([ROOT / "docs" / "results" / "cards"])
    assert not any("defined otherwise" in text for text in board.notes)
    assert {"human", "unigram", "5-gram", "smollm2", "gpt2"} <= set(board.table["model"])
