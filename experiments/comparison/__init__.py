"""Comparison studies ask which of two tokens comes next, and how sure people are."""
