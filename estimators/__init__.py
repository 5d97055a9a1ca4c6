"""Numbers from arrays: the estimators of human and model next-word prediction, by kind of study.

NumPy inside, ``xarray.Dataset`` at the door. No files, downloads, plots, samplers or language models; importing it
imports no other package of this project, and neither xarray nor pandas. Examples of docstrings take NumPy, as ``np``,
and the kinds (``from shannon_game.estimators import bets, cloze, ...``) for imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shannon_game.estimators.code_identity import package_version
from shannon_game.estimators.errors import InputError

if TYPE_CHECKING:
    from shannon_game.estimators import bets, cloze, comparison, documents, guesses, rankings

__all__ = ["InputError", "bets", "cloze", "comparison", "documents", "guesses", "rankings"]


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> Any:
    # read when asked for: the metadata of an installed distribution take longer than this import
    if name == "__version__":
        return package_version()
    # a kind is imported when it is used: most programs are about one
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
