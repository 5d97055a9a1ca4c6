"""Probabilistic programs: data in, a PyMC model out, with named dims and coords.

What lives here: one module per model, each with its builder and its priors as a small frozen dataclass.
What does not: sampling and convergence checks (``inference``), figures and files (``experiments``),
numbers that need no model (``estimators``).
So far: the belief of one player without noise (``belief``), participants with a shared belief (``participants``),
calibration (``calibration``) and how reports come about (``report_process``); ``*_data`` is what each is fitted to.
It may import ``estimators``, nothing above.
"""
