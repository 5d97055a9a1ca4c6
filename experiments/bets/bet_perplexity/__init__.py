"""Perplexity by bets."""
