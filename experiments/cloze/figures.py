"""What figures of cloze studies share: names and colours of players, a density on [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.experiments.cloze.settings import ORACLE

_KNOWN = {
    ORACLE: ("half of the people", "#000000"),
    "human": ("humans", "#000000"),
    "gpt2": ("GPT-2", "#0072B2"),
    "gpt2-ft": ("GPT-2 fine-tuned", "#4A9BC8"),
    "gpt2-t0.5": ("GPT-2, temperature 0.5", "#939393"),
    "bloom": ("BLOOM-176B", "#D55E00"),
    "chatgpt": ("ChatGPT", "#009E73"),
    "chatgpt-2": ("ChatGPT, second round", "#CC79A7"),
    "chatgpt-diverse": ("ChatGPT, asked for 40 words", "#C38700"),
}
_FREE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#C38700", "#4A9BC8")


def label(player: str) -> str:
    """Name of a player as a reader of a paper expects it."""
    return _KNOWN[player][0] if player in _KNOWN else player


def about(study: xr.Dataset, players: Sequence[str] | None) -> str:
    """Models and study, for the titles of figures."""
    return f"{', '.join(label(name) for name in players or ()) or 'all models'}, {study.attrs['name']}"


def colours(players: Sequence[str]) -> dict[str, str]:
    """Colour of every player, always the same for those that are known."""
    taken = {_KNOWN[name][1] for name in players if name in _KNOWN}
    free = iter([colour for colour in _FREE if colour not in taken] * 50)
    return {name: _KNOWN[name][1] if name in _KNOWN else next(free) for name in players}


def kernel_density(values: NDArray[np.float64], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gaussian kernel density on [0, 1], reflected at both ends so that no mass is lost there; by bins of 0.001."""
    spread = min(values.std(ddof=1), (np.quantile(values, 0.75) - np.quantile(values, 0.25)) / 1.349)
    width = max(0.9 * spread * len(values) ** -0.2, 0.01)
    at = (np.arange(1000) + 0.5) / 1000
    number = np.histogram(np.clip(values, 0, 1), bins=len(at), range=(0, 1))[0]
    reflected = np.concatenate([at, -at, 2 - at])
    kernels = np.exp(-0.5 * ((grid[:, None] - reflected) / width) ** 2) @ np.tile(number, 3)
    return np.asarray(kernels / (len(values) * width * np.sqrt(2 * np.pi)))
