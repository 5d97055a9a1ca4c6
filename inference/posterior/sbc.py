"""Simulation-based calibration: whether the posterior is right, on data drawn from the model itself.

The rank of the true value among nearly independent posterior draws is uniform over fits (Cook, Gelman and Rubin 2006;
Talts and others 2018). The joint log-likelihood is ranked too: it finds what the parameters one by one do not (Modrák
and others 2023). Ranks are judged by bands of their empirical CDF (Säilynoja, Bürkner and Vehtari 2022).
The package simuk neither goes on after a kill, nor lengthens a fit until its draws are worth their number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
import pymc as pm
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.content import UnsureError, content_digest
from shannon_game.estimators.errors import InputError
from shannon_game.inference.posterior.arviz_adapter import ess_bulk, group, r_hat
from shannon_game.inference.posterior.predictive import LogLikelihood, log_likelihood, prior_simulator
from shannon_game.inference.posterior.replicates import Row, Task, run_replicates
from shannon_game.inference.posterior.sampling import CompiledModel, compile_model, sample, written_model
from shannon_game.inference.progress import say
from shannon_game.models.density import WrittenDensity

JOINT_LOG_LIKELIHOOD = "log_likelihood"
"""Name of the quantity that is the joint log-likelihood of all rows."""

_R_HAT = 1.05
_LIKE_NO_OTHER = "like no other: "


def rank_of_truth(draws: ArrayLike, truth: float, n_ranked: int, rng: np.random.Generator) -> int:
    """Rank of a value among evenly spaced posterior draws: how many of them are smaller."""
    flat = np.asarray(draws, dtype=float).ravel()
    if flat.size < n_ranked:
        raise InputError(f"are {flat.size}, at least {n_ranked} are needed", field="draws")
    taken = flat[np.floor((np.arange(n_ranked) + 0.5) * flat.size / n_ranked).astype(int)]
    if np.isnan(taken).any() or np.isnan(truth):
        raise InputError("have a NaN, which has no rank", field="draws")
    return int((taken < truth).sum() + rng.integers(0, (taken == truth).sum() + 1))


@dataclass(frozen=True, eq=False)
class SbcModel:
    """A model to calibrate; it goes to other processes, so that functions are those of modules, or partials.

    Attributes
    ----------
    build : callable
        Makes the PyMC model, with priors that generate plausible data and any answers of the right shape.
    quantities : tuple of str
        What to rank besides the joint log-likelihood: variables that are numbers, or ``"A[0]"`` for an element.
    density : callable, optional
        Gives the model's density where it is written out, by which fits are made: they show that it is the model's.
    draw : callable, optional
        Of a model with potentials: takes the model and a random generator, gives the model data, and returns the values
        of its variables that made them, by name.
    """

    name: str
    build: Callable[[], pm.Model]
    quantities: tuple[str, ...]
    density: Callable[[], WrittenDensity] | None = None
    draw: Callable[[pm.Model, np.random.Generator], Mapping[str, NDArray[Any]]] | None = None

    @cached_property
    def key(self) -> str:
        """Digest of all functions with what they hold: data, priors, code. A process compiles each model once."""
        try:
            return content_digest([self.build, self.quantities, self.density, self.draw])
        except UnsureError as problem:
            say(f"fits of {self.name!r} begin anew in every run, as what it holds cannot be told surely: {problem}")
            return f"{_LIKE_NO_OTHER}{uuid4().hex}"


class Design(Protocol):
    """What ``+exp=recovery of=sbc`` says of the data sets that a model is fitted to."""

    n_items: int
    n_pairs: int
    n_participants: int
    priors: Mapping[str, float]


@dataclass(frozen=True)
class SbcSettings:
    """How each data set is fitted; draws and warm-up are per chain.

    A fit with an effective sample size below `n_ranked`, or an R-hat above 1.05, is made again with twice the draws
    (and warm-up), `n_longer` times at most.
    """

    n_ranked: int = 63
    draws: int = 400
    tune: int = 400
    chains: int = 2
    target_accept: float = 0.9
    n_longer: int = 3
    sampler: str = "nutpie"

    def __post_init__(self) -> None:
        for name in ("n_ranked", "draws", "tune", "chains"):
            if getattr(self, name) < 1:
                raise InputError(f"is {getattr(self, name)}, should be at least 1", source="sbc", field=name)
        if self.draws * self.chains < self.n_ranked:
            raise InputError(
                f"is {self.n_ranked}, more than the {self.draws * self.chains} draws of a fit",
                source="sbc",
                field="n_ranked",
            )


def run_sbc(
    model: SbcModel,
    n_fits: int,
    *,
    path: Path | str,
    seed: int = 0,
    settings: SbcSettings | None = None,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    set_aside: bool = False,
) -> list[Row]:
    """Rank the truth in `n_fits` posteriors, a row per fit and quantity; the file resumes an interrupted run."""
    chosen = settings or SbcSettings()
    return run_replicates(
        partial(sbc_rows, model=model, settings=chosen),
        [{"fit": fit, "seed": seed} for fit in range(n_fits)],
        path=path,
        settings={"model": model.name, "key": model.key, "quantities": list(model.quantities), **vars(chosen)},
        n_jobs=n_jobs,
        progress=progress,
        set_aside=set_aside or model.key.startswith(_LIKE_NO_OTHER),
    )


def sbc_rows(task: Task, *, model: SbcModel, settings: SbcSettings) -> list[Row]:
    """One replicate: draw parameters and data, fit, rank."""
    ready = _prepared(model)
    rng = np.random.default_rng([int(task["seed"]), int(task["fit"])])
    drawn = ready.draw(rng)
    truth = {name: _element(drawn, name) for name in model.quantities}
    truth[JOINT_LOG_LIKELIHOOD] = float(sum(rows.sum() for rows in ready.log_likelihood.at(drawn).values()))
    longer = 1
    while True:
        idata = sample(
            ready.compiled,
            draws=settings.draws * longer,
            tune=settings.tune * longer,
            chains=settings.chains,
            cores=1,
            target_accept=settings.target_accept,
            sampler=settings.sampler,
            seed=int(rng.integers(2**31)),
            progress=False,
        )
        found = _quantities(idata, model, ready.log_likelihood)
        ess = {name: ess_bulk(values) for name, values in found.items()}
        # one chain cannot disagree with another
        r_hats = {name: r_hat(values) if settings.chains > 1 else 1.0 for name, values in found.items()}
        # written so that NaN, of a quantity that never moved, is not good
        good = all(value >= settings.n_ranked for value in ess.values()) and all(x <= _R_HAT for x in r_hats.values())
        if good or longer >= 2**settings.n_longer:
            break
        longer *= 2
    of_fit = {
        "n_divergent": int(group(idata, "sample_stats")["diverging"].values.sum()),
        "n_draws": settings.draws * longer * settings.chains,
        "converged": good,
    }
    return [
        {
            "quantity": name,
            "rank": rank_of_truth(values, truth[name], settings.n_ranked, rng),
            "truth": truth[name],
            "posterior_mean": float(values.mean()),
            "posterior_sd": float(values.std()),
            "ess": ess[name],
            "r_hat": r_hats[name],
            **of_fit,
        }
        for name, values in found.items()
    ]


@dataclass(frozen=True, eq=False)
class _Ready:
    compiled: CompiledModel
    draw: Callable[[np.random.Generator], Mapping[str, NDArray[Any]]]
    log_likelihood: LogLikelihood


_ready: dict[tuple[str, str], _Ready] = {}


def _prepared(model: SbcModel) -> _Ready:
    """Compile a model once a process: the sampler, the simulator and the log-likelihood."""
    key = (model.name, model.key)
    if key not in _ready:
        program = model.build()
        names = [_variable(quantity) for quantity in model.quantities]
        missing = [name for name in names if name not in program.named_vars]
        if missing:
            raise InputError(f"has no variable {', '.join(missing)}", source=f"model {model.name!r}")
        _ready[key] = _Ready(
            # first, as it makes data of answers that are constants
            draw=_drawing(program, names) if model.draw is None else partial(model.draw, program),
            compiled=compile_model(program) if model.density is None else written_model(program, model.density()),
            log_likelihood=log_likelihood(program),
        )
    return _ready[key]


def _drawing(program: pm.Model, names: Sequence[str]) -> Callable[[np.random.Generator], Mapping[str, NDArray[Any]]]:
    """Draw all of a generative model from its prior, and give it the data drawn."""
    answers = _exchangeable_answers(program)
    simulator = prior_simulator(program, tuple(dict.fromkeys([*(rv.name for rv in program.basic_RVs), *names])))

    def draw(rng: np.random.Generator) -> Mapping[str, NDArray[Any]]:
        drawn = simulator(rng)
        for observed, data in answers.items():
            program.set_data(data, drawn[observed])
        return drawn

    return draw


def _exchangeable_answers(model: pm.Model) -> dict[str, str]:
    """Name of the data behind every observed variable; answers that are constants become data."""
    answers = {}
    for variable in model.observed_RVs:
        value = model.rvs_to_values[variable]
        # integers may be cast on their way into the density
        source = value if value.owner is None else value.owner.inputs[0]
        if source.name not in model.named_vars or not hasattr(source, "get_value"):
            dims = model.named_vars_to_dims.get(variable.name)
            source = pm.Data(f"{variable.name}_data", np.asarray(value.eval()), dims=dims, model=model)
            model.rvs_to_values[variable] = source
            del model.values_to_rvs[value]
            model.values_to_rvs[source] = variable
        answers[variable.name] = source.name
    return answers


def _variable(quantity: str) -> str:
    return quantity.partition("[")[0]


def _position(quantity: str) -> tuple[int, ...]:
    inside = quantity.partition("[")[2].rstrip("]")
    return tuple(int(index) for index in inside.split(",")) if inside else ()


def _element(values: Mapping[str, NDArray[Any]], quantity: str) -> float:
    return float(values[_variable(quantity)][_position(quantity)])


def _quantities(idata: Any, model: SbcModel, rows: LogLikelihood) -> dict[str, FloatArray]:
    """Draws (chain, draw) of every quantity."""
    posterior = group(idata, "posterior")
    found = {}
    for name in model.quantities:
        of_draw = posterior[_variable(name)].transpose("chain", "draw", ...)
        position = dict(zip(of_draw.dims[2:], _position(name), strict=True))
        found[name] = of_draw.isel(position).to_numpy()
    terms: Sequence[FloatArray] = list(rows.of_draws(posterior).values())
    joint = [term.reshape(*term.shape[:2], -1).sum(axis=2) for term in terms]
    return found | {JOINT_LOG_LIKELIHOOD: np.sum(joint, axis=0)}
