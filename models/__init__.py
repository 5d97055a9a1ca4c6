"""Probabilistic programs: data in, a PyMC model out, with named dims and coords.

What lives here: one module per model, each with its builder and its priors as a small frozen dataclass. Beliefs of one
player without noise (``belief``), participants with a shared belief (``participants``), reliability curves
(``calibration``) and how reports come about (``report_process``), top-1 guesses (``accuracy``), what a distance between
people and models depends on (``ard``), rank scores against context length (``rank_slopes``); ``*_data`` and
``ard_columns`` make what each is fitted to.
What does not: sampling and convergence checks (``inference``), figures and files (``experiments``),
numbers that need no model (``estimators``).

It may import ``estimators``, nothing above. Importing it needs no PyMC; building a model does.
"""
