"""Effective draws per second: our models with nutpie against PyMC's own sampler on the plainest correct version.

Usage: python tests/benchmarks/ess_per_second.py FOLDER_OF_LM_GAME [--draws N] [--tune N] [--chains N]

Both sides have the same data, priors and posterior: the means of the parameters are printed side by side. The plain
version is what one writes down first: every rounded answer is a latent v inside its box, every latent is centred,
nothing is marginalised, and ``pm.sample`` runs with its defaults. Chains run one after the other on both sides.
Compilation is timed apart: it is paid once, and our models are compiled once for many data sets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from hydra import compose, initialize_config_module

from experiments.studies import load_study
from inference.arviz_adapter import ess_bulk, r_hat
from inference.belief_gap import compile_belief
from inference.sampling import CompiledModel, sample
from models.belief import BeliefData, BeliefPriors, belief_data


@dataclass(frozen=True)
class Contest:
    """Ours and the plain version of one model, and the parameters that both have."""

    name: str
    ours: Callable[[], CompiledModel]
    plain: Callable[[], pm.Model]
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """What one sampler did."""

    compiling: float
    sampling: float
    ess: float
    worst: str
    r_hat: float
    n_divergent: int
    mean: dict[str, float]
    sd: dict[str, float]

    @property
    def per_second(self) -> float:
        """Effective draws of the worst parameter per second of sampling."""
        return self.ess / self.sampling


def plain_belief(data: BeliefData) -> pm.Model:
    """The belief model without any trick; see :func:`models.belief.belief_model` for the equations."""
    p = BeliefPriors()

    def log_density(value: Any, mean: Any, left: Any, right: Any) -> Any:
        offset = value - mean - np.sqrt(2 / np.pi) * (left - right)
        scale = pt.switch(offset < 0, left, right)
        return -0.5 * (offset / scale) ** 2 - pt.log((left + right) / 2) - 0.5 * np.log(2 * np.pi)

    with pm.Model() as model:
        mu, a, b = pm.Normal("mu", 0, p.mu), pm.Normal("a", 0, p.a), pm.Normal("b", 0, p.b)
        b2, c, ga = pm.Normal("b2", 0, p.b2), pm.Normal("c", 0, p.c), pm.Normal("ga", 0, p.ga)
        sigma, omega = pm.HalfNormal("sigma", p.sigma), pm.HalfNormal("omega", p.omega)
        t_b, kap = pm.HalfNormal("t_b", p.t_b), pm.Normal("kap", p.kap_mean, p.kap)
        rho = pm.LogNormal("rho", 0, p.log_rho)
        n_items = data.item.size
        log_s = pm.Normal("log_s", pt.log(sigma) + c * (data.surprisal - 4), omega, shape=n_items)
        s = pt.sqrt(pt.exp(2 * log_s) + 0.02**2)
        slope = pm.Normal("slope", b, t_b, shape=n_items)
        place = mu + a * (data.target_logit + 3) - (slope - b) * (data.target_logit + 5) - kap * s**2 / 2
        intercept = pm.StudentT("A", nu=p.nu, mu=place, sigma=rho * s, shape=n_items)
        # boxes at the ends of the scale are open, and PyMC bounds a variable on one side or on both
        for side, low, high in (
            ("inside", np.isfinite(data.pair_lower), np.isfinite(data.pair_upper)),
            ("above", np.isfinite(data.pair_lower), np.isinf(data.pair_upper)),
            ("below", np.isinf(data.pair_lower), np.isfinite(data.pair_upper)),
        ):
            at = np.flatnonzero(low & high)
            if not at.size:
                continue
            lower, upper = data.pair_lower[at], data.pair_upper[at]
            item, log_g = data.pair_item[at], data.pair_log_g[at]
            mean = intercept[item] + slope[item] * (log_g + 5) + b2 * np.maximum(-log_g - 7, 0)
            bounds = (None if side == "below" else pt.constant(lower), None if side == "above" else pt.constant(upper))
            start = {"inside": (lower + upper) / 2, "above": lower + 1, "below": upper - 1}[side]
            pm.CustomDist(
                f"v_{side}",
                mean,
                (s * pt.exp(ga))[item],
                (s * pt.exp(-ga))[item],
                logp=log_density,
                transform=pm.distributions.transforms.Interval(bounds_fn=lambda *_, bounds=bounds: bounds),
                initval=start,
                shape=at.size,
            )
    return model


def belief_contest(study: Any, player: str) -> Contest:
    """Build the contest of the belief model on one rounded player."""
    data = belief_data(study, player, "interface")
    parameters = ("mu", "a", "b", "b2", "sigma", "omega", "c", "t_b", "kap", "rho", "ga")
    return Contest(
        f"belief, {player} rounded to the boxes: {data.item.size} items, {data.pair_item.size} pairs",
        lambda: compile_belief(data),
        lambda: plain_belief(data),
        parameters,
    )


def run_ours(contest: Contest, settings: dict[str, Any]) -> Measured:
    """Time ours."""
    start = time.perf_counter()
    compiled = contest.ours()
    compiling = time.perf_counter() - start
    start = time.perf_counter()
    idata = sample(compiled, target_accept=0.8, **settings)
    return measured(contest, idata, compiling, time.perf_counter() - start)


def run_plain(contest: Contest, settings: dict[str, Any]) -> Measured:
    """Time ``pm.sample``; its compilation is what its own clock of the sampling leaves of the whole."""
    model = contest.plain()
    start = time.perf_counter()
    idata = sample(model, sampler="pymc", target_accept=0.8, **settings)
    whole = time.perf_counter() - start
    sampling = float(idata.posterior.attrs["sampling_time"])
    return measured(contest, idata, whole - sampling, sampling)


def measured(contest: Contest, idata: Any, compiling: float, sampling: float) -> Measured:
    """Worst effective sample size, and the means to compare."""
    draws = {name: idata.posterior[name].values for name in contest.parameters}
    ess = {name: ess_bulk(values) for name, values in draws.items()}
    worst = min(ess, key=lambda name: ess[name])
    return Measured(
        compiling=compiling,
        sampling=sampling,
        ess=ess[worst],
        worst=worst,
        r_hat=max(r_hat(values) for values in draws.values()),
        n_divergent=int(idata.sample_stats["diverging"].values.sum()),
        mean={name: float(values.mean()) for name, values in draws.items()},
        sd={name: float(values.std()) for name, values in draws.items()},
    )


def report(contest: Contest, ours: Measured, plain: Measured) -> None:
    """Print the contest's outcome."""
    print(contest.name)
    for who, found in (("ours, nutpie", ours), ("plain, pm.sample", plain)):
        print(
            f"  {who:17s} compiling {found.compiling:6.1f} s, sampling {found.sampling:7.1f} s, "
            f"bulk ESS {found.ess:6.0f} ({found.worst}), R-hat {found.r_hat:.3f}, {found.n_divergent} divergent: "
            f"{found.per_second:.3g} effective draws per second"
        )
    print(f"  ratio {ours.per_second / plain.per_second:.1f}")
    print("  posterior mean and sd, ours | plain:")
    for name in contest.parameters:
        print(
            f"    {name:6s} {ours.mean[name]:7.3f} {ours.sd[name]:6.3f} | {plain.mean[name]:7.3f} {plain.sd[name]:6.3f}"
        )


def main() -> None:
    """Run every contest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--player", default="gpt2-medium")
    for name, default in (("draws", 1000), ("tune", 1000), ("chains", 2), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with initialize_config_module("conf", version_base="1.3"):
        study = load_study(compose("config", overrides=["study=lm_game", f"study.root={given.folder}"]))
    settings = {name: getattr(given, name) for name in ("draws", "tune", "chains", "seed")} | {"cores": 1}
    for contest in (belief_contest(study, given.player),):
        report(contest, run_ours(contest, settings), run_plain(contest, settings))


if __name__ == "__main__":
    main()
