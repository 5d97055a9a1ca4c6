"""Versions of the database's tables, for Alembic."""
