"""Scores on documents: against one plain forward pass a document, by split, through the store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from shannon_game import experiments
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.documents import surprisal as surprisal_
from shannon_game.experiments.documents import words as words_
from shannon_game.experiments.documents.surprisal import SurprisalRow
from shannon_game.experiments.documents.words import word_figure
from shannon_game.experiments.harness.csv_tables import csv_text, write_tables
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.studies.documents.texts import text_study
from shannon_game.inference.lm.language_model import LanguageModel, encode
from shannon_game.inference.lm.vocabulary import vocabulary
from tests.experiments.command import run_experiment
from tests.experiments.tiny_language_models import cached_loading, named, write_models, write_texts
from tests.inference.lm import tiny_models

pytestmark = pytest.mark.torch

pytest.importorskip("torch")


@pytest.fixture(autouse=True, scope="module")
def _loaded_once() -> Iterator[None]:
    with cached_loading("shannon_game.inference.lm.causal"):
        yield


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    write_models(folder)
    write_texts(folder / "texts", 6)
    return folder


def overrides(root: Path, store: Path, *names: str, bos: str = tiny_models.END) -> list[str]:
    return [
        "+exp=surprisal",
        "study=texts",
        f"study.path={root / 'texts'}",
        "generator=study",
        *named(root, *(names or ("a", "b")), bos=bos),
        f"experiment.store={store}",
        # longer than any of the texts
        f"experiment.window={tiny_models.MAX_TOKENS}",
        "experiment.items_per_batch=2",
        "output.dpi=40",
    ]


def score(*settings: str) -> ExperimentResult:
    return run_experiment(*settings)


def by_hand(root: Path, name: str, *, bos: str = tiny_models.END) -> dict[str, tuple[np.ndarray, np.ndarray, int]]:
    """Losses, hits and bytes of every document, from one pass over all of it."""
    import torch

    model = tiny_models.load(root / name, bos=bos)
    found = {}
    for path in sorted(root.glob("texts/*/*.txt")):
        text = path.read_text()
        tokens = encode(model, [text])[0]
        tokens = tokens if model.bos_id is None else [model.bos_id, *tokens]
        with torch.inference_mode():
            logprob = torch.log_softmax(model.module(torch.tensor([tokens])).logits[0].double(), dim=-1).numpy()
        rows, targets = np.arange(len(tokens) - 1), np.array(tokens[1:])
        first = 0 if model.bos_id is not None else len(model.tokenizer.decode(tokens[:1]).encode())
        losses = -logprob[rows, targets]
        hits = logprob[:-1].argmax(axis=1) == targets
        found[path.relative_to(root / "texts").as_posix()] = (losses, hits, len(text.encode()) - first)
    return found


@pytest.mark.parametrize("bos", [tiny_models.END, "none"])
def test_every_column_by_hand(bos: str, root: Path, tmp_path: Path) -> None:
    result = score(*overrides(root, tmp_path, bos=bos))
    assert list(result.table.columns) == [one.name for one in SurprisalRow.columns]
    table = result.table.set_index(["model", "split"])
    assert list(table.index) == [(m, s) for m in "ab" for s in ("test", "train", "every split")]
    for model in "ab":
        documents = by_hand(root, model, bos=bos)
        for split in ("test", "train", "every split"):
            its = [scores for name, scores in documents.items() if split in (name.split("/")[0], "every split")]
            losses, hits = (np.concatenate([scores[i] for scores in its]) for i in (0, 1))
            row = table.loc[(model, split)]
            assert (row["n_documents"], row["n_tokens"]) == (len(its), losses.size)
            assert row["loss_nats"] == pytest.approx(losses.mean(), abs=1e-5)
            assert row["perplexity"] == pytest.approx(np.exp(losses.mean()), rel=1e-4)
            sequences = np.array([np.exp(scores[0].mean()) for scores in its])
            assert row["mean_sequence_perplexity"] == pytest.approx(sequences.mean(), rel=1e-4)
            se = sequences.std(ddof=1) / np.sqrt(len(its))
            assert row["mean_sequence_perplexity_upper"] == pytest.approx(sequences.mean() + 1.6448536 * se, rel=1e-4)
            # totals by document about the mean over tokens
            totals = np.array([(scores[0] - losses.mean()).sum() for scores in its])
            se = np.sqrt(len(its) / (len(its) - 1) * (totals**2).sum()) / losses.size
            assert row["loss_se_nats"] == pytest.approx(se, rel=1e-3)
            assert row["perplexity_lower"] == pytest.approx(np.exp(losses.mean() - 1.6448536 * se), rel=1e-3)
            assert row["top1_accuracy"] == pytest.approx(hits.mean())
            n_bytes = sum(scores[2] for scores in its)
            assert row["bits_per_byte"] == pytest.approx(losses.sum() / np.log(2) / n_bytes, rel=1e-5)
            assert row["bos"] == ("none" if bos == "none" else tiny_models.END)
    totals = result.dataset["total_loss_nats"].sel(model="a").sum() / result.dataset["n_tokens"].sel(model="a").sum()
    assert float(totals) == pytest.approx(table.loc[("a", "every split"), "loss_nats"])


def test_from_the_store_and_in_shards(root: Path, tmp_path: Path) -> None:
    settings = overrides(root, tmp_path)
    parts = [score(*settings, f"experiment.shard={i}/2") for i in range(2)]
    assert sum(part.dataset.sizes["document"] for part in parts) == 6
    assert all("of shard" in part.warnings[-1] for part in parts)
    whole = score(*settings)
    assert "0 results were computed, 12 were in the store" in whole.text
    fresh = score(*overrides(root, tmp_path / "other"))
    pd.testing.assert_frame_equal(whole.table, fresh.table, rtol=1e-4)
    # a subset needs nothing new, and its documents follow from the seed
    some = score(*settings, "experiment.n_documents=3")
    assert "0 results were computed, 6 were in the store" in some.text
    again = score(*settings, "experiment.n_documents=3")
    assert some.dataset["document"].to_numpy().tolist() == again.dataset["document"].to_numpy().tolist()


def test_windows_and_limits(root: Path, tmp_path: Path) -> None:
    whole = score(*overrides(root, tmp_path, "a"))
    windows = score(*overrides(root, tmp_path, "a"), "experiment.window=16", "experiment.stride=4")
    assert windows.table["n_tokens"].tolist() == whole.table["n_tokens"].tolist()
    assert not np.allclose(windows.table["loss_nats"], whole.table["loss_nats"], atol=1e-4)
    assert set(windows.table["window"]) == {16}
    limited = score(*overrides(root, tmp_path, "a"), "experiment.max_tokens=10")
    assert limited.table["n_tokens"].tolist() == [30, 30, 60]
    assert "a: 6 documents were scored up to their token 10 only" in limited.warnings[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["experiment.window=4096"], "window: is 4096; a takes 2 to 96 tokens"),
        (["experiment.shard=0/9999"], "shard: holds none of the 6 documents"),
    ],
)
def test_wrong_settings(settings: list[str], message: str, root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        score(*overrides(root, tmp_path, "a"), *settings)


def words_by_hand(model: LanguageModel, text: str) -> dict[str, list[float]]:
    """Bits of every word between spaces: its tokens, the end of the word after them, and that of the word before."""
    import torch

    tokens = encode(model, [text])[0]
    bos = [] if model.bos_id is None else [model.bos_id]
    with torch.inference_mode():
        logits = model.module(torch.tensor([[*bos, *tokens]])).logits[0].double()
    logprob = torch.log_softmax(logits, dim=-1).numpy()
    contents = vocabulary(model).token_bytes
    space = re.compile(rb"[\s\x1c-\x1f]|\xc2\x85|\xc2\xa0")
    ends = [token for token, content in enumerate(contents) if not content or space.match(content)]
    ended = np.log(np.exp(logprob[:, ends]).sum(axis=1))
    found: dict[str, list[float]] = {"surprisal_bits": [], "sum_bits": []}
    at = 0
    for word in re.findall(r"\S+", text):
        first, written = at, b""
        while written.strip() != word.encode():
            written += contents[tokens[at]]
            at += 1
        total, last = -sum(logprob[len(bos) + t - 1, tokens[t]] for t in range(first, at)), len(bos) + at - 1
        corrected = total - ended[last] + (ended[len(bos) + first - 1] if first else 0.0)
        scored = bool(bos) or first > 0
        found["sum_bits"].append(total / np.log(2) if scored else np.nan)
        found["surprisal_bits"].append(corrected / np.log(2) if scored else np.nan)
    return found


@pytest.mark.parametrize(("name", "bos"), [("a", tiny_models.END), ("a", "none"), ("d", tiny_models.END)])
def test_words_and_tokens_by_hand(name: str, bos: str, root: Path, tmp_path: Path) -> None:
    result = score(*overrides(root, tmp_path, name, bos=bos))
    model = tiny_models.load(root / name, bos="<s>" if name == "d" else bos)
    words, tokens = result.tables["words"], result.tables["tokens"]
    for path in sorted(root.glob("texts/*/*.txt")):
        text, document = path.read_text(), path.relative_to(root / "texts").as_posix()
        own = words[words["document"] == document]
        assert own["word"].tolist() == text.split()
        assert [text[a:b] for a, b in zip(own["start"], own["stop"], strict=True)] == text.split()
        for column, expected in words_by_hand(model, text).items():
            np.testing.assert_allclose(own[column], expected, atol=1e-4, err_msg=f"{document} {column}")
        its = tokens[tokens["document"] == document]
        pieces = [text[int(a) : int(b)] for a, b in zip(its["start"], its["stop"], strict=True)]
        assert "".join(pieces) == text[int(its["start"].iloc[0]) :]
    np.testing.assert_allclose(words["probability"], np.exp(-words["surprisal_nats"]))


STORY = ["The old clock struck nine.  ", "“Nobody moved” — then  rain", "fell on the road."]


def test_sentences_given_the_ones_before_them_are_the_parts_of_one_text(root: Path, tmp_path: Path) -> None:
    table = pd.DataFrame({"story": ["x", "y", "x", "x"], "text": [STORY[0], "Rain fell.", *STORY[1:]]})
    study = text_study(table, group_field="story")
    # there is white space after the first already
    joined = f"{STORY[0]}{STORY[1]} {STORY[2]}"
    for name in "ad":
        model = tiny_models.load(root / name, bos="<s>" if name == "d" else tiny_models.END)
        found = experiments.surprisal(study, models=[str(root / name)], store=tmp_path, context="text").tables["words"]
        own = found[found["document"] != "2"]
        assert own["word"].tolist() == joined.split()
        for column, values in words_by_hand(model, joined).items():
            np.testing.assert_allclose(own[column], values, atol=1e-4, err_msg=f"{name} {column}")
        alone = experiments.surprisal(study, models=[str(root / name)], store=tmp_path).tables["words"]
        expected = words_by_hand(model, STORY[1])["surprisal_bits"]
        np.testing.assert_allclose(alone.loc[alone["document"] == "3", "surprisal_bits"], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("regions", "column", "expected"),
    [
        ("|", {}, [["Rain fell,", "on the old", "clock."], ["Rain", "fell."]]),
        ("critical", {"critical": ["on the old", "Rain"]}, [["on the old"], ["Rain"]]),
        (("first", "end"), {"first": [14, None], "end": [21, None]}, [["the old"]]),
    ],
)
def test_regions_have_the_sums_of_their_words(
    regions: Any, column: dict[str, Any], expected: list[list[str]], root: Path, tmp_path: Path
) -> None:
    texts = ["Rain fell,|on the old|clock.", "Rain |fell."]
    texts = texts if regions == "|" else ["Rain fell, on the old clock.", "Rain fell."]
    study = text_study(pd.DataFrame({"text": texts, **column}), regions=regions)
    result = experiments.surprisal(study, models=[str(root / "a")], store=tmp_path)
    found = result.tables["regions"]
    assert [list(part["region"]) for _, part in found.groupby("document")] == expected
    words = result.tables["words"]
    for row in found.itertuples():
        own = words[words["document"] == row.document]
        inside = [w in str(row.region).split() or w.strip(".,") in str(row.region).split() for w in own["word"]]
        assert row.n_words == sum(inside)
        assert row.surprisal_bits == pytest.approx(own.loc[inside, "surprisal_bits"].sum(), rel=1e-6)
        assert row.sum_bits == pytest.approx(own.loc[inside, "sum_bits"].sum(), rel=1e-6)


def test_a_region_in_a_word_has_the_sum_of_its_tokens(root: Path, tmp_path: Path) -> None:
    texts = {"text": ["on the old clock.", "on the old clock."], "first": [11, 11], "end": [16, 15]}
    study = text_study(pd.DataFrame(texts), regions=("first", "end"))
    tables = experiments.surprisal(study, models=[str(root / "a")], store=tmp_path).tables
    frame = pd.DataFrame({**texts, "item": ["x", "y"]})
    given = {"regions": ("first", "end"), "id_field": "item"}
    same = experiments.surprisal(frame, models=[str(root / "a")], store=tmp_path, **given).tables["regions"]
    assert same["document"].tolist() == ["x", "y"]
    pd.testing.assert_frame_equal(same.assign(document=tables["regions"]["document"]), tables["regions"])
    whole, cut = tables["regions"].itertuples()
    own = tables["tokens"].query("document == '1' and 10 <= start and stop <= 16")
    assert "".join(own["token"]) == " clock"
    assert (whole.sum_bits, whole.n_tokens) == (pytest.approx(own["surprisal_bits"].sum()), len(own))
    assert np.isnan([whole.surprisal_bits, cut.surprisal_bits]).all()


@pytest.mark.parametrize(
    ("table", "settings", "message"),
    [
        ({"text": ["a b a"], "part": ["a"]}, {"regions": "part"}, "holds 2 times"),
        ({"text": ["a b"], "s": [0], "e": [4]}, {"regions": ("s", "e")}, "s: is 0 with e 4"),
        ({"text": ["a b"], "s": [1], "e": [2]}, {"regions": ("s", "e")}, "not all white space"),
    ],
)
def test_regions_that_are_not_there(table: Any, settings: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        text_study(pd.DataFrame(table), **settings)


@pytest.mark.parametrize(("sizes", "shown", "out"), [([9] * 6, 54, 0), ([9] * 7, 54, 9), ([70, 3], 60, 13)])
def test_the_figure_has_whole_texts(sizes: list[int], shown: int, out: int) -> None:
    words = pd.DataFrame({"document": np.repeat(np.arange(len(sizes)), sizes), "model": "m", "word": "w"})
    words = words.assign(word_num=words.groupby("document").cumcount() + 1, surprisal_bits=1.0)
    figure = word_figure(words, "texts")
    assert len(figure.axes[0].get_yticks()) == shown
    said = " ".join(text.get_text() for text in figure.findobj(Text))
    assert (f"({out} left out)" in " ".join(said.split())) == bool(out)


def test_words_of_scripts_without_spaces_have_the_plain_sum(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("icu")
    texts = ["「你好」、世界。 ok then", "ฉันกินข้าว"]
    words = experiments.surprisal(texts, models=[str(root / "a")], store=tmp_path).tables["words"]
    assert words["word"].tolist() == ["「你好」、", "世界。", "ok", "then", "ฉัน", "กิน", "ข้าว"]
    plain = words["word"].map(lambda word: not word.isascii())
    np.testing.assert_allclose(words.loc[plain, "surprisal_bits"], words.loc[plain, "sum_bits"], rtol=1e-6)
    # of all words the sum is that of all tokens, and the end after the last
    model = tiny_models.load(root / "a", bos=tiny_models.END)
    by_space = words_by_hand(model, texts[0])
    own = words[words["document"] == "1"]
    np.testing.assert_allclose(own["sum_bits"].iloc[:2].sum(), by_space["sum_bits"][0], rtol=1e-5)
    np.testing.assert_allclose(own["surprisal_bits"].iloc[3], by_space["surprisal_bits"][2], rtol=1e-5)


@pytest.mark.parametrize("method", ["pll", "pll_original"])
def test_pseudo_log_likelihoods_have_columns_of_their_own(method: str, tmp_path: Path) -> None:
    tiny_models.save_masked(tmp_path / "bert", "bert")
    study = text_study(pd.DataFrame({"text": ["Rain fell,|on the old|clock.", "the the|baker"]}), regions="|")
    result = experiments.surprisal(study, models=[str(tmp_path / "bert")], store=tmp_path / "store", method=method)
    tables = {"table": result.table, **result.tables}
    assert not any("surprisal" in column or "loss" in column for table in tables.values() for column in table)
    tokens, words, documents = (tables[name] for name in ("tokens", "words", "documents"))
    for row in words.itertuples():
        of_word = (tokens["start"] >= row.start) & (tokens["stop"] <= row.stop)
        its = tokens[(tokens["document"] == row.document) & of_word]
        assert row.pll_nats == pytest.approx(its["pll_nats"].sum())
        assert row.n_tokens == len(its)
        assert row.pll_bits == pytest.approx(row.pll_nats / np.log(2))
    total = tokens["pll_nats"].sum()
    sums = [words["pll_nats"], documents["pll_nats"], tables["regions"]["pll_nats"], result.dataset["pll_nats"]]
    assert [float(its.sum()) for its in sums] == pytest.approx([total] * 4)
    assert result.table["pseudo_perplexity"].iloc[0] == pytest.approx(np.exp(-total / len(tokens)))


def test_an_n_gram_baseline_beside_a_model(root: Path, tmp_path: Path) -> None:
    (tmp_path / "five.txt").write_text("the cat sat\nthe dog sat\na cat ran\nthe cat ran\na dog sat\n")
    ngram = {"source": "ngram", "path": str(tmp_path / "five.txt"), "order": 2}
    model = {"source": "folder", "path": str(root / "a"), "device": "cpu"}
    study = text_study(pd.DataFrame({"text": ["The cat|ran off."]}), regions="|")
    result = experiments.surprisal(study, models={"n": ngram, "m": model}, store=tmp_path / "store")
    words = result.tables["words"]
    assert words["word"].tolist() == ["The", "cat", "ran", "off."] * 2
    # by hand, as in the tests of the model: D = 2 / 7 of pairs, 3 / 11 of words
    p = {word: n / 11 - 3 / 121 + 21 / 968 for word, n in (("the", 1), ("cat", 2), ("ran", 1))}
    expected = [(19 / 7 + 4 / 7 * p["the"]) / 5, (12 / 7 + 4 / 7 * p["cat"]) / 3, (12 / 7 + 4 / 7 * p["ran"]) / 3]
    own = words[words["model"] == "n"]
    np.testing.assert_allclose(own["probability"], [*expected, np.nan])
    np.testing.assert_allclose(own["sum_bits"], own["surprisal_bits"])
    assert result.table.set_index("model").loc["n", "loss_nats"] == pytest.approx(-np.log(expected).mean())
    assert any("n: 1 words and marks are unknown" in warning for warning in result.warnings)
    regions = result.tables["regions"].query("model == 'n'")["surprisal_nats"]
    np.testing.assert_allclose(regions, [-np.log(expected[:2]).sum(), np.nan])
    # a word of several unknown marks is one word
    marks = experiments.surprisal(["cat “((zebra))”"], models={"n": ngram}, store=tmp_path / "store")
    assert marks.table["n_words"].item() == 1


def test_tables_are_the_same_however_many_texts_are_laid_out_at_once(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "corpus.txt").write_text("the cat ran\nthe readers read\n", encoding="utf-8")
    # one of them gives no ranks, beside which the other's are no whole numbers
    models = {"a": {"source": "folder", "path": str(root / "a"), "bos": tiny_models.END}}
    models["n"] = {"source": "ngram", "path": str(tmp_path / "corpus.txt")}
    texts = [*tiny_models.TEXTS, "x", " Naïve — “café”\n", "readers"]
    whole = experiments.surprisal(texts, models=models, store=tmp_path / "store").tables
    written = tmp_path / "written"
    written.mkdir()
    monkeypatch.setattr(surprisal_, "_TOKENS_KEPT", 0)
    for n_tokens in (1, 40):
        monkeypatch.setattr(words_, "_TOKENS_AT_ONCE", n_tokens)
        found = experiments.surprisal(texts, models=models, store=tmp_path / "store").tables
        write_tables(found, written)
        for name in ("words", "tokens"):
            assert (written / f"{name}.csv").read_text() == csv_text(whole[name])
            pd.testing.assert_frame_equal(found[name], whole[name], check_exact=True)
    assert "float" in str(whole["words"]["rank"].dtype)
    own = zip(whole["words"]["document"], whole["words"]["start"], whole["words"]["stop"], strict=True)
    assert [texts[int(document) - 1][a:b] for document, a, b in own] == whole["words"]["word"].tolist()


def test_a_part_that_was_counted_does_not_stay_in_memory(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surprisal_, "_TOKENS_KEPT", 0)
    texts = [f"The readers read {number}." for number in range(300)]
    found = experiments.surprisal(texts, models=[str(root / "a")], store=tmp_path / "store").tables
    for table in found.like.values():
        own = [column.array.__arrow_array__() for _, column in table.items() if column.dtype == "str"]
        # a row for each part; Arrow pads what it allocates
        assert own
        assert sum(column.get_total_buffer_size() for column in own) < 1000 * len(own)


def test_a_region_that_cuts_a_word_has_no_surprisal(root: Path, tmp_path: Path) -> None:
    table = pd.DataFrame({"text": ["Rain fell on it."], "first": [2], "end": [9]})
    result = experiments.surprisal(
        text_study(table, regions=("first", "end")), models=[str(root / "a")], store=tmp_path
    )
    assert np.isnan(result.tables["regions"]["surprisal_bits"]).tolist() == [True]
