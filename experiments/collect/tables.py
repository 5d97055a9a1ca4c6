"""The tables of a collection: study, question, player, session, assignment, answer, answers of the surveys.

Times are seconds since 1970 (UTC), as floats: every database keeps them alike. Statements of ``database.VERSIONS``
go with every change here; a test compares the two.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, MetaData, String, UniqueConstraint, and_, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

OPEN, ANSWERED, SKIPPED = "open", "answered", "skipped"
"""What an assignment may be: asked, answered, or left (a training round that was skipped, a document that was left)."""

STATES = (
    *("consent", "before", "instructions", "training", "play", "after", "done", "screened", "declined", "withdrawn"),
)
"""Where a session may be; it goes from left to right, and ends at one of the last four."""
REJECTED = ("screened", "declined", "withdrawn")
"""Sessions whose answers do not count."""

_NAMES = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """Base of all tables; constraints have names, so that a migration can change them on every database."""

    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map = {dict[str, Any]: JSON, list[Any]: JSON}  # noqa: RUF012 - SQLAlchemy reads it


class ServerValue(Base):
    """What the server itself keeps from one start to the next, such as the key that signs cookies."""

    __tablename__ = "server_value"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str]


class Study(Base):
    """A study as it was served: its name, its content's hash, the settings."""

    __tablename__ = "study"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    content_hash: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 of all questions: the same study is found again after a restart."""
    settings: Mapped[dict[str, Any]]
    version: Mapped[str] = mapped_column(String(32))
    created_at: Mapped[float]


class Question(Base):
    """One thing that can be asked: an item of the study in one game."""

    __tablename__ = "question"
    __table_args__ = (UniqueConstraint("study_id", "game", "item_id"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(ForeignKey("study.id"), index=True)
    game: Mapped[str] = mapped_column(String(32))
    item_id: Mapped[str]
    document: Mapped[str]
    """Document or text that it is from, "" where none is known."""
    position: Mapped[int]
    """Its place among the questions of its document, from 0."""
    opens: Mapped[bool]
    """May be asked without the questions before it; in games that go through a text only the first of a document."""
    training: Mapped[bool]
    attention: Mapped[bool]
    content: Mapped[dict[str, Any]]
    """Everything that the server needs, the target and what models say of it too. Never sent."""
    n_served: Mapped[int] = mapped_column(default=0)
    """Times that it was ever assigned; never falls, so that options are balanced by it."""
    n_held: Mapped[int] = mapped_column(default=0)
    """Assignments that are answered, or open in a session that goes on."""


class Player(Base):
    """A person, by a pseudonym that the server made."""

    __tablename__ = "player"
    id: Mapped[int] = mapped_column(primary_key=True)
    pseudonym: Mapped[str] = mapped_column(String(32), unique=True)
    recruiter_id: Mapped[str | None] = mapped_column(String(128), unique=True)
    """The recruiter's name of the person (the first of its parameters); None without a recruiter."""
    recruiter: Mapped[dict[str, Any]]
    display_name: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[float]


class Session(Base):
    """One visit of one person, from consent to the completion code: a game, or the blocks of the plan."""

    __tablename__ = "session"
    __table_args__ = (UniqueConstraint("player_id", "study_id", "game"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(ForeignKey("study.id"), index=True)
    player_id: Mapped[int] = mapped_column(ForeignKey("player.id", ondelete="CASCADE"), index=True)
    game: Mapped[str] = mapped_column(String(32))
    """Of the block that the person is in."""
    block: Mapped[int] = mapped_column(default=0)
    """Number of that block, from 0; what is counted below is of this block."""
    arm: Mapped[str] = mapped_column(String(64), default="")
    item_list: Mapped[str] = mapped_column(String(64), default="")
    n_failed: Mapped[int] = mapped_column(default=0)
    rules_tries: Mapped[dict[str, Any]] = mapped_column(default=dict)
    consent_version: Mapped[str] = mapped_column(String(16), default="")
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 of the secret in the person's cookie: who reads the database cannot play for them."""
    state: Mapped[str] = mapped_column(String(16), index=True)
    language: Mapped[str] = mapped_column(String(16))
    screen: Mapped[str] = mapped_column(String(16))
    """Class of the screen: "small", "medium", "large", "" where the browser did not say."""
    pointer: Mapped[str] = mapped_column(String(8), default="")
    """What points on it: "fine" (a mouse), "coarse" (a finger), "none", "" where the browser did not say."""
    seed: Mapped[int]
    pilot: Mapped[bool]
    n_announced: Mapped[int | None]
    """Questions that the person was told would come; None in visits of a version before."""
    created_at: Mapped[float]
    consented_at: Mapped[float | None]
    started_at: Mapped[float | None]
    ended_at: Mapped[float | None]
    active_at: Mapped[float]
    released: Mapped[bool] = mapped_column(default=False)
    """Was silent for so long that its open question was given to others."""
    completion_code: Mapped[str | None] = mapped_column(String(64))
    n_asked: Mapped[int] = mapped_column(default=0)
    """Assignments so far: the order of the next one."""
    n_checks: Mapped[int] = mapped_column(default=0)
    n_trained: Mapped[int] = mapped_column(default=0)
    n_counted: Mapped[int] = mapped_column(default=0)
    """Questions that count, and that the person answered; attention checks are none."""
    training_points: Mapped[float] = mapped_column(default=0.0)
    points: Mapped[float] = mapped_column(default=0.0)
    player: Mapped[Player] = relationship()


class Assignment(Base):
    """A question that a session was asked."""

    __tablename__ = "assignment"
    __table_args__ = (
        UniqueConstraint("session_id", "order"),
        UniqueConstraint("session_id", "question_id"),
        # two tabs cannot open two questions
        Index(
            "uq_assignment_open",
            "session_id",
            unique=True,
            sqlite_where=text("state = 'open'"),
            postgresql_where=text("state = 'open'"),
        ),
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    session_id: Mapped[int] = mapped_column(ForeignKey("session.id", ondelete="CASCADE"), index=True)
    question_id: Mapped[int] = mapped_column(ForeignKey("question.id"), index=True)
    order: Mapped[int]
    """Of the session's questions, from 0; training and attention checks count."""
    state: Mapped[str] = mapped_column(String(16))
    training: Mapped[bool]
    layout: Mapped[dict[str, Any]]
    """How it was shown: which candidate, on which side the target stood."""
    probability: Mapped[float]
    """With which this question was chosen among those that could have been."""
    policy: Mapped[str] = mapped_column(String(16))
    """What chose it: "fixed", "random", "balanced", "adaptive", "next" (of a text), "attention"."""
    steps: Mapped[list[Any]]
    shown_at: Mapped[float | None]
    """When it was first shown; a reload does not change it."""


class Answer(Base):
    """What was answered, once."""

    __tablename__ = "answer"
    id: Mapped[int] = mapped_column(primary_key=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignment.id", ondelete="CASCADE"), unique=True)
    value: Mapped[dict[str, Any]]
    """As the game writes it: {"report_a": 0.9}, {"word": " as typed"}."""
    automatic: Mapped[bool]
    correct: Mapped[bool | None]
    """Whether it is right; None where a game has no right or wrong. Of an attention check: whether it was passed."""
    score: Mapped[float | None]
    server_ms: Mapped[int | None]
    """From the page's first display to the answer, by the server's clock."""
    client_ms: Mapped[int | None]
    revisions: Mapped[int | None]
    """Times that the answer was changed before it was sent; None without JavaScript."""
    frame_us: Mapped[int | None]
    """Microseconds between frames of the screen: no time by the browser's clock is more exact."""
    hidden_ms: Mapped[int | None]
    n_hidden: Mapped[int | None]
    """Times that the page was hidden while the question was open, and for how long in all."""
    page_version: Mapped[str] = mapped_column(String(16))
    answered_at: Mapped[float]


class SurveyAnswer(Base):
    """An answer to one of the questions before or after the game."""

    __tablename__ = "survey_answer"
    __table_args__ = (UniqueConstraint("session_id", "moment", "question"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    session_id: Mapped[int] = mapped_column(ForeignKey("session.id", ondelete="CASCADE"), index=True)
    moment: Mapped[str] = mapped_column(String(8))
    question: Mapped[str] = mapped_column(String(64))
    value: Mapped[str]
    answered_at: Mapped[float]


COUNTED = and_(Assignment.training.is_(False), Question.attention.is_(False), Answer.automatic.is_(False))
"""Answers that count: a person's own, to no training round and no attention check. Points are theirs alone."""
