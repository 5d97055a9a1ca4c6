"""Effective draws per second: our densities with hmc, our PyMC models with nutpie, PyMC's sampler on the plainest.

Usage: python tests/benchmarks/ess_per_second.py FOLDER_OF_LM_GAME [--model belief|participants|all]
       [--against stated|plain|both] [--draws N] [--tune N]
       [--plain-draws N] [--plain-tune N] [--chains N] [--participants N]

The densities that are written out, sampled by hmc or nutpie, are compared with the PyMC models that state them, which
PyTensor compiles for nutpie; compilation counts, on disk or not. The second contest is with the plainest correct one.

Both sides have the same data, priors and posterior: the means of the parameters are printed side by side. (Our
participant model takes the sum of a residual and the noise as a two-piece normal where the plain one has the exact
mixture.) The plain version is what one writes down first: every v is a latent, of rounded answers without noise inside
its box; every latent is centred; nothing is marginalised; and ``pm.sample`` runs with its own ``target_accept``.

What is compared is the bulk effective sample size of the worst of the parameters that both sides have, per second of
processor time of one core from the first step of the warm-up on, whatever else the machine does. Chains run one after
the other. Compilation is timed apart: it is paid once, and our models are compiled once for many data sets. Where
the plain side has an R-hat above 1.01 it has not reached the posterior in the draws it was given. Then the effective
sample sizes of its single chains are added up, as if they agreed: an upper bound for what it has of the posterior, so
that the ratio is a lower bound, and is called so.
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
from hydra import initialize_config_module

from experiments import lm_game
from inference.comparison.belief_gap import compile_belief
from inference.comparison.participant_fit import compile_participants
from inference.comparison.sbc import small_study
from inference.posterior.arviz_adapter import ess_bulk, r_hat
from inference.posterior.sampling import CompiledModel, compile_model, sample
from models.comparison.belief import BeliefData, BeliefPriors, belief_data, belief_model, start_values
from models.comparison.participants import ParticipantData, ParticipantPriors, participant_data, participant_model

R_HAT = 1.01
"""Above, chains have not converged."""


@dataclass(frozen=True)
class Contest:
    """Ours and the plain version of one model, and the parameters that both have."""

    name: str
    ours: Callable[[], CompiledModel]
    stated: Callable[[], CompiledModel]
    plain: Callable[[], pm.Model]
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """What one sampler did."""

    compiling: float
    sampling: float
    ess: float
    ess_apart: float
    worst: str
    r_hat: float
    n_divergent: int
    mean: dict[str, float]
    sd: dict[str, float]

    @property
    def per_second(self) -> float:
        """Effective draws of the worst parameter per second of sampling."""
        return self.ess / self.sampling

    @property
    def in_all(self) -> float:
        """Effective draws of the worst parameter per second of compiling and sampling."""
        return self.ess / (self.compiling + self.sampling)


def plain_belief(data: BeliefData) -> pm.Model:
    """The belief model without any trick; see :func:`models.comparison.belief.belief_model` for the equations."""
    p = BeliefPriors()

    def log_density(value: Any, mean: Any, left: Any, right: Any) -> Any:
        offset = value - mean - np.sqrt(2 / np.pi) * (left - right)
        scale = pt.switch(offset < 0, left, right)
        return -0.5 * (offset / scale) ** 2 - pt.log((left + right) / 2) - 0.5 * np.log(2 * np.pi)

    with pm.Model() as model:
        mu, a, b = pm.Normal("mu", 0, p.mu), pm.Normal("a", 0, p.a), pm.Normal("b", 0, p.b)
        b2, c, ga = pm.Normal("b2", 0, p.b2), pm.Normal("c", 0, p.c), pm.Normal("ga", 0, p.ga)
        d = pm.Normal("d", 0, p.d)
        sigma, omega = pm.HalfNormal("sigma", p.sigma), pm.HalfNormal("omega", p.omega)
        t_b, kap = pm.Gamma("t_b", alpha=2, beta=np.float64(3 / p.t_b)), pm.Normal("kap", p.kap_mean, p.kap)
        rho = pm.LogNormal("rho", 0, p.log_rho)
        pm.Normal("delta", 0, p.delta)
        n_items = data.item.size
        log_s = pm.Normal("log_s", pt.log(sigma) + c * (data.surprisal - 4), omega, shape=n_items)
        s = pt.sqrt(pt.exp(2 * log_s) + 0.02**2)
        slope = pm.Normal("slope", b, t_b, shape=n_items)
        lean = pm.Normal("lean", d, pm.Gamma("t_d", alpha=2, beta=np.float64(3 / p.t_d)), shape=n_items)
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
            mean += lean[item] * data.pair_frequency[at]
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
    parameters = ("mu", "a", "b", "b2", "sigma", "omega", "c", "d", "t_b", "t_d", "kap", "rho", "ga")
    return Contest(
        f"belief, {player} rounded to the boxes: {data.item.size} items, {data.pair_item.size} pairs",
        lambda: compile_belief(data),
        lambda: compile_model(model := belief_model(data), jitter=False, start=start_values(model)),
        lambda: plain_belief(data),
        parameters,
    )


def plain_participants(data: ParticipantData) -> pm.Model:
    """The participant model without any trick; see :func:`models.comparison.participants.participant_model`."""
    p = ParticipantPriors()
    n_items, n_people = data.item.size, data.participant.size

    def log_residual(value: Any, mean: Any, left: Any, right: Any) -> Any:
        offset = value - mean - np.sqrt(2 / np.pi) * (left - right)
        scale = pt.switch(offset < 0, left, right)
        return -0.5 * (offset / scale) ** 2 - pt.log((left + right) / 2) - 0.5 * np.log(2 * np.pi)

    def log_box(box: Any, centre: Any, noise: Any, lapse: Any, half: Any) -> Any:
        edges = np.clip(data.box_edges, -60, 60)
        low, high = ((pt.as_tensor(edges[:, side])[box] - centre) / noise for side in (0, 1))
        # the tail in which both edges lie, where the CDF keeps its relative precision
        flip = pt.switch(low > 0, -1, 1)
        inside = (pt.erfc(-flip * high / np.sqrt(2)) - pt.erfc(-flip * low / np.sqrt(2))) / 2 * flip
        slip = half * pt.eq(box, data.half_box) + (1 - half) / len(edges)
        return pt.log((1 - lapse) * inside + lapse * slip + 1e-12)

    with pm.Model() as model:
        mu, a, b, b2 = (pm.Normal(name, 0, getattr(p, name)) for name in ("mu", "a", "b", "b2"))
        c, ga, kap = pm.Normal("c", 0, p.c), pm.Normal("ga", p.ga_mean, p.ga), pm.Normal("kap", p.kap_mean, p.kap)
        sigma, omega, t_b = (pm.HalfNormal(name, getattr(p, name)) for name in ("sigma", "omega", "t_b"))
        rho = pm.LogNormal("rho", 0, p.log_rho)
        pm.Normal("delta", 0, p.delta)
        own = pm.Normal("own", 0, omega, shape=n_items)
        variance = (sigma * pt.exp(0.5 * pt.tanh(own / 0.5) + c * (data.surprisal - 4))) ** 2 + 0.02**2
        s = pt.sqrt(variance)
        steep = pm.Normal("steep", b, t_b, shape=n_items)
        place = mu + a * (data.target_logit + 3) - (steep - b) * (data.target_logit + 5) - kap * variance / 2
        intercept = pm.StudentT("A", nu=p.nu, mu=place, sigma=rho * s, shape=n_items)
        item, log_g = data.pair_item, data.pair_log_g
        mean = intercept[item] + steep[item] * (log_g + 5) + b2 * np.maximum(-log_g - 7, 0)
        left, right = (s * pt.exp(ga))[item], (s * pt.exp(-ga))[item]
        v = pm.CustomDist("v", mean, left, right, logp=log_residual, shape=item.size, initval=np.zeros(item.size))

        slope_spread, bias_spread = (pm.HalfNormal(name, getattr(p, name)) for name in ("slope_spread", "bias_spread"))
        deviation = pm.Normal("deviation", 0, slope_spread, shape=n_people)
        bounded = 1.5 * pt.tanh(deviation / 1.5)
        slope = pt.exp(bounded - bounded.mean())
        raw_bias = pm.StudentT("raw_bias", nu=4, mu=0, sigma=bias_spread, shape=n_people)
        bias = raw_bias - raw_bias.mean()
        log_noise = pm.Normal("log_noise", np.log(p.noise_median), p.log_noise)
        noise_spread = pm.HalfNormal("noise_spread", p.noise_spread)
        noise = pt.exp(pm.Normal("own_log_noise", log_noise, noise_spread, shape=n_people))
        logit_lapse = pm.Normal("logit_lapse", np.log(p.lapse_median / (1 - p.lapse_median)), p.logit_lapse)
        lapse_spread = pm.HalfNormal("lapse_spread", p.lapse_spread)
        lapse = pm.math.sigmoid(pm.Normal("own_logit_lapse", logit_lapse, lapse_spread, shape=n_people))
        half = pm.Beta("half", p.half_alpha, p.half_beta)
        who, log_ratio = data.row_participant, (v + data.pair_log_g_ratio)[data.row_pair]
        centre = slope[who] * (bias[who] - log_ratio)
        pm.CustomDist("box", centre, noise[who], lapse[who], half, logp=log_box, observed=data.row_box, dtype="int64")
    return model


def participant_contest(study: Any, n_participants: int) -> Contest:
    """Build the contest of the participant model on the people who answered most."""
    data = participant_data(small_study(study, study.sizes["item"], n_participants))
    parameters: tuple[str, ...] = (
        "mu",
        "a",
        "b",
        "b2",
        "sigma",
        "omega",
        "c",
        "t_b",
        "kap",
        "rho",
        "ga",
        "slope_spread",
    )
    parameters += ("bias_spread", "log_noise", "noise_spread", "logit_lapse", "lapse_spread", "half")
    return Contest(
        f"participants, {data.participant.size} people: {data.item.size} items, {data.pair_item.size} pairs, "
        f"{data.row_box.size} answers",
        lambda: compile_participants(data),
        lambda: compile_model(participant_model(data)),
        lambda: plain_participants(data),
        parameters,
    )


def run_ours(contest: Contest, build: Callable[[], CompiledModel], sampler: str, settings: dict[str, Any]) -> Measured:
    """Time ours, or the model that states it."""
    start = time.process_time()
    compiled = build()
    # Numba compiles, or reads from disk, at the first call
    sample(compiled, sampler=sampler, draws=1, tune=1, chains=1, cores=1, seed=0, progress=False)
    compiling = time.process_time() - start
    start = time.process_time()
    idata = sample(compiled, sampler=sampler, target_accept=0.8, cores=1, progress=False, **settings)
    return measured(contest, idata, compiling, time.process_time() - start)


def run_plain(contest: Contest, settings: dict[str, Any]) -> Measured:
    """Time ``pm.sample`` from its first step on."""
    model = contest.plain()
    first: list[float] = []

    def note(**_: Any) -> None:
        if not first:
            first.append(time.process_time())

    start = time.process_time()
    seed = settings["seed"]
    idata = pm.sample(
        model=model,
        **{name: settings[name] for name in ("draws", "tune", "chains")},
        cores=1,
        random_seed=seed,
        progressbar=False,
        compute_convergence_checks=False,
        callback=note,
    )
    return measured(contest, idata, first[0] - start, time.process_time() - first[0])


def measured(contest: Contest, idata: Any, compiling: float, sampling: float) -> Measured:
    """Worst effective sample size, and the means to compare."""
    draws = {name: idata.posterior[name].values for name in contest.parameters}
    ess = {name: ess_bulk(values) for name, values in draws.items()}
    worst = min(ess, key=lambda name: ess[name])
    return Measured(
        compiling=compiling,
        sampling=sampling,
        ess=ess[worst],
        ess_apart=min(sum(ess_bulk(chain[None]) for chain in values) for values in draws.values()),
        worst=worst,
        r_hat=max(r_hat(values) for values in draws.values()),
        n_divergent=int(idata.sample_stats["diverging"].values.sum()),
        mean={name: float(values.mean()) for name, values in draws.items()},
        sd={name: float(values.std()) for name, values in draws.items()},
    )


def report_stated(contest: Contest, ours: Measured, stated: Measured) -> None:
    """Print the contest with the PyMC model that states the density."""
    print(contest.name)
    for label, side in (("density", ours), ("PyMC model", stated)):
        print(
            f"  {label:17s} compiling {side.compiling:6.1f} s, sampling {side.sampling:7.1f} s, "
            f"ESS of the worst ({side.worst}) {side.ess:7.1f}, R-hat {side.r_hat:.3f}, {side.n_divergent} divergences, "
            f"{side.in_all:.2f} effective draws a second with compiling, {side.per_second:.2f} without"
        )
    print(
        f"  ratio {ours.in_all / stated.in_all:.1f} with compiling, {ours.per_second / stated.per_second:.1f} without"
    )


def report(contest: Contest, ours: Measured, plain: Measured) -> None:
    """Print one contest."""
    print(contest.name)
    for label, side in (("ours", ours), ("plain, pm.sample", plain)):
        print(
            f"  {label:17s} compiling {side.compiling:6.1f} s, sampling {side.sampling:7.1f} s, "
            f"ESS of the worst ({side.worst}) {side.ess:7.1f}, R-hat {side.r_hat:.3f}, {side.n_divergent} divergences, "
            f"{side.per_second:.3f} effective draws a second"
        )
    if ours.r_hat > R_HAT:
        print("  no ratio: ours has not converged; give it more --draws")
    elif plain.r_hat > R_HAT:
        bound = ours.per_second / (plain.ess_apart / plain.sampling)
        print(
            f"  ratio above {bound:.1f}: the plain side has not converged; its chains, each taken for the posterior, "
            f"have {plain.ess_apart:.0f} effective draws of their worst parameter"
        )
    else:
        print(f"  ratio {ours.per_second / plain.per_second:.1f}")
    print("  posterior mean and sd, ours | plain:")
    for name in contest.parameters:
        print(
            f"    {name:12s} {ours.mean[name]:7.3f} {ours.sd[name]:6.3f} | "
            f"{plain.mean[name]:7.3f} {plain.sd[name]:6.3f}"
        )


def main() -> None:
    """Run the contests asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--model", choices=("belief", "participants", "all"), default="all")
    parser.add_argument("--against", choices=("stated", "plain", "both"), default="both")
    parser.add_argument("--sampler", choices=("hmc", "nutpie"), default="hmc", help="of our side")
    parser.add_argument("--player", default="gpt2-medium")
    for name, default in (("draws", 1000), ("tune", 1000), ("chains", 2), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name in ("draws", "tune"):
        parser.add_argument(f"--plain-{name}", type=int, help="of the plain side; by default as ours")
    parser.add_argument("--participants", type=int, default=29, help="those who answered most")
    given = parser.parse_args()
    with initialize_config_module("conf", version_base="1.3"):
        study = lm_game(root=given.folder)
    ours = {name: getattr(given, name) for name in ("draws", "tune", "chains", "seed")}
    plain = ours | {name: value for name in ("draws", "tune") if (value := getattr(given, f"plain_{name}")) is not None}
    contests = []
    if given.model != "participants":
        contests.append(belief_contest(study, given.player))
    if given.model != "belief":
        contests.append(participant_contest(study, given.participants))
    for contest in contests:
        found = run_ours(contest, contest.ours, given.sampler, ours)
        if given.against != "plain":
            report_stated(contest, found, run_ours(contest, contest.stated, "nutpie", ours))
        if given.against != "stated":
            report(contest, found, run_plain(contest, plain))


if __name__ == "__main__":
    main()
