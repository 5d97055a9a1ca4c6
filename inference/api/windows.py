"""Windows of text, and the ranking study that their answers make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference.api.calls import Position
from inference.api.settings import ApiSettings

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["TextWindow", "ranking_of"]


@dataclass(frozen=True)
class TextWindow:
    """A run of reference tokens with what stands before it, in the tokens of the model.

    Attributes
    ----------
    text, name : str
        Names of the text, and of the window in it.
    context : tuple of str
        Tokens before the first reference token; the window's context length is their number.
    reference : tuple of str
        The tokens to score.
    sliding : bool
        Every reference token is scored after exactly ``len(context)`` tokens, the first ones dropped; otherwise the
        context grows from token to token. A reused completion grows within itself either way.
    """

    text: str
    name: str
    context: tuple[str, ...]
    reference: tuple[str, ...]
    sliding: bool = True

    def before(self, position: int) -> str:
        """Text before a reference token."""
        start = position if self.sliding else 0
        return "".join((*self.context, *self.reference[:position])[start:])


def ranking_of(settings: ApiSettings, found: Sequence[tuple[TextWindow, Sequence[Position]]]) -> xr.Dataset:
    """Make a ranking study of windows and the ranked tokens at each of their reference tokens."""
    import xarray as xr  # noqa: PLC0415

    rows = [(window, at, position) for window, positions in found for at, position in enumerate(positions)]
    longest = max(len(position.token) for _, _, position in rows)
    token = np.full((len(rows), longest), None, dtype=object)
    logprob = np.full((len(rows), longest), np.nan)
    for row, (_, _, position) in enumerate(rows):
        token[row, : len(position.token)] = position.token
        logprob[row, : len(position.logprob)] = position.logprob

    def text(values: list[str]) -> tuple[str, object]:
        return "token", np.array(values, dtype=object)

    return xr.Dataset(
        {
            "model": text([settings.model] * len(rows)),
            "text": text([window.text for window, _, _ in rows]),
            "context_length": ("token", np.array([len(window.context) for window, _, _ in rows])),
            "window": text([window.name for window, _, _ in rows]),
            "position": ("token", np.array([at for _, at, _ in rows])),
            "reference_token": text([window.reference[at] for window, at, _ in rows]),
            "generated_token": text([position.sampled for _, _, position in rows]),
            "ranked_token": (("token", "rank"), token),
            "ranked_logprob": (("token", "rank"), logprob, {"units": "nats"}),
        },
        attrs={"name": f"api {settings.model}"},
    )
