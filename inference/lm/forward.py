"""One forward pass for many contexts: token trees, batches, and the states whose log-probabilities are reduced.

A state depends on the tokens before it alone. Contexts with a common beginning form a tree in one row, in which every
token attends to its ancestors only, at the position of its depth.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.language_model import LanguageModel
from shannon_game.inference.lm.rows import reduce_rows, run_batches, to_device

if TYPE_CHECKING:
    import torch

LARGEST_TREE = 1024
"""Most tokens of a tree that branches: attention within a row costs its square, beyond this more than sharing saves."""

log = logging.getLogger(__name__)

_TAKES_CACHE: WeakKeyDictionary[LanguageModel, bool] = WeakKeyDictionary()
# a pass costs as much as a 16th of its largest batch, whatever is in it: 32 tokens of SmolLM2 on a CPU
_PASSES_A_BATCH = 16


@dataclass(frozen=True, eq=False)
class TokenTree:
    """Sequences that begin alike, each token once."""

    tokens: NDArray[np.int64]
    # position of the token before; -1 for the first
    parents: NDArray[np.int64]

    @property
    def is_chain(self) -> bool:
        """Whether the tree is one sequence."""
        return bool((self.parents == np.arange(len(self.parents)) - 1).all())

    def depths(self) -> NDArray[np.int64]:
        """Number of tokens before each node."""
        depths = np.zeros(len(self.tokens), dtype=np.int64)
        for node in range(1, len(depths)):
            depths[node] = depths[self.parents[node]] + 1
        return depths

    def ancestors(self) -> NDArray[np.bool_]:
        """Which nodes (second axis) each node (first axis) attends to: itself and its ancestors."""
        seen = np.eye(len(self.tokens), dtype=np.bool_)
        for node in range(1, len(seen)):
            seen[node] |= seen[self.parents[node]]
        return seen


@dataclass(frozen=True, eq=False)
class TreePlace:
    """Where sequences lie in trees."""

    tree: NDArray[np.intp]
    # nodes of each sequence's tokens
    path: list[NDArray[np.intp]]


def with_bos(model: LanguageModel, sequences: Sequence[Sequence[int]], *, source: object = None) -> list[list[int]]:
    """Put the model's BOS token before every sequence."""
    start = [] if model.bos_id is None else [model.bos_id]
    full = [start + [int(token) for token in sequence] for sequence in sequences]
    for position, tokens in enumerate(full):
        if not tokens:
            raise InputError(
                f"context {position} has no token, and {model.name} has no BOS token to start from; set bos",
                source=source,
            )
        if len(tokens) > model.max_tokens:
            raise InputError(
                f"context {position} has {len(tokens)} tokens, {model.name} takes {model.max_tokens}; shorten it",
                source=source,
            )
        if min(tokens) < 0 or max(tokens) >= model.vocab_size:
            raise InputError(
                f"context {position} has token {max(tokens) if min(tokens) >= 0 else min(tokens)}, "
                f"{model.name} has 0 to {model.vocab_size - 1}",
                source=source,
            )
    return full


def plant_trees(
    sequences: Sequence[Sequence[int]], *, branching: bool, largest: int = LARGEST_TREE
) -> tuple[list[TokenTree], TreePlace]:
    """Lay sequences, none of which is empty, out in few tokens: sequences that have half in common form a tree."""
    trees: list[TokenTree] = []
    of_tree = np.zeros(len(sequences), dtype=np.intp)
    paths: list[NDArray[np.intp]] = [np.zeros(0, dtype=np.intp)] * len(sequences)
    tokens: list[int] = []
    parents: list[int] = []
    last: Sequence[int] = ()
    last_path: list[int] = []

    def close() -> None:
        trees.append(TokenTree(np.array(tokens, dtype=np.int64), np.array(parents, dtype=np.int64)))

    # in lexicographic order a prefix stands before what it begins, and neighbours have most in common
    for index in sorted(range(len(sequences)), key=lambda i: tuple(sequences[i])):
        sequence = sequences[index]
        shared = common_start(last, sequence)
        fits = len(tokens) + len(sequence) - shared <= largest
        joins = 2 * shared >= len(sequence) and fits if branching else shared == len(last)
        if not (last and joins):
            if tokens:
                close()
            tokens, parents, last_path, shared = [], [], [], 0
        path = last_path[:shared]
        for token in sequence[shared:]:
            parents.append(path[-1] if path else -1)
            path.append(len(tokens))
            tokens.append(int(token))
        last, last_path = sequence, path
        of_tree[index], paths[index] = len(trees), np.array(path, dtype=np.intp)
    if tokens:
        close()
    return trees, TreePlace(of_tree, paths)


def common_start(first: Sequence[int], second: Sequence[int]) -> int:
    """Count the tokens with which two sequences begin alike."""
    limit = min(len(first), len(second))
    for position in range(limit):
        if first[position] != second[position]:
            return position
    return limit


def reduce_log_probs(
    model: LanguageModel,
    trees: Sequence[TokenTree],
    wanted: Sequence[NDArray[np.intp]],
    reduce: Callable[[NDArray[np.intp], torch.Tensor], None],
    *,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Hand the next-token distributions at nodes of trees to `reduce`: row numbers, and nats of shape (row, token)."""
    import torch  # noqa: PLC0415 - importing this module does not need it

    first_row = np.concatenate([[0], np.cumsum([len(nodes) for nodes in wanted])]).astype(np.intp)
    # loading fills it in
    tokens_per_batch = model.settings.tokens_per_batch or LARGEST_TREE
    chains = np.array([tree.is_chain for tree in trees], dtype=np.bool_)
    with torch.inference_mode():
        sizes = np.array([len(tree.tokens) for tree in trees], dtype=np.intp)
        for kind, group in (("chains", np.flatnonzero(chains)), ("trees", np.flatnonzero(~chains))):

            def compute(batch: NDArray[np.intp], group: NDArray[np.intp] = group) -> torch.Tensor:
                return _states(model, trees, wanted, group[batch])

            lengths, one_more = sizes[group].tolist(), tokens_per_batch // _PASSES_A_BATCH
            for batch, state in run_batches(
                lengths, tokens_per_batch, compute, tokens_per_pass=one_more, of=(model, kind)
            ):
                rows = np.concatenate([np.arange(first_row[i], first_row[i + 1]) for i in group[batch]])
                reduce_rows(model, rows, state, reduce)
                del state
                if progress is not None:
                    progress(len(rows))


def reduce_last(
    model: LanguageModel,
    sequences: Sequence[Sequence[int]],
    reduce: Callable[[NDArray[np.intp], torch.Tensor], None],
    *,
    branching: bool = True,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Compute the next-token distribution after each of many sequences and hand it to a function, block by block."""
    if not sequences:
        return
    trees, place = plant_trees(sequences, branching=branching and model.tree_attention)
    order = np.argsort(place.tree, kind="stable")
    ends = np.array([path[-1] for path in place.path], dtype=np.intp)
    wanted = np.split(ends[order], np.cumsum(np.bincount(place.tree, minlength=len(trees)))[:-1])

    def by_sequence(rows: NDArray[np.intp], log_probs: torch.Tensor) -> None:
        reduce(order[rows], log_probs)

    reduce_log_probs(model, trees, wanted, by_sequence, progress=progress)


def query(
    model: LanguageModel,
    sequences: Sequence[Sequence[int]],
    asked: Sequence[Sequence[int]],
    sets: Sequence[NDArray[np.int64]] = (),
    *,
    best: NDArray[np.int64] | None = None,
    branching: bool = True,
    progress: Callable[[int], None] | None = None,
) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """Ln probabilities after each sequence: of the tokens asked for, and of sets of tokens, shape (sequence, set).

    `best` is filled with the most probable token after each sequence.
    """
    import torch  # noqa: PLC0415

    on_device = [torch.from_numpy(tokens).to(model.device) for tokens in sets]
    gathered = [np.zeros(len(tokens)) for tokens in asked]
    mass = np.full((len(sequences), len(sets)), -np.inf)

    def reduce(at: NDArray[np.intp], log_probs: torch.Tensor) -> None:
        if best is not None:
            best[at] = log_probs.argmax(dim=-1).cpu().numpy()
        for column, tokens in enumerate(on_device):
            if len(tokens):
                mass[at, column] = log_probs[:, tokens].logsumexp(dim=-1).cpu().numpy()
        sizes = [len(asked[i]) for i in at]
        if not sum(sizes):
            return
        row = torch.from_numpy(np.repeat(np.arange(len(at)), sizes)).to(log_probs.device)
        token = torch.tensor([token for i in at for token in asked[i]], device=log_probs.device)
        values = log_probs[row, token].cpu().numpy().astype(np.float64)
        for i, some in zip(at, np.split(values, np.cumsum(sizes)[:-1]), strict=True):
            gathered[i] = some

    reduce_last(model, sequences, reduce, branching=branching, progress=progress)
    return gathered, mass


def asked_log_probs(
    model: LanguageModel,
    asked: Mapping[tuple[int, ...], Iterable[int]],
    *,
    branching: bool = True,
    progress: Callable[[int], None] | None = None,
) -> tuple[dict[tuple[tuple[int, ...], int], float], dict[tuple[int, ...], int]]:
    """Log-probabilities of tokens after sequences, by both; and the most probable token after each sequence."""
    tokens_of = {sequence: sorted(tokens) for sequence, tokens in asked.items()}
    best = np.zeros(len(asked), dtype=np.int64)
    found, _ = query(model, [*asked], [*tokens_of.values()], best=best, branching=branching, progress=progress)
    pairs = [(sequence, token) for sequence, tokens in tokens_of.items() for token in tokens]
    logprob = dict(zip(pairs, (value for values in found for value in values.tolist()), strict=True))
    return logprob, dict(zip(asked, best.tolist(), strict=True))


def _states(
    model: LanguageModel, trees: Sequence[TokenTree], wanted: Sequence[NDArray[np.intp]], part: NDArray[np.intp]
) -> torch.Tensor:
    """Last hidden states (or logits, where the head cannot be split off) at the wanted nodes, shape (row, feature)."""
    longest = max(len(trees[index].tokens) for index in part)
    block = max(model.settings.tokens_per_batch or 0, LARGEST_TREE)
    # memory that grows with the square of the length, or with the vocabulary
    is_large = not model.split_head or model.module.config._attn_implementation == "eager"
    if is_large and len(part) == 1 and longest > block and trees[part[0]].is_chain and takes_cache(model):
        return _cached_states(model, trees[part[0]].tokens, wanted[part[0]], block)
    tokens = np.zeros((len(part), longest), dtype=np.int64)
    for row, index in enumerate(part):
        tokens[row, : len(trees[index].tokens)] = trees[index].tokens
    inputs = {"input_ids": to_device(model, tokens)}
    if not all(trees[index].is_chain for index in part):
        inputs |= _tree_inputs(model, [trees[index] for index in part], longest)
    # what comes after a sequence does not change its states, so that padding on the right needs no mask
    run = model.module.base_model if model.split_head else model.module
    output = run(**inputs, use_cache=False)
    states = output.last_hidden_state if model.split_head else output.logits
    at_row = to_device(model, np.repeat(np.arange(len(part)), [len(wanted[index]) for index in part]))
    at_node = to_device(model, np.concatenate([wanted[index] for index in part]).astype(np.int64))
    # of a model over several devices the states may be on another than the head
    chosen: torch.Tensor = states[at_row.to(states.device), at_node.to(states.device)]
    return chosen.to(model.device)


def _cached_states(
    model: LanguageModel, tokens: NDArray[np.int64], nodes: NDArray[np.intp], block: int
) -> torch.Tensor:
    """States at nodes of a long sequence, passed block by block: transformers' cache has what came before."""
    import torch  # noqa: PLC0415

    run: Any = model.module.base_model if model.split_head else model.module
    past, found = None, []
    for first in range(0, len(tokens), block):
        output = run(
            input_ids=to_device(model, tokens[None, first : first + block]), past_key_values=past, use_cache=True
        )
        past = output.past_key_values
        states = output.last_hidden_state if model.split_head else output.logits
        own = nodes[(nodes >= first) & (nodes < first + block)] - first
        found.append(states[0, torch.from_numpy(own).to(states.device)])
    return torch.cat(found).to(model.device)


def takes_cache(model: LanguageModel) -> bool:
    """Whether a sequence in two parts, the second after a cache of the first, has the states of the whole."""
    if model not in _TAKES_CACHE:
        tokens = np.arange(min(8, model.vocab_size, model.max_tokens))
        nodes = np.arange(len(tokens))
        try:
            whole, cut = (_cached_states(model, tokens, nodes, block).float() for block in (8, 5))
            off = float((whole - cut).abs().max()) / max(1.0, float(whole.abs().max()))
            _TAKES_CACHE[model] = off <= (1e-4 if model.settings.dtype == "float32" else 1e-2)
        except (RuntimeError, ValueError, TypeError, LookupError, AttributeError) as error:
            log.info("%s takes no cache: %s", model.name, error)
            _TAKES_CACHE[model] = False
    return _TAKES_CACHE[model]


def lay_out(trees: Sequence[TokenTree], longest: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Positions of the nodes of trees, and which nodes see which, padded on the right."""
    positions = np.zeros((len(trees), longest), dtype=np.int64)
    # padding attends to itself: a row of nothing but minus infinity has no softmax
    seen = np.repeat(np.eye(longest, dtype=np.bool_)[None], len(trees), axis=0)
    for row, tree in enumerate(trees):
        n_nodes = len(tree.tokens)
        positions[row, :n_nodes] = tree.depths()
        seen[row, :n_nodes, :n_nodes] = tree.ancestors()
    return positions, seen


def _tree_inputs(model: LanguageModel, trees: Sequence[TokenTree], longest: int) -> dict[str, torch.Tensor]:
    import torch  # noqa: PLC0415

    positions, seen = lay_out(trees, longest)
    dtype = model.module.dtype
    mask = torch.zeros(seen.shape, dtype=dtype).masked_fill_(torch.from_numpy(~seen), torch.finfo(dtype).min)
    return {
        "position_ids": torch.from_numpy(positions).to(model.device),
        "attention_mask": mask[:, None].to(model.device),
    }
