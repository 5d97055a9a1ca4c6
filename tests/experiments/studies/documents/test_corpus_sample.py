"""Random documents of Parquet files and data sets: which, cut where, in which split."""

from __future__ import annotations

from pathlib import Path

import pytest

from shannon_game import corpus_sample

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

TEXTS = [f"document {number} " + " ".join(f"word{i}" for i in range(number)) for number in range(200)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("corpus")
    pq.write_table(pa.table({"text": TEXTS[:70], "number": list(range(70))}), root / "a.parquet", row_group_size=8)
    (root / "more").mkdir()
    pq.write_table(pa.table({"text": [*TEXTS[70:], None, TEXTS[0]]}), root / "more/b.parquet")
    return root


def test_some_documents_at_random(folder: Path) -> None:
    study = corpus_sample(path=folder, n_documents=40, seed=1)
    assert study.sizes["document"] in {39, 40}
    for name, text in zip(study["document"].to_numpy().tolist(), study["text"].to_numpy().tolist(), strict=True):
        assert [*TEXTS, None, TEXTS[0]][int(name.removeprefix("row "))] == text
    assert corpus_sample(path=folder, n_documents=40, seed=1).identical(study)
    assert not corpus_sample(path=folder, n_documents=40, seed=2).equals(study)


def test_a_split_is_a_texts_own(folder: Path) -> None:
    """Expected 140 of 200 in train; four standard errors are 26."""
    whole = corpus_sample(path=folder, splits={"train": 7, "test": 3}, seed=1)
    split = dict(zip(whole["text"].to_numpy().tolist(), whole["split"].to_numpy().tolist(), strict=True))
    assert 114 < sum(name == "train" for name in split.values()) < 166
    # the copy at the end is where its original is
    assert whole["split"].to_numpy()[0] == whole["split"].to_numpy()[-1]
    some = corpus_sample(path=folder, splits={"train": 7, "test": 3}, seed=1, n_documents=50)
    texts, names = some["text"].to_numpy().tolist(), some["split"].to_numpy().tolist()
    assert [split[text] for text in texts] == names


def test_segments_are_whole_words_of_the_document(folder: Path) -> None:
    study = corpus_sample(path=folder, segment_characters=60, seed=1)
    cut = 0
    for name, text in zip(study["document"].to_numpy().tolist(), study["text"].to_numpy().tolist(), strict=True):
        document = [*TEXTS, None, TEXTS[0]][int(name.removeprefix("row "))]
        assert document is not None
        assert f" {text} " in f" {document} "
        assert len(text) <= 60
        cut += text != document
        # a word has up to seven characters
        assert len(text) >= min(len(document), 60 - 2 * 8)
    assert cut > 150
