"""What a store of answers has cost."""

from __future__ import annotations

from dataclasses import dataclass

from estimators.errors import InputError

__all__ = ["BudgetSpentError", "Ledger"]


class BudgetSpentError(InputError):
    """The next call could bring the cost above the budget; everything that was paid for is in the store."""


@dataclass(frozen=True)
class Ledger:
    """What a store has cost.

    Attributes
    ----------
    n_answers : int
        Stored answers, each paid for once.
    n_unsure : int
        Attempts without a usable answer that may have been paid for: time-outs, answers that broke off, processes
        that were killed.
    paid_usd : float
        Of the stored answers.
    unsure_usd : float
        The most that the unsure attempts can have cost.
    n_apart : int
        Answers that are kept apart, because they cannot be used; their cost is among the unsure.
    """

    n_answers: int
    n_unsure: int
    paid_usd: float
    unsure_usd: float
    n_apart: int = 0

    @property
    def most_usd(self) -> float:
        """What the budget is compared with."""
        return self.paid_usd + self.unsure_usd
