"""Top-1 guesses name the token that comes next."""
