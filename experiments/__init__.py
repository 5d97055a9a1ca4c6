"""The experiments: what a user asks of a study, from data to a table, figures, a posterior and a report.

Every experiment is a function of a study and its settings; every loader gives a study::

    from shannon_game import perplexity, simulated

    result = perplexity(simulated(seed=1), rounding="coarse")

The command ``python -m experiments.run +exp=perplexity`` calls the same function behind Hydra. What lives here: one
folder a kind of study, the loaders (``studies``), what repeats the papers (``papers``), what every experiment shares
(``harness``), the command (``run``). What does not: numbers from arrays (``estimators``), probabilistic programs
(``models``), samplers and language models (``inference``). Nothing imports this package.
"""

import lazy_loader as lazy

# Names are imported when they are used: a loader of tables should not cost the imports of a sampler. The package's name
# is written out, as `python -m experiments.run` in a checkout imports this file as `experiments`.
__getattr__, __dir__, __all__ = lazy.attach_stub("shannon_game.experiments", __file__)
