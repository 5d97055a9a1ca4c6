"""Guesses: how often people and language models name the true next token."""
