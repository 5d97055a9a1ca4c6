"""Pseudo-log-likelihood of words, regions and texts under masked models: ``experiment.method=pll``.

No column has the name of one of causal models, so that the two are never mixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from shannon_game.estimators.word_spans import word_spans
from shannon_game.experiments.documents.words import REVISION_SHOWN, region_table
from shannon_game.experiments.harness.language_models import Work, batches_by_tokens
from shannon_game.inference.lm.language_model import model_record
from shannon_game.inference.lm.masked import (
    MaskedModel,
    MaskedText,
    load_masked_model,
    masked_texts,
    pseudo_log_likelihoods,
)
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.store.keys import operation_key, result_key
from shannon_game.inference.store.store import ragged

TABLE_COLUMNS = ("model", "method", "n_documents", "n_words", "n_tokens", "pll_nats", "pseudo_perplexity", "revision")
"""A row per model: ``pll_nats`` is the sum over all texts, ``pseudo_perplexity`` exp of minus its mean over tokens."""
_SUMS = ("pll_nats",)


def pseudo_tables(
    work: Work,
    models: Mapping[str, ModelSettings],
    documents: NDArray[Any],
    texts: Sequence[str],
    *,
    method: str,
    boundaries: str,
    regions: pd.DataFrame | None,
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame], list[str]]:
    """The table of models, tables of words, tokens, documents and regions, and warnings."""
    rows, parts, warnings = [], dict[str, list[pd.DataFrame]](words=[], tokens=[], documents=[]), []
    for name, settings in models.items():
        masked = load_masked_model(settings)
        items = masked_texts(masked, texts, within_word=method == "pll")
        scores = _scores(work, masked, items, method)
        unknown = masked.model.tokenizer.unk_token_id
        n_unknown = sum(item.tokens[place] == unknown for item in items for place in item.scored)
        if n_unknown:
            token = masked.model.tokenizer.unk_token
            warnings.append(f"{name}: {n_unknown} tokens are unknown to its tokenizer, and scored as {token}")
        shown = {"model": name, "revision": _revision(masked)[:REVISION_SHOWN]}
        words, tokens = [], []
        for document, text, item, nats in zip(documents, texts, items, scores, strict=True):
            own, pieces = _of_text(masked, text, item, nats, boundaries)
            words.append(own.assign(document=document))
            tokens.append(pieces.assign(document=document))
        whole = pd.DataFrame({"document": documents, "pll_nats": [float(nats.sum()) for nats in scores]})
        whole["n_tokens"] = [len(nats) for nats in scores]
        for what, its in (("words", pd.concat(words)), ("tokens", pd.concat(tokens)), ("documents", whole)):
            parts[what].append(_columns(its.assign(**shown)))
        total, n_tokens = float(whole["pll_nats"].sum()), int(whole["n_tokens"].sum())
        row: dict[str, Any] = {"model": name, "method": method, "n_documents": len(texts), "n_tokens": n_tokens}
        row |= {"n_words": len(parts["words"][-1]), "pll_nats": total, "revision": _revision(masked)}
        rows.append({**row, "pseudo_perplexity": float(np.exp(-total / n_tokens))})
    tables = {what: pd.concat(its, ignore_index=True) for what, its in parts.items()}
    if regions is not None:
        tables["regions"] = _columns(region_table(tables["words"], regions, sums=_SUMS))
    return pd.DataFrame(rows)[list(TABLE_COLUMNS)], tables, warnings


def _scores(work: Work, masked: MaskedModel, items: list[MaskedText], method: str) -> list[NDArray[np.float64]]:
    def compute(batch: list[MaskedText]) -> dict[str, NDArray[Any]]:
        return {"pll_nats": ragged(pseudo_log_likelihoods(masked, batch))}

    operation = operation_key("pseudo_log_likelihood", model=masked.model.identity, parameters={}, compute=compute)
    found = work.compute(
        f"documents under {masked.model.name} ({method})",
        operation,
        items,
        [result_key(item.tokens, item.scored, item.last) for item in items],
        compute,
        batches=batches_by_tokens(
            lambda item: len(item.tokens) * len(item.scored), work, masked.model.settings.tokens_per_batch
        ),
        provenance=model_record(masked.model),
    )
    return list(found["pll_nats"])


def _of_text(
    masked: MaskedModel, text: str, item: MaskedText, nats: NDArray[np.float64], boundaries: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Words and tokens of a text; a word that a token shares with its neighbour has no sum."""
    words = word_spans(text, boundaries=boundaries)
    stops = np.array([word.stop for word in words])
    owner, is_whole = np.zeros(len(item.spans), dtype=int), np.zeros(len(item.spans), dtype=bool)
    for at, (start, stop) in enumerate(item.spans):
        first = start + len(text[start:stop]) - len(text[start:stop].lstrip())
        # a token of white space alone is of the word after it
        owner[at] = min(int(np.searchsorted(stops, first, "right")), len(words) - 1)
        is_whole[at] = stop <= stops[owner[at]]
    n = np.bincount(owner, minlength=len(words))
    total = np.bincount(owner, weights=nats, minlength=len(words))
    is_bad = n == 0
    for at in np.flatnonzero(~is_whole).tolist():
        is_bad[owner[at] : int(np.searchsorted(stops, item.spans[at][1], "left")) + 1] = True
    found = pd.DataFrame({"word_num": np.arange(1, len(words) + 1), "pll_nats": np.where(is_bad, np.nan, total)})
    found = found.assign(start=[word.start for word in words], stop=stops, n_tokens=n)
    found["word"] = [text[word.start : word.stop] for word in words]
    own = [item.tokens[place] for place in item.scored]
    starts, ends = np.array(item.spans).reshape(-1, 2).T
    tokens = pd.DataFrame({"token_num": np.arange(1, len(own) + 1), "start": starts, "stop": ends})
    return found, tokens.assign(token=masked.model.tokenizer.convert_ids_to_tokens(own), pll_nats=nats)


def _columns(table: pd.DataFrame) -> pd.DataFrame:
    """Bits beside nats, and the columns in the order of those of causal models."""
    first = ("document", "model", "word_num", "token_num", "region_num", "start", "stop", "word", "token", "region")
    order = (*first, "pll_bits", "pll_nats", "n_words", "n_tokens", "revision")
    table = table.assign(pll_bits=table["pll_nats"] / np.log(2))
    return table[[name for name in order if name in table]]


def _revision(masked: MaskedModel) -> str:
    return masked.model.revision or masked.model.weights_sha256
