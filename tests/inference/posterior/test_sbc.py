"""Ranks: uniform for a right posterior, not for wrong ones; bands against simulation; one fit through PyMC."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.inference.posterior import sbc
from shannon_game.inference.posterior.sbc import (
    JOINT_LOG_LIKELIHOOD,
    SbcModel,
    SbcSettings,
    rank_of_truth,
    run_sbc,
    sbc_rows,
)
from shannon_game.inference.posterior.sbc_bands import ecdf_band, ecdf_counts, judge_ranks

N_ROWS = 5


def conjugate_ranks(n_fits: int, n_ranked: int, *, scale: float = 1.0, shift: float = 0.0) -> dict[str, list[int]]:
    """x ~ N(0, 1), y ~ N(x, 1) five times; posterior draws are exact, or `scale` too wide and `shift` sd off."""
    rng = np.random.default_rng(4)
    ranks: dict[str, list[int]] = {"x": [], "log-likelihood": []}
    for _ in range(n_fits):
        x = rng.normal()
        y = rng.normal(x, 1, N_ROWS)
        sd = (1 + N_ROWS) ** -0.5
        draws = rng.normal(y.sum() * sd**2 + shift * sd, sd * scale, (2, 200))
        ranks["x"].append(rank_of_truth(draws, x, n_ranked, rng))
        fit = -((y - draws[..., None]) ** 2).sum(axis=-1) / 2
        ranks["log-likelihood"].append(rank_of_truth(fit, -((y - x) ** 2).sum() / 2, n_ranked, rng))
    return ranks


def test_a_right_posterior_has_uniform_ranks() -> None:
    for ranks in conjugate_ranks(400, 50).values():
        verdict = judge_ranks(ranks, 50)
        assert verdict.inside
        assert verdict.p_value > 0.05
        assert verdict.deviation <= 1
        assert verdict.rank_mean == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize(("scale", "shift", "quantity"), [(0.6, 0, "x"), (1.6, 0, "x"), (1, 0.5, "x")])
def test_a_wrong_posterior_fails(scale: float, shift: float, quantity: str) -> None:
    verdict = judge_ranks(conjugate_ranks(200, 50, scale=scale, shift=shift)[quantity], 50)
    assert not verdict.inside
    assert verdict.p_value < 0.001
    assert verdict.deviation > 1
    if shift:
        assert verdict.rank_mean < 0.4  # the truth is below draws that are shifted up


@pytest.mark.parametrize(("n_fits", "n_ranked", "probability"), [(200, 63, 0.95), (40, 19, 0.95), (300, 20, 0.8)])
def test_bands_hold_what_they_say(n_fits: int, n_ranked: int, probability: float) -> None:
    """Against 20,000 simulations; the standard error of a share is 0.003 at most."""
    band = ecdf_band(n_fits, n_ranked, probability)
    bins = np.random.default_rng(0).multinomial(n_fits, np.full(n_ranked + 1, 1 / (n_ranked + 1)), size=20_000)
    counts = np.cumsum(bins, axis=1)[:, :-1]
    share = ((counts >= band.lower) & (counts <= band.upper)).all(axis=1).mean()
    assert share == pytest.approx(band.probability, abs=0.009)
    assert probability <= band.probability < probability + 0.02
    assert (band.lower <= band.upper).all()
    np.testing.assert_array_equal(band.lower, n_fits - band.upper[::-1])
    # p-values are uniform, or larger as counts are whole
    p_values = [judge_ranks(np.repeat(np.arange(n_ranked + 1), row), n_ranked).p_value for row in bins[:400]]
    assert np.mean(np.array(p_values) < 0.2) == pytest.approx(0.2, abs=0.07)


def test_bands_of_one_rank_by_hand() -> None:
    """Two possible ranks: the number of zeros is Binomial(10, 1/2), of which 2 to 8 have 97.9%, 3 to 7 have 89.1%."""
    band = ecdf_band(10, 1, 0.95)
    assert (band.lower[0], band.upper[0]) == (2, 8)
    assert band.probability == pytest.approx(0.978516, abs=1e-6)
    assert judge_ranks([0] * 9 + [1], 1).p_value == pytest.approx(22 / 1024)
    assert not judge_ranks([0] * 9 + [1], 1).inside


def test_ranks_and_counts_by_hand() -> None:
    rng = np.random.default_rng(0)
    draws = np.arange(8.0).reshape(2, 4)
    assert rank_of_truth(draws, -1, 8, rng) == 0
    assert rank_of_truth(draws, 3.5, 8, rng) == 4
    assert rank_of_truth(draws, 9, 4, rng) == 4
    assert {rank_of_truth(np.ones((1, 3)), 1.0, 3, rng) for _ in range(60)} == {0, 1, 2, 3}
    assert ecdf_counts([0, 2, 2, 3], 3).tolist() == [1, 1, 3]
    with pytest.raises(InputError, match="at least 9"):
        rank_of_truth(draws, 0, 9, rng)
    with pytest.raises(InputError, match="NaN"):
        rank_of_truth(draws, np.nan, 8, rng)
    for bad in ([], [4], [-1], [0.5]):
        with pytest.raises(InputError, match="ranks"):
            ecdf_counts(bad, 3)
    with pytest.raises(InputError, match="probability"):
        ecdf_band(10, 5, 1.0)
    with pytest.raises(InputError, match="n_ranked"):
        SbcSettings(n_ranked=500, draws=100, chains=2)


def normal_model() -> pm.Model:
    """Answers that are not data: they must become so to be exchanged."""
    with pm.Model(coords={"who": ["a", "b"], "row": range(8)}) as model:
        spread = pm.HalfNormal("spread", 1)
        mean = pm.Normal("mean", 0, 1, dims="who")
        pm.Normal("y", mean[np.arange(8) % 2], spread, observed=np.zeros(8), dims="row")
    return model


NORMAL = SbcModel("normal", normal_model, ("spread", "mean[1]"))
SHORT = SbcSettings(n_ranked=20, draws=100, tune=200)


@pytest.mark.mcmc
def test_fits_see_their_own_data_and_can_be_resumed(tmp_path: Path, seed_offset: int) -> None:
    path = tmp_path / "ranks.jsonl"
    run_sbc(NORMAL, 20, path=path, settings=SHORT, seed=seed_offset)
    rows = run_sbc(NORMAL, 40, path=path, settings=SHORT, seed=seed_offset)
    assert len(path.read_text().splitlines()) == 41
    assert list(dict.fromkeys(row["quantity"] for row in rows)) == ["spread", "mean[1]", JOINT_LOG_LIKELIHOOD]
    mean = [row for row in rows if row["quantity"] == "mean[1]"]
    # 4 rows with noise of about 1: the correlation with the truth is about .9, and below .65 in 40 fits of 100,000
    assert np.corrcoef([row["truth"] for row in mean], [row["posterior_mean"] for row in mean])[0, 1] > 0.65
    assert np.mean([row["converged"] for row in mean]) > 0.8
    for name in ("spread", "mean[1]", JOINT_LOG_LIKELIHOOD):
        # right ranks are outside once in 10,000 seeds
        assert judge_ranks([row["rank"] for row in rows if row["quantity"] == name], 20).p_value > 1e-4, name
    # a fit depends on its own number and the seed alone
    assert sbc_rows({"fit": 7, "seed": seed_offset}, model=NORMAL, settings=SHORT) == [
        {key: value for key, value in row.items() if key not in {"fit", "seed"}} for row in rows if row["fit"] == 7
    ]
    with pytest.raises(InputError, match="other settings"):
        run_sbc(NORMAL, 1, path=path, settings=SbcSettings(n_ranked=10))
    with pytest.raises(InputError, match="slope"):
        sbc_rows({"fit": 0, "seed": 0}, model=SbcModel("other", normal_model, ("slope",)), settings=SHORT)


def test_a_model_typed_at_a_prompt_goes_on_or_begins_anew_and_is_never_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted: list[str] = []

    def rows(task: Any, *, model: SbcModel, settings: SbcSettings) -> list[dict[str, Any]]:
        fitted.append(model.key)
        return [{"rank": 1}]

    monkeypatch.setattr(sbc, "sbc_rows", rows)

    def run(sd: str, *, set_aside: bool = False) -> int:
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(f"SD = {sd}\ndef build():\n    return SD", names)
        before = len(fitted)
        model = SbcModel("typed", names["build"], ("mean",))
        run_sbc(model, 2, path=tmp_path / "ranks.jsonl", settings=SHORT, set_aside=set_aside)
        return len(fitted) - before

    assert [run("1.0"), run("1.0")] == [2, 0]
    with pytest.raises(InputError, match="other settings"):
        run("2.0")
    assert run("2.0", set_aside=True) == 2
    # nothing says what it holds
    assert [run("(one for one in [1.0])"), run("(one for one in [1.0])")] == [2, 2]
    assert capsys.readouterr().err.count("begin anew") == 2
    assert len(list(tmp_path.iterdir())) == 4
