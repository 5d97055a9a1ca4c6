"""What the participant model is fitted to: reports, free answers, and every word of the generator's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.comparison.rounding import RoundingScheme, report_boxes, rounding_scheme
from shannon_game.estimators.comparison.study import COMPARISON, candidate_tokens, compared_tokens
from shannon_game.estimators.comparison.study_sources import (
    GENERATOR,
    NOT_A_CANDIDATE,
    TARGET_POSITION,
    candidate_sources,
    has_free_answers,
)
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import item_labels, item_positions, response_positions
from shannon_game.estimators.messages import Set

if TYPE_CHECKING:
    import xarray as xr


_GRID_TOLERANCE = 1e-9
_BIN_NATS = 0.25
_FAR = 1e4
_EXACT_NATS = 0.125
"""Half the width of the box around a report that is known exactly; the grids of the model are no finer."""
_MOST_UNSEEN = 0.9


@dataclass(frozen=True, eq=False)
class ParticipantData:
    """Reports and free answers of a comparison study, and the generator's distribution.

    All log-probabilities are the generator's, in nats; ``*_item`` are positions along ``item``, increasing. The rest is
    all tokens neither compared nor answered. Without the generator's whole distribution, its mass outside the
    candidates is spread over tokens like those drawn once (Good and Turing).
    """

    study: str
    generator: str
    # (item,): labels of those with a response or a free answer; the owner's own where the study has them
    item: NDArray[Any]
    position: IntArray  # along the study's ``item``
    target_log_g: FloatArray  # ln g(y)
    n_answers: IntArray  # free answers; those that were the target; those whose token the study does not know
    target_answers: IntArray
    other_answers: IntArray
    # (answer,): free answers; positions along ``token``, -1 for the target and -2 for a token the study does not know
    answer_item: IntArray
    answer_token: IntArray
    answer_participant: NDArray[np.str_]
    token_item: IntArray  # (token,): tokens other than the target that were compared or answered
    token_log_g: FloatArray
    token_answers: IntArray
    token_column: IntArray  # a position along ``candidate`` at which the token stands
    # (rest,): bins of ln g of 0.25 nats, ln of their mean probability, and how many tokens there are
    rest_item: IntArray
    rest_log_g: FloatArray
    rest_count: FloatArray
    rest_drawn: NDArray[np.bool_]  # that the generator drew; the others stand for tokens never drawn
    whole: bool  # the generator's whole distribution is known
    participant: NDArray[np.str_]  # those with a report; the player's name for a language model
    is_player: bool  # reports are a language model's: without noise, bias or lapses
    row_token: IntArray  # (row,): reports, tokens increasing, and their positions along the study's ``response``
    row_participant: IntArray
    row_response: IntArray
    row_box: IntArray  # which value of the scale was reported, from the lowest; -1 for exact reports
    row_low: FloatArray  # log-odds of the target between which the report was made
    row_high: FloatArray
    box_edges: FloatArray  # (box, 2): lower and upper log-odds
    box_value: FloatArray  # (box,): the values of the scale
    half_box: int  # the box that holds a probability of one half
    n_other_reference: int  # reports that compare two candidates; they are left out
    # draws of the generator that were shown beside the target and were this token, or the target itself
    token_shown: IntArray
    target_shown: IntArray

    @property
    def has_answers(self) -> bool:
        """Whether anybody answered freely."""
        return bool(self.n_answers.any())

    @property
    def entropy_nats(self) -> FloatArray:
        """Entropy of the generator's distribution, shape (item,)."""
        found = -self.target_log_g * np.exp(self.target_log_g)
        np.add.at(found, self.token_item, -self.token_log_g * np.exp(self.token_log_g))
        np.add.at(found, self.rest_item, -self.rest_count * self.rest_log_g * np.exp(self.rest_log_g))
        return found

    @property
    def row_item(self) -> IntArray:
        """Item of every report, shape (row,)."""
        return self.token_item[self.row_token]

    @property
    def informed(self) -> NDArray[np.bool_]:
        """Which items have a report on two tokens or a free answer, shape (item,)."""
        reported = np.bincount(self.row_item, minlength=self.item.size) > 0
        return reported | (self.n_answers > 0)


def participant_data(
    study: xr.Dataset,
    grid: RoundingScheme | str = "interface",
    *,
    player: str | None = None,
    rounding: RoundingScheme | str | None = None,
) -> ParticipantData:
    """Read what the participant model needs from a comparison study.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    grid : RoundingScheme or str
        The values that participants could report.
    player : str, optional
        A language model of the study, which answers the people's questions with its own probabilities.
    rounding : RoundingScheme or str, optional
        What the player's reports are rounded to; by default they are exact.

    Examples
    --------
    >>> from shannon_game import models
    >>> from shannon_game.estimators.comparison.examples import comparison_study
    >>> data = models.participant_data(comparison_study())
    >>> data.participant.tolist(), data.item.size, data.whole
    (['p000', 'p001', 'p002', 'p003', 'p004'], 6, False)
    """
    study, source = COMPARISON.read(study), COMPARISON.source(study)
    asked, code = response_positions(study), candidate_tokens(study)
    candidate, reference = compared_tokens(study, code)
    differ = (candidate != reference) & (candidate != NOT_A_CANDIDATE) & ~study["automatic"].values
    used = np.flatnonzero(differ & (reference == TARGET_POSITION))
    if not used.size:
        raise InputError("has no report that compares the target with another token", source=source)
    answered = item_positions(study, "answer_item") if has_free_answers(study) and player is None else asked[:0]
    items = np.union1d(asked, answered).astype(np.intp)
    place = np.full(study.sizes["item"], -1, dtype=np.intp)
    place[items] = np.arange(items.size)

    answer_code = np.full(answered.size, NOT_A_CANDIDATE)
    if answered.size:
        column = study["answer_candidate"].values
        answer_code = np.where(column >= 0, code[answered, np.maximum(column, 0)], column)
    named = answer_code >= 0
    keys = np.concatenate(
        [np.stack([place[asked[used]], candidate[used]], 1), np.stack([place[answered], answer_code], 1)[named]]
    )
    token, of_key = np.unique(keys, axis=0, return_inverse=True)
    of_key = of_key.ravel()
    row_token = of_key[: used.size]
    if player is not None:  # it says the same however often it is asked
        row_token, first = np.unique(row_token, return_index=True)
        used = used[first]
    answer_token = np.where(answer_code == TARGET_POSITION, -1, -2)
    answer_token[named] = of_key[of_key.size - named.sum() :]
    order = np.argsort(row_token, kind="stable")
    row_token, used = row_token[order], used[order]

    def log_g(name: str, model: str = study.attrs["generator"]) -> FloatArray:
        return study[name].sel(model=model).values[items].astype(float)

    token_log_g, target_log_g = log_g("candidate_logprob")[token[:, 0], token[:, 1]], log_g("target_logprob")
    rest = _rest(study, items, code[items], token, (target_log_g, token_log_g))

    def by_item(kept: NDArray[np.bool_]) -> IntArray:
        return np.bincount(place[answered[kept]], minlength=items.size).astype(np.intp)

    token_shown, target_shown = _times_shown(study, asked, code, place, token, items.size)
    scheme = rounding_scheme(grid)
    box_edges, half_box = report_box_edges(scheme)
    if player is None:
        box = reported_boxes(study["report"].values[used], scheme, source)
        people, person = np.unique(study["participant"].values.astype(str)[used], return_inverse=True)
        ends = np.clip(box_edges[box], -_FAR, _FAR)
    else:
        if player not in study["model"].values:
            raise unknown_choice("player", player, study["model"].values.tolist(), source=source)
        item, column = token[row_token].T
        log_odds = log_g("target_logprob", player)[item] - log_g("candidate_logprob", player)[item, column]
        people, person = np.array([player]), np.zeros(used.size, dtype=np.intp)
        box, ends = _boxes_of_player(log_odds, rounding)
    return ParticipantData(
        study=str(study.attrs.get("name")),
        generator=str(study.attrs["generator"]),
        item=item_labels(study)[items],
        position=items,
        target_log_g=target_log_g,
        n_answers=by_item(np.ones(answered.size, dtype=bool)),
        target_answers=by_item(answer_code == TARGET_POSITION),
        other_answers=by_item(answer_code == NOT_A_CANDIDATE),
        answer_item=place[answered].astype(np.intp),
        answer_token=answer_token.astype(np.intp),
        answer_participant=study["answer_participant"].values.astype(str)[: answered.size]
        if answered.size
        else people[:0],
        token_item=token[:, 0].astype(np.intp),
        token_log_g=token_log_g,
        token_answers=np.bincount(of_key[of_key.size - named.sum() :], minlength=len(token)).astype(np.intp),
        token_column=token[:, 1].astype(np.intp),
        **rest,
        whole="reference_logprob" in study,
        participant=people,
        is_player=player is not None,
        row_token=row_token.astype(np.intp),
        row_participant=person.astype(np.intp),
        row_response=used.astype(np.intp),
        row_box=box.astype(np.intp),
        row_low=np.ascontiguousarray(ends[:, 0]),
        row_high=np.ascontiguousarray(ends[:, 1]),
        box_edges=box_edges,
        box_value=np.asarray(scheme.values, dtype=float),
        half_box=half_box,
        n_other_reference=int((differ & (reference != TARGET_POSITION)).sum()),
        token_shown=token_shown.astype(np.intp),
        target_shown=target_shown.astype(np.intp),
    )


def _times_shown(  # noqa: PLR0917
    study: xr.Dataset, asked: IntArray, code: IntArray, place: IntArray, token: IntArray, n_items: int
) -> tuple[IntArray, IntArray]:
    """How many of an item's drawn candidates that were shown are each token, and the target."""
    shown = np.unique(np.stack([asked, study["response_candidate"].values], axis=1), axis=0)
    shown = shown[candidate_sources(study)[shown[:, 0], shown[:, 1]] == GENERATOR]
    shown_code = code[shown[:, 0], shown[:, 1]]
    number_of = {key: number for number, key in enumerate(map(tuple, token.tolist()))}
    numbers = [number_of.get((place[q], x), -1) for q, x in zip(shown[:, 0].tolist(), shown_code.tolist(), strict=True)]
    same = place[shown[shown_code == TARGET_POSITION, 0]]
    of_token = np.bincount([number for number in numbers if number >= 0], minlength=len(token))
    return of_token, np.bincount(same, minlength=n_items)


def _boxes_of_player(log_odds: FloatArray, rounding: RoundingScheme | str | None) -> tuple[IntArray, FloatArray]:
    """Boxes of a language model's reports, and their ends: narrow ones around the log-odds where nothing is rounded."""
    if rounding is None:
        return np.full(log_odds.size, -1), log_odds[:, None] + np.array([-_EXACT_NATS, _EXACT_NATS])
    edges, _ = report_box_edges(rounding_scheme(rounding))
    box = np.searchsorted(edges[1:, 0], log_odds)
    return box, np.clip(edges[box], -_FAR, _FAR)


def _rest(
    study: xr.Dataset, items: IntArray, code: IntArray, token: IntArray, log_g: tuple[FloatArray, FloatArray]
) -> dict[str, Any]:
    """Tokens that were neither compared nor answered, in bins: those that the generator drew, then the others."""
    of_study = study["candidate_logprob"].sel(model=study.attrs["generator"]).values[items].astype(float)
    first = (code == np.arange(code.shape[1])) & (code >= 0)
    first[token[:, 0], token[:, 1]] = False
    drawn_item, column = np.nonzero(first)
    drawn = (drawn_item, of_study[drawn_item, column], np.ones(drawn_item.size))
    target_log_g, token_log_g = log_g
    seen_item = np.concatenate([np.arange(items.size), token[:, 0], drawn_item])
    seen = np.concatenate([target_log_g, token_log_g, drawn[1]])
    never = _known_rest(study, items, seen_item, seen) if "reference_logprob" in study else None
    if never is None:
        never = _stand_ins(study, items, code, of_study, np.bincount(seen_item, np.exp(seen), items.size))
    parts = [_binned(*drawn, items.size), _binned(*never, items.size)]
    item, mean, count = (np.concatenate(both) for both in zip(*parts, strict=True))
    was_drawn = np.repeat([True, False], [part[0].size for part in parts])
    order = np.argsort(item, kind="stable")
    return {
        "rest_item": item[order],
        "rest_log_g": mean[order],
        "rest_count": count[order],
        "rest_drawn": was_drawn[order],
    }


def _binned(
    item: IntArray, log_g: FloatArray, count: FloatArray, n_items: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Item, ln of the mean probability and number of tokens of every bin."""
    n_bins = int(np.ceil(-min(log_g.min(initial=0.0), 0.0) / _BIN_NATS)) + 1
    key = item * n_bins + np.minimum((-np.minimum(log_g, 0.0) / _BIN_NATS).astype(np.intp), n_bins - 1)
    total, mass = (
        np.asarray(np.bincount(key, each, n_items * n_bins), dtype=float) for each in (count, count * np.exp(log_g))
    )
    filled = np.flatnonzero((total > 0) & (mass > 0))
    return (filled // n_bins).astype(np.intp), np.log(mass[filled] / total[filled]), total[filled]


def _known_rest(
    study: xr.Dataset, items: IntArray, seen_item: IntArray, seen: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Every token of the whole distribution that is not among those seen."""
    every = study["reference_logprob"].values[items].astype(float)
    kept = np.isfinite(every)
    for q in range(items.size):  # the nearest in ln g is the same token, or as good as it
        order = np.argsort(every[q])
        ranked = every[q, order]
        for value in seen[seen_item == q]:
            near = order[slice(*np.searchsorted(ranked, [value - 1e-3, value + 1e-3]))]
            near = near[kept[q, near]]
            if not near.size:
                label = item_labels(study)[items[q]]
                raise InputError(
                    f"has no token of item {label} with ln g {value:.5f}, which a candidate has",
                    source=COMPARISON.source(study),
                    field="reference_logprob",
                )
            kept[q, near[np.abs(every[q, near] - value).argmin()]] = False
    item, column = np.nonzero(kept)
    return item.astype(np.intp), every[item, column], np.ones(item.size)


def _stand_ins(
    study: xr.Dataset, items: IntArray, code: IntArray, log_g: FloatArray, seen_mass: NDArray[Any]
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Tokens that share the unseen mass as those drawn once do (Good and Turing)."""
    drawn = np.isin(candidate_sources(study)[items], (GENERATOR,)) & (code >= 0)
    item, column = np.nonzero(drawn)
    count = np.zeros(code.shape)
    np.add.at(count, (item, code[item, column]), 1)
    unseen = np.maximum(1 - seen_mass, 0.0)
    once = count == 1
    once[~once.any(axis=1)] = count[~once.any(axis=1)] > 0
    if (bare := (~once.any(axis=1)) & (unseen > 0.5)).any() or np.mean(unseen) > _MOST_UNSEEN:
        label = item_labels(study)[items[int(np.argmax(np.where(bare, 2.0, unseen)))]]
        raise InputError(
            f"stores draws that cover {1 - unseen.mean():.0%} of the generator's distribution (item {label}: "
            f"{1 - unseen[np.argmax(np.where(bare, 2.0, unseen))]:.0%}), too few to stand for the rest; store more "
            "draws per item, or the whole distribution (reference_logprob)",
            source=COMPARISON.source(study),
            field="candidate_logprob",
        )
    item, column = np.nonzero(once & (unseen > 0)[:, None])
    share = unseen[item] / np.bincount(item, minlength=items.size)[item]
    value = log_g[item, column]
    only = np.flatnonzero(~once.any(axis=1) & (unseen > 0))  # every draw was the target: one token has the rest
    return (
        np.concatenate([item, only]).astype(np.intp),
        np.concatenate([value, np.log(unseen[only])]),
        np.concatenate([share / np.exp(value), np.ones(only.size)]),
    )


def without_participants(data: ParticipantData, names: Sequence[str]) -> ParticipantData:
    """Leave out the reports of some participants; items, tokens and free answers stay."""
    known = data.participant.tolist()
    for name in names:
        if name not in known:
            raise unknown_choice("participant", name, known, source=f"study {data.study!r}")
    stays = ~np.isin(data.participant, list(names))
    if not stays.any():
        raise InputError("leaves nobody", source=f"study {data.study!r}", field="participants to leave out")
    kept = with_rows(data, stays[data.row_participant])
    number = (np.cumsum(stays) - 1)[kept.row_participant]
    return replace(kept, participant=data.participant[stays], row_participant=number)


def with_rows(data: ParticipantData, kept: NDArray[np.bool_]) -> ParticipantData:
    """Keep some of the reports; items, tokens, free answers and the list of participants stay."""
    by_row = ("row_token", "row_participant", "row_response", "row_box", "row_low", "row_high")
    return replace(data, **{name: getattr(data, name)[kept] for name in by_row})


def report_box_edges(scheme: RoundingScheme) -> tuple[FloatArray, int]:
    """Log-odds between which reports take each value of a grid, (box, 2), and the box of one half."""
    if not scheme.values:
        raise InputError(
            "has no values; the participant model needs the values that could be reported (rounding=custom gives any)",
            source=f"grid {scheme.name!r}",
        )
    edge = report_boxes(scheme)
    with np.errstate(divide="ignore"):
        box_edges: FloatArray = np.log(edge) - np.log1p(-edge)
    return box_edges, int(np.searchsorted(edge[:, 1], 0.5))


def reported_boxes(report: FloatArray, scheme: RoundingScheme, source: str) -> IntArray:
    """Which value of the grid each report is."""
    values = np.asarray(scheme.values)
    nearest = np.abs(report[:, None] - values).argmin(axis=1)
    off = ~(np.abs(report - values[nearest]) <= _GRID_TOLERANCE)  # a report that is no number is off, too
    if off.any():
        wrong = float(report[off][0])
        two = np.sort(values[np.argsort(np.abs(values - wrong))[:2]])
        near = ", the nearest are " + ", ".join(f"{value:g}" for value in two) if np.isfinite(wrong) else ""
        problem = (
            f"{wrong:g} is not a value of the grid {scheme.name!r}{near} ({off.sum():,} of "
            f"{off.size:,} reports are none of its values); take the grid of the scale that people saw, "
            "percent for a slider of whole numbers from 0 to 100 (round finer reports yourself), or rounding=custom "
            f"{Set('rounding.values', [...])}, all of its values in order"
        )
        raise InputError(problem, source=source, field="report")
    box: IntArray = nearest.astype(np.intp)
    return box
