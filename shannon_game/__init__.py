"""Human next-word judgements and language models on one scale: questions, loaders, and the packages beneath.

Every question is a function of a study and its settings; every loader gives a study::

    import shannon_game as sg

    result = sg.perplexity(sg.simulated(seed=1), rounding="coarse")

``sg.estimators``, ``sg.models``, ``sg.inference`` and ``sg.experiments`` are the packages beneath. Names are imported
when they are first used, so that ``import shannon_game`` costs nothing.
"""

from importlib import import_module
from typing import Any

_PACKAGES = ("estimators", "experiments", "inference", "models")


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"shannon_game.{name}")
    if name == "__version__":
        return import_module("shannon_game.estimators").__version__
    # Python and its tools ask a module for names such as __wrapped__
    if name != "__all__" and name.startswith("_"):
        raise AttributeError(f"module 'shannon_game' has no attribute {name!r}")
    experiments = import_module("shannon_game.experiments")
    if name == "__all__":
        return [*_PACKAGES, *experiments.__all__]
    return getattr(experiments, name)


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), "__version__"]
