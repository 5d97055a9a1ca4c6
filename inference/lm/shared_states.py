"""Passes that several models have in common: variants of one model in temperature, which only scales what comes out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shannon_game.inference.lm.language_model import LanguageModel

if TYPE_CHECKING:
    import torch

_LARGEST_MIB = 512


@dataclass
class SharedStates:
    """What passes gave, until it is as large as allowed: then the first stay, as they come first again."""

    largest_mib: int = _LARGEST_MIB
    n_found: int = 0
    _by_key: dict[bytes, torch.Tensor] = field(default_factory=dict)
    _n_bytes: int = 0

    def get(self, key: bytes, compute: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Give what is there, or compute it."""
        if key in self._by_key:
            self.n_found += 1
            return self._by_key[key]
        states = compute()
        self._n_bytes += states.nbytes
        if self._n_bytes <= self.largest_mib << 20:
            self._by_key[key] = states
        else:
            self._n_bytes -= states.nbytes
        return states


_CURRENT: ContextVar[SharedStates | None] = ContextVar("shared_states", default=None)


@contextmanager
def sharing(states: SharedStates | None) -> Iterator[None]:
    """Let all passes made inside look here first."""
    before = _CURRENT.set(states)
    try:
        yield
    finally:
        _CURRENT.reset(before)


def shared(model: LanguageModel, batch: Sequence[bytes], compute: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Give the states of a batch: those of the same batch of a model with the same weights, or new ones."""
    states = _CURRENT.get()
    if states is None:
        return compute()
    its = model.settings
    what = (model.weights_sha256, its.n_layers, its.dtype, its.attention, its.compile, model.device, model.split_head)
    digest = hashlib.sha256(repr(what).encode())
    for part in batch:
        # the length, so that no byte can move from one part to the next
        digest.update(len(part).to_bytes(8, "little") + part)
    return states.get(digest.digest(), compute)
