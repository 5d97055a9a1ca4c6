"""Scores of tokens, of whole documents or the last ones of windows: log-probability, rank, entropy, best tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.forward import TokenTree, reduce_log_probs, with_bos
from shannon_game.inference.lm.language_model import LanguageModel, model_record
from shannon_game.inference.lm.rows import TokenScores, to_device
from shannon_game.inference.lm.vocabulary import vocabulary

if TYPE_CHECKING:
    import torch


def score_documents(
    model: LanguageModel,
    documents: Sequence[Sequence[int]],
    *,
    window: int | None = None,
    stride: int | None = None,
    boundaries: bool = False,
) -> Dataset:
    r"""Score every token of documents once, each given the tokens before it.

    Without a BOS token the first token of a document has no score and is left out. A document of up to ``window``
    tokens (BOS included) is scored in one pass. In a longer one, windows begin every ``stride`` tokens, and a token is
    scored in the first window that holds it; later windows begin in the middle of the text, without a BOS token.

    ==================  =======  ===========================================================
    variable            dims     meaning
    ==================  =======  ===========================================================
    ``document_index``  token    position of the token's document in ``documents``
    ``position``        token    position of the token in its document, from 0
    ``token_id``        token    its id
    ``n_context``       token    tokens that it was scored given, BOS included
    ``logprob``         token    :math:`\ln q(y_t \mid y_{<t})`, nats
    ``rank``            token    1 + number of tokens more probable: ties share the best rank
    ``entropy_nats``    token    of the distribution that it was scored under
    ``best_token``      token    the most probable token
    ==================  =======  ===========================================================

    Parameters
    ----------
    documents : sequence of sequence of int
        Tokens of each document, without BOS.
    window : int, optional
        Tokens that the model sees at once; the longest it takes by default.
    stride : int, optional
        Half a window by default.
    boundaries : bool
        Add ``boundary_logprob`` (token), ln of the probability that a word ends before the token, and
        ``last_boundary_logprob`` (document), that one ends after the last: of tokens that begin with whitespace, and of
        the text's end.

    Returns
    -------
    xarray.Dataset
        ``attrs`` hold ``model`` (:func:`model_record` as JSON), ``window``, ``stride``.

    Examples
    --------
    >>> from shannon_game.inference import lm
    >>> model = lm.load_language_model(lm.ModelSettings(name="tiny", source="folder", path="tiny"))
    >>> contexts = lm.encode(model, ["The old clock", "Rain fell"])
    >>> lm.score_documents(model, contexts).sizes["token"] == sum(map(len, contexts))
    True
    """
    window, stride = _window(model, documents, window, stride)
    trees: list[TokenTree] = []
    wanted: list[NDArray[np.intp]] = []
    pieces: dict[str, list[NDArray[np.int64]]] = {
        name: [np.zeros(0, dtype=np.int64)] for name in ("document_index", "position", "token", "n_context")
    }
    start = [] if model.bos_id is None else [model.bos_id]
    for index, document in enumerate(documents):
        tokens = np.array([*start, *document], dtype=np.int64)
        if len(tokens) and not 0 <= tokens.min() <= tokens.max() < model.vocab_size:
            wrong = tokens[(tokens < 0) | (tokens >= model.vocab_size)][0]
            raise InputError(f"document {index} has token {wrong}; {model.name} has 0 to {model.vocab_size - 1}")
        for first, scored_from, stop in _windows(len(tokens), window, stride):
            # the word that a text ends with has a boundary after it, and no token
            beyond = int(boundaries and stop == len(tokens))
            seen = np.concatenate([tokens[first:stop], np.zeros(beyond, dtype=np.int64)])
            # the token at node i is scored by the distribution at node i - 1
            nodes = np.arange(scored_from - first - 1, len(seen) - 1)
            trees.append(TokenTree(seen[:-1], np.arange(len(seen) - 1) - 1))
            wanted.append(nodes.astype(np.intp))
            pieces["document_index"].append(np.full(len(nodes), index))
            pieces["position"].append(nodes + 1 + first - len(start))
            pieces["token"].append(seen[nodes + 1])
            pieces["n_context"].append(nodes + 1)
    columns = {name: np.concatenate(parts) for name, parts in pieces.items()}
    scores = TokenScores(model, columns["token"])
    ends = to_device(model, vocabulary(model).word_ends if boundaries else np.zeros(0, dtype=np.int64))

    def best_of(log_probs: torch.Tensor) -> torch.Tensor:
        # torch.argmax takes twice as long on a CPU
        return log_probs.max(dim=-1).indices

    def ended(log_probs: torch.Tensor) -> torch.Tensor:
        # log_probs[:, ends] takes longer
        return log_probs.index_select(1, ends).logsumexp(dim=-1)

    def reduce(rows: NDArray[np.intp], log_probs: torch.Tensor) -> None:
        scores.take(rows, log_probs, best_of, *[ended] * boundaries)

    reduce_log_probs(model, trees, wanted, reduce)
    logprob, rank, entropy, best, *more = scores.found(1 + boundaries)
    nats = {"units": "nats"}
    import xarray as xr  # noqa: PLC0415 - half a second that only results should cost

    found = xr.Dataset(
        {
            **{name: ("token", values) for name, values in columns.items() if name != "token"},
            "token_id": ("token", columns["token"]),
            "logprob": ("token", logprob, nats),
            "rank": ("token", rank.astype(np.int64)),
            "entropy_nats": ("token", entropy, nats),
            "best_token": ("token", best.astype(np.int64)),
        },
        attrs={"model": json.dumps(model_record(model), sort_keys=True), "window": window, "stride": stride},
    )
    if not boundaries:
        return found
    boundary = more[0].astype(np.float64)
    found["boundary_logprob"] = "token", boundary, nats
    length = np.array([len(document) for document in documents])
    beyond = columns["position"] == length[columns["document_index"]]
    last = np.full(len(documents), np.nan)
    last[columns["document_index"][beyond]] = boundary[beyond]
    return found.isel(token=~beyond).assign(last_boundary_logprob=("document", last, nats))


def _window(
    model: LanguageModel, documents: Sequence[Sequence[int]], window: int | None, stride: int | None
) -> tuple[int, int]:
    longest = max((len(document) for document in documents), default=0) + (model.bos_id is not None)
    # of models without a longest sequence the whole document is one window
    window = min(model.max_tokens, max(longest, 2)) if window is None else window
    if not 2 <= window <= model.max_tokens:
        raise InputError(f"is {window}; {model.name} takes 2 to {model.max_tokens} tokens", field="window")
    stride = max(1, window // 2) if stride is None else stride
    if not 1 <= stride < window:
        raise InputError(f"is {stride}; with a window of {window} it is 1 to {window - 1}", field="stride")
    return window, stride


def _windows(n_tokens: int, window: int, stride: int) -> list[tuple[int, int, int]]:
    """First token, first token scored, and end of every window."""
    windows = []
    scored = 1
    first = 0
    while scored < n_tokens:
        stop = min(first + window, n_tokens)
        windows.append((first, scored, stop))
        scored = stop
        first += stride
    return windows


def score_windows(
    model: LanguageModel,
    windows: Sequence[Sequence[int]],
    *,
    context_length: int,
    sliding: bool,
    top_k: int = 20,
    temperatures: Sequence[float] = (),
) -> Dataset:
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
    scores = TokenScores(model, reference.ravel())
    top_logprob = np.full((*shape, top_k), np.nan, dtype=np.float32)
    top_token = np.zeros((*shape, top_k), dtype=np.int64)
    tempered = np.full((*shape, len(temperatures)), np.nan, dtype=np.float32)

    def reduce(rows: NDArray[np.intp], log_probs: torch.Tensor) -> None:
        scores.take(rows, log_probs)
        at = scores.at(rows)
        best = torch.topk(log_probs, top_k, dim=-1)
        top_logprob[rows], top_token[rows] = best.values.cpu().numpy(), best.indices.cpu().numpy()
        for column, temperature in enumerate(temperatures):
            scaled = torch.log_softmax(log_probs / temperature, dim=-1).gather(1, at)
            tempered[rows, column] = scaled[:, 0].cpu().numpy()

    reduce_log_probs(model, trees, wanted, reduce)
    logprob, rank, entropy = scores.found()
    grid = (len(windows), n_scored)
    nats = {"units": "nats"}
    import xarray as xr  # noqa: PLC0415 - half a second that only results should cost

    return xr.Dataset(
        {
            "logprob": (("window", "position"), logprob.reshape(grid), nats),
            "rank": (("window", "position"), rank.astype(np.int64).reshape(grid)),
            "entropy_nats": (("window", "position"), entropy.reshape(grid), nats),
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
