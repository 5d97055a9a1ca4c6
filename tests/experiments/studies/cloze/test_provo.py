"""The Provo next-word answers: a tiny copy of the layout with its traps, and every published number on real data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from shannon_game import provo
from shannon_game.estimators.cloze.study_words import study_words
from shannon_game.estimators.cloze.words import WORD_RULES, normalise_words
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.experiments.papers.provo.quirks import PUBLISHED_RAW
from shannon_game.experiments.papers.provo.results import legacy_results, published_table, stored_comparison
from tests.experiments.studies.cloze import tiny_provo


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_provo.write(tmp_path_factory.mktemp("provo"))


def test_layout(tiny: Path) -> None:
    study = provo(root=tiny)
    assert study.sizes["item"] == 12
    models = ["gpt2", "gpt2-t0.5", "bloom", "chatgpt", "chatgpt-2", "chatgpt-diverse"]
    assert study["model"].to_numpy().tolist() == models
    texts = {entry["text"]: entry["count"] for entry in notes(study)}
    assert any(text.startswith("blank answers") and count == 1 for text, count in texts.items())
    assert any(text.startswith("further entries") and count == 4 for text, count in texts.items())
    rules = WORD_RULES["provo"]
    words = study_words(study, human=rules, model=rules, corpus=rules)
    assert words.human_missing == {"blank": 1.0}
    assert words.models["bloom"].missing == {"junk": 35}
    # two queries of one context are pooled
    assert sorted(words.models["bloom"].counts.totals.tolist()) == [35, 35, 35, 35, 35, 70]
    codes = {text: code for code, text in enumerate(words.strings.tolist())}
    assert {"do", "true", "none"} <= set(codes)
    assert "don't" not in codes


NORMS = """Word_Unique_ID,Text_ID,Text,Word_Number,Word,Response,Response_Count,Total_Response_Count,Response_Proportion
Q1,1,There are now rumblings,2,are,are,16,20,0.8
Q1,1,There are now rumblings,2,are,None,4,20,0.2
Q2,1,There are now rumblings,3,now,NA,1,3,0.33
Q2,1,There are now rumblings,3,now,,1,3,0.33
Q2,1,There are now rumblings,3,now,\u00e9t\u00e9,2,3,0.33
"""


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_original_table(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "Provo_Corpus-Predictability_Norms.csv"
    path.write_text(NORMS, encoding=encoding)
    study = provo(root=tmp_path)
    assert study["context"].to_numpy().tolist() == ["There", "There are"]
    words = study["word_text"].to_numpy()[study["response_word"].to_numpy()]
    assert words.tolist() == ["are", "None", "NA", "", "\u00e9t\u00e9"]
    assert any("do not sum" in entry["text"] for entry in notes(study))
    with pytest.raises(InputError, match="without legacy in their names work for every cloze study"):
        legacy_results(study)


# ------------------------------------------------------------------------------------------- the real data


@pytest.fixture(scope="module")
def real(provo_root: Path):  # type: ignore[no-untyped-def]
    return provo(root=provo_root)


@pytest.fixture(scope="module")
def legacy(real):  # type: ignore[no-untyped-def]
    return legacy_results(real)


def test_real_layout(real) -> None:  # type: ignore[no-untyped-def]
    assert real.sizes["item"] == 2687
    # ten blank answers stand for one participant each
    assert real["response_count"].to_numpy().sum() == 107_785 + 10
    n_entries = np.bincount(real["entry_model"].to_numpy())
    assert n_entries.tolist() == [798, 665, 2687, 670, 501, 501, 501]


def test_raw_strings_become_the_published_words(provo_root: Path) -> None:
    """All 67,000 generated strings of BLOOM and ChatGPT, against the words that stand beside them."""
    for name in ("BLOOM/Generations/processed_bloom.json", "ChatGPT/Generations/processed_chatgpt.json"):
        for query in json.loads((provo_root / "TVD" / name).read_bytes()):
            rounds = [(query[2], query[3])]
            if isinstance(query[2], dict):
                rounds = [(query[2][key], query[3][key]) for key in ("unbiased_temp_1", "unbiased_temp_2")]
            for raw, published in rounds:
                done = normalise_words(raw, PUBLISHED_RAW)
                stated = ["" if word == "Failed to generate word" else word for word in published]
                assert [word if word.strip("_") else "" for word in done.words] == [
                    w if w.strip("_") else "" for w in stated
                ]


@pytest.mark.parametrize("row", published_table().to_dict("records"), ids=lambda row: row["quantity"])
def test_published_numbers(row: dict[str, object], legacy) -> None:  # type: ignore[no-untyped-def]
    """Every legacy value of the paper's code, and the paper's own where both can agree to its two digits."""
    found = legacy.numbers[row["quantity"]]
    if np.isfinite(float(str(row["legacy"]))):
        # without a tolerance of its own a value agrees to its last digit
        last_digit = 10.0 ** -len(str(row["legacy"]).partition(".")[2])
        assert found == pytest.approx(row["legacy"], abs=float(str(row["tolerance"] or 0.501 * last_digit)))
    if np.isfinite(float(str(row["paper"]))) and not row["expected"]:
        assert found == pytest.approx(row["paper"], abs=0.0051)


def test_stored_lists_element_by_element(real, legacy) -> None:  # type: ignore[no-untyped-def]
    table = stored_comparison(real, legacy)
    assert len(table) == 235
    assert table["largest_difference"].max() < 1e-6
