"""The database: SQLite in a file, or PostgreSQL by URL; opened, migrated, and written one thing at a time.

The engine is synchronous and handlers run in the server's thread pool: SQLite writes one transaction at a time whatever
the driver, and a transaction here takes milliseconds. SQLite runs with a write-ahead log and ``synchronous=FULL``: a
commit is on the disk before the next page is sent, so that no killed server and no lost power takes an answer back.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session as Transaction

from shannon_game.estimators.errors import InputError, how_to_install
from shannon_game.estimators.messages import Ask
from shannon_game.experiments.collect.tables import Base
from shannon_game.inference.disk import create_private, write_ahead

VERSIONS: Mapping[str, Sequence[str]] = {
    "0001": (),
    # a session is a visit of blocks; what a question gives away is read from its texts
    "0002": (
        "alter table session add column block integer not null default 0",
        "alter table question drop column reaches",
    ),
    # arms, lists, failed checks, tries at the questions on the rules, the consent that was agreed to
    "0003": (
        "alter table session add column arm varchar(64) not null default ''",
        "alter table session add column item_list varchar(64) not null default ''",
        "alter table session add column n_failed integer not null default 0",
        "alter table session add column rules_tries json not null default '{}'",
        "alter table session add column consent_version varchar(16) not null default ''",
    ),
    "0004": ("alter table session add column n_announced integer",),
    # what nothing read
    "0005": (
        "alter table question drop column n_answered",
        "alter table assignment drop column assigned_at",
    ),
    # how exact times by the browser's clock are, and when nobody saw the page
    "0006": (
        "alter table session add column pointer varchar(8) not null default ''",
        *(f"alter table answer add column {name} integer" for name in ("frame_us", "hidden_ms", "n_hidden")),
    ),
}
"""Version of the tables -> what makes it of the version before, in SQL that both databases know."""
VERSION = max(VERSIONS)
_VERSION = "alembic_version"  # as it was called from the first version on
_IMMEDIATE = "shannon_immediate"
_BUSY_SECONDS = 30.0


class Database:
    """An open database."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._writing = engine.execution_options(**{_IMMEDIATE: True})
        # SQLite polls for its lock, with sleeps that starve some; the threads of this process wait in a queue instead
        self._queue: AbstractContextManager[Any] = threading.Lock() if is_sqlite(engine) else nullcontext()

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a transaction that only reads."""
        with Transaction(self.engine, expire_on_commit=False) as transaction:
            yield transaction

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a transaction that writes: all of it is on the disk when the block ends, or nothing."""
        options: dict[str, Any] = {"expire_on_commit": False, "autoflush": False}
        with self._queue, Transaction(self._writing, **options) as transaction, transaction.begin():
            yield transaction

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()


def shown_url(url: str) -> str:
    """Return an address as a message shows it: without a password, wherever in it one was written."""
    return (
        url if url.startswith("sqlite") else re.sub("/[^/]*@|:.*@", "/***@", re.sub("(password=)[^&]*", r"\1***", url))
    )


def is_sqlite(engine: Engine) -> bool:
    """Whether an engine speaks to SQLite."""
    return engine.dialect.name == "sqlite"


def open_database(url: str, *, field: object = "database", new: bool = True) -> Database:
    """Open a database and bring its tables up to date; a new file is for its owner alone.

    ``sqlite:///FILE`` or ``postgresql+psycopg://USER@HOST/NAME``; ``sqlite://`` is in memory, for tests. Messages call
    it `field`; without `new` there have to be tables.
    """
    url = re.sub("^postgresql://", "postgresql+psycopg://", url)
    shown = shown_url(url)
    try:
        engine = create_engine(url, hide_parameters=True, **_options(url))
        if not is_sqlite(engine) and url.count("@") > 1:
            # a part of the password is taken for the host, and would stand in messages
            raise ValueError  # noqa: TRY301
    except (ArgumentError, ValueError):
        should = "sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME, the password in PGPASSWORD or ~/.pgpass"
        raise InputError(
            f"should be {should}; it is not shown, because a password may stand in it", field=field
        ) from None
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        problem = how_to_install(f"the driver of {make_url(url).drivername}", "collect")
        raise InputError(problem, field=field) from error
    if is_sqlite(engine):
        if not new and not Path(engine.url.database or "").is_file():
            shown = make_url(url).render_as_string()
            problem = f"is {shown!r}, and there is no file {engine.url.database!r}; {Ask('collect')} writes one"
            raise InputError(problem, field=field)
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    try:
        _make_private_file(url)
        # tables are made in a new database, never in somebody else's
        strange = not new and not inspect(engine).has_table(_VERSION)
        if strange:
            reason = "it has none of its tables"
            raise InputError(f"is {shown!r}, no database that {Ask('collect')} wrote: {reason}", field=field)  # noqa: TRY301
        with engine.execution_options(**{_IMMEDIATE: True}).begin() as connection:
            upgrade(connection, field=field)
    except InputError:
        engine.dispose()
        raise
    except (DatabaseError, UnicodeDecodeError) as error:
        engine.dispose()
        reason = " ".join(str(getattr(error, "orig", error)).split())
        # nobody answers, or the tables of another program stand there
        closed = isinstance(error, OperationalError)
        what = "which cannot be opened" if closed else f"no database that {Ask('collect')} wrote"
        raise InputError(f"is {shown!r}, {what}: {reason}", field=field) from error
    return Database(engine)


@contextmanager
def existing_database(url: str, *, field: object = "url") -> Iterator[Database]:
    """Open a database that is there while the block runs; InputError in one line where it is none, or damaged."""
    database = open_database(url, field=field, new=False)
    try:
        if is_sqlite(database.engine):
            with database.engine.connect() as connection:
                found = str(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar())
            if found != "ok":
                # what is read of it may lack answers without any error
                raise _damaged(url, found, field)
        yield database
    except (SQLAlchemyError, JSONDecodeError, UnicodeDecodeError) as error:
        raise _damaged(url, str(getattr(error, "orig", error)), field) from error
    finally:
        database.close()


def _damaged(url: str, reason: str, field: object) -> InputError:
    shown, said = shown_url(url), " ".join(reason.split())
    cure = "where the file is damaged take a backup, or what sqlite3 FILE .recover still finds"
    return InputError(f"is {shown!r}, which cannot be read to its end: {said}; {cure}", field=field)


def upgrade(connection: Connection, *, field: object = "database") -> None:
    """Bring the tables to this version; what is there already stays."""
    if not inspect(connection).has_table(_VERSION):
        Base.metadata.create_all(connection)
        connection.execute(text(f"create table {_VERSION} (version_num varchar(32) not null primary key)"))
        connection.execute(text(f"insert into {_VERSION} values (:new)"), {"new": VERSION})
        return
    found = connection.scalar(text(f"select version_num from {_VERSION}"))
    if found not in VERSIONS:
        problem = (
            f"has version {found!r}, this shannon-game knows up to {VERSION!r}; update shannon-game, "
            "or start with another database"
        )
        raise InputError(problem, field=field)
    names = list(VERSIONS)
    for name in names[names.index(found) + 1 :]:
        for statement in VERSIONS[name]:
            connection.execute(text(statement))
    connection.execute(text(f"update {_VERSION} set version_num = :new"), {"new": VERSION})


def _make_private_file(url: str) -> None:
    """Make a new database before anything is in it: who opened it then could read it for ever."""
    file = make_url(url).database or ""
    # what cannot be made here, SQLite says
    if url.startswith("sqlite") and file and not file.startswith((":", "file:")):
        with suppress(OSError):
            create_private(Path(file))


def _options(url: str) -> dict[str, Any]:
    if not url.startswith("sqlite"):
        return {"pool_size": 20, "max_overflow": 20, "pool_pre_ping": True}
    options: dict[str, Any] = {"connect_args": {"check_same_thread": False, "timeout": _BUSY_SECONDS}}
    if url in ("sqlite://", "sqlite:///:memory:"):
        from sqlalchemy.pool import StaticPool  # noqa: PLC0415 - one connection is one database, in tests alone

        return options | {"poolclass": StaticPool}
    return options | {"pool_size": 40, "max_overflow": 10}


def _configure_sqlite(connection: Any, _record: Any) -> None:
    # the driver's own transactions begin too late; _begin_sqlite begins them
    connection.isolation_level = None
    write_ahead(connection, _BUSY_SECONDS)
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # a transaction that reads first and writes later would fail where another one wrote between
    immediate = connection.get_execution_options().get(_IMMEDIATE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")
