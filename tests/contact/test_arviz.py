"""Posteriors of the participant model on disk: what ArviZ makes of them as they come."""

from __future__ import annotations

import warnings
from typing import Any

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from shannon_game import inference, models
from shannon_game.estimators.comparison import ParticipantPopulation
from shannon_game.inference.comparison.participant_fit import ParticipantFit
from shannon_game.inference.posterior.arviz_adapter import group, group_names
from tests.models.comparison.participant_studies import believers

pytestmark = pytest.mark.mcmc
GROUPS = {
    *("posterior", "sample_stats", "prior", "prior_predictive"),
    *("observed_data", "posterior_predictive", "log_likelihood", "constant_data"),
}
NEW = int(az.__version__.split(".")[0]) >= 1


@pytest.fixture(scope="module")
def fit() -> ParticipantFit:
    people = ParticipantPopulation(slope_median=0.6)
    study = believers(14, vocabulary=60, n_draws=6, n_answers=8, n_participants=12, people=people)
    fit = inference.fit_participants(models.participant_data(study, "slider"), draws=30, tune=10)
    inference.whole_posterior(fit, n_prior=40)
    return fit


@pytest.fixture(scope="module")
def saved(fit: ParticipantFit, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = inference.save_posterior(fit.idata, tmp_path_factory.mktemp("posterior") / "posterior_human.nc")
    return az.from_netcdf(str(path), engine="h5netcdf")


def test_every_group_says_what_its_variables_are(saved: Any, fit: ParticipantFit) -> None:
    assert set(group_names(saved)) == GROUPS
    data = fit.data
    for name in GROUPS:
        for variable, values in group(saved, name).items():
            assert values.attrs["description"], (name, variable)
            assert values.attrs["units"], (name, variable)
            assert not [dim for dim in values.dims if "_dim_" in str(dim)], (name, variable)
            if values.dtype.kind == "f":
                assert np.isfinite(values).all() or name == "sample_stats", (name, variable)
    for name in ("observed_data", "posterior_predictive", "prior_predictive", "log_likelihood"):
        found = group(saved, name)
        np.testing.assert_array_equal(found["report_participant"], data.participant[data.row_participant])
        np.testing.assert_array_equal(found["answer_item"], data.item[data.answer_item])
        assert found["answers"].sizes["answer"] == data.n_answers.sum()
        assert found["reports"].sizes["report"] == data.row_box.size
    assert group(saved, "log_likelihood")["items"].sizes["item"] == data.item.size


def test_statistics_run(saved: Any, fit: ParticipantFit) -> None:
    summary = az.summary(saved, var_names=["gap", "k0", "slope"])
    assert len(summary) == 2 + fit.data.participant.size
    # how many k are bad is a matter of so few items and draws
    warnings.filterwarnings("ignore", "Estimated shape parameter")
    for name in ("reports", "answers", "items"):
        loo = az.loo(saved, var_name=name, pointwise=True)
        assert np.isfinite(loo.elpd if NEW else loo.elpd_loo)
    warnings.filterwarnings("ignore", "The inplace keyword")  # of ArviZ's own code with pandas 3
    table = az.compare({"once": saved, "twice": saved}, var_name="items")
    assert np.isfinite(table["elpd" if NEW else "elpd_loo"]).all()
    pit = az.loo_pit(saved, var_names=["reports"])["reports"] if NEW else az.loo_pit(saved, y="reports")
    assert np.ravel(pit).size == fit.data.row_box.size
    assert ((np.ravel(pit) >= 0) & (np.ravel(pit) <= 1)).all()


def test_plots_run(saved: Any) -> None:
    few = ["gap", "k0", "slope_sd"]
    az.plot_rank(saved, var_names=few)
    az.plot_trace(saved, var_names=few)
    az.plot_forest(saved, var_names=["slope", "bias"])
    az.plot_energy(saved)
    if NEW:
        for kind in ("posterior_predictive", "prior_predictive"):
            az.plot_ppc_dist(saved, group=kind, var_names=["reports"], kind="ecdf", num_samples=20)
        az.plot_loo_pit(saved, var_names=["reports"])
    else:
        for kind in ("posterior", "prior"):
            az.plot_ppc(saved, group=kind, var_names=["reports"], kind="cumulative", num_pp_samples=20)
        az.plot_ppc(saved, var_names=["answers"], num_pp_samples=20)
        az.plot_loo_pit(saved, y="reports")
    plt.close("all")


def test_predictions_are_like_the_data_they_follow(saved: Any, fit: ParticipantFit) -> None:
    """Of people who are as the model says, a share of the answers and of the reports, to 4 standard errors."""
    observed, predicted = group(saved, "observed_data"), group(saved, "posterior_predictive")
    for name, kind in (("answers", lambda x: x == -1), ("reports", lambda x: x > 0.5)):
        of_data, of_draws = float(kind(observed[name]).mean()), kind(predicted[name]).mean(f"{name[:-1]}")
        sd = np.sqrt(of_data * (1 - of_data) / observed[name].size + float(of_draws.std()) ** 2)
        assert of_data == pytest.approx(float(of_draws.mean()), abs=4 * sd)
    columns = xr.DataArray(fit.data.token_column)
    assert np.isin(predicted["answers"], [-2, -1, *columns.to_numpy()]).all()
