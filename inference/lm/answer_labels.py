r"""People's next words as training labels, in trees in which contexts and words share their beginning.

With :math:`p(w \mid c)` the label of word :math:`w` and :math:`s(w)` its tokens, the loss of :math:`C` contexts is

.. math:: -\frac{1}{C} \sum_c \sum_w p(w \mid c) \sum_t \ln q(s_t(w) \mid c, s_{<t}(w))

Labels are ``majority`` (the most frequent word), ``sampled`` (one person's answer, at random), ``soft`` (the shares of
people) or ``multi`` (every word that anybody gave, each as much as any other).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.inference.lm.forward import lay_out, plant_trees

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

LABELS = ("majority", "sampled", "soft", "multi")
"""What a context's label is."""

TRAINABLE = ("all", "last_blocks", "last_norms")
"""Which parameters train: all; those of the last blocks and the last norm; their layer norms alone (appendix F)."""

# a batch is one tree as far as its sequences begin alike
_NO_LIMIT = 1 << 30


@dataclass(frozen=True)
class LabelledContext:
    """Tokens of a context with BOS, of the words that may follow it with their space, and shares that sum to 1."""

    tokens: tuple[int, ...]
    words: tuple[tuple[int, ...], ...]
    shares: tuple[float, ...]


def label_shares(counts: Mapping[str, float], labels: str, rng: np.random.Generator) -> dict[str, float]:
    """Turn people's answers in a context into a label."""
    if labels not in LABELS:
        raise unknown_choice("labels", labels, LABELS)
    if not counts or min(counts.values()) <= 0:
        raise InputError(f"are {dict(counts)}, should be one word or more, each given by somebody", field="counts")
    words = sorted(counts)
    weights = np.array([counts[word] for word in words], dtype=np.float64)
    shares = weights / weights.sum()
    if labels == "majority":
        return {words[int(shares.argmax())]: 1.0}
    if labels == "sampled":
        return {words[int(rng.choice(len(words), p=shares))]: 1.0}
    if labels == "multi":
        return dict.fromkeys(words, 1 / len(words))
    return dict(zip(words, shares.tolist(), strict=True))


def collate_answers(groups: Sequence[Sequence[LabelledContext]]) -> dict[str, Any]:
    """Lay contexts and their words out in trees, as a module takes them."""
    import torch  # noqa: PLC0415

    contexts = [context for group in groups for context in group]
    # the last token of a word is asked for, and nothing after it
    sequences = [(*context.tokens, *word[:-1]) for context in contexts for word in context.words]
    trees, place = plant_trees(sequences, branching=True, largest=_NO_LIMIT)
    at: dict[tuple[int, int, int], float] = {}
    row = 0
    for context in contexts:
        for word, share in zip(context.words, context.shares, strict=True):
            path = place.path[row]
            for shift, token in enumerate(word):
                # words that begin alike ask for the same token at the same node
                key = (int(place.tree[row]), int(path[len(context.tokens) - 1 + shift]), token)
                at[key] = at.get(key, 0.0) + share / len(contexts)
            row += 1
    keys = np.array(list(at), dtype=np.int64)
    longest = max(len(tree.tokens) for tree in trees)
    tokens = np.zeros((len(trees), longest), dtype=np.int64)
    for number, tree in enumerate(trees):
        tokens[number, : len(tree.tokens)] = tree.tokens
    positions, seen = lay_out(trees, longest)
    # a number that bfloat16 has too
    mask = np.where(seen, np.float32(0), np.float32(-1e30))
    return {
        "input_ids": torch.from_numpy(tokens),
        "position_ids": torch.from_numpy(positions),
        "attention_mask": torch.from_numpy(mask[:, None]),
        "labels": {
            "place": torch.from_numpy(keys[:, :2].copy()),
            "token": torch.from_numpy(keys[:, 2].copy()),
            "weight": torch.tensor(list(at.values()), dtype=torch.float32),
        },
    }


def answer_loss(logits: torch.Tensor, labels: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Cross-entropy between labels and the model, a context, nats (the equation at the top of the module)."""
    tree, node = labels["place"].unbind(dim=1)
    rows = logits[tree, node].log_softmax(dim=-1)
    chosen = rows.gather(1, labels["token"][:, None])[:, 0]
    return -(chosen * labels["weight"]).sum()


def set_trainable(module: PreTrainedModel, trainable: str, *, n_last_blocks: int = 2) -> int:
    """Let some parameters train and hold the others."""
    import torch  # noqa: PLC0415

    if trainable not in TRAINABLE:
        raise unknown_choice("trainable", trainable, TRAINABLE)
    module.requires_grad_(requires_grad=trainable == "all")
    if trainable != "all":
        n_layers = int(module.config.num_hidden_layers)
        base = module.base_model
        lists = [child for child in base.modules() if isinstance(child, torch.nn.ModuleList)]
        stacks = [blocks for blocks in lists if len(blocks) == n_layers]
        if len(stacks) != 1 or n_last_blocks > n_layers:
            raise InputError(f"is {n_last_blocks}; the module has {n_layers} blocks", field="n_last_blocks")
        norms = [child for name, child in base.named_children() if _is_norm(name, child)]
        for part in [*stacks[0][n_layers - n_last_blocks :], *norms]:
            for name, inner in part.named_modules():
                if trainable == "last_blocks" or _is_norm(name, inner):
                    inner.requires_grad_(requires_grad=True)
            if part in norms:
                part.requires_grad_(requires_grad=True)
    return sum(each.numel() for each in module.parameters() if each.requires_grad)


def _is_norm(name: str, module: Any) -> bool:
    """Whether a part is a layer norm: families have classes of their own, and call them ln_f, norm, input_layernorm."""
    kind = type(module).__name__.lower()
    return "norm" in kind or "norm" in name.rpartition(".")[2].lower()
