"""What a language model thinks comes next: target, rank, entropy, best and drawn tokens; how far two models differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.forward import reduce_last, with_bos
from shannon_game.inference.lm.language_model import LanguageModel, model_record
from shannon_game.inference.lm.rows import entropies, ranks_above

if TYPE_CHECKING:
    import torch

# MiB of one model's distributions that are held at a time
_BLOCK_MIB = 256


def next_token_distributions(
    model: LanguageModel,
    contexts: Sequence[Sequence[int]],
    *,
    targets: Sequence[int] | None = None,
    probed: Sequence[Sequence[int]] | None = None,
    top_k: int = 0,
    n_candidates: int = 0,
    replace: bool = True,
    seed: int = 0,
    whole: bool = False,
) -> Dataset:
    r"""Next-token distribution of every context, reduced on the device to what is asked for.

    ==========================  ====================  =====================================================
    variable                    dims                  meaning
    ==========================  ====================  =====================================================
    ``entropy_nats``            context               :math:`-\sum_y q(y) \ln q(y)`
    ``best_token``              context               id of the most probable token
    ``target_logprob``          context               :math:`\ln q(\text{target})`, nats (with ``targets``)
    ``target_rank``             context               1 + number of tokens more probable than the target: ties
                                                      share the best rank (with ``targets``)
    ``probed_logprob``          context, probe        :math:`\ln q` of the tokens of ``probed``
    ``top_token``               context, rank         ids of the ``top_k`` most probable tokens, best first
    ``top_logprob``             context, rank         their log-probabilities, nats
    ``candidate_token``         context, candidate    ids of tokens drawn from *q*
    ``candidate_logprob``       context, candidate    their log-probabilities, nats
    ``logprob``                 context, token        the whole distribution, nats (with ``whole``)
    ==========================  ====================  =====================================================

    Results do not depend on the order of the contexts or on the size of batches beyond float32 noise; the random
    numbers of a context come from ``seed`` and its own tokens.

    Parameters
    ----------
    contexts : sequence of sequence of int
        Tokens of each context, without BOS. Empty contexts need a model with a BOS token.
    targets : sequence of int, shape (context,), optional
    probed : sequence of sequence of int, shape (context, probe), optional
        Tokens whose log-probabilities are wanted as well: the candidates that another model drew.
    n_candidates : int
        Tokens to draw from each distribution.
    replace : bool
        True: independent draws, by inversion. False: different tokens in the order of sampling without replacement
        (Gumbel top-k; Kool, van Hoof and Welling 2019).
    whole : bool
        Also return the whole distribution: context x vocabulary x 4 bytes.

    Returns
    -------
    xarray.Dataset
        float32 log-probabilities, int64 tokens; ``attrs["model"]`` is :func:`model_record` as JSON.

    Examples
    --------
    >>> from shannon_game.inference import lm
    >>> model = lm.load_language_model(lm.ModelSettings(name="tiny", source="folder", path="tiny"))
    >>> found = lm.next_token_distributions(model, lm.encode(model, ["The old clock", "Rain fell"]), top_k=3)
    >>> found["top_token"].shape, bool((found["entropy_nats"] > 0).all())
    ((2, 3), True)
    """
    import torch  # noqa: PLC0415 - importing this module does not need it

    target_of = _tokens(model, len(contexts), targets, "targets", n_dims=1)
    probed_of = _tokens(model, len(contexts), probed, "probed", n_dims=2)
    _check_sizes(model, top_k=top_k, n_candidates=n_candidates, replace=replace, seed=seed)
    full = with_bos(model, contexts)
    # the same context twice is computed once
    unique: dict[tuple[int, ...], int] = {}
    slot = np.array([unique.setdefault(tuple(tokens), len(unique)) for tokens in full], dtype=np.intp)
    members = _members(slot, len(unique))
    keys = list(unique)

    sizes = {
        "probe": None if probed_of is None else probed_of.shape[1],
        "rank": top_k or None,
        "candidate": n_candidates or None,
        "token": model.vocab_size if whole else None,
    }
    columns = _empty(len(full), sizes, with_targets=target_of is not None)

    def reduce(rows: NDArray[np.intp], log_probs: torch.Tensor) -> None:
        contexts_of = [members[row] for row in rows]
        at = np.concatenate(contexts_of)
        row = np.repeat(np.arange(len(rows)), [len(some) for some in contexts_of])
        _whole_columns(columns, log_probs, rows=row, at=at)
        if target_of is not None:
            _target_columns(columns, log_probs, rows=row, at=at, targets=target_of[at])
        if probed_of is not None:
            columns["probed_logprob"][at] = _gather(log_probs, row, probed_of[at])
        if top_k:
            best = torch.topk(log_probs, top_k, dim=-1)
            columns["top_token"][at] = best.indices.cpu().numpy()[row]
            columns["top_logprob"][at] = best.values.cpu().numpy()[row]
        if n_candidates:
            drawn = _draw(log_probs, [keys[row] for row in rows], n_candidates, replace=replace, seed=seed)
            columns["candidate_token"][at] = drawn[row]
            columns["candidate_logprob"][at] = _gather(log_probs, row, drawn[row])

    reduce_last(model, keys, reduce, branching=False)
    import xarray as xr  # noqa: PLC0415 - half a second that only results should cost

    return xr.Dataset(
        {name: (_DIMS[name], values, {"units": "nats"} if name in _NATS else {}) for name, values in columns.items()},
        attrs={"model": json.dumps(model_record(model), sort_keys=True), "seed": seed, "replace": int(replace)},
    )


_NATS = {
    "entropy_nats": ("context",),
    "target_logprob": ("context",),
    "probed_logprob": ("context", "probe"),
    "top_logprob": ("context", "rank"),
    "candidate_logprob": ("context", "candidate"),
    "logprob": ("context", "token"),
}
_DIMS = _NATS | {
    "best_token": ("context",),
    "target_rank": ("context",),
    "top_token": ("context", "rank"),
    "candidate_token": ("context", "candidate"),
}


def context_rng(seed: int, tokens: Sequence[int]) -> np.random.Generator:
    """Build the random generator of one context: its own stream of ``seed``, whatever else is computed."""
    digest = hashlib.sha256(np.asarray(tokens, dtype="<i8").tobytes()).digest()
    return np.random.default_rng([seed, *np.frombuffer(digest, dtype="<u4").tolist()])


def _tokens(
    model: LanguageModel, n_contexts: int, values: Sequence[Any] | None, field: str, *, n_dims: int
) -> NDArray[np.int64] | None:
    """Return tokens by context as an array, checked."""
    if values is None:
        return None
    if len(values) != n_contexts:
        raise InputError(f"has {len(values)} entries for {n_contexts} contexts", field=field)
    if n_dims == 2 and len({len(some) for some in values}) > 1:
        raise InputError("has lists of different lengths; give as many tokens for every context", field=field)
    array = np.asarray(values, dtype=np.int64).reshape((n_contexts, -1)[:n_dims] if n_contexts else (0,) * n_dims)
    if array.size and (array.min() < 0 or array.max() >= model.vocab_size):
        wrong = array[(array < 0) | (array >= model.vocab_size)].flat[0]
        raise InputError(f"has token {wrong}; {model.name} has 0 to {model.vocab_size - 1}", field=field)
    return array


def _check_sizes(model: LanguageModel, *, top_k: int, n_candidates: int, replace: bool, seed: int) -> None:
    limits = (("top_k", top_k, model.vocab_size), ("n_candidates", n_candidates, None if replace else model.vocab_size))
    for field, value, largest in limits:
        if value < 0 or (largest is not None and value > largest):
            bound = "at least 0" if largest is None else f"0 to {largest}, the size of the vocabulary"
            raise InputError(f"is {value}, should be {bound}", field=field)
    if seed < 0:
        raise InputError(f"is {seed}, should be at least 0", field="seed")


def _members(slot: NDArray[np.intp], n_unique: int) -> list[NDArray[np.intp]]:
    """Positions of the contexts in each slot."""
    order = np.argsort(slot, kind="stable")
    return np.split(order, np.cumsum(np.bincount(slot, minlength=n_unique))[:-1])


def _empty(n_contexts: int, sizes: Mapping[str, int | None], *, with_targets: bool) -> dict[str, NDArray[Any]]:
    """Columns that are asked for: a size of None leaves out those with that dim."""
    columns: dict[str, NDArray[Any]] = {}
    for name, (_, *dims) in _DIMS.items():
        shape = [size for dim in dims if (size := sizes[dim]) is not None]
        if len(shape) == len(dims) and (with_targets or not name.startswith("target")):
            unknown = np.float32(np.nan) if name in _NATS else np.int64(-1)
            columns[name] = np.full((n_contexts, *shape), unknown)
    return columns


def _whole_columns(
    columns: dict[str, NDArray[Any]], log_probs: torch.Tensor, *, rows: NDArray[np.intp], at: NDArray[np.intp]
) -> None:

    # entr is p ln p with 0 ln 0 = 0
    columns["entropy_nats"][at] = entropies(log_probs).cpu().numpy()[rows]
    columns["best_token"][at] = log_probs.argmax(dim=-1).cpu().numpy()[rows]
    if "logprob" in columns:
        columns["logprob"][at] = log_probs.cpu().numpy()[rows]


def _target_columns(
    columns: dict[str, NDArray[Any]],
    log_probs: torch.Tensor,
    *,
    rows: NDArray[np.intp],
    at: NDArray[np.intp],
    targets: NDArray[np.int64],
) -> None:
    import torch  # noqa: PLC0415

    row = torch.from_numpy(rows).to(log_probs.device)
    logprob = log_probs[row, torch.from_numpy(targets).to(log_probs.device)]
    columns["target_logprob"][at] = logprob.cpu().numpy()
    if len(np.unique(rows)) == len(rows):
        more = ranks_above(log_probs, logprob[:, None]).cpu().numpy()
    else:
        # contexts with the same tokens and different targets share a row: no copy of a row for each of them
        more = np.array([int((log_probs[r] > value).sum()) for r, value in zip(row, logprob, strict=True)])
    columns["target_rank"][at] = 1 + more


def _gather(log_probs: torch.Tensor, rows: NDArray[np.intp], tokens: NDArray[np.int64]) -> NDArray[np.float32]:
    import torch  # noqa: PLC0415

    row = torch.from_numpy(rows).to(log_probs.device)
    chosen = log_probs[row[:, None], torch.from_numpy(tokens).to(log_probs.device)]
    values: NDArray[np.float32] = chosen.cpu().numpy()
    return values


def _draw(
    log_probs: torch.Tensor, keys: Sequence[tuple[int, ...]], n: int, *, replace: bool, seed: int
) -> NDArray[np.int64]:
    """Draw tokens of every row; the random numbers are NumPy's, so that every device draws the same."""
    import torch  # noqa: PLC0415

    rngs = [context_rng(seed, key) for key in keys]
    n_tokens = log_probs.shape[1]
    if not replace:
        noise = np.stack([rng.gumbel(size=n_tokens) for rng in rngs]).astype(np.float32)
        ranked = torch.topk(log_probs + torch.from_numpy(noise).to(log_probs.device), n, dim=-1)
        without: NDArray[np.int64] = ranked.indices.cpu().numpy()
        return without
    uniform = torch.from_numpy(np.stack([rng.random(n) for rng in rngs]))
    # float32 sums of a vocabulary's probabilities are off by more than the rarest tokens have; mps has no float64
    exact = log_probs.cpu() if log_probs.device.type == "mps" else log_probs
    cumulative = exact.double().exp_().cumsum_(dim=-1)
    uniform = uniform.to(cumulative.device) * cumulative[:, -1:]
    drawn: NDArray[np.int64] = torch.searchsorted(cumulative, uniform, right=True).cpu().numpy()
    return np.minimum(drawn, n_tokens - 1)


def kl_divergences(
    model: LanguageModel,
    generator: LanguageModel,
    contexts: Sequence[Sequence[int]],
) -> NDArray[np.float64]:
    r"""Exact Kullback-Leibler divergence of two models of one tokenizer, in the next token after every context.

    .. math:: \mathrm{KL}(q \,\|\, g) = \sum_y q(y \mid c) \ln \frac{q(y \mid c)}{g(y \mid c)}

    An importance-sampling estimate with draws from :math:`g` needs about :math:`\exp(\mathrm{KL})` of them
    (Chatterjee and Diaconis 2018).
    """
    if model.tokenizer_sha256 != generator.tokenizer_sha256 or model.vocab_size != generator.vocab_size:
        raise InputError(
            f"{model.name} and {generator.name} have different tokenizers: their tokens cannot be compared one by one",
            field="model",
        )
    per_block = max(1, (_BLOCK_MIB << 20) // (4 * model.vocab_size))
    divergences = np.zeros(len(contexts))
    for first in range(0, len(contexts), per_block):
        block = contexts[first : first + per_block]
        q, g = (
            next_token_distributions(either, block, whole=True)["logprob"].values.astype(np.float64)
            for either in (model, generator)
        )
        with np.errstate(invalid="ignore"):
            terms = np.where(np.isneginf(q), 0.0, np.exp(q) * (q - g))
        divergences[first : first + len(block)] = np.maximum(terms.sum(axis=1), 0)
    return divergences
