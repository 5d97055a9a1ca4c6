"""How far two language models with one vocabulary are apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.language_model import LanguageModel
from shannon_game.inference.lm.next_token import next_token_distributions

# MiB of one model's distributions that are held at a time
_BLOCK_MIB = 256


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
