"""Rounding schemes as data: what a report becomes when only some values can be given."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.errors import InputError, unknown_choice

Space = Literal["probability", "log_odds"]
Tie = Literal["even", "lower", "upper"]

# A report that is this near to a cut counts as a tie: .15 and (.1 + .2) / 2 differ in the last bit.
_TIE_TOLERANCE = 1e-12
_LONGEST_ODDS = 1e12
_MOST_STEPS = 50_000  # on either side of one half


@dataclass(frozen=True)
class RoundingScheme:
    """A grid of values that can be reported, and the rule that picks one.

    Parameters
    ----------
    values : tuple of float
        Values that can be reported, increasing, inside (0, 1). Empty: nothing is rounded.
    positions : tuple of float, optional
        Where nearness is judged, one per value; by default the values themselves. The game's
        interface judges at 0, .1, ..., 1 and shows 1% and 99% for the two ends.
    space : {"probability", "log_odds"}
        Scale on which the nearest position is sought.
    tie : {"even", "lower", "upper"}
        What a report half-way between two positions becomes: the one with the even index, the
        lower, or the upper one.

    Examples
    --------
    >>> thirds = comparison.RoundingScheme("thirds", values=(0.17, 0.5, 0.83))
    >>> comparison.round_reports([0.2, 0.4, 0.9], thirds)
    array([0.17, 0.5 , 0.83])
    """

    name: str
    values: tuple[float, ...] = ()
    positions: tuple[float, ...] | None = None
    space: Space = "probability"
    tie: Tie = "lower"

    def __post_init__(self) -> None:
        source = f"rounding {self.name!r}"
        values = np.asarray(self.values, dtype=float)
        if not (np.all((values > 0) & (values < 1)) and np.all(np.diff(values) > 0)):
            problem = f"{list(self.values)} should be increasing and strictly between 0 and 1"
            raise InputError(problem, source=source, field="values")
        if self.space not in get_args(Space):
            raise unknown_choice("space", self.space, get_args(Space), source=source)
        if self.tie not in get_args(Tie):
            raise unknown_choice("tie", self.tie, get_args(Tie), source=source)
        if self.positions is not None:
            positions = np.asarray(self.positions, dtype=float)
            if positions.shape != values.shape or not np.all(np.diff(positions) > 0):
                problem = f"{list(self.positions)} should be increasing, one per value ({len(self.values)})"
                raise InputError(problem, source=source, field="positions")
            if self.space == "log_odds" and not np.all((positions > 0) & (positions < 1)):
                raise InputError("log-odds are finite only strictly between 0 and 1", source=source, field="positions")

    @property
    def cuts(self) -> NDArray[np.float64]:
        """Half-way points between neighbouring positions, on the scheme's own scale; shape (values - 1,)."""
        positions = np.asarray(self.values if self.positions is None else self.positions, dtype=float)
        scaled = _logit(positions) if self.space == "log_odds" else positions
        return (scaled[1:] + scaled[:-1]) / 2


def log_odds_scale(name: str, odds: float, *, step_nats: float = 0.1) -> RoundingScheme:
    """Make a scale of equal steps in log-odds, at most `step_nats` long, from 1 : odds to odds : 1, with one half."""
    source = f"rounding {name!r}"
    if not 1 < odds <= _LONGEST_ODDS:  # beyond, floating point hardly tells 1 - p from 0
        raise InputError(f"is {odds}, should be above 1 and at most {_LONGEST_ODDS:g}", source=source, field="odds")
    end = float(np.log(odds))
    if not (np.isfinite(step_nats) and end / _MOST_STEPS <= step_nats):
        right = f"a finite number of at least {end / _MOST_STEPS:.2g}"
        raise InputError(f"is {step_nats}, should be {right}", source=source, field="step_nats")
    n_steps = int(np.ceil(end / step_nats - _TIE_TOLERANCE))
    log_odds = np.linspace(-end, end, 2 * n_steps + 1)
    log_odds[n_steps] = 0.0
    return RoundingScheme(name, tuple((1 / (1 + np.exp(-log_odds))).tolist()), space="log_odds")


_ELEVEN = (0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
_FINE_ENDS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
_TENTHS = tuple(i / 10 for i in range(11))
_PERCENT = tuple(i / 100 for i in range(1, 100))

SCHEMES = MappingProxyType(
    {
        scheme.name: scheme
        for scheme in (
            RoundingScheme("none"),
            RoundingScheme("interface", _ELEVEN, positions=_TENTHS, tie="even"),
            RoundingScheme("coarse", (0.1, 0.2, 0.5, 0.8, 0.9)),
            RoundingScheme("coarser", (0.2, 0.5, 0.8)),
            RoundingScheme("interface_nearest", _ELEVEN),
            RoundingScheme("interface_log_odds", _ELEVEN, space="log_odds"),
            RoundingScheme("fine_ends", _FINE_ENDS),
            RoundingScheme("fine_ends_log_odds", _FINE_ENDS, space="log_odds"),
            log_odds_scale("slider", 1e4),
            log_odds_scale("slider_wide", 1e8),
            RoundingScheme("percent", _PERCENT),
            RoundingScheme("choice", (0.25, 0.75)),
        )
    }
)
"""The named schemes. ``interface`` is the game's own (round-half-even of 10 p, clipped to [.01, .99]);
``coarse`` and ``coarser`` are the paper's figure 8; the next four are the variants its code compares. ``slider`` and
``slider_wide`` have steps of .1 nats of log-odds, to 10,000 : 1 and 100,000,000 : 1; ``percent`` has whole
percentages from 1 to 99, as a slider from 0 to 100 whose ends stand for 1 and 99; ``choice`` says only which token is
the likelier (below one half the candidate, above it the target)."""


def rounding_scheme(scheme: RoundingScheme | str) -> RoundingScheme:
    """Look a scheme up by its name in :data:`SCHEMES`; a scheme comes back as it is.

    Examples
    --------
    >>> comparison.rounding_scheme("coarse").values
    (0.1, 0.2, 0.5, 0.8, 0.9)
    """
    if isinstance(scheme, RoundingScheme):
        return scheme
    if not isinstance(scheme, str) or scheme not in SCHEMES:  # type: ignore[redundant-expr]
        raise unknown_choice("rounding", scheme, SCHEMES)
    return SCHEMES[scheme]


def round_reports(report: ArrayLike, scheme: RoundingScheme | str) -> NDArray[np.float64]:
    """Round reports, probabilities in [0, 1], to the values of a scheme; one without values rounds nothing.

    Examples
    --------
    >>> comparison.round_reports([0.04, 0.37, 0.99], "interface")
    array([0.01, 0.4 , 0.99])
    """
    scheme = rounding_scheme(scheme)
    p = np.asarray(report, dtype=float)
    bad = ~((p >= 0) & (p <= 1))
    if bad.any():
        raise InputError(f"is {p[bad].flat[0]} ({int(bad.sum())} such); a probability is in [0, 1]", field="report")
    if not scheme.values:
        return p.copy()
    scaled = _logit(p) if scheme.space == "log_odds" else p
    cuts = scheme.cuts
    below = np.searchsorted(cuts, scaled - _TIE_TOLERANCE, side="right")  # cuts clearly below the report
    upto = np.searchsorted(cuts, scaled + _TIE_TOLERANCE, side="right")  # ... plus the one it ties with, if any
    if scheme.tie == "lower":
        index = below
    elif scheme.tie == "upper":
        index = upto
    else:
        index = np.where(below % 2 == 0, below, upto)
    return np.asarray(scheme.values, dtype=float)[index]


def report_boxes(scheme: RoundingScheme | str) -> NDArray[np.float64]:
    """Interval of probabilities that each value of a scheme stands for, (values, 2), from 0 to 1."""
    scheme = rounding_scheme(scheme)
    if not scheme.values:
        raise InputError("has no values, hence no boxes", source=f"rounding {scheme.name!r}")
    cuts = scheme.cuts
    inner = 1 / (1 + np.exp(-cuts)) if scheme.space == "log_odds" else cuts
    edges = np.concatenate([[0.0], inner, [1.0]])
    return np.stack([edges[:-1], edges[1:]], axis=1)


def _logit(p: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        odds: NDArray[np.float64] = np.log(p) - np.log1p(-p)
    return odds
