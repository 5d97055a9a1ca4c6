"""Bets stake shares on the words that may come next."""
