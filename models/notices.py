"""Hide notices of PyTensor and ArviZ that the reader of a result can do nothing about; other warnings are shown.

PyTensor finds no BLAS library, which no model here needs, and says which random variables Numba calls as Python
functions. ArviZ 0.23 announces ArviZ 1. ``models`` and ``inference`` import this module first.
"""

from __future__ import annotations

import logging
import os
import warnings

# PyTensor gives up after 120 s where other processes compile, each in turn, and reads this when it is imported; a lock
# ends with its process
_FLAGS = os.environ.get("PYTENSOR_FLAGS", "")
if "compile__timeout" not in _FLAGS:
    os.environ["PYTENSOR_FLAGS"] = f"{_FLAGS},compile__timeout=3600".lstrip(",")


def _is_worth_showing(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Using NumPy C-API based implementation for BLAS")


warnings.filterwarnings("ignore", "PyTensor could not link to a BLAS", UserWarning)
warnings.filterwarnings("ignore", "Numba will use object mode to run (CustomDist_|LatentWords)", UserWarning)
warnings.filterwarnings("ignore", r"\s*ArviZ is undergoing a major refactor", FutureWarning)
logging.getLogger("pytensor.tensor.blas").addFilter(_is_worth_showing)
