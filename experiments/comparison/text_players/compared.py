"""Players on the same pairs: who is compared on which, beside always 50% and by equation 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.comparison import HUMAN, estimate_perplexity, round_reports
from shannon_game.estimators.comparison.chance import compare_with_chance
from shannon_game.estimators.comparison.importance import drawn_response_mask
from shannon_game.estimators.comparison.stated import StatedBelief, stated_belief
from shannon_game.estimators.comparison.terms import response_pairs
from shannon_game.estimators.layout import response_positions
from shannon_game.experiments.comparison.text_players.answers import ORDERS, Said, probability_of
from shannon_game.experiments.comparison.text_players.pairs import VERBALISED, Pairs, answered_study

PEOPLE, BELIEF, BASELINE, ALWAYS_HALF = "people", "belief", "baseline", "always 50%"
_FEWEST_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Played:
    """One model, or always 50%, in one way: its reports of all pairs."""

    player: str
    way: str
    reports: Mapping[str, FloatArray]
    """Of each of its participants, (pair,); NaN without an answer."""
    said: Said | None = None
    believed_nats: FloatArray | None = None

    @property
    def name(self) -> str:
        """Model and way."""
        return f"{self.player}, {self.way}"

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Pairs that all of its participants answered, (pair,)."""
        return np.asarray(np.isfinite(np.stack([*self.reports.values()])).all(axis=0))

    def stated(self, pairs: Pairs, which: NDArray[np.bool_]) -> StatedBelief | None:
        """What it says of some pairs against what it believes."""
        if self.said is None or self.believed_nats is None:
            return None
        asked = which & ~pairs.automatic
        return stated_belief(self.said.nats[asked], self.believed_nats[asked], pairs.position[asked])

    def study(self, study: xr.Dataset, pairs: Pairs, *, rounded: bool = False) -> xr.Dataset | None:
        """Put its answers in the place of people's; rounded to the game's eleven values, if asked for."""
        given = [(name, on_values(its) if rounded else its) for name, its in self.reports.items()]
        return answered_study(study, pairs, given, f"{study.attrs['name']}, {self.player} {self.way}")


def asked_player(player: str, said: Said, believed: FloatArray) -> Played:
    """Make a player of what a model said."""
    if said.way == VERBALISED:
        reports = {f"{player} (target {side})": said.reports[:, order] for order, side in enumerate(ORDERS)}
    else:
        # probabilities are the same however often they are asked for: both orders are one answer
        reports = {player: probability_of(said.nats)}
    return Played(player, said.way, reports, said, believed)


def on_values(reports: FloatArray) -> FloatArray:
    """Round to the game's eleven values; what is missing stays so."""
    known = np.isfinite(reports)
    rounded = np.full(reports.shape, np.nan)
    rounded[known] = round_reports(reports[known], "interface")
    return rounded


def people_pairs(study: xr.Dataset, pairs: Pairs) -> NDArray[np.intp]:
    """Which pair each of people's answers is on, (response,); -1 for none."""
    place = {pair: at for at, pair in enumerate(zip(pairs.position.tolist(), pairs.candidate.tolist(), strict=True))}
    answers = zip(response_positions(study).tolist(), study["response_candidate"].values.tolist(), strict=True)
    found = np.array([place.get(pair, -1) for pair in answers], dtype=np.intp)
    return np.where(drawn_response_mask(study), found, -1)


@dataclass(frozen=True, eq=False)
class Compared:
    """The pairs on which players are compared, and who has too few answers to be among them."""

    pairs: NDArray[np.bool_]
    apart: tuple[str, ...]
    people: NDArray[np.intp]


def same_pairs(pairs: Pairs, players: Sequence[Played], people: NDArray[np.intp], *, cut: bool) -> Compared:
    """Keep the pairs that everybody answered; whoever answered less than half of them is compared with nobody.

    Of equal strings 50% is known without an answer, but people are shown them as any other.
    """
    answered = {one.name: one.answered | pairs.automatic for one in players}
    if (people >= 0).any():
        answered[HUMAN] = np.isin(np.arange(len(pairs.target)), people)
    share = {name: float(its[~pairs.automatic].mean()) if pairs.n_asked else 1.0 for name, its in answered.items()}
    apart = tuple(name for name in answered if not cut or share[name] < _FEWEST_SHARE)
    common = [its for name, its in answered.items() if name not in apart]
    return Compared(np.logical_and.reduce([*common, np.ones(len(pairs.target), dtype=bool)]), apart, people)


def row_of(study: xr.Dataset | None, level: float, player: str, way: str, rounding: str = "none") -> dict[str, Any]:
    """Compute the numbers of a study of one player's answers."""
    row = {"player": player, "way": way, "rounding": rounding}
    if study is None:
        return row | {"standing": "no answer", "verdict": "no answer", "n_pairs": 0}
    found, shown = estimate_perplexity(study, HUMAN, interval=level), response_pairs(study)
    asked = ~shown.equal
    chance = compare_with_chance(shown.report[asked], shown.control_logprob[asked], shown.item[asked], level=level)
    n_pairs = len(np.unique(np.column_stack([shown.item, shown.draw])[asked], axis=0))
    counts = {"n_pairs": n_pairs, "standing": chance.standing}
    return {**vars(found.gap.diagnostics), **vars(found.gap), **vars(found), **vars(chance), **counts, **row}


def people_row(study: xr.Dataset, compared: Compared, level: float) -> dict[str, Any]:
    """Compute people's numbers on the pairs that are compared."""
    own = (compared.people >= 0) & ((HUMAN in compared.apart) | compared.pairs[compared.people])
    n_questions = int((own & ~study["automatic"].to_numpy()).sum())
    its = study.isel(response=np.flatnonzero(own)) if n_questions else None
    return row_of(its, level, HUMAN, PEOPLE) | {"n_questions": n_questions}


def player_rows(study: xr.Dataset, pairs: Pairs, one: Played, compared: Compared, level: float) -> list[dict[str, Any]]:
    """Compute a player's numbers: of exact reports, and of those rounded as the game has them."""
    which = compared.pairs | (one.name in compared.apart)
    few = pairs.take(np.flatnonzero(which))
    cut = Played(one.player, one.way, {name: its[which] for name, its in one.reports.items()})
    more: dict[str, Any] = {}
    if one.said is not None:
        lean = one.said.lean_nats[which]
        more = vars(one.stated(pairs, which)) | {
            "n_questions": pairs.n_asked * len(ORDERS),
            "n_unreadable": one.said.unreadable(pairs).total(),
            "position_bias_nats": float(np.nanmean(lean)) if np.isfinite(lean).any() else np.nan,
        }
        del more["n_pairs"]
    roundings = ("none",) if one.way in (VERBALISED, BASELINE) else ("none", "interface")
    return [
        more | row_of(cut.study(study, few, rounded=rounding != "none"), level, one.player, one.way, rounding)
        for rounding in roundings
    ]
