"""Answers that were paid for, on disk before anything is done with them, and the ledger of the budget.

One SQLite file, shared by any number of processes. Every attempt is written down BEFORE it is sent, with the most that
it can cost; its answer and what it did cost replace that in one transaction. What a killed process had in flight stays
at the most that it can have cost, so that a budget holds whatever happens.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from estimators.errors import InputError

__all__ = ["AnswerStore", "BudgetSpentError", "Ledger"]

_FORMAT = "shannon-game answers 1"
_BUSY_SECONDS = 60.0
# sums of thousands of prices, in dollars
_SLACK_USD = 1e-9


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
    """

    n_answers: int
    n_unsure: int
    paid_usd: float
    unsure_usd: float

    @property
    def most_usd(self) -> float:
        """What the budget is compared with."""
        return self.paid_usd + self.unsure_usd


class AnswerStore:
    """The store; a context manager.

    Parameters
    ----------
    path : Path
        The SQLite file; made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            with self._transaction():
                self._connection.execute("CREATE TABLE IF NOT EXISTS about (format TEXT)")
                found = self._connection.execute("SELECT format FROM about").fetchall()
                if not found:
                    self._connection.execute("INSERT INTO about VALUES (?)", (_FORMAT,))
                    self._connection.execute("CREATE TABLE answers (key TEXT PRIMARY KEY, request TEXT, answer TEXT)")
                    self._connection.execute(
                        "CREATE TABLE attempts (id INTEGER PRIMARY KEY, key TEXT, state TEXT, usd REAL)"
                    )
        except sqlite3.DatabaseError as error:
            raise InputError(f"is not a store of answers ({error}); take another path", source=path) from error
        if found and found != [(_FORMAT,)]:
            raise InputError(f"is of another format, {found[0][0]!r}; take another path", source=path)

    def __enter__(self) -> AnswerStore:
        """Give the store itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def answer(self, key: str) -> Any | None:
        """Stored answer of a call, None if there is none."""
        row = self._connection.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def begin(self, key: str, most_usd: float, budget_usd: float) -> int:
        """Write down that a call is about to be sent; returns the attempt's number.

        Raises
        ------
        BudgetSpentError
            If it could bring the cost above the budget. Nothing is then written.
        """
        with self._transaction():
            # an attempt that is asked again is the same call to an endpoint that knows idempotency keys, and a second
            # one to the others: both count
            spent = self._connection.execute("SELECT COALESCE(SUM(usd), 0) FROM attempts").fetchone()[0]
            if spent + most_usd > budget_usd + _SLACK_USD:
                raise BudgetSpentError(
                    f"${spent:.4f} of the budget of ${budget_usd:.4f} are spent or in flight, and the next call can "
                    f"cost ${most_usd:.4f}; all answers so far are kept, a larger budget_usd goes on from them",
                    source=self.path,
                    field="budget_usd",
                )
            done = self._connection.execute(
                "INSERT INTO attempts (key, state, usd) VALUES (?, 'sent', ?)", (key, most_usd)
            )
        return int(done.lastrowid or 0)

    def refused(self, attempt: int) -> None:
        """The endpoint said no (429, 5xx, 4xx), or was never reached: the attempt cost nothing."""
        with self._transaction():
            self._connection.execute("UPDATE attempts SET state = 'refused', usd = 0 WHERE id = ?", (attempt,))

    def unsure(self, attempt: int) -> None:
        """No usable answer came, though it may have been paid for: the attempt stays at the most it can have cost."""
        with self._transaction():
            self._connection.execute("UPDATE attempts SET state = 'unsure' WHERE id = ?", (attempt,))

    def keep(self, attempt: int, key: str, request: Any, answer: Any, usd: float) -> None:
        """Store an answer and what it cost, at once."""
        with self._transaction():
            self._connection.execute(
                "INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", (key, json.dumps(request), json.dumps(answer))
            )
            self._connection.execute("UPDATE attempts SET state = 'paid', usd = ? WHERE id = ?", (usd, attempt))

    def ledger(self) -> Ledger:
        """What the store has cost so far."""
        count = self._connection.execute("SELECT COUNT(*) FROM answers").fetchone()[0]
        sums = {"paid": (0, 0.0), "unsure": (0, 0.0)}
        for state, number, usd in self._connection.execute(
            "SELECT CASE state WHEN 'paid' THEN 'paid' ELSE 'unsure' END AS kind, COUNT(*), SUM(usd) FROM attempts "
            "WHERE state != 'refused' GROUP BY kind"
        ):
            sums[state] = (int(number), float(usd))
        return Ledger(int(count), sums["unsure"][0], sums["paid"][1], sums["unsure"][1])
