"""Numbers from arrays: the estimators of human and model next-word prediction.

What lives here, by kind of study:

- ``comparison``: reports and likelihood ratios, rounding, the game's score, importance-sampling estimators of the loss
  gap and perplexity with their diagnostics, resampling, a simulator with known truth;
- ``cloze``: words and their rules, distributions over words and distances between them, baselines for samples, split
  halves, calibration error, a simulator;
- ``guesses``: accuracy of top-1 guesses and its intervals;
- ``rankings``: rank scores, approximate perplexity, Shannon's bounds from ranks;
- ``bets``: realised loss of bets on next words under stated back-offs, calibration of stakes, gambling estimate, a
  simulator;
- ``documents``: loss, perplexity and bits per byte of a corpus.

Each kind has one table of variables (``schema``), from which its validator checks a study and says what such a study
holds; a module ``examples`` with a small study to try functions on; and results that show themselves (``display``).
NumPy inside, ``xarray.Dataset`` at the door.

What does not: files, downloads, plots, samplers, language models. Nothing here imports another package of this
project, and importing it pulls in neither xarray nor pandas.
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
