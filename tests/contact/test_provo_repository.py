"""The whole repository of "Predict the Next Word" as its authors lay it out, made up: what it holds is computed."""

from __future__ import annotations

import json
import random
import shutil
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shannon_game import provo
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.papers.provo.results import legacy_results, stored_comparison
from tests.experiments.command import run_experiment
from tests.experiments.studies.cloze import tiny_provo

N_WORDS, N_TOKENS = 6, 30
TOKENS = "Additional_Experiments/Appendix_D"
TAGS = ("DET", "NOUN", ".")


def first_token(word: str) -> int:
    """Number of the first token of a word; "dog" and "don't" share theirs."""
    return 3 + (ord(word[0]) - ord("a")) % 20 if word else 1


def half(tokens: list[int], *, replace: bool, seed: int = 0) -> list[int]:
    return random.Random(seed).choices(tokens, k=20) if replace else random.Random(seed).sample(tokens, 20)


def distances(entries: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Distances over the whole vocabulary, entry by entry, as dense vectors."""
    found: dict[str, list[float]] = {"tvd": [], "kl": [], "entropy": [], "boot": []}
    for entry in entries:
        answers = [one for one in entry["human"] if one["count"]]
        scores = np.array(entry["model"]["cond_log_prob"])
        q = np.exp(scores) / np.exp(scores).sum()
        p = np.zeros(N_TOKENS)
        for one in answers:
            p[one["bpe_ind"]] = one["count"] / sum(other["count"] for other in answers)
        people = [one["bpe_ind"] for one in answers for _ in range(one["count"])]
        drawn = np.zeros(N_TOKENS)
        for token, count in Counter(half(people, replace=True)).items():
            drawn[token] = count / 20
        there = p > 0
        found["tvd"].append(0.5 * np.abs(p - q).sum())
        found["kl"].append((p[there] * np.log(p[there] / q[there])).sum())
        found["entropy"].append(abs((p[there] * np.log(p[there])).sum() - (q * np.log(q)).sum()))
        found["boot"].append(0.5 * np.abs(p - drawn).sum())
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both passages of GPT-2, one zip of tokens as it is on GitHub and one file unpacked, and what else lies about."""
    root = tiny_provo.write(tmp_path_factory.mktemp("a clone") / "predict_next_word-main", N_WORDS)
    temperature = json.loads((root / "TVD/GPT2_Temp/Generations/Paragraphs_temp-1-2.json").read_text())
    drawn = [("the", 500), ("dog", 300), ("Cat", 180), ("Failed to generate word", 20)]
    tokens: dict[str, dict[str, Any]] = {}
    rng = np.random.default_rng(1)
    for passage, words in temperature.items():
        entries = {}
        for number, one in words.items():
            text, human = one["context"]["text"], [(each["pred"], each["count"]) for each in one["human"]]
            entries[number] = tiny_provo.entry(text, "the", human, drawn, full=True)
            scored = [(str(pred), count) for pred, count in human]
            tokens.setdefault(passage, {})[number] = {
                "context": text,
                "model": {"cond_log_prob": rng.normal(0, 3, N_TOKENS).tolist()},
                "human": [
                    {"pred": pred, "count": n, "cond_log_prob": -1.0, "bpe_ind": first_token(pred.lower())}
                    for pred, n in scored
                ],
                "original": {"pred": "the", "cond_log_prob": -1.0, "bpe_ind": 5},
            }
        path = root / f"TVD/GPT2/Generations/Paragraphs-{passage}-{passage}.json"
        path.write_text(json.dumps({passage: entries}), encoding="utf-8")
    made = root / TOKENS / "Generations"
    made.mkdir(parents=True)
    with zipfile.ZipFile(made / "Paragraphs_BPE-1-1.json.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        content = json.dumps({"vocab_dict": {"a": 0}, "1": tokens["1"]})
        archive.writestr("Paragraphs_BPE-1-1.json", content)
        archive.writestr("__MACOSX/._Paragraphs_BPE-1-1.json", b"\x00\x05")
    (made / "Paragraphs_BPE-2-2.json").write_text(json.dumps({"vocab_dict": {"a": 0}, "2": tokens["2"]}))
    right = distances([entry for words in tokens.values() for entry in words.values()])
    stored = {
        "ECE_human_maj_truth": {"model_human": 0.9},
        "TVD_per_instance": {
            "tvd_model_human": right["tvd"],
            "tvd_oracle_dis_1_human": [0.5] * len(right["tvd"]),
            "tvd_oracle_boot_1_human": right["boot"],
        },
        "KL_Divergenece_per_instance": right["kl"],
        "Entropy_difference_per_instance": {"ent_diff_model_human": right["entropy"]},
    }
    results = root / TOKENS / "uncertainty_results"
    results.mkdir()
    (results / "cal_metrics_bpe.json").write_text(json.dumps(stored), encoding="utf-8")
    reps = root / "Additional_Experiments/Appendix_E/uncertainty_resutls/cal_metrics_improved_model_fixed_reps.json"
    reps.write_text(json.dumps({"0": {"disjoint_oracles": {"10": {"0": {"tvd_biased": [0.5]}}}}}))
    for name in (".DS_Store", "README.md", "TVD/GPT2/Generations/.DS_Store", "TVD_syntactic/GPT2/syntactic_TVD.ipynb"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"\x00\x00\x00\x01Bud1")
    study = provo(root=root)
    places = zip(study["text_id"].values, study["word_num"].values, strict=True)
    tags = [f"{text},{number},{TAGS[number % 3]}" for text, number in places]
    (root / "tags.csv").write_text("\n".join(["text_id,word_num,tag", *reversed(tags)]) + "\n", encoding="utf-8")
    return root


def test_all_that_a_clone_holds_is_computed(whole: Path) -> None:
    study = provo(root=whole, tokens=True)
    assert int((study["entry_model"] == study["model"].values.tolist().index("gpt2")).sum()) == 2 * N_WORDS
    results = legacy_results(study)
    table = stored_comparison(study, results).set_index("list")
    model = [name for name in table.index if "tvd_model_human" in name or "ent_diff_model" in name or "KL_" in name]
    assert len(model) == 3
    assert (
        table.loc[[*model, "cal_metrics_bpe/TVD_per_instance/tvd_oracle_boot_1_human"], "largest_difference"].max()
        < 1e-9
    )
    # passage 2 and 3 of the tiny copy are no passages whose contexts the lists have otherwise
    assert (table.loc[model, "n_compared"] == 2 * N_WORDS).all()
    assert "ece/appendix D/gpt2/human" not in results.read
    assert results.numbers["ece/appendix D/gpt2/human"] != 0.9
    assert not any("reps" in str(name) for name in study["result_name"].values)


def test_a_subset_of_a_clone_is_read_where_it_cannot_be_computed(whole: Path, tmp_path: Path) -> None:
    part = shutil.copytree(whole, tmp_path / "part")
    (part / TOKENS / "Generations/Paragraphs_BPE-2-2.json").unlink()
    (part / "TVD/GPT2/Generations/Paragraphs-2-2.json").unlink()
    study = provo(root=part, tokens=True)
    results = legacy_results(study)
    assert "ece/appendix D/gpt2/human" in results.read
    assert results.numbers["ece/appendix D/gpt2/human"] == 0.9
    table = stored_comparison(study, results).set_index("list")
    assert table.loc["cal_metrics_bpe/TVD_per_instance/tvd_model_human", "n_compared"] == N_WORDS
    # without being asked for, the largest files are not opened
    (part / TOKENS / "Generations/Paragraphs_BPE-1-1.json.zip").write_bytes(b"PK broken")
    assert "token_top" not in provo(root=part)
    with pytest.raises(InputError, match=r"Paragraphs_BPE-1-1.json.zip: is not a readable zip archive"):
        provo(root=part, tokens=True)


def test_parts_of_speech_are_predictors(whole: Path, tmp_path: Path) -> None:
    study = provo(root=whole, tags=whole / "tags.csv")
    columns = {str(name) for name in study.data_vars if str(name).startswith("tag_")}
    assert columns == {f"tag_{tag}" for tag in TAGS}
    assert (sum(study[f"tag_{tag}"] for tag in TAGS) == 1).all()
    assert study["tag_DET"].values[study["word_num"].values % 3 == 0].all()
    assert study.attrs["data_sha256"] != provo(root=whole).attrs["data_sha256"]
    given = "{target_answers:10,oracle_answers:5}"
    paths = (f"study.root='{whole}'", f"study.tags='{whole}/tags.csv'")
    asked = ("+exp=reproduce", "study=provo", "experiment.of=ard", *paths, f"experiment.given={given}")
    result = run_experiment(*asked)
    rows = result.table[result.table["fit"] == "parts_of_speech"]
    assert len(rows) == 7
    assert (rows["n_rows"] == 2 * N_WORDS).all()
    short = tmp_path / "short.csv"
    short.write_text("text_id,word_num,tag\n1,2,DET\n")
    with pytest.raises(InputError, match=r"short.csv, tag: has no tag of 11 contexts, the first text 1, word 3"):
        provo(root=whole, tags=short)
