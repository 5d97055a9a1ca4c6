"""Engines: the posterior of a model, and the language model that gives log-probabilities.

What lives here: samplers with their convergence gates and simulation-based calibration; batched scoring of text on
CPU or GPU, word probabilities and their store.
What does not: the models themselves (``models``), reading studies, tables and figures (``experiments``).
So far: sampling, gates, what follows from a posterior (gaps, curves, predictions), leave-one-out, recovery and
simulation-based calibration. It may import ``models`` and ``estimators``, nothing above.
"""
