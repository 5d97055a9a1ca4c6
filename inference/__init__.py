"""Engines: the posterior of a model, and the language model that gives log-probabilities.

What lives here: samplers with their convergence gates (``sampling``, ``convergence``), what follows from a posterior
(gaps, curves, predictions, leave-one-out, storage), recovery and simulation-based calibration in long loops that can go
on (``replicates``), the Bayesian TVD's own sampler (``word_pairs``); batched scoring of text by language models
(``inference.lm``) and endpoints (``inference.api``).
What does not: the models themselves (``models``), reading studies, tables and figures (``experiments``).

It may import ``models`` and ``estimators``, nothing above. Only ``arviz_adapter`` knows versions of ArviZ.
"""
