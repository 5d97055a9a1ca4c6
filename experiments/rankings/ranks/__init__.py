"""Ranks."""
