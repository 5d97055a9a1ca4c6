"""Mean of answers that people and items share, with a standard error that knows both."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from estimators.display import Result
from estimators.documents.clusters import answer_numbers, clusters

__all__ = ["CrossedMean", "crossed_mean"]


@dataclass(frozen=True, repr=False)
class CrossedMean(Result):
    """A mean over answers, people and items both being samples.

    Attributes
    ----------
    se : float
        Clustered over people and over items; NaN where there is one of either.
    lower, upper : float
        Student's interval with as many degrees of freedom as the smaller number of clusters, minus 1.
    se_participants, se_items : float
        Clustered one way only; NaN where there is one.
    """

    mean: float
    se: float
    lower: float
    upper: float
    se_participants: float
    se_items: float
    n_responses: int
    n_participants: int
    n_items: int

    def headline(self) -> str:
        """Say the mean, its interval, and of how many answers it is."""
        return f"{self.mean:.3f} [{self.lower:.3f}, {self.upper:.3f}] over {self.n_responses} answers"


def crossed_mean(
    values: ArrayLike, participant: ArrayLike, item: ArrayLike, *, probability: float = 0.9
) -> CrossedMean:
    """Mean of a value an answer, with a standard error clustered over people and items (:mod:`two ways <.clusters>`).

    Parameters
    ----------
    values : array_like, shape (response,)
        Finite.
    participant, item : array_like, shape (response,)

    Raises
    ------
    InputError
        If there is no value, one is not finite, shapes differ, or the probability is not between 0 and 1.

    Examples
    --------
    >>> from estimators import documents
    >>> documents.crossed_mean([1.0, 2.0, 3.0, 5.0], ["a", "a", "b", "b"], [0, 1, 0, 1])
    CrossedMean(2.750 [-5.142, 10.642] over 4 answers)
    """
    numbers = answer_numbers(values, "values")
    of = clusters(participant, item, numbers.size)
    mean = float(numbers.mean())
    se, se_participants, se_items = of.standard_errors((numbers - mean) / numbers.size)
    half = of.half_width(se, probability)
    return CrossedMean(
        mean=mean,
        se=se,
        lower=mean - half,
        upper=mean + half,
        se_participants=se_participants,
        se_items=se_items,
        n_responses=numbers.size,
        n_participants=of.n_people,
        n_items=of.n_items,
    )
