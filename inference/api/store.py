"""Answers that were paid for, on disk before anything is done with them, and the ledger of the budget.

One SQLite file, shared by processes. An attempt is written down BEFORE it is sent, with the most that it can cost; the
answer and its cost replace that in one transaction. What a killed process had in flight keeps the most, so that a
budget holds. A call in flight is claimed for as long as its answer can take: other processes wait for the answer.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shannon_game.estimators.errors import InputError
from shannon_game.inference.api.calls import Call
from shannon_game.inference.disk import create_private, write_ahead

_FORMAT = "shannon-game answers 1"
_BUSY_SECONDS = 60.0
_CLOCK_SECONDS = 5.0
# sums of thousands of prices, in dollars
_SLACK_USD = 1e-9
_TABLES = (
    "about (format TEXT)",
    "answers (key TEXT PRIMARY KEY, request TEXT, answer TEXT)",
    "attempts (id INTEGER PRIMARY KEY, key TEXT, state TEXT, usd REAL)",
    "apart (id INTEGER PRIMARY KEY, key TEXT, request TEXT, reason TEXT, answer TEXT)",
    "sums (key TEXT PRIMARY KEY, sum TEXT)",
    "claims (key TEXT PRIMARY KEY, attempt INTEGER, owner TEXT, since REAL, until REAL)",
)


class NoAnswerError(InputError):
    """The endpoint does not answer now, and may later: the same command goes on."""


class BudgetSpentError(NoAnswerError):
    """The next call could bring the cost above the budget; everything that was paid for is in the store."""


@dataclass(frozen=True)
class Ledger:
    """What a store has cost: stored answers, each paid for once, and attempts that may have been paid for.

    The latter are time-outs, answers that broke off, processes that were killed, and the answers that are kept apart
    because they cannot be used; ``unsure_usd`` is the most that they can have cost.
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

    def said(self, store: Path) -> str:
        """Say what is in the store, for a report."""
        said = f"The store of paid answers `{store}` has {self.n_answers:,}, ${self.paid_usd:.4f}"
        if self.n_unsure:
            said += f"; {self.n_unsure:,} calls without a usable answer may have cost ${self.unsure_usd:.4f} more"
        return f"{said}."


class AnswerStore:
    """The store; a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._owner = _this_owner()
        try:
            other = path.exists() and not path.is_file()
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            create_private(path)
        except OSError as error:
            raise InputError(f"cannot be made, or its folder ({error.strerror})", source=path) from None
        if other:
            raise InputError("is a folder or a device, should be a file; take another path", source=path)
        with self._in_words():
            self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        there = {name for (name,) in self._rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if there and "about" not in there:
            raise InputError("is a database, but not a store of answers; take another path", source=self.path)
        with self._in_words():
            write_ahead(self._connection, _BUSY_SECONDS)
            self._connection.execute("PRAGMA synchronous=FULL")
            # what is removed is overwritten: it may hold a key
            self._connection.execute("PRAGMA secure_delete=ON")
        with self._transaction():
            for table in _TABLES:
                self._connection.execute(f"CREATE TABLE IF NOT EXISTS {table}")
            if not self._rows("SELECT format FROM about"):
                self._connection.execute("INSERT INTO about VALUES (?)", (_FORMAT,))
        found = self._rows("SELECT format FROM about")
        if found != [(_FORMAT,)]:
            raise InputError(f"is of another format, {found[0][0]!r}; take another path", source=self.path)

    def __enter__(self) -> AnswerStore:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file; what was still asked, another may ask now."""
        with suppress(InputError), self._transaction():
            self._connection.execute("DELETE FROM claims WHERE owner = ?", (self._owner,))
        self._connection.close()

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Say a fault of the file or the disk as every other error is said."""
        try:
            yield
        except sqlite3.Error as error:
            why = "is the disk full, the file damaged or no store of answers, or its folder not writable"
            raise InputError(f"cannot be read or written ({error}); {why}?", source=self.path) from None

    def _rows(self, question: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._in_words():
            return self._connection.execute(question, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._in_words():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                # a full disk has ended it already
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def answer(self, call: Call) -> str | None:
        """JSON of the stored answer to a call."""
        found = self._rows("SELECT answer, sum FROM answers LEFT JOIN sums USING (key) WHERE key = ?", (call.key,))
        for text, wanted in found:
            # a digit that changed on the disk leaves JSON that can be read
            if not isinstance(text, str) or _sum(text) != wanted:
                raise InputError(
                    f"the answer with the key {call.key} is damaged; take a copy of the file from before, or another "
                    "path",
                    source=self.path,
                )
            return text
        return None

    def apart(self, call: Call) -> list[tuple[str, str | None]]:
        """Answers to a call that are kept apart: reason, and JSON unless that was not to be kept."""
        return self._rows("SELECT reason, answer FROM apart WHERE key = ? ORDER BY id", (call.key,))

    def begin(self, key: str, most_usd: float, budget_usd: float, lease_s: float = 60.0) -> int | None:
        """Write down that a call is about to be sent; returns the attempt's number."""
        now = time.time()
        with self._transaction():
            if self._rows("SELECT 1 FROM answers WHERE key = ?", (key,)):
                return None
            for owner, since, until in self._rows("SELECT owner, since, until FROM claims WHERE key = ?", (key,)):
                # a clock that was put back makes no claim longer
                if owner != self._owner and since - _CLOCK_SECONDS < now < until and not has_ended(owner):
                    return None
            # an attempt that is asked again is the same call to an endpoint that knows idempotency keys, and a second
            # one to the others: both count
            spent = self._rows("SELECT COALESCE(SUM(usd), 0) FROM attempts")[0][0]
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
            self._connection.execute(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?)",
                (key, done.lastrowid, self._owner, now, now + lease_s),
            )
        return int(done.lastrowid or 0)

    def refused(self, attempt: int) -> None:
        """The endpoint said no (429, 5xx, 4xx), or was never reached: the attempt cost nothing."""
        with self._transaction():
            self._end(attempt, "refused", 0.0)

    def unsure(self, attempt: int) -> None:
        """No usable answer came, though it may have been paid for: the attempt stays at the most it can have cost."""
        with self._transaction():
            self._end(attempt, "unsure")

    def keep(self, attempt: int, call: Call, answer: str, usd: float) -> None:
        """Store an answer's JSON and what it cost, at once."""
        with self._transaction():
            row = (call.key, _request(call), answer)
            if self._connection.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", row).rowcount:
                self._connection.execute("INSERT OR REPLACE INTO sums VALUES (?, ?)", (call.key, _sum(answer)))
            self._end(attempt, "paid", usd)

    def set_apart(self, attempt: int, call: Call, reason: str, answer: str | None) -> None:
        """Keep an answer that cannot be used apart; the attempt stays at the most it can have cost."""
        with self._transaction():
            self._put_apart(call.key, _request(call), reason, answer)
            self._end(attempt, "unsure")

    def move_apart(self, key: str, reason: str, answer: str | None) -> None:
        """Keep a stored answer apart that turned out not to be usable."""
        with self._transaction():
            for (request,) in self._rows("SELECT request FROM answers WHERE key = ?", (key,)):
                self._put_apart(key, request, reason, answer)
            self._connection.execute("DELETE FROM answers WHERE key = ?", (key,))

    def _put_apart(self, key: str, request: str, reason: str, answer: str | None) -> None:
        self._connection.execute(
            "INSERT INTO apart (key, request, reason, answer) VALUES (?, ?, ?, ?)", (key, request, reason, answer)
        )

    def _end(self, attempt: int, state: str, usd: float | None = None) -> None:
        """End an attempt, and the claim to its call."""
        self._connection.execute(
            "UPDATE attempts SET state = ?, usd = COALESCE(?, usd) WHERE id = ?", (state, usd, attempt)
        )
        self._connection.execute("DELETE FROM claims WHERE attempt = ?", (attempt,))

    def ledger(self) -> Ledger:
        """What the store has cost so far."""
        count, n_apart = self._rows("SELECT (SELECT COUNT(*) FROM answers), (SELECT COUNT(*) FROM apart)")[0]
        sums = {"paid": (0, 0.0), "unsure": (0, 0.0)}
        for state, number, usd in self._rows(
            "SELECT CASE state WHEN 'paid' THEN 'paid' ELSE 'unsure' END AS kind, COUNT(*), SUM(usd) FROM attempts "
            "WHERE state != 'refused' GROUP BY kind"
        ):
            sums[state] = (int(number), float(usd))
        return Ledger(int(count), sums["unsure"][0], sums["paid"][1], sums["unsure"][1], int(n_apart))


def _sum(answer: str) -> str:
    return hashlib.sha256(answer.encode()).hexdigest()


def _request(call: Call) -> str:
    return json.dumps({"path": call.path, "body": dict(call.body)})


def _this_owner() -> str:
    """Name an owner of claims in this process; each call gives another one."""
    return f"{socket.gethostname()} {os.getpid()} {secrets.token_hex(4)}"


def has_ended(owner: str) -> bool:
    """Tell whether an owner's process has ended; of those on other machines, and on Windows, nothing is known."""
    host, number, _ = owner.rsplit(" ", 2)
    if os.name != "posix" or host != socket.gethostname():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        # it is another user's
        return False
    return False
