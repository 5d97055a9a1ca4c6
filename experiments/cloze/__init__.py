"""Cloze studies: people's and models' next words."""
