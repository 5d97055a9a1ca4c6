"""Hide notices of PyTensor and ArviZ that the reader of a result can do nothing about.

PyTensor installed by pip finds no BLAS library to link and says so when it first compiles; no model here multiplies
matrices. PyTensor 3 says of every random variable with a NumPy function of its own that Numba calls that function.
ArviZ 0.23 announces ArviZ 1 once a day. Both packages may be imported by any model, so ``models`` and ``inference``
import this module before everything else. Other warnings of theirs are shown.
"""

from __future__ import annotations

import logging
import warnings

__all__: list[str] = []


def _is_worth_showing(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Using NumPy C-API based implementation for BLAS")


warnings.filterwarnings("ignore", "PyTensor could not link to a BLAS", UserWarning)
warnings.filterwarnings("ignore", "Numba will use object mode to run CustomDist_", UserWarning)
warnings.filterwarnings("ignore", r"\s*ArviZ is undergoing a major refactor", FutureWarning)
logging.getLogger("pytensor.tensor.blas").addFilter(_is_worth_showing)
