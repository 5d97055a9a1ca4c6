"""Draws from the posterior of a PyMC model."""

from __future__ import annotations

import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from types import FrameType
from typing import Any, get_args

import pymc as pm

from shannon_game.estimators.errors import InputError, check_memory, require_packages, unknown_choice
from shannon_game.inference.posterior import written
from shannon_game.inference.posterior.arviz_adapter import (
    InferenceData,
    add_model_data,
    common_stats,
    without_unconstrained,
)
from shannon_game.inference.posterior.thresholds import SamplerName
from shannon_game.inference.progress import Show, stage
from shannon_game.models.density import WrittenDensity

SAMPLERS = get_args(SamplerName)

_NEEDS = {
    "nutpie": ("bayes", ("pymc", "arviz", "nutpie")),
    "pymc": ("bayes", ("pymc", "arviz")),
    "numpyro": ("samplers", ("pymc", "arviz", "jax", "numpyro")),
    "blackjax": ("samplers", ("pymc", "arviz", "jax", "blackjax")),
}

_TOLD_MS = 500


@dataclass(frozen=True)
class CompiledModel:
    """A model compiled once for several fits; the values of its ``pm.Data`` can change between them, their shapes too.

    Attributes
    ----------
    program : object, optional
        What nutpie made of it.
    density : WrittenDensity, optional
        Of a model whose log-density is written out; there nutpie's program is made when it is needed.
    """

    model: pm.Model
    program: Any = None
    density: WrittenDensity | None = None


def compile_model(model: pm.Model) -> CompiledModel:
    """Compile a model for nutpie, which takes seconds, so that several fits share it."""
    check_installed("nutpie")
    import nutpie  # noqa: PLC0415 - one sampler of several
    from pytensor.configdefaults import config  # noqa: PLC0415

    # with fast maths the order of a sum depends on how functions are inlined, which is another one where PyTensor finds
    # them in its cache on disk: the second run of a program would draw otherwise than the first
    with config.change_flags(numba__fastmath=False):
        return CompiledModel(model, nutpie.compile_pymc_model(model))


def written_model(model: pm.Model, density: WrittenDensity) -> CompiledModel:
    """Let nutpie sample a model by its density as it was written out; the others sample the model itself.

    Chains start at a random distance from the density's start.
    """
    return CompiledModel(model, density=density)


def check_installed(sampler: str) -> None:
    """Refuse a sampler whose packages are missing, and say which extra brings them."""
    if sampler not in SAMPLERS:
        raise unknown_choice("sampler", sampler, SAMPLERS)
    extra, packages = _NEEDS[sampler]
    require_packages(packages, extra, field=f"sampler={sampler}")


def sample(
    model: pm.Model | CompiledModel,
    *,
    sampler: str = "nutpie",
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    cores: int | None = None,
    target_accept: float = 0.8,
    seed: int = 0,
    progress: bool = True,
) -> InferenceData:
    """Sample the posterior of a model.

    Parameters
    ----------
    model : pymc.Model or CompiledModel
        The latter is sampled with the values that the model's data have now.
    sampler : str
        One of :data:`SAMPLERS`.
    draws, tune, chains : int
        Draws kept and draws of the warm-up, per chain.
    cores : int, optional
        Chains at a time; by default as many as the machine has cores. numpyro and blackjax leave the cores to JAX.
    seed : int
        The same seed gives the same draws with the same sampler, whatever the cores.
    progress : bool
        Say on stderr how far it is: a bar in a terminal, else a line every half minute.

    Returns
    -------
    arviz.InferenceData
        Groups posterior, sample_stats (``diverging`` and ``energy`` whatever the sampler), observed_data and
        constant_data (where the model has any); :func:`shannon_game.inference.complete` adds the rest.

    Raises
    ------
    KeyboardInterrupt
        If the user stops it: a part of the draws is never passed off as all of them.

    Examples
    --------
    >>> from shannon_game import inference
    >>> from shannon_game.inference.examples import normal_model
    >>> idata = inference.sample(normal_model(), draws=100, tune=100, chains=2, seed=1, progress=False)
    >>> dict(idata.posterior.sizes)
    {'chain': 2, 'draw': 100}
    """
    check_installed(sampler)
    for name, value in (("draws", draws), ("tune", tune), ("chains", chains), ("cores", cores)):
        if value is not None and value < 1:
            raise InputError(f"is {value}, should be at least 1", source="sampler", field=name)
    if not 0 < target_accept < 1:
        raise InputError(f"is {target_accept}, should be between 0 and 1", source="sampler", field="target_accept")
    compiled = model if isinstance(model, CompiledModel) else None
    program = compiled.model if compiled is not None else model
    settings: dict[str, Any] = {"draws": draws, "tune": tune, "chains": chains, "target_accept": target_accept}
    total = chains * (draws + tune) if sampler in {"nutpie", "pymc"} else None
    shown = stage(f"draws ({sampler})", total) if progress else nullcontext()
    with whole_or_not_at_all(), shown as show:
        if sampler == "nutpie":
            found = _nutpie(compiled or compile_model(program), {**settings, "cores": cores}, seed=seed, show=show)
        elif sampler == "pymc":
            found = _pymc(program, sampler, {**settings, "cores": cores}, seed=seed, show=show)
        else:
            # PyMC would give every chain a device of its own, and JAX sees one CPU
            vectorized = {"nuts_sampler_kwargs": {"chain_method": "vectorized"}}
            found = _pymc(program, sampler, settings | vectorized, seed=seed, show=None)
    return common_stats(add_model_data(found, program))


@contextmanager
def whole_or_not_at_all() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C or SIGTERM end the block, where samplers would return the draws made so far.

    The block may call what it is given, which ends further chains of a sampler that was told to stop.
    """
    # Python hands no signal to other threads; a process in the background may have been told to ignore Ctrl-C
    in_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in before.items() if in_main and callable(handler)}
    interrupt: KeyboardInterrupt | None = None

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal interrupt
        try:
            handlers[signal.Signals(number)](number, frame)
        except KeyboardInterrupt as raised:
            interrupt = raised
            raise

    def go_on() -> None:
        if interrupt is not None:
            raise interrupt

    for number in handlers:
        signal.signal(number, note)
    try:
        yield go_on
    except Exception as problem:
        if interrupt is not None:  # what a sampler says when it has no draw to return
            raise interrupt from problem
        raise
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    go_on()


def _nutpie(compiled: CompiledModel, settings: dict[str, Any], *, seed: int, show: Show | None) -> InferenceData:
    import nutpie  # noqa: PLC0415

    if compiled.density is not None:
        program, names = written.nutpie_program(compiled.model, compiled.density), compiled.density.data
    else:
        program = compiled.program
        # nutpie 0.16.11 has keys without meaning, earlier ones have names
        keys = getattr(program, "shared_var_keys", None)
        names = tuple(program.shared_data) if keys is None else tuple(variable.name for variable in keys)
    check_memory(8.0 * settings["chains"] * settings["draws"] * program.n_dim, source="sampler", field="draws")
    values = {data.name: data.get_value() for data in compiled.model.data_vars if data.name in names}
    if values:
        program = program.with_data(**values)
    if show is not None:
        program = _Told(program, show)
    with warnings.catch_warnings():
        # a sampler that is stopped has no draws, and says so once a variable
        warnings.filterwarnings("ignore", "More chains", UserWarning)
        drawn = nutpie.sample(program, seed=seed, progress_bar=False, save_warmup=False, **settings)
    return without_unconstrained(drawn)


class _Told:
    """A nutpie program whose sampler tells how many draws it has: by itself it tells terminals and notebooks alone."""

    def __init__(self, program: Any, show: Show) -> None:
        self._program, self._show = program, show

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def _make_sampler(self, *arguments: Any) -> Any:
        try:
            from nutpie._lib import ProgressType  # noqa: PLC0415 - one sampler of several

            told = ProgressType.template_callback(_TOLD_MS, "{{ total_finished_draws }}", 1, self._tell)
        except (ImportError, AttributeError, TypeError):
            # no public part of nutpie: another version has the draws, if not their number
            return self._program._make_sampler(*arguments)
        return self._program._make_sampler(*(told if isinstance(value, ProgressType) else value for value in arguments))

    def _tell(self, text: str) -> None:
        if found := re.search(r"\d+", text):
            self._show(int(found[0]))


def _pymc(model: pm.Model, sampler: str, settings: dict[str, Any], *, seed: int, show: Show | None) -> InferenceData:
    drawn = count(1)
    told = {} if show is None else {"callback": lambda **_: show(next(drawn))}
    return pm.sample(
        model=model,
        nuts_sampler=sampler,
        random_seed=seed,
        progressbar=False,
        quiet=True,
        compute_convergence_checks=False,
        **settings,
        **told,
    )
