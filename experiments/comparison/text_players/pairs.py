"""What players are asked: settings, pairs of tokens, and the comparison study that their answers make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.comparison import validate_comparison_study
from shannon_game.estimators.comparison.importance import drawn_response_mask
from shannon_game.estimators.comparison.study_sources import candidate_sources
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import response_positions
from shannon_game.estimators.messages import Set
from shannon_game.experiments.harness.settings import Seeded, rng_for
from shannon_game.experiments.harness.text_models import TextSettings
from shannon_game.inference.settings import Count, Probability, one_or_more

_NOT_DRAWN = ("answer", "padding")
VERBALISED: Final = "verbalised"
BOXES: Final = "boxes"
OPTIONS: Final = "options"

Ways = Annotated[
    tuple[Literal["verbalised", "boxes", "options"], ...],
    Field(min_length=1),
    one_or_more,
]


class TextPlayersSettings(Seeded, TextSettings):
    ways: Ways = (VERBALISED, OPTIONS)
    """verbalised: the model writes one of the game's eleven values; boxes: the mean of these values by their
    probabilities as its answer (only of models that run here); options: probabilities of A and B as first token of its
    answer."""
    belief: bool = True
    """Compare with what the model believes: its own probabilities of both tokens. Only of models that run here."""
    candidates: Count | None = None
    """Ask about so many of every item's candidates, the first ones; null asks about the pairs that people answered."""
    pairs_per_item: Count | None = None
    """At most so many pairs of an item, drawn at random; null takes all."""
    same_pairs: bool = True
    """Compare everybody, people too, on the pairs that all of them answered; false takes each player's own."""
    interval: Probability = 0.9
    """Probability of the intervals."""
    items_per_batch: Count = 32
    """Most questions of a batch: what a killed run loses."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Questions of a comparison study: an item's target beside one of its candidates, and what is shown."""

    position: NDArray[np.intp]
    candidate: NDArray[np.intp]
    context: list[str]
    target: list[str]
    other: list[str]

    @property
    def automatic(self) -> NDArray[np.bool_]:
        """Which pairs are two equal strings: the game answers 50% by itself, shape (pair,)."""
        return np.array([a == b for a, b in zip(self.target, self.other, strict=True)], dtype=np.bool_)

    @property
    def n_asked(self) -> int:
        """Pairs of two different strings."""
        return int((~self.automatic).sum())

    def take(self, which: NDArray[np.intp]) -> Pairs:
        """Give some of the pairs."""
        places = which.tolist()
        return Pairs(
            self.position[which],
            self.candidate[which],
            [self.context[at] for at in places],
            [self.target[at] for at in places],
            [self.other[at] for at in places],
        )


def asked_pairs(study: xr.Dataset, settings: TextPlayersSettings) -> Pairs:
    """List the pairs to ask about, each once: those that people answered, or an item's first candidates.

    Candidates are draws of the generator, so that equal tokens at two positions are two pairs.
    """
    if settings.candidates is None:
        drawn = drawn_response_mask(study)
        asked = np.column_stack([response_positions(study)[drawn], study["response_candidate"].values[drawn]])
        if not len(asked):
            raise InputError(
                f"has no answers whose questions could be asked again; {Set('experiment.candidates', 10)} asks about "
                "the first ten candidates of every item",
                source=f"study {study.attrs.get('name')!r}",
                field="participant",
            )
        rows = np.unique(asked, axis=0)
    else:
        is_asked = (study["item_set"].values != "") & study["selected"].values
        shown = np.arange(study.sizes["candidate"]) < settings.candidates
        rows = np.argwhere(is_asked[:, None] & shown & ~np.isin(candidate_sources(study), _NOT_DRAWN))
    if settings.pairs_per_item is not None:
        # the first so many of every item, in random order
        order = rng_for(settings.seed, "text pairs").permutation(len(rows))
        sorted_rows = order[np.argsort(rows[order, 0], kind="stable")]
        item = rows[sorted_rows, 0]
        number = np.arange(len(item)) - np.searchsorted(item, item)
        rows = rows[np.sort(sorted_rows[number < settings.pairs_per_item])]
    position, candidate = rows[:, 0].astype(np.intp), rows[:, 1].astype(np.intp)
    if not position.size:
        raise InputError("has no item that could be asked about", source=f"study {study.attrs.get('name')!r}")
    return Pairs(
        position,
        candidate,
        study["context"].values[position].tolist(),
        study["target_token"].values[position].tolist(),
        study["candidate_token"].values[position, candidate].tolist(),
    )


def answered_study(
    study: xr.Dataset, pairs: Pairs, reports: Sequence[tuple[str, FloatArray]], name: str
) -> xr.Dataset | None:
    """Put a player's answers in the place of the participants'."""
    rows = []
    for participant, given in reports:
        answered = np.where(pairs.automatic, 0.5, given)
        known = np.flatnonzero(np.isfinite(answered))
        rows.append((np.full(known.size, participant, dtype=object), known, answered[known]))
    which = np.concatenate([known for _, known, _ in rows])
    if not (~pairs.automatic[which]).any():
        return None
    people = [variable for variable in study.variables if {"response", "answer"} & set(study[variable].dims)]
    made: xr.Dataset = study.drop_vars(people).assign(
        participant=("response", np.concatenate([names for names, _, _ in rows])),
        response_item=("response", study["item"].values[pairs.position[which]]),
        response_candidate=("response", pairs.candidate[which].astype(np.int64)),
        report=("response", np.concatenate([values for _, _, values in rows])),
        automatic=("response", pairs.automatic[which]),
    )
    return validate_comparison_study(made.assign_attrs(study.attrs | {"name": name}))
