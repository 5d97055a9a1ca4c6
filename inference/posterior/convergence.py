"""Whether a posterior can be believed: R-hat, effective sample sizes, divergences, energy."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from shannon_game.estimators.display import Result
from shannon_game.inference.posterior import arviz_adapter
from shannon_game.inference.posterior.arviz_adapter import InferenceData
from shannon_game.inference.posterior.thresholds import GateThresholds


@dataclass(frozen=True, repr=False)
class Convergence(Result):
    """Verdict on one posterior, with the worst value of every check; NaN, which could not be computed, fails."""

    passed: bool
    reasons: tuple[str, ...]
    r_hat_max: float
    ess_bulk_min: float
    ess_tail_min: float
    n_divergent: int
    bfmi_min: float


def check_convergence(
    idata: InferenceData, thresholds: GateThresholds | None = None, *, fixed: Collection[str] = ()
) -> Convergence:
    """Judge a posterior by its worst parameter; `fixed` are variables that are one number by the model itself.

    Examples
    --------
    >>> from shannon_game import inference, models
    >>> from shannon_game.estimators.guesses.examples import guess_study
    >>> idata = inference.stand_in_posterior(models.accuracy_model(models.accuracy_data(guess_study())), n_draws=50)
    >>> inference.check_convergence(idata).passed
    False
    """
    found = arviz_adapter.diagnostics(idata, fixed=fixed)
    stats = arviz_adapter.group(idata, "sample_stats")
    chains = arviz_adapter.group(idata, "posterior").sizes["chain"]
    return judge(
        # one chain cannot disagree with another: the split R-hat of one is no evidence
        r_hat_max=float(np.max(found["r_hat"])) if chains > 1 else float("nan"),
        ess_bulk_min=float(np.min(found["ess_bulk"])),
        ess_tail_min=float(np.min(found["ess_tail"])),
        n_divergent=int(stats["diverging"].values.sum()),
        bfmi_min=float(np.min(found["bfmi"])) if found["bfmi"].size else None,
        thresholds=thresholds or GateThresholds(),
    )


def judge(
    *,
    r_hat_max: float,
    ess_bulk_min: float,
    ess_tail_min: float,
    n_divergent: int,
    bfmi_min: float | None,
    thresholds: GateThresholds,
) -> Convergence:
    """Compare the worst values with the thresholds; NaN fails, a sampler without energy (None) skips that check."""
    # what is wanted, the worst value, its limit, and 1 where larger is better
    checks: list[tuple[str, float | None, float, int]] = [
        ("R-hat is {:.3f}, at most {:g} is wanted", r_hat_max, thresholds.r_hat, -1),
        ("bulk ESS is {:.0f}, at least {:g} is wanted", ess_bulk_min, thresholds.ess_bulk, 1),
        ("tail ESS is {:.0f}, at least {:g} is wanted", ess_tail_min, thresholds.ess_tail, 1),
        ("{} divergent transitions, at most {} allowed", n_divergent, thresholds.divergent, -1),
        ("E-BFMI is {:.2f}, at least {:g} is wanted", bfmi_min, thresholds.bfmi, 1),
    ]
    reasons = tuple(
        text.format(value, limit)
        for text, value, limit, sign in checks
        if value is not None and not sign * value >= sign * limit
    )
    return Convergence(
        passed=not reasons,
        reasons=reasons,
        r_hat_max=r_hat_max,
        ess_bulk_min=ess_bulk_min,
        ess_tail_min=ess_tail_min,
        n_divergent=n_divergent,
        bfmi_min=float("nan") if bfmi_min is None else bfmi_min,
    )
