"""Stored results of language models: each is computed once, and found by a key of everything it depends on."""
