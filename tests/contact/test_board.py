"""Language models beside people, from an outsider's files: a corpus of their own, cards of others, a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shannon_game as sg
from shannon_game.estimators.errors import InputError
from tests.experiments.command import command, environment, run
from tests.experiments.tiny_language_models import named, write_models

CONTEXTS = ("the cook stirred the", "the pilot landed the", "she opened the", "he ate the", "they drank the")
WORDS = (("soup", "pot"), ("plane", "ship"), ("door", "box"), ("soup", "bread"), ("tea", "soup"))
YAML = """\
name: mine
ability: next_words
study: cloze_table
settings: {path: answers.csv, columns: {context: sentence, response: said, participant: person}}
licence: CC0
citation: me (2026)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with answers of 12 people, and texts for an n-gram model."""
    rows = [
        (context, words[(person + at) % 3 % 2], f"p{person}")
        for at, (context, words) in enumerate(zip(CONTEXTS, WORDS, strict=True))
        for person in range(12)
    ]
    pd.DataFrame(rows, columns=["sentence", "said", "person"]).to_csv(tmp_path / "answers.csv", index=False)
    (tmp_path / "mine.yaml").write_text(YAML, encoding="utf-8")
    lines = [f"{context} {word}" for context, words in zip(CONTEXTS, WORDS, strict=True) for word in words]
    (tmp_path / "texts.txt").write_text("\n".join(lines * 2), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def ngrams(*orders: int) -> dict[str, Any]:
    return {f"{order}-gram": {"source": "ngram", "path": "texts.txt", "order": order} for order in orders}


def test_a_corpus_of_ones_own_is_one_file_and_what_is_missing_is_said(home: Path) -> None:
    for name in ("gone", "lost"):
        entry = (
            f"name: {name}\nability: next_words\nstudy: provo\nsettings: {{root: {name}}}\nlicence: -\ncitation: -\n"
        )
        (home / f"{name}.yaml").write_text(entry.replace(": -", ": '-'"), encoding="utf-8")
    result = sg.beside_people(corpora=["mine.yaml", "gone.yaml", "lost.yaml"], models=ngrams(1, 3), n_replicates=50)
    assert set(result.table["corpus"]) == {"mine"}
    shares = result.table[result.table["score"] == "cross_entropy"].set_index("model")["share"]
    # words after a context are better than words without one, and people's own are the end of the way
    assert shares["1-gram"] < shares["3-gram"]
    assert shares["human"] == 1
    assert [text.partition(":")[0] for text in result.warnings] == ["left out", "left out"]
    card = json.loads((result.files["cards"] / "3-gram.json").read_text(encoding="utf-8"))
    assert card["corpora"] == [{"name": "mine", "licence": "CC0", "citation": "me (2026)"}]
    assert [each["corpus"] for each in card["left_out"]] == ["gone", "lost"]
    assert str(home) not in json.dumps(card)
    with pytest.raises(InputError, match=r"corpora: none of the data sets is there: gone: .*gone"):
        sg.beside_people(corpora=["gone.yaml"], models=ngrams(1))


def test_doubts_about_a_corpus_of_ones_own_and_a_mistyped_model_are_said(home: Path) -> None:
    header, *rows = (home / "answers.csv").read_text(encoding="utf-8").splitlines()
    (home / "answers.csv").write_text("\n".join([header, *rows[:30], header, *rows[30:]]), encoding="utf-8")
    result = sg.beside_people(corpora=["mine.yaml"], models=ngrams(1), n_replicates=50)
    assert any(text.startswith("mine: ") and "line 32" in text for text in result.warnings)
    with pytest.raises(InputError, match=r"model 'typo'.*no such folder"):
        sg.beside_people(corpora=["mine.yaml"], models={"typo": {"source": "folder", "path": "./typo"}})


@pytest.mark.torch
def test_the_folder_of_a_model_may_be_below_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home))
    (home / "models").mkdir()
    models = {**ngrams(1), "below": {"source": "folder", "path": "~/models"}}
    result = sg.beside_people(corpora=["mine.yaml"], models=models, n_replicates=50)
    # it is found, and is no model
    card = json.loads((result.files["cards"] / "below.json").read_text(encoding="utf-8"))
    assert "config.json" in card["left_out"][0]["why"]


def test_reading_times_of_ones_own_are_a_table_beside_the_texts(home: Path) -> None:
    rng = np.random.default_rng(0)
    texts = {f"t{at}": " ".join(rng.choice(list(WORDS[0] + WORDS[1] + CONTEXTS[:1]), 12)).split() for at in range(5)}
    pd.DataFrame({"id": list(texts), "text": map(" ".join, texts.values())}).to_csv("texts.csv", index=False)
    rows = [
        (f"s{s}", t, n, rng.normal(300, 30))
        for s in range(6)
        for t, own in texts.items()
        for n in range(1, len(own) + 1)
    ]
    pd.DataFrame(rows, columns=["subject", "text", "place", "rt"]).to_csv("spr.csv", index=False)
    entry = YAML.replace("next_words", "reading_times").replace("cloze_table", "texts")
    entry = entry.replace(
        entry[entry.index("settings") : entry.index("licence")], "settings: {path: texts.csv, id_field: id}\n"
    )
    entry += "times: {path: spr.csv, columns: {participant: subject, text_id: text, word_num: place, time: rt}}\n"
    (home / "mine.yaml").write_text(entry, encoding="utf-8")
    result = sg.beside_people(corpora=["mine.yaml"], models=ngrams(1), n_replicates=20)
    assert set(result.table["score"]) == {"gain"}
    (home / "mine.yaml").write_text(entry.replace("time: rt", "time: ms"), encoding="utf-8")
    with pytest.raises(InputError, match=r"spr.csv"):
        sg.beside_people(corpora=["mine.yaml"], models=ngrams(1), n_replicates=20)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ability: next_words", "ability: next_word", r"mine.yaml, ability: is 'next_word', should be one of"),
        ("study: cloze_table", "study: system", r"unknown loader 'system'"),
        ("licence: CC0\n", "", r"mine.yaml, licence: has no value yet"),
        ("path: answers.csv", "path: other.csv", r"left out: mine.*other.csv"),
        ("next_words", "odds", r"left out: mine.*cloze_table gave a cloze study; odds takes a comparison study"),
        (YAML, "- 3", r"mine.yaml: should have name, ability, study"),
        (YAML, "name: [", r"mine.yaml: is no YAML"),
    ],
)
def test_a_wrong_entry_gets_one_line(home: Path, old: str, new: str, message: str) -> None:
    (home / "mine.yaml").write_text(YAML.replace(old, new), encoding="utf-8")
    if message.startswith("left out"):
        (home / "right.yaml").write_text(YAML.replace("name: mine", "name: right"), encoding="utf-8")
        result = sg.beside_people(
            corpora=["mine.yaml", "right.yaml"], models=ngrams(1), players="gpt9", n_replicates=20
        )
        assert pd.Series(result.warnings).str.contains("no data set has words or log-probabilities of 'gpt9'").any()
        assert pd.Series(result.warnings).str.contains(message).any()
        return
    with pytest.raises(InputError, match=message):
        sg.beside_people(corpora=["mine.yaml"], models=ngrams(1), n_replicates=20)


def test_cards_of_several_machines_are_one_board(home: Path) -> None:
    mine, theirs = home / "mine", home / "theirs"
    for folder, order in ((mine, 1), (theirs, 3)):
        result = sg.beside_people(corpora=["mine.yaml"], models=ngrams(order), n_replicates=50)
        result.files["cards"].rename(folder)
    other = theirs / "3-gram.json"
    card = json.loads(other.read_text(encoding="utf-8"))
    card["toolkit"] = "0.0.1"
    # what was later defined otherwise does not count
    next(each for each in card["scores"] if each["score"] == "modal_word")["definition"] = 99
    other.write_text(json.dumps(card), encoding="utf-8")
    made = sg.board([mine, other])
    # pairs, as the same people were split and drawn alike
    pair = made.differences.set_index("score").loc["cross_entropy"]
    shares = made.table[made.table["score"] == "cross_entropy"].set_index("model")["share"]
    assert pair["difference"] == pytest.approx(shares[pair["model"]] - shares[pair["minus"]])
    of_modes = made.table[made.table["score"] == "modal_word"]["model"]
    assert set(of_modes) == {"human", "1-gram", "majority_1", "majority_5"}
    assert any("made with version 0.0.1" in text for text in made.notes)
    assert any("defined otherwise here: next_words/modal_word" in text for text in made.notes)
    card["settings"]["interval"] = 0.5
    other.write_text(json.dumps(card), encoding="utf-8")
    assert "cards have intervals of 50%, 90%" in sg.board([mine, other]).notes
    made.write(home / "board")
    names = {"board.csv", "board.html", "board.md", "board.png", "board.tex", "differences.csv"}
    assert names <= {path.name for path in (home / "board").iterdir()}
    page = (home / "board" / "board.html").read_text(encoding="utf-8")
    assert page.count("<script") == 2
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    (home / "full").mkdir()
    (home / "full" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="holds files and is no board"):
        made.write(home / "full")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda card: "{", r"c.json: is no JSON: .*copy the card again"),
        (lambda card: "[1]", r"c.json: is no card"),
        (lambda card: json.dumps(card | {"card": 7}), r"c.json, card: is 7, this version reads 1; make the card again"),
        (lambda card: json.dumps(card | {"seconds": "long"}), r"c.json, seconds: is 'long', should be a number"),
        (
            lambda card: json.dumps(card | {"scores": [{"ability": "odds"}]}),
            r"c.json, scores\[0\]\.corpus, .*: have no value yet",
        ),
    ],
)
def test_a_broken_card_gets_one_line(tmp_path: Path, change: Any, message: str) -> None:
    card = {"card": 1, "model": "m", "toolkit": "1", "made": "2026-01-01", "seconds": 1.0}
    (tmp_path / "c.json").write_text(change(card), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        sg.board([tmp_path / "c.json"])


@pytest.mark.subprocess
@pytest.mark.torch
def test_a_killed_run_goes_on_with_what_the_model_said_and_is_a_board(home: Path) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.permutation(list("abcdefgh"))) for _ in range(60)]
    rows = [(text, word, f"p{person}") for text in texts for person, word in enumerate(("a", "b", "a", "c"))]
    pd.DataFrame(rows, columns=["sentence", "said", "person"]).to_csv(home / "answers.csv", index=False)
    model = named(write_models(home / "models"), "a")[0].replace("models.a=", "models.tiny=")
    few = ("experiment.n_replicates=20", "experiment.n_splits=2")
    ask = ("+exp=beside_people", "study.names=[mine.yaml]", model, *few, "experiment.store=store", "hydra.run.dir=out")
    with subprocess.Popen(command(*ask), cwd=home, env=environment(), stderr=subprocess.DEVNULL) as started:
        while started.poll() is None and len(list(home.glob("store/word_log_probs*/*.arrow"))) < 2:
            time.sleep(0.05)
        started.send_signal(signal.SIGKILL)
    kept = {path: path.stat().st_mtime_ns for path in home.glob("store/*/*.arrow")}
    done = run(home, *ask)
    assert done.returncode == 0, done.stderr
    assert "were done before" in done.stderr
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    assert (home / "out" / "cards" / "tiny.json").is_file()
    done = run(home, "board", "out/cards", "--out", "board")
    assert done.returncode == 0, done.stderr
    assert "tiny" in done.stdout
    assert (home / "board" / "board.html").is_file()
    assert run(home, "board", "nothing.json").returncode == 2
