"""Appendices A, D and F of "Predict the Next Word": calibration errors against loops over lists, and figures."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from shannon_game import provo
from shannon_game.experiments.papers.provo.appendix_figures import appendix_figures, training_losses
from shannon_game.experiments.papers.provo.calibration import appendix_calibration, stored_token_errors
from shannon_game.experiments.papers.provo.tokens import drawn_oracles
from tests.experiments.studies.cloze import tiny_provo

ORACLE = "Additional_Experiments/Appendix_A/uncertainty_results/cal_metrics_oracle.json"
TOKENS = "Additional_Experiments/Appendix_D/uncertainty_results/cal_metrics_bpe.json"
FOLD = "Additional_Experiments/Appendix_F/uncertainty_results/cal_metrics_improved_model{}_1_10.json"
TRAINING = "TVD/GPT2_FT/fine_tuning/training_stats/training_stats_test_{}.json"


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny_provo.write(tmp_path_factory.mktemp("provo"))
    lists = {"TVD_per_instance": [0.2] * 12}
    write(folder / ORACLE, {f"oracle{number}_no_repl_dict": lists for number in (1, 2)})
    errors = {"model_human": 0.14, "oracle_dis_1_human": 0.5, "oracle_dis_2_human": 0.4}
    distances = {f"tvd_{who}": [0.3] * 12 for who in errors}
    write(folder / TOKENS, {"ECE_human_maj_truth": errors, "TVD_per_instance": distances})
    for number, name in enumerate(("", "_fine_tuned")):
        values = {share: [0.6 + 0.1 * number - 0.3 * share] * 12 for share in (0, 1)}
        write(folder / FOLD.format(name), {str(share): {"tvd_unbiased": its} for share, its in values.items()})
    for fold in ("11-20", "1-10"):
        epochs = [{"epoch": n, "Training Loss": 5.0 - n, "Valid. Loss": 4.0 - n} for n in (1, 2, 3)]
        write(folder / TRAINING.format(fold), epochs)
    return folder


def error(pairs: list[tuple[float, bool]]) -> float:
    """Ten bins, a confidence of one in none of them, in single precision."""
    total = 0.0
    for low in np.arange(0, 1, 0.1):
        inside = [(np.float32(sure), right) for sure, right in pairs if low <= np.float32(sure) < low + 0.1]
        if inside:
            sure, right = (float(np.mean([pair[which] for pair in inside])) for which in (0, 1))
            total += abs(sure - right) * len(inside) / len(pairs)
    return total


def test_halves_of_the_people_against_loops_over_lists(root: Path) -> None:
    """The code of appendix A, on lists of words as it has them."""
    files = json.loads((root / "TVD/GPT2_Temp/Generations/Paragraphs_temp-1-2.json").read_text(encoding="utf-8"))
    pairs: dict[str, list[tuple[float, bool]]] = {}
    for words in files.values():
        for entry in words.values():
            # a blank answer is NaN with a count of zero in these files, and stands for one participant
            counts = {str(one["pred"]): one["count"] or 1 for one in entry["human"]}
            flat = [word for word, count in counts.items() for _ in range(count)]
            first = random.Random(0).sample(flat, len(flat) // 2)
            second = list(flat)
            for word in first:
                second.remove(word)
            majority = max(counts, key=lambda word: counts[word])
            for player, part in (("oracle1", first), ("oracle2", second)):
                top = max(counts, key=part.count)
                sure = part.count(top) / len(part)
                pairs.setdefault(f"{player}/human", []).append((sure, top == majority))
                pairs.setdefault(f"{player}/corpus", []).append((sure, top == entry["original"]["pred"]))
    found = appendix_calibration(provo(root=root))
    for name, own in pairs.items():
        assert found[f"ece/appendix A/{name}"] == pytest.approx(error(own), abs=1e-6), name


def test_oracles_of_tokens_are_cut_as_the_code_cuts_them() -> None:
    tokens = [1] * 9 + [2] * 32
    found = drawn_oracles(tokens)
    assert {name: len(drawn) for name, drawn in found.items()} == {"dis_1": 20, "dis_2": 20, "boot_1": 20, "boot_2": 20}
    # the two halves are all tokens but the odd one, in any order
    both = sorted(found["dis_1"] + found["dis_2"])
    assert both in ([1] * 8 + [2] * 32, [1] * 9 + [2] * 31)
    # the global generator with these seeds, as the paper's code has it
    random.seed(1)
    assert found["boot_2"] == random.choices(tokens, k=20)


def test_what_was_stored_is_read(root: Path) -> None:
    assert stored_token_errors(provo(root=root)) == {
        "ece/appendix D/gpt2/human": 0.14,
        "ece/appendix D/oracle1/human": 0.5,
        "ece/appendix D/oracle2/human": 0.4,
    }


def test_losses_by_fold_and_epoch(root: Path) -> None:
    losses = training_losses(provo(root=root))
    assert list(losses) == ["1-10", "11-20"]
    assert losses["11-20"]["training"].tolist() == [4, 3, 2]
    assert losses["11-20"]["validation"].tolist() == [3, 2, 1]


def test_figures_are_those_that_the_files_allow(root: Path, tmp_path: Path) -> None:
    figures = appendix_figures(provo(root=root))
    assert list(figures) == ["oracles", "tokens", "folds", "training"]
    titles = [ax.get_title(loc="left") or ax.get_title() for ax in figures["training"].axes]
    assert titles == ["passages 1-10 left out", "passages 11-20 left out"]
    shown = [text.get_text() for text in figures["tokens"].axes[0].get_legend().get_texts()]
    assert shown == ["GPT-2, mean 0.300", "half of the people, mean 0.300", "the other half, mean 0.300"]
    # one fold of four: a density per player, each about its values
    (axes,) = figures["folds"].axes
    assert [round(float(line.get_xdata()[line.get_ydata().argmax()]), 1) for line in axes.lines] == [0.7, 0.6, 0.4]
    assert appendix_figures(provo(root=tiny_provo.write(tmp_path))) == {}
