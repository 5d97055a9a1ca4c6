"""Minimal pairs as others publish them: BLiMP's lines, SyntaxGym's suites, a data frame; beside a plain script."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="language models need the extra lm")

from shannon_game import experiments
from shannon_game.estimators.documents.clusters import wilson_interval
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.documents.pairs import pair_study
from tests.experiments.command import run_experiment
from tests.inference.lm import tiny_models
from tests.inference.lm.tiny_models import END, byte_level
from tests.oracles.transformers_alone import loaded, surprisal_nats

pytestmark = pytest.mark.torch

GOOD = ["The readers write.", "The reader writes.", "Rain fell on the road.", "They walked home."]
BAD = ["The readers writes.", "The reader write.", "Rain fall on the the road.", "They walked home again."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save(tmp_path_factory.mktemp("pairs") / "tiny", "gpt2", byte_level())


def plain_script(folder: Path, text: str, before: str = "") -> float:
    """Log-probability of a text after another, by transformers alone."""
    tokenizer, _ = loaded(folder)
    head, ids = (tokenizer(its, add_special_tokens=False)["input_ids"] for its in (before, before + text))
    return -float(surprisal_nats(folder, [tokenizer.convert_tokens_to_ids(END), *head], ids[len(head) :]).sum())


def test_blimp_is_read_as_it_is_and_scored_as_a_plain_script_does(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for uid, rows in (("agreement", range(2)), ("other", range(2, 4))):
        lines = [
            {"sentence_good": GOOD[at], "sentence_bad": BAD[at], "field": "syntax", "UID": uid, "pairID": str(at % 2)}
            for at in rows
        ]
        (tmp_path / "data" / f"{uid}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = run_experiment(
        "+exp=minimal_pairs",
        f"study.path={tmp_path / 'data'}",
        f"+models.tiny={{source: folder, path: '{folder}', device: cpu, bos: '{END}'}}",
        f"experiment.store={tmp_path / 'store'}",
    )
    good, bad = ([plain_script(folder, text) for text in texts] for texts in (GOOD, BAD))
    pairs = found.tables["pairs"]
    np.testing.assert_allclose(pairs["good_sum_nats"], good, rtol=1e-5)
    np.testing.assert_allclose(pairs["bad_sum_nats"], bad, rtol=1e-5)
    is_right, n_words = np.array(good) > bad, [[len(text.split()) for text in texts] for texts in (GOOD, BAD)]
    table = found.table.set_index("phenomenon")
    assert table["accuracy"].tolist() == [is_right[:2].mean(), is_right[2:].mean(), is_right.mean()]
    per_word = np.array(good) / n_words[0] > np.array(bad) / n_words[1]
    assert table.loc["all", "accuracy_per_word"] == per_word.mean()
    per_token = np.array(good) / pairs["good_n_tokens"] > np.array(bad) / pairs["bad_n_tokens"]
    assert table.loc["all", "accuracy_per_token"] == per_token.mean()
    ends = table.loc["agreement", ["accuracy_lower", "accuracy_upper"]].astype(float)
    np.testing.assert_allclose(ends, wilson_interval(is_right[:2].sum(), 2))


def test_continuations_are_scored_after_their_prefix_and_ties_are_half(folder: Path, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"before": ["The readers", "They walked and"], "good": ["write.", "talked."], "bad": ["writes.", "talked. "]}
    )
    with pytest.raises(InputError, match=r"good.*is missing"):
        pair_study(frame.rename(columns={"good": "better"}))
    study = pair_study(frame, prefix="before")
    found = experiments.minimal_pairs(study, models=[str(folder)], store=tmp_path)
    pairs = found.tables["pairs"]
    expected = [plain_script(folder, f" {a}", b) for a, b in zip(frame["good"], frame["before"], strict=True)]
    np.testing.assert_allclose(pairs["good_sum_nats"], expected, rtol=1e-5)
    # of a part of a study the other text of a pair may be missing: no pair
    part = experiments.minimal_pairs(study.isel(document=[0, 1, 2]), models=[str(folder)], store=tmp_path)
    assert part.table["n_pairs"].item() == 1
    assert any("1 pairs have a text without" in line for line in part.warnings)
    with pytest.raises(InputError, match=r"bad.*row 1.*should be a text"):
        pair_study(pd.DataFrame({"good": ["Rain fell."], "bad": [" "]}))
    same = pd.DataFrame({"a": ["The", "The"], "b": ["The", "A"], "good": ["road", "home"], "bad": ["road", "home"]})
    with pytest.raises(InputError, match="no pair"):
        pair_study(same, prefix=("a", "b"))
    with pytest.raises(InputError, match="study of pairs"):
        experiments.minimal_pairs(experiments.text_study(GOOD), models=[str(folder)], store=tmp_path)


def test_equal_log_probabilities_are_half_right(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    # every token as probable as any other: texts of as many tokens are ties
    model = tiny_models.load(folder, bos=END)
    with torch.no_grad():
        model.module.get_output_embeddings().weight.zero_()
    module = "shannon_game.inference.lm.causal.load_language_model"
    monkeypatch.setattr(module, lambda settings: model)
    given = pd.DataFrame({"good": ["a", "a", "b b"], "bad": ["b", "c c", "c c c"]})
    found = experiments.minimal_pairs(given, models=[str(folder)], store=tmp_path)
    assert found.table["accuracy"].item() == pytest.approx(2.5 / 3)
    assert found.table["n_ties"].item() == 1


def test_a_suite_of_syntaxgym_gives_pairs_of_continuations(folder: Path, tmp_path: Path) -> None:
    regions = {"match": ["The reader", "writes", "."], "mismatch": ["The readers", "writes", "."]}
    formulas = ["(2;%match%) < (2;%mismatch%)", "((2;%mismatch%) > (2;%match%))"]
    formulas.append("(2;%match%) < (2;%mismatch%) & (3;%match%) < (3;%mismatch%)")
    conditions = [
        {"condition_name": name, "regions": [{"region_number": n, "content": text} for n, text in enumerate(texts, 1)]}
        for name, texts in regions.items()
    ]
    suite = {
        "meta": {"name": "agreement", "metric": "sum"},
        "predictions": [{"type": "formula", "formula": formula} for formula in formulas],
        "region_meta": {"1": "subject", "2": "verb", "3": "end"},
        "items": [{"item_number": 1, "conditions": conditions}],
    }
    path = tmp_path / "suite.json"
    path.write_text(json.dumps(suite))
    study = experiments.pairs(path=path)
    found = experiments.minimal_pairs(study, models=[str(folder)], store=tmp_path / "store")
    pairs = found.tables["pairs"]
    np.testing.assert_allclose(pairs["good_sum_nats"], plain_script(folder, " writes", "The reader"), rtol=1e-5)
    np.testing.assert_allclose(pairs["bad_sum_nats"], plain_script(folder, " writes", "The readers"), rtol=1e-5)
    assert len(pairs) == 2
    assert "prediction 3" in str(study.attrs["notes"])
    path.write_text(json.dumps({**suite, "items": [{"item_number": 1}]}))
    with pytest.raises(InputError, match="no suite of SyntaxGym"):
        experiments.pairs(path=path)
