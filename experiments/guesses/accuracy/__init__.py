"""Accuracy."""
