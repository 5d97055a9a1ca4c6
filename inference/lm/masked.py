r"""Pseudo-log-likelihood of texts under masked models: each token given those on both sides of it.

.. math:: \mathrm{PLL}(w) = \sum_t \ln q(w_t \mid w_{\setminus M_t})

where :math:`M_t` is masked: token t alone (Salazar et al. 2020), or t and what follows it in its word (Kauf and Ivanova
2023), so that a word of several tokens is not told by its own end. It is no log-probability of a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.inference.lm.alignment import character_places
from shannon_game.inference.lm.engine import EngineBase
from shannon_game.inference.lm.language_model import LanguageModel, model_record
from shannon_game.inference.lm.loading import load_checked
from shannon_game.inference.lm.probes import mean_difference
from shannon_game.inference.lm.rows import normalised, run_batches
from shannon_game.inference.lm.scored import Scored, Scoring, scores_of
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.lm.stored import Work, batches_by_tokens
from shannon_game.inference.store.keys import result_key
from shannon_game.inference.store.store import ragged

if TYPE_CHECKING:
    import torch

_LEAST_NATS = 1e-5


@dataclass(frozen=True, eq=False)
class MaskedModel:
    """A model that fills masks; it is no :class:`LanguageModel`, so that none is scored as the other."""

    model: LanguageModel
    mask_id: int


@dataclass(frozen=True, eq=False)
class MaskedText:
    """Tokens of a text with the special ones around it, and which are scored and masked."""

    tokens: tuple[int, ...]
    scored: tuple[int, ...]
    """Places of the text's own tokens."""
    last: tuple[int, ...]
    """The last token that is masked with each: itself, or the last of its word."""
    spans: tuple[tuple[int, int], ...]
    """Characters of each."""


class Masked(EngineBase):
    """A masked model as the engine of a question: its scores are pseudo-log-likelihoods."""

    extra = "lm"

    def __init__(self, name: str, settings: ModelSettings, *, within_word: bool = True) -> None:
        super().__init__(name, settings)
        self.masked, self.within_word = load_masked_model(settings, name), within_word

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides its numbers."""
        return self.masked.model.identity

    def record(self) -> dict[str, Any]:
        """Everything that should stand in an output."""
        return model_record(self.masked.model)

    def texts(self, texts: Sequence[str]) -> list[MaskedText]:
        """Tokens of texts, and what is masked with each."""
        return masked_texts(self.masked, texts, within_word=self.within_word)

    def encode(self, texts: Sequence[str]) -> list[list[str]]:
        """Strings of the tokens of texts."""
        strings = self.masked.model.tokenizer.convert_ids_to_tokens
        return [list(strings([item.tokens[place] for place in item.scored])) for item in self.texts(texts)]

    def score(self, texts: Sequence[str]) -> list[NDArray[np.float64]]:
        """Pseudo-log-likelihood of every token of texts."""
        return pseudo_log_likelihoods(self.masked, self.texts(texts))

    def scored(self, work: Work, texts: Sequence[str], how: Scoring) -> Scored:
        """Pseudo-log-likelihoods in the place of log-probabilities; no end of a word is counted."""
        self._check_limits(how)
        model, items = self.masked.model, self.texts(texts)

        def compute(batch: list[MaskedText]) -> dict[str, NDArray[Any]]:
            return {"pll_nats": ragged(pseudo_log_likelihoods(self.masked, batch))}

        keys = [result_key(item.tokens, item.scored, item.last) for item in items]

        def n_passed(item: MaskedText) -> int:
            return len(item.tokens) * len(item.scored)

        batches = batches_by_tokens(n_passed, work, model.settings.tokens_per_batch)
        found = self.kept(work, "documents", "pseudo_log_likelihood", items, compute, batches=batches, keys=keys)
        ends = [[0, *(stop for _, stop in item.spans)] for item in items]
        unknown = model.tokenizer.unk_token_id
        n_unknown = sum(item.tokens[place] == unknown for item in items for place in item.scored)
        note = f"{n_unknown} tokens are unknown to its tokenizer, and scored as {model.tokenizer.unk_token}"
        return Scored(
            document=np.arange(len(texts)),
            scores=scores_of([{"logprob": nats} for nats in found["pll_nats"]], boundary=0.0),
            places=[character_places(text)[its] for text, its in zip(texts, ends, strict=True)],
            units=np.zeros((len(texts), 3), dtype=np.int64),
            tokens=self.encode(texts),
            bos="",
            revision=model.revision or model.weights_sha256,
            notes=(note,) if n_unknown else (),
        )


def load_masked_model(settings: ModelSettings, name: str | None = None) -> MaskedModel:
    """Load a model that fills masks: one with a mask token, which reads what stands after it."""
    if settings.source not in ("hub", "folder"):
        source = f"model {name or settings.name!r}"
        raise InputError("fills no masks; use a masked model such as BERT", source=source)
    model = load_checked(settings, _reads_on, masked=True)
    return MaskedModel(model, int(model.tokenizer.mask_token_id))


def _reads_on(model: LanguageModel) -> LanguageModel:
    source = f"model {model.name!r}"
    mask = model.tokenizer.mask_token_id
    if mask is None:
        raise InputError("has no mask token; use a masked model such as BERT", source=source)
    one = np.random.default_rng(0).integers(model.vocab_size, size=6)
    other = [*one[:-1], (one[-1] + 1) % model.vocab_size]
    texts = [MaskedText(tuple(map(int, tokens)), (2,), (2,), ((0, 0),)) for tokens in (one, other)]
    rows = _rows(MaskedModel(model, int(mask)), [(text, 2, 2) for text in texts]).cpu().numpy()
    if not mean_difference(rows[:1], rows[1:]) > _LEAST_NATS:
        cure = f"use a masked model, such as BERT, or {Set('experiment.method', 'causal')}"
        problem = f"does not read what stands after a mask; {cure}"
        raise InputError(problem, source=source)
    return model


def masked_texts(masked: MaskedModel, texts: Sequence[str], *, within_word: bool) -> list[MaskedText]:
    """Tokenise texts, with the special tokens that the model was trained with."""
    encoded = masked.model.tokenizer(
        list(texts), return_offsets_mapping=True, return_special_tokens_mask=True, split_special_tokens=True
    )
    found = []
    for row, tokens in enumerate(encoded["input_ids"]):
        if len(tokens) > masked.model.max_tokens:
            problem = f"has {len(tokens)} tokens in text {row + 1}, {masked.model.name} takes {masked.model.max_tokens}"
            raise InputError(f"{problem}; score its sentences", field="text")
        scored = [place for place, special in enumerate(encoded["special_tokens_mask"][row]) if not special]
        words = encoded.word_ids(row)
        last = {words[place]: place for place in scored}
        spans = tuple(tuple(encoded["offset_mapping"][row][place]) for place in scored)
        ends = [last[words[place]] if within_word else place for place in scored]
        found.append(MaskedText(tuple(tokens), tuple(scored), tuple(ends), spans))
    return found


def pseudo_log_likelihoods(masked: MaskedModel, texts: Sequence[MaskedText]) -> list[NDArray[np.float64]]:
    """Ln of the probability of each scored token, with itself and what belongs to it masked."""
    import torch  # noqa: PLC0415 - importing this module does not need it

    tasks = [(text, at, last) for text in texts for at, last in zip(text.scored, text.last, strict=True)]
    found = np.full(len(tasks), np.nan)

    def compute(batch: NDArray[np.intp]) -> torch.Tensor:
        rows = _rows(masked, [tasks[i] for i in batch])
        own = torch.tensor([tasks[i][0].tokens[tasks[i][1]] for i in batch], device=rows.device)
        return rows.gather(1, own[:, None])[:, 0]

    budget = masked.model.settings.tokens_per_batch or 1
    lengths = [len(text.tokens) for text, _, _ in tasks]
    for batch, values in run_batches(lengths, budget, compute, of=(masked.model, "masked")):
        found[batch] = values.cpu().numpy()
    return np.split(found, np.cumsum([len(text.scored) for text in texts])[:-1])


def _rows(masked: MaskedModel, tasks: Sequence[tuple[MaskedText, int, int]]) -> torch.Tensor:
    """Log-probabilities of all tokens at one masked place of each text, shape (task, token)."""
    import torch  # noqa: PLC0415

    model, pad = masked.model, masked.model.tokenizer.pad_token_id
    longest = max(len(text.tokens) for text, _, _ in tasks)
    tokens = np.full((len(tasks), longest), 0 if pad is None else int(pad), dtype=np.int64)
    seen = np.zeros(tokens.shape, dtype=np.int64)
    for number, (text, first, last) in enumerate(tasks):
        tokens[number, : len(text.tokens)] = text.tokens
        tokens[number, first : last + 1] = masked.mask_id
        seen[number, : len(text.tokens)] = 1
    row = torch.arange(len(tasks), device=model.device)
    at = torch.tensor([first for _, first, _ in tasks], device=model.device)

    def only_masked(_: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        return (given[0][row, at], *given[1:]) if given[0].dim() == 3 else given

    # the output embedding is a vocabulary wide: it is taken at the masks alone
    hook = model.module.get_output_embeddings().register_forward_pre_hook(only_masked)
    try:
        with torch.inference_mode():
            inputs = {"input_ids": torch.from_numpy(tokens), "attention_mask": torch.from_numpy(seen)}
            logits = model.module(**{name: value.to(model.device) for name, value in inputs.items()}).logits
            # of a model that does not call it as a module
            return normalised(model, (logits[row, at] if logits.dim() == 3 else logits).float())
    finally:
        hook.remove()
