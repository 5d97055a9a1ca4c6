"""A session is a visit of blocks; what a question gives away is read from its texts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Number the block of every session, and drop what contexts showed by place."""
    op.add_column("session", sa.Column("block", sa.Integer(), nullable=False, server_default="0"))
    op.drop_column("question", "reaches")
