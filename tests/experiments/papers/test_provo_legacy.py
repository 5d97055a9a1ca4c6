"""What repeats "Predict the Next Word": on a tiny copy of its layout, and its regression on the real data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.papers.provo.quirks import legacy_columns
from shannon_game.models.cloze.ard_columns import PREDICTORS
from tests.experiments.command import prepared, run_experiment
from tests.experiments.studies.cloze import tiny_provo
from tests.oracles.ard import paper_rows


def by_own_code(of: str, *overrides: str) -> ExperimentResult:
    return run_experiment("+exp=reproduce", "study=provo", f"experiment.of={of}", *overrides)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_provo.write(tmp_path_factory.mktemp("provo"))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("tvd", "{}"),
        ("tvd_sample_size", "{players:[gpt2],n:[10,20]}"),
        ("improve", "{}"),
        ("distributions", "{item:['1:2','2']}"),
    ],
)
def test_on_the_public_layout(name: str, given: str, tiny: Path, tmp_path: Path) -> None:
    result = by_own_code(name, f"study.root={tiny}", f"experiment.given={given}")
    assert result.figures
    assert len(result.table)
    if name == "tvd":
        table = result.table.set_index("quantity")
        # the stored list of this copy is made up, and the computed one is not it
        assert table.loc["tvd/oracle2-oracle1", "authors_code"] != pytest.approx(0.4)
        # printed numbers stand as they are printed, and samples that are made up give none of them
        assert table.loc["ece/human/human", "printed"] == "0.60"
        assert "35 of 35 printed numbers differ." in result.text
        assert any("differs by more than" in text for text in result.warnings)


def test_what_it_does_not_take_is_refused(tiny: Path) -> None:
    with pytest.raises(InputError, match=r"experiment\.given: unknown setting 'words'"):
        by_own_code("improve", f"study.root={tiny}", "experiment.given={words:{case:keep}}")
    with pytest.raises(InputError, match="of=tvd needs the paper's own: study=provo"):
        run_experiment("+exp=reproduce", "experiment.of=tvd")
    with pytest.raises(InputError, match="holds no published values"):
        run_experiment("+exp=reproduce", "study=provo", f"study.root={tiny}")


def test_the_paper_s_coefficients(provo_root: Path, tmp_path: Path) -> None:
    job = prepared("+exp=reproduce", "study=provo", "experiment.of=ard", f"study.root={provo_root}")
    study, result = job.study, job.run()
    table = result.table.set_index(["fit", "predictor"])
    raw, standard = table.loc["legacy"], table.loc["standardised"]
    assert raw["coefficient"].round(4).tolist() == [0.0572, 0.0952, 0.1171, 0.0]
    assert standard["coefficient"].round(3).tolist() == [0.048, 0.138, 0.021, 0.0]
    assert raw["n_rows"].unique().tolist() == [798]
    # posterior standard deviations, and what the paper draws for them
    np.testing.assert_allclose(raw["sd"], [0.01266, 0.00385, 0.0547, 0], atol=5e-5)
    np.testing.assert_allclose(raw["published_bar"], [0.00686, 0.01817, 0.03346, 0], atol=5e-5)
    assert table.index.unique("fit").tolist() == ["legacy", "standardised", "shared", "resplit", "disjoint"]
    # row by row what loops over the files give
    rows, target = paper_rows(provo_root)
    found = legacy_columns(study, "gpt2", list(PREDICTORS))
    off = np.abs(np.column_stack([*found.predictors.values(), found.target]) - np.column_stack([rows, target]))
    # in one context two samples are one and two no-break spaces: two words to the paper's code, one blank to the rules
    assert sorted(off.max(axis=1))[-2] < 1e-12
    assert off.max() < 0.002
