"""Small simulated studies, for the examples of the documentation and for a first try of a model."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from estimators.cloze.simulation import ClozeSimulation, simulate_cloze_study
from estimators.comparison import SimulationSettings, simulate_comparison_study

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["cloze_study", "comparison_study", "guess_study", "ranking_study"]


@cache
def comparison_study() -> xr.Dataset:
    """Comparison study of 6 items and 5 participants.

    Returns
    -------
    xarray.Dataset

    Examples
    --------
    >>> from models.examples import comparison_study
    >>> dict(comparison_study().sizes)["item"]
    8
    """
    settings = SimulationSettings(
        n_items=6, n_reference_items=8, n_participants=5, n_candidates=12, vocab_size=60, rounding="interface"
    )
    return simulate_comparison_study(settings)


@cache
def cloze_study() -> xr.Dataset:
    """Cloze study of 12 contexts in 3 texts, with 20 answers a context and language models.

    Returns
    -------
    xarray.Dataset

    Examples
    --------
    >>> from models.examples import cloze_study
    >>> cloze_study().sizes["item"]
    12
    """
    settings = ClozeSimulation(n_items=12, items_per_text=4, n_answers=20, vocab_size=60)
    return simulate_cloze_study(settings, np.random.default_rng(0))


@cache
def guess_study() -> xr.Dataset:
    """Guess study: 4 participants guess 16 tokens in each of 3 documents, and become better.

    Returns
    -------
    xarray.Dataset

    Examples
    --------
    >>> from models.examples import guess_study
    >>> guess_study().sizes["response"]
    192
    """
    import xarray as xr  # noqa: PLC0415 - importing the models needs no xarray

    rng = np.random.default_rng(0)
    person, document, position = (axis.ravel() for axis in np.indices((4, 3, 16)))
    before = 300 * document + 16 * position
    chance = 1 / (1 + np.exp(1.2 - 0.3 * person - 0.5 * before / 1000))
    at = np.arange(48)
    return xr.Dataset(
        {
            "item_document": ("item", np.array([f"d{number}" for number in at // 16], dtype=object)),
            "item_position": ("item", at % 16 + 1),
            "word_token": ("item", np.ones(48, dtype=bool)),
            "model_hit": (("model", "item"), (rng.random((1, 48)) < 0.4).astype(float)),
            "participant": ("response", np.array([f"p{number}" for number in person], dtype=object)),
            "response_item": ("response", 16 * document + position),
            "correct": ("response", rng.random(person.size) < chance),
            "n_before": ("response", before),
        },
        coords={
            "document": np.array(["d0", "d1", "d2"], dtype=object),
            "item": at,
            "model": np.array(["lm"], dtype=object),
        },
        attrs={"name": "simulated guesses", "tokens": "all"},
    )


@cache
def ranking_study() -> xr.Dataset:
    """Ranking study: 2 models score 10 tokens after 4, 8 and 16 tokens of context, in 2 texts.

    Returns
    -------
    xarray.Dataset
        ``rank`` beside the tokens' places: what :func:`estimators.rankings.score_study` would find.

    Examples
    --------
    >>> from models.examples import ranking_study
    >>> ranking_study().sizes["token"]
    120
    """
    import xarray as xr  # noqa: PLC0415 - importing the models needs no xarray

    rng = np.random.default_rng(0)
    model, text, length, position = (axis.ravel() for axis in np.indices((2, 2, 3, 10)))
    rank = np.floor(rng.exponential(3.0 / (1 + model + 0.5 * length))) + 1
    return xr.Dataset(
        {
            "model": ("token", np.array(["small", "large"], dtype=object)[model]),
            "text": ("token", np.array(["novel", "news"], dtype=object)[text]),
            "context_length": ("token", 4 * 2**length),
            "window": ("token", np.full(model.size, "w0", dtype=object)),
            "position": ("token", position),
            "rank": ("token", np.where(rank > 3, np.inf, rank)),
        },
        attrs={"name": "simulated ranks"},
    )
