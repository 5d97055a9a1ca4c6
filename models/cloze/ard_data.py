"""Rows of the regression of a distance on properties of its context, for :func:`shannon_game.models.ard_model`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.errors import InputError, unknown_choice

LIKELIHOODS = ("beta", "logit_normal", "gaussian")

LINK_SCALE: Mapping[str, float] = MappingProxyType({"beta": 1.0, "logit_normal": 1.0, "gaussian": 0.25})
"""Length on the linear predictor's scale of what is 1 on log-odds: the logistic function's slope is at most 1/4."""


@dataclass(frozen=True, eq=False)
class Measured:
    """Predictors that are estimates themselves.

    Parameters
    ----------
    names : tuple of str
        Predictors whose values belong to the item (all rows of an item have the same).
    covariance : ndarray, shape (item, name, name)
        Of the errors, in the predictors' own units; items in the order of ``np.unique(item)``.
    """

    names: tuple[str, ...]
    covariance: FloatArray


@dataclass(frozen=True, eq=False)
class ArdData:
    """A regression's rows, its predictors standardised."""

    target: FloatArray
    predictor: tuple[str, ...]
    x: FloatArray  # (row, predictor): (value - centre) / scale, the standard deviation over the rows (ddof = 0)
    centre: FloatArray
    scale: FloatArray
    noisy: tuple[str, ...]  # predictors with measurement error, in the order of `predictor`
    error_covariance: FloatArray  # (item, noisy, noisy), in units of `x`
    # labels of the items, of the texts that they are from, and of the players (models) compared with people
    item: NDArray[np.str_]
    text: NDArray[np.str_]
    player: NDArray[np.str_]
    item_of_row: IntArray
    player_of_row: IntArray
    text_of_item: IntArray
    # what has an effect of its own: "text", "item" and "player", where the rows can tell it
    groups: tuple[str, ...] = field(default=("text",))

    @property
    def text_of_row(self) -> IntArray:
        """Text of every row, shape (row,)."""
        return self.text_of_item[self.item_of_row]

    @property
    def x_of_item(self) -> FloatArray:
        """Predictors averaged over the rows of each item, shape (item, predictor)."""
        count = np.bincount(self.item_of_row, minlength=self.item.size)
        columns = [np.bincount(self.item_of_row, weights=column, minlength=self.item.size) for column in self.x.T]
        return np.stack(columns, axis=1) / count[:, None]

    def without_error(self) -> ArdData:
        """Take the measured values of all predictors for the true ones."""
        return ArdData(**{**vars(self), "noisy": (), "error_covariance": np.zeros((self.item.size, 0, 0))})

    def without_groups(self) -> ArdData:
        """Take all rows as independent given their predictors."""
        return ArdData(**{**vars(self), "groups": ()})


def ard_data(
    target: ArrayLike,
    predictors: Mapping[str, ArrayLike],
    *,
    text: Sequence[str] | NDArray[np.str_],
    item: Sequence[str] | NDArray[np.str_] | None = None,
    player: Sequence[str] | NDArray[np.str_] | None = None,
    measured: Measured | None = None,
) -> ArdData:
    """Prepare the rows of :func:`shannon_game.models.cloze.ard.ard_model`.

    Parameters
    ----------
    target : array_like, shape (row,)
        In [0, 1].
    text : sequence of str, shape (row,)
        The text that each row's context is from; one for each item.
    item : sequence of str, shape (row,), optional
        The context; by default every row has its own.
    player : sequence of str, shape (row,), optional
        Whose distance to people it is; by default one for all.
    measured : Measured, optional
        Which predictors have errors of measurement.

    Returns
    -------
    ArdData
        With groups "text" and "player" where there are several, and "item" where at least a fifth of the items has
        several rows (the effect of an item with one row cannot be told from noise).

    Examples
    --------
    >>> data = models.ard_data([0.2, 0.5, 0.9], {"entropy": [1.0, 2.0, 3.0]}, text=["a", "b", "b"])
    >>> data.x.ravel().round(3).tolist(), data.groups
    ([-1.225, 0.0, 1.225], ('text',))
    """
    y = np.asarray(target, dtype=float)
    names = tuple(predictors)
    if not names:
        raise InputError("are empty; name at least one", field="predictors")
    if y.ndim != 1 or y.size < 3:
        raise InputError(f"has shape {y.shape}, should be one of at least 3 rows", field="target")
    columns = {name: np.asarray(values, dtype=float) for name, values in predictors.items()}
    for name, values in {"target": y, **columns}.items():
        if values.shape != y.shape:
            raise InputError(f"has shape {values.shape}, the target {y.shape}", field=name)
        if not np.isfinite(values).all():
            raise InputError(f"is {values[~np.isfinite(values)][0]} in {(~np.isfinite(values)).sum()} rows", field=name)
    if y.min() < 0 or y.max() > 1:
        raise InputError(f"goes from {y.min():.4g} to {y.max():.4g}, should be in [0, 1]", field="target")
    raw = np.stack(list(columns.values()), axis=1)
    spread = raw.std(axis=0)
    if (spread <= 1e-12 * np.maximum(np.abs(raw).max(axis=0), 1)).any():
        flat = names[int(np.argmin(spread))]
        raise InputError("is the same in every row; leave it out", source="predictors", field=flat)
    centre = raw.mean(axis=0)
    rows = [str(number) for number in range(y.size)] if item is None else item
    items, first, item_of_row = np.unique(_strings(rows, y, "item"), return_index=True, return_inverse=True)
    texts, text_of_row = np.unique(_strings(text, y, "text"), return_inverse=True)
    who = ["player"] * y.size if player is None else player
    players, player_of_row = np.unique(_strings(who, y, "player"), return_inverse=True)
    text_of_item = text_of_row[first]
    if (text_of_item[item_of_row] != text_of_row).any():
        bad = items[item_of_row[np.flatnonzero(text_of_item[item_of_row] != text_of_row)[0]]]
        raise InputError(f"{str(bad)!r} is in two texts", field="item")
    noisy, covariance = _errors(measured, names, columns, spread, items, item_of_row, first)
    repeated = float((np.bincount(item_of_row) > 1).mean())
    groups = [
        *(["text"] if texts.size > 1 and texts.size < items.size else []),
        *(["item"] if repeated >= 0.2 else []),
        *(["player"] if players.size > 1 else []),
    ]
    return ArdData(
        target=y,
        predictor=names,
        x=(raw - centre) / spread,
        centre=centre,
        scale=spread,
        noisy=noisy,
        error_covariance=covariance,
        item=items,
        text=texts,
        player=players,
        item_of_row=item_of_row.astype(np.intp),
        player_of_row=player_of_row.astype(np.intp),
        text_of_item=text_of_item.astype(np.intp),
        groups=tuple(groups),
    )


def check_likelihood(name: str) -> None:
    """Raise :class:`InputError` for an unknown likelihood."""
    if name not in LIKELIHOODS:
        raise unknown_choice("likelihood", name, LIKELIHOODS, source="ard model")


def recording_limits(target: FloatArray) -> tuple[float, float]:
    """Values beyond which a distance would be recorded as 0 or 1: half-way from the ends to the nearest one inside."""
    inside = target[(target > 0) & (target < 1)]
    return float(inside.min(initial=0.5) / 2), float((1 + inside.max(initial=0.5)) / 2)


def _strings(values: Sequence[str] | NDArray[np.str_], y: FloatArray, field: str) -> NDArray[np.str_]:
    found = np.asarray(values).astype(str)
    if found.shape != y.shape:
        raise InputError(f"has shape {found.shape}, the target {y.shape}", field=field)
    return found


def _errors(  # noqa: PLR0917 - parts of one data set
    measured: Measured | None,
    names: tuple[str, ...],
    columns: Mapping[str, FloatArray],
    scale: FloatArray,
    items: NDArray[np.str_],
    item_of_row: IntArray,
    first: IntArray,
) -> tuple[tuple[str, ...], FloatArray]:
    if measured is None or not measured.names:
        return (), np.zeros((items.size, 0, 0))
    for name in measured.names:
        if name not in names:
            raise InputError(f"{name!r} is no predictor; those are {', '.join(names)}", field="measured")
        values = columns[name]
        if (values != values[first][item_of_row]).any():
            raise InputError("has several values for one item; a measured predictor belongs to the item", field=name)
    size = len(measured.names)
    covariance = np.asarray(measured.covariance, dtype=float)
    if covariance.shape != (items.size, size, size):
        raise InputError(f"has shape {covariance.shape}, should be {(items.size, size, size)}", field="covariance")
    order = [measured.names.index(name) for name in names if name in measured.names]
    noisy = tuple(measured.names[at] for at in order)
    units = np.array([scale[names.index(name)] for name in noisy])
    covariance = covariance[:, order][:, :, order] / np.outer(units, units)
    if not np.allclose(covariance, covariance.transpose(0, 2, 1)) or np.linalg.eigvalsh(covariance).min() <= 0:
        raise InputError("should be a positive definite covariance matrix for every item", field="covariance")
    return noisy, covariance
