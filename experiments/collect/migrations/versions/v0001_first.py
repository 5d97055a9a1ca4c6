"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "player",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("pseudonym", sa.String(length=32), nullable=False),
        sa.Column("recruiter_id", sa.String(length=128), nullable=True),
        sa.Column("recruiter", sa.JSON(), nullable=False),
        sa.Column("display_name", sa.String(length=64), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_player")),
        sa.UniqueConstraint("pseudonym", name=op.f("uq_player_pseudonym")),
        sa.UniqueConstraint("recruiter_id", name=op.f("uq_player_recruiter_id")),
    )
    op.create_table(
        "server_value",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_server_value")),
    )
    op.create_table(
        "study",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("content_hash", sa.String(length=64), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("version", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study")),
        sa.UniqueConstraint("content_hash", name=op.f("uq_study_content_hash")),
    )
    op.create_table(
        "question",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("game", sa.String(length=32), nullable=False),
        sa.Column("item_id", sa.String(), nullable=False),
        sa.Column("document", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("opens", sa.Boolean(), nullable=False),
        sa.Column("reaches", sa.Integer(), nullable=False),
        sa.Column("training", sa.Boolean(), nullable=False),
        sa.Column("attention", sa.Boolean(), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("n_served", sa.Integer(), nullable=False),
        sa.Column("n_held", sa.Integer(), nullable=False),
        sa.Column("n_answered", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_question_study_id_study")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_question")),
        sa.UniqueConstraint("study_id", "game", "item_id", name=op.f("uq_question_study_id_game_item_id")),
    )
    op.create_index(op.f("ix_question_study_id"), "question", ["study_id"], unique=False)
    op.create_table(
        "session",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("player_id", sa.Integer(), nullable=False),
        sa.Column("game", sa.String(length=32), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("language", sa.String(length=16), nullable=False),
        sa.Column("screen", sa.String(length=16), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("pilot", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("consented_at", sa.Double(), nullable=True),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("active_at", sa.Double(), nullable=False),
        sa.Column("released", sa.Boolean(), nullable=False),
        sa.Column("completion_code", sa.String(length=64), nullable=True),
        sa.Column("n_asked", sa.Integer(), nullable=False),
        sa.Column("n_checks", sa.Integer(), nullable=False),
        sa.Column("n_trained", sa.Integer(), nullable=False),
        sa.Column("n_counted", sa.Integer(), nullable=False),
        sa.Column("training_points", sa.Double(), nullable=False),
        sa.Column("points", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["player_id"], ["player.id"], name=op.f("fk_session_player_id_player"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_session_study_id_study")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_session")),
        sa.UniqueConstraint("player_id", "study_id", "game", name=op.f("uq_session_player_id_study_id_game")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_session_token_hash")),
    )
    op.create_index(op.f("ix_session_player_id"), "session", ["player_id"], unique=False)
    op.create_index(op.f("ix_session_state"), "session", ["state"], unique=False)
    op.create_index(op.f("ix_session_study_id"), "session", ["study_id"], unique=False)
    op.create_table(
        "assignment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.Integer(), nullable=False),
        sa.Column("question_id", sa.Integer(), nullable=False),
        sa.Column("order", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("training", sa.Boolean(), nullable=False),
        sa.Column("layout", sa.JSON(), nullable=False),
        sa.Column("probability", sa.Double(), nullable=False),
        sa.Column("policy", sa.String(length=16), nullable=False),
        sa.Column("steps", sa.JSON(), nullable=False),
        sa.Column("assigned_at", sa.Double(), nullable=False),
        sa.Column("shown_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["question_id"], ["question.id"], name=op.f("fk_assignment_question_id_question")),
        sa.ForeignKeyConstraint(
            ["session_id"], ["session.id"], name=op.f("fk_assignment_session_id_session"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_assignment")),
        sa.UniqueConstraint("session_id", "order", name=op.f("uq_assignment_session_id_order")),
        sa.UniqueConstraint("session_id", "question_id", name=op.f("uq_assignment_session_id_question_id")),
    )
    op.create_index(op.f("ix_assignment_question_id"), "assignment", ["question_id"], unique=False)
    op.create_index(op.f("ix_assignment_session_id"), "assignment", ["session_id"], unique=False)
    op.create_index(
        "uq_assignment_open",
        "assignment",
        ["session_id"],
        unique=True,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_table(
        "survey_answer",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.Integer(), nullable=False),
        sa.Column("moment", sa.String(length=8), nullable=False),
        sa.Column("question", sa.String(length=64), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.Column("answered_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["session.id"], name=op.f("fk_survey_answer_session_id_session"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_survey_answer")),
        sa.UniqueConstraint(
            "session_id", "moment", "question", name=op.f("uq_survey_answer_session_id_moment_question")
        ),
    )
    op.create_index(op.f("ix_survey_answer_session_id"), "survey_answer", ["session_id"], unique=False)
    op.create_table(
        "answer",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.Column("automatic", sa.Boolean(), nullable=False),
        sa.Column("correct", sa.Boolean(), nullable=True),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("server_ms", sa.Integer(), nullable=True),
        sa.Column("client_ms", sa.Integer(), nullable=True),
        sa.Column("revisions", sa.Integer(), nullable=True),
        sa.Column("page_version", sa.String(length=16), nullable=False),
        sa.Column("answered_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["assignment_id"], ["assignment.id"], name=op.f("fk_answer_assignment_id_assignment"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_answer")),
        sa.UniqueConstraint("assignment_id", name=op.f("uq_answer_assignment_id")),
    )
