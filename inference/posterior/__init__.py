"""Posterior."""
