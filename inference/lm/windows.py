"""Tokens of a text scored after contexts of a given length, by a sliding or a growing window."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.forward import TokenTree, reduce_log_probs, with_bos
from shannon_game.inference.lm.language_model import LanguageModel, model_record
from shannon_game.inference.lm.rows import TokenScores

if TYPE_CHECKING:
    import torch
    import xarray as xr


def score_windows(
    model: LanguageModel,
    windows: Sequence[Sequence[int]],
    *,
    context_length: int,
    sliding: bool,
    top_k: int = 20,
    temperatures: Sequence[float] = (),
) -> xr.Dataset:
    r"""Score the last tokens of windows, teacher-forced, after contexts of one length.

    A window is ``context_length`` tokens and then the reference tokens. ``sliding``: every reference token is scored
    given exactly the ``context_length`` tokens before it, one pass each. Growing: all are scored in one pass, the
    first given ``context_length`` tokens and every further one given one more.

    =====================  ==============================  ==========================================================
    variable               dims                            meaning
    =====================  ==============================  ==========================================================
    ``logprob``            window, position                ln probability of the reference token, nats
    ``rank``               window, position                1 + number of tokens more probable: ties share the best
    ``entropy_nats``       window, position                of the distribution
    ``top_token``          window, position, rank_at       ids of the ``top_k`` most probable tokens, best first
    ``top_logprob``        window, position, rank_at       their log-probabilities, nats
    ``tempered_logprob``   window, position, temperature   ln of :math:`q^{1/T} / \sum q^{1/T}` at the reference token
    =====================  ==============================  ==========================================================
    """
    import torch  # noqa: PLC0415 - importing this module does not need it

    sizes = {len(window) for window in windows}
    if context_length < 1 or any(size <= context_length for size in sizes):
        raise InputError(f"is {context_length}; windows have {sorted(sizes)} tokens", field="context_length")
    if len(sizes) != 1:
        raise InputError(f"have {sorted(sizes)} tokens, should all have as many", field="windows")
    if not 1 <= top_k <= model.vocab_size:
        raise InputError(f"is {top_k}, should be 1 to {model.vocab_size}", field="top_k")
    if not all(np.isfinite(temperature) and temperature > 0 for temperature in temperatures):
        raise InputError(f"are {list(temperatures)}, should be above 0", field="temperatures")
    n_scored = sizes.pop() - context_length
    reference = np.array([window[context_length:] for window in windows], dtype=np.int64)
    trees, wanted = _trees(model, windows, context_length, n_scored, sliding=sliding)

    shape = (len(windows) * n_scored,)
    scores = TokenScores(reference.ravel())
    top_logprob = np.full((*shape, top_k), np.nan, dtype=np.float32)
    top_token = np.zeros((*shape, top_k), dtype=np.int64)
    tempered = np.full((*shape, len(temperatures)), np.nan, dtype=np.float32)

    def reduce(rows: NDArray[np.intp], log_probs: torch.Tensor) -> None:
        at = scores.take(rows, log_probs)
        best = torch.topk(log_probs, top_k, dim=-1)
        top_logprob[rows], top_token[rows] = best.values.cpu().numpy(), best.indices.cpu().numpy()
        for column, temperature in enumerate(temperatures):
            scaled = torch.log_softmax(log_probs / temperature, dim=-1).gather(1, at)
            tempered[rows, column] = scaled[:, 0].cpu().numpy()

    reduce_log_probs(model, trees, wanted, reduce)
    grid = (len(windows), n_scored)
    nats = {"units": "nats"}
    import xarray as xr  # noqa: PLC0415 - half a second that only results should cost

    return xr.Dataset(
        {
            "logprob": (("window", "position"), scores.logprob.reshape(grid), nats),
            "rank": (("window", "position"), scores.rank.reshape(grid)),
            "entropy_nats": (("window", "position"), scores.entropy.reshape(grid), nats),
            "top_token": (("window", "position", "rank_at"), top_token.reshape(*grid, top_k)),
            "top_logprob": (("window", "position", "rank_at"), top_logprob.reshape(*grid, top_k), nats),
            "tempered_logprob": (
                ("window", "position", "temperature"),
                tempered.reshape(*grid, len(temperatures)),
                nats,
            ),
        },
        coords={"temperature": [float(temperature) for temperature in temperatures]},
        attrs={
            "model": json.dumps(model_record(model), sort_keys=True),
            "context_length": context_length,
            "sliding": int(sliding),
        },
    )


def _trees(
    model: LanguageModel, windows: Sequence[Sequence[int]], context_length: int, n_scored: int, *, sliding: bool
) -> tuple[list[TokenTree], list[NDArray[np.intp]]]:
    """One chain a window, or one a reference token; rows in the order of windows and positions."""
    if sliding:
        contexts = [window[i : i + context_length] for window in windows for i in range(n_scored)]
        n_wanted = 1
    else:
        contexts = [window[:-1] for window in windows]
        n_wanted = n_scored
    full = with_bos(model, contexts, source="windows")
    trees = [TokenTree(np.array(tokens, dtype=np.int64), np.arange(len(tokens)) - 1) for tokens in full]
    return trees, [np.arange(len(tokens) - n_wanted, len(tokens)) for tokens in full]
