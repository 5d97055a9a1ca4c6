"""The loader of what ``+exp=collect`` stored: one kind of study for each game."""
