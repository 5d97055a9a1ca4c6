"""Pseudo-log-likelihood of words, regions and texts under masked models: ``experiment.method=pll``.

No column has the name of one of causal models, so that the two are never mixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from shannon_game.experiments.documents.words import REVISION_SHOWN, region_table, word_tables
from shannon_game.experiments.harness import rows as column
from shannon_game.inference.lm.masked import Masked
from shannon_game.inference.lm.scored import Scoring
from shannon_game.inference.lm.stored import Work


class PseudoRow(column.Row):
    """One model."""

    model: str = column.key("model", players=True)
    method: str = column.setting("what is masked", setting="experiment.method")
    n_documents: int = column.context("texts")
    n_words: int = column.context("words")
    n_tokens: int = column.context("tokens")
    pll_nats: float = column.headline("pseudo-log-likelihood of all texts", unit="nats")
    pseudo_perplexity: float = column.estimate("exp of minus its mean over tokens", scale="log")
    revision: str = column.detail("revision of the model")


def pseudo_tables(
    work: Work,
    models: Mapping[str, Any],
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
        engine = Masked(name, settings, within_word=method == "pll")
        scored = engine.scored(work, texts, Scoring(documents.tolist(), boundaries))
        scores = list(scored.scores["logprob"])
        warnings += [f"{name}: {note}" for note in scored.notes]
        made = list(word_tables({name: scored}, documents, texts, boundaries))
        words, tokens = (pd.concat([its[what] for its in made], ignore_index=True) for what in ("words", "tokens"))
        tokens = tokens.assign(start=[start for item in engine.texts(texts) for start, _ in item.spans])
        whole = pd.DataFrame({"document": documents, "pll_nats": [float(nats.sum()) for nats in scores]})
        whole = whole.assign(model=name, n_tokens=list(map(len, scores)), revision=scored.revision[:REVISION_SHOWN])
        for what, its in (("words", words), ("tokens", tokens)):
            parts[what].append(_columns(its.assign(pll_nats=-its["surprisal_nats"])))
        parts["documents"].append(_columns(whole))
        total, n_tokens = float(whole["pll_nats"].sum()), int(whole["n_tokens"].sum())
        row: dict[str, Any] = {"model": name, "method": method, "n_documents": len(texts), "n_tokens": n_tokens}
        row |= {"n_words": len(parts["words"][-1]), "pll_nats": total, "revision": scored.revision}
        rows.append({**row, "pseudo_perplexity": float(np.exp(-total / n_tokens))})
    tables = {what: pd.concat(its, ignore_index=True) for what, its in parts.items()}
    if regions is not None:
        by_name = dict(zip(documents, texts, strict=True))
        found = region_table(tables["words"], tables["tokens"], regions, by_name, "pll_nats")
        tables["regions"] = _columns(found.assign(pll_nats=found["tokens_sum"]))
    return PseudoRow.table(rows), tables, warnings


def _columns(table: pd.DataFrame) -> pd.DataFrame:
    """Bits beside nats, and the columns in the order of those of causal models."""
    first = ("document", "model", "word_num", "token_num", "region_num", "start", "stop", "word", "token", "region")
    order = (*first, "pll_bits", "pll_nats", "n_words", "n_tokens", "revision")
    table = table.assign(pll_bits=table["pll_nats"] / np.log(2))
    return table[[name for name in order if name in table]]
