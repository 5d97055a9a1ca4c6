"""``+exp=recovery of=sbc`` at a tiny size, what it says of wrong ranks, and what users get wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.comparison.sbc import SbcRow, _warnings, judged_quantities, quantities_outside
from shannon_game.experiments.harness.outputs import write_outputs
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.inference.posterior.sbc import JOINT_LOG_LIKELIHOOD, SbcModel
from tests.experiments.command import config, prepared, run_experiment

SMALL = (
    "experiment.n_fits=4",
    "experiment.n_ranked=15",
    "experiment.n_items=6",
    "experiment.n_participants=3",
    "sampler.draws=60",
    "sampler.tune=100",
    "output.dpi=40",
)
QUICK = ("study.n_items=40", "study.n_reference_items=40", "study.vocab_size=300", "study.n_candidates=40")
"""A study that takes no second."""

QUANTITIES = ["right", "wrong", JOINT_LOG_LIKELIHOOD]


def result_of(*overrides: str) -> ExperimentResult:
    return run_experiment("+exp=recovery", "of=sbc", *overrides)


@pytest.mark.mcmc
def test_a_tiny_run_and_what_it_leaves(tmp_path: Path, seed_offset: int) -> None:
    path = tmp_path / "replicates.jsonl"
    small = (*SMALL, f"experiment.replicates={path}", f"seed={seed_offset}")
    job = prepared("+exp=recovery", "of=sbc", *small, "experiment.allow_outside=true")
    result = job.run()
    assert list(result.table.columns) == [one.name for one in SbcRow.columns]
    assert result.table["quantity"].iloc[-1] == JOINT_LOG_LIKELIHOOD
    assert {"bias_mean", "slope_spread", "bias[0]"} <= set(result.table["quantity"])
    assert (result.table["n_fits"] == 4).all()
    assert not result.gate_failed
    write_outputs(tmp_path, config("+exp=recovery", "of=sbc", *small), job.study, result)
    assert list(pd.read_csv(tmp_path / "table.csv").columns) == list(result.table.columns)
    with xr.open_dataset(tmp_path / "results.nc", engine="h5netcdf") as dataset:
        assert dataset["rank"].dims == ("quantity", "fit")
        assert int(dataset["rank"].max()) <= 15
        mean = dataset["rank"].mean("fit").to_numpy() / 15
        np.testing.assert_allclose(mean, result.table["rank_mean"], atol=1e-12)
    # everything is done: the second run compiles and fits nothing
    before = path.read_text(encoding="utf-8")
    again = result_of(*small, "experiment.allow_outside=true")
    pd.testing.assert_frame_equal(again.table, result.table)
    assert path.read_text(encoding="utf-8") == before
    with pytest.raises(InputError, match="other settings"):
        result_of(*small, "+experiment.priors.slope_spread=0.25")


def fake(monkeypatch: pytest.MonkeyPatch, n_fits: int = 200) -> None:
    """Ranks without fits: uniform ones, and ones of a posterior that is too narrow."""
    rng = np.random.default_rng(0)

    def run_sbc(model: SbcModel, n: int, **_: object) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = []
        for fit in range(n):
            for name in QUANTITIES:
                rank = int(rng.integers(0, 64)) if name != "wrong" else int(63 * rng.beta(0.4, 0.4))
                common = {"truth": 0.0, "posterior_mean": 0.0, "posterior_sd": 1.0, "ess": 100.0, "r_hat": 1.0}
                of_fit = {"n_divergent": 0, "n_draws": 800, "converged": fit > 1}
                rows.append({"fit": fit, "seed": 0, "quantity": name, "rank": rank, **common, **of_fit})
        return rows

    monkeypatch.setattr("shannon_game.experiments.harness.ranked_fits.run_sbc", run_sbc)


@pytest.mark.parametrize("bands", ["each", "together"])
def test_wrong_ranks_fail_the_gate(bands: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake(monkeypatch)
    settings = (*QUICK, "experiment.n_items=6", f"experiment.replicates={tmp_path / 'r.jsonl'}")
    result = result_of(*settings, f"experiment.bands={bands}")
    assert result.table.set_index("quantity")["inside"].tolist() == [True, False, True]
    assert result.gate_failed
    assert "wrong" in result.warnings[0]
    assert "2 of 200 fits did not converge" in result.warnings[1]
    titles = [axes.get_title(loc="left") for axes in result.figures["sbc"].axes]
    assert titles[:3] == ["right", "wrong: outside", "joint log-likelihood"]
    assert not result_of(*settings, "experiment.allow_outside=true").gate_failed


def test_bands_for_all_quantities_together_are_wider() -> None:
    """Ranks whose p-value is between 5% over the number of quantities and 5%: the default gate lets them pass."""
    every = np.arange(64)
    narrow = (0.85 * every + 4).astype(int)
    rows = [
        {"quantity": name, "rank": rank, "ess": 100.0, "converged": True}
        for name, ranks in (("a", narrow), ("b", every), ("c", every))
        for rank in ranks
    ]
    table = judged_quantities("model", pd.DataFrame(rows), 63, 0.95)
    assert list(table.columns) == [one.name for one in SbcRow.columns]
    assert 0.05 / 3 < table["p_value"][0] < 0.05
    assert table["inside"].tolist() == [False, True, True]
    assert table["inside_together"].all()
    assert quantities_outside(table, "each") == ["a"]
    assert quantities_outside(table, "together") == []
    warned = _warnings(table.assign(n_unconverged=0), [], 200)
    assert "outside their own bands alone" in warned[0]
