"""The models whose calibration is checked, on small designs: what :class:`inference.sbc.SbcModel` needs of each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from estimators.errors import InputError
from inference.sbc import SbcModel

if TYPE_CHECKING:
    import pymc as pm

    from models.belief import BeliefPriors
    from models.belief_data import BeliefData

__all__ = ["belief_sbc", "small_belief_design"]

_BELIEF = ("mu", "a", "b", "b2", "sigma", "omega", "c", "t_b", "kap", "rho", "ga", "A[0]", "s[0]")


def belief_sbc(data: BeliefData, priors: BeliefPriors | None = None) -> SbcModel:
    """Belief model of one player, raw or rounded as `data` is; its answers are only the shape of those simulated."""
    return SbcModel(
        name="belief" if data.is_raw else "belief_rounded",
        build=partial(_belief, data, priors),
        quantities=_BELIEF,
        start=partial(_belief_start, priors),
        key=_fingerprint(vars(data), {} if priors is None else vars(priors)),
    )


def _belief(data: BeliefData, priors: BeliefPriors | None) -> pm.Model:
    from models.belief import belief_model  # noqa: PLC0415 - seconds that only a fit should cost

    return belief_model(data, priors)


def _belief_start(priors: BeliefPriors | None, model: pm.Model) -> dict[str, Any]:
    from models.belief import start_values  # noqa: PLC0415

    return start_values(model, priors)


def small_belief_design(data: BeliefData, n_items: int, n_pairs: int) -> BeliefData:
    """Keep the first `n_pairs` pairs of the first `n_items` items that have as many.

    Raises
    ------
    InputError
        If there are too few such items.
    """
    count = np.bincount(data.pair_item, minlength=data.item.size)
    items = np.flatnonzero(count >= n_pairs)[:n_items]
    if items.size < n_items:
        raise InputError(
            f"is {n_items}, but only {items.size} items have {n_pairs} pairs or more",
            source=f"study {data.study!r}",
            field="n_items",
        )
    pairs = np.concatenate([np.flatnonzero(data.pair_item == item)[:n_pairs] for item in items])

    def of(values: Any, keep: Any) -> Any:
        return values[keep]

    per_item = {name: of(getattr(data, name), items) for name in ("item", "target_log_g", "surprisal", "unseen_mass")}
    per_pair = {
        name: of(value, pairs) for name, value in vars(data).items() if name.startswith("pair_") and name != "pair_item"
    }
    nothing: dict[str, Any] = {
        name: of(value, slice(0, 0)) for name, value in vars(data).items() if name.startswith(("rest_", "tail_"))
    }
    where = np.repeat(np.arange(n_items), n_pairs).astype(np.intp)
    return replace(data, **per_item, **per_pair, **nothing, pair_item=where)


def _fingerprint(*parts: Mapping[str, Any]) -> str:
    """Short hash of arrays and settings."""
    digest = hashlib.sha256()
    for part in parts:
        for name, value in sorted(part.items()):
            text = value.tobytes() if isinstance(value, np.ndarray) and value.dtype != object else repr(value).encode()
            digest.update(name.encode() + b"=" + text + b";")
    return digest.hexdigest()[:16]
