"""Loaders: each reads one layout of data and gives a study of one kind.

What lives here: one module per layout, by kind, and what they share. What does not: estimates, figures.
A loader raises :class:`~shannon_game.estimators.errors.InputError` for data that cannot be used, and adds a counted
note to the study (``shannon_game.estimators.layout.add_note``) for everything that it drops, repairs or keeps in spite
of doubts.
"""
