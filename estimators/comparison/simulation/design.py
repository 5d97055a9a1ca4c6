"""Settings of a designed comparison study: what people are asked about each item, and how they may answer."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from estimators.comparison.rounding import RoundingScheme, rounding_scheme
from estimators.comparison.simulation.settings import check_count
from estimators.errors import InputError

__all__ = ["QuestionDesign"]


@dataclass(frozen=True)
class QuestionDesign:
    """What people are asked about each item, and how they may answer.

    Parameters
    ----------
    n_draws : int
        Independent draws of the generator per item, repeats kept.
    n_answers, n_batches : int
        Free answers per item, each by another participant, and the batches, of nearly equal size, in which they come.
    n_comparisons : int
        Comparisons per item.
    n_comparisons_each : int
        Comparisons of an item in a row that are one participant's, of another token each. With 2, how far people's
        beliefs differ can be told from noise (:func:`private_belief`).
    scale : RoundingScheme or str
        Values that can be reported.

    Raises
    ------
    InputError
        Names the field, its value and what would be right.

    Examples
    --------
    >>> from estimators import comparison
    >>> comparison.QuestionDesign(n_answers=0, scale="interface").n_comparisons
    12
    """

    n_draws: int = 6
    n_answers: int = 8
    n_batches: int = 1
    n_comparisons: int = 12
    n_comparisons_each: int = 1
    scale: RoundingScheme | str = "slider"
    n_participants: int = 29

    def __post_init__(self) -> None:
        source = "question design"
        for name in ("n_draws", "n_batches", "n_comparisons", "n_comparisons_each", "n_participants"):
            check_count(name, getattr(self, name), source, at_least=1)
        check_count("n_answers", self.n_answers, source, at_least=0)
        if self.n_comparisons % self.n_comparisons_each:
            raise InputError(
                f"is {self.n_comparisons_each}, should divide n_comparisons ({self.n_comparisons})",
                source=source,
                field="n_comparisons_each",
            )
        for name, n_people in (("n_answers", self.n_answers), ("n_comparisons", self.n_comparing)):
            if n_people > self.n_participants:
                raise InputError(
                    f"is {getattr(self, name)}, which needs {n_people} participants an item; n_participants is "
                    f"{self.n_participants}",
                    source=source,
                    field=name,
                )
        if self.n_batches > max(self.n_answers, 1):
            raise InputError(
                f"is {self.n_batches}, should be at most n_answers ({self.n_answers})", source=source, field="n_batches"
            )
        _ = rounding_scheme(self.scale)

    @property
    def n_comparing(self) -> int:
        """Participants who compare tokens of one item."""
        return self.n_comparisons // self.n_comparisons_each

    def to_json(self) -> str:
        """Write the design as one JSON object; a scheme of one's own as an object in it."""
        scale = self.scale if isinstance(self.scale, str) else asdict(self.scale)
        return json.dumps({**{name: getattr(self, name) for name in self.__dataclass_fields__}, "scale": scale})
