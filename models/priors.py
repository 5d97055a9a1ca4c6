"""What every set of priors must be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import is_dataclass

import numpy as np

from shannon_game.estimators.errors import InputError


def check_priors(priors: object, source: str, *, any_sign: Collection[str] = (), shares: Collection[str] = ()) -> None:
    """Check the fields of a dataclass of priors."""
    for name, value in vars(priors).items():
        if is_dataclass(value) or isinstance(value, Mapping):  # parts that are checked on their own
            continue
        if not np.isfinite(value) or (value <= 0 and name not in any_sign):
            raise InputError(f"is {value}, should be a positive number", source=source, field=name)
        if name in shares and value >= 1:
            raise InputError(f"is {value}, should be below 1", source=source, field=name)
