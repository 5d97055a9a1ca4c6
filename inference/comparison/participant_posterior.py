r"""All groups of a posterior of the participant model: what PyMC adds for observed variables and not for a potential.

Reports and free answers are observed. Predictions of the posterior are new reports by the same people on the same
words, whose log-ratios are drawn given the data; those of the prior draw the words from their law, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.inference.comparison.participant_fit import DESCRIPTIONS, Compiled, ParticipantFit
from shannon_game.inference.posterior.arviz_adapter import InferenceData, add_groups, group, group_names
from shannon_game.inference.posterior.compiler import QUICK
from shannon_game.inference.posterior.predictive import complete
from shannon_game.models.comparison.participants import drawn_places, single_answers
from shannon_game.models.outside import OutsideLikelihood

_MARGIN = 3.0
"""Nats; what windows keep beside what matters, for the probability of one report to be right to 0.2."""
_STATS = {
    "lp": ("log-density of the posterior but for a constant", "nats"),
    "energy": ("Hamiltonian energy", "nats"),
    "energy_error": ("change of the energy along the trajectory", "nats"),
    "diverging": ("whether the trajectory diverged", "1"),
    "acceptance_rate": ("acceptance probability of the trajectory", "1"),
    "n_steps": ("steps of the trajectory", "1"),
}
_DATA = {
    "reports": ("probability reported that the target is the true one of two tokens", "probability"),
    "answers": ("free answer: position along candidate, -1 for the target, -2 for another token", "1"),
    "items": ("all reports and free answers of an item", "1"),
    "report_low": ("lower end of what was reported, log-odds", "nats"),
    "report_high": ("upper end of what was reported, log-odds", "nats"),
    "report_log_g_ratio": ("log-odds of the generator, target against the other token", "nats"),
    "target_log_g": ("log-probability of the target under the generator", "nats"),
    "n_answers": ("free answers of an item", "1"),
    "scale": ("geometric mean of the participants' slopes, as assumed", "1"),
}


def whole_posterior(
    fit: ParticipantFit, *, seed: int = 0, n_prior: int = 200, n_predictive: int | None = None
) -> InferenceData:
    """Add every group to the posterior of a fit, in place, and say what each variable is.

    ``log_likelihood`` has ``reports``, each given the other reports and answers of its item; ``answers`` likewise,
    of items with two or more; and ``items``, each with all that was said of it, given what the items share.

    Parameters
    ----------
    n_prior : int
        Draws of the prior.
    n_predictive : int, optional
        About how many draws of the posterior get predictions; by default all, which ``az.loo_pit`` needs.

    Examples
    --------
    >>> from shannon_game import inference, models
    >>> from shannon_game.estimators.comparison.examples import comparison_study
    >>> fit = inference.fit_participants(models.participant_data(comparison_study()), draws=10, tune=10)
    >>> idata = inference.whole_posterior(fit, n_prior=4, n_predictive=4)
    >>> idata.log_likelihood["reports"].dims, idata.posterior_predictive["reports"].sizes["draw"]
    (('chain', 'draw', 'report'), 1)
    """
    compiled = fit.compiled
    model = compiled.program.model
    model.outside = _outside(compiled)

    compiled.again()
    compiled.set_windows(compiled.gaussian.mode, margin_nats=_MARGIN)
    try:
        found = complete(fit.idata, model, seed=seed, n_prior=n_prior, n_predictive=n_predictive)
    finally:
        compiled.set_windows(compiled.gaussian.mode)
    return described(found, model.report_name, _coords(compiled))


def described(idata: InferenceData, report: str, coords: Mapping[str, Any]) -> InferenceData:
    """Say of every variable what it is and in which unit, and of reports and answers who gave them on which item."""
    known = {
        name: (text.partition(", nats")[0], "nats" if text.endswith(", nats") else "1")
        for name, text in DESCRIPTIONS.items()
    }
    for name in group_names(idata):
        dataset = group(idata, name)
        names = (known | _DATA) if name != "sample_stats" else _STATS
        other = "statistic of the sampler" if name == "sample_stats" else f"parameter of the report likelihood {report}"
        for variable in dataset.data_vars:
            text, units = names.get(str(variable), (other, "1"))
            dataset[variable].attrs |= {
                "description": f"log-likelihood: {text}" if name == "log_likelihood" else text,
                "units": "nats" if name == "log_likelihood" else units,
            }
        own = {key: value for key, value in coords.items() if value[0] in dataset.dims}
        add_groups(idata, {name: dataset.assign_coords(own)})
    return idata


def _coords(compiled: Compiled) -> dict[str, tuple[str, NDArray[Any]]]:
    data = compiled.data
    kept = single_answers(data)
    return {
        "report_participant": ("report", data.participant[data.row_participant]),
        "report_item": ("report", data.item[data.row_item]),
        "report_candidate": ("report", data.token_column[data.row_token]),
        "answer_participant": ("answer", data.answer_participant[kept]),
        "answer_item": ("answer", data.item[data.answer_item[kept]]),
    }


def _outside(compiled: Compiled) -> OutsideLikelihood:
    data, model = compiled.data, compiled.program.model
    dims = {"reports": ("report",), "answers": ("answer",), "items": ("item",), "n_answers": ("item",)}
    dims |= dict.fromkeys(("report_low", "report_high", "report_log_g_ratio"), ("report",))
    return OutsideLikelihood(
        log_likelihood=model.pointwise,
        observed=partial(_observed, data),
        simulate=_Simulator(compiled),
        simulate_prior=_Simulator(compiled, of_law=True),
        mode=QUICK,
        parameters=tuple(one.name for one in (*model.free_RVs, *model.deterministics)),
        dims=dims | {"target_log_g": ("item",), "scale": ()},
        constant=lambda: {
            "report_low": data.row_low,
            "report_high": data.row_high,
            "report_log_g_ratio": data.target_log_g[data.row_item] - data.token_log_g[data.row_token],
            "target_log_g": data.target_log_g,
            "n_answers": data.n_answers,
            **({"scale": model["scale"].get_value()} if "scale" in model.named_vars else {}),
        },
    )


def _observed(data: Any) -> dict[str, NDArray[Any]]:
    found = {"reports": data.box_value[data.row_box]}
    token = data.answer_token[single_answers(data)]
    return found | ({"answers": np.where(token >= 0, data.token_column[token], token)} if token.size else {})


class _Simulator:
    """Draws reports and answers given the parameters."""

    def __init__(self, compiled: Compiled, *, of_law: bool = False) -> None:
        self.compiled, self.of_law = compiled, of_law

    def __call__(self, values: Mapping[str, NDArray[Any]], rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        compiled, data, model = self.compiled, self.compiled.data, self.compiled.program.model
        given = [values[rv.name] for rv in model.free_RVs]
        belief = compiled.belief_given([compiled.program.wanted(compiled.program.at(values))], rng, of_law=self.of_law)
        model.drawn_log_odds.set_value(-belief.token_log_ratio[0, data.row_token])
        found = {"reports": data.box_value[drawn_places(compiled.chances_of(*given)[0], rng)]}
        kept = single_answers(data)
        if not kept.size:
            return found
        # places on the line of an item: the target, its tokens, all others
        item, mass = data.answer_item[kept], np.exp(belief.token_log_ratio[0])
        at = rng.random(item.size) * np.sum(belief.parts(), axis=0)[0, item] - 1
        end = np.append(0.0, np.cumsum(mass))
        first = np.searchsorted(data.token_item, np.arange(data.item.size + 1))
        token = np.searchsorted(end, end[first[item]] + at, side="right") - 1
        named = np.where(token < first[item + 1], data.token_column[np.minimum(token, mass.size - 1)], -2)
        return found | {"answers": np.where(at < 0, -1, named)}
