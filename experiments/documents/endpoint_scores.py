"""Scores of texts under a model behind an endpoint, in the form of those of language models that run here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.documents.scored import Scored, scores_of, units_of
from shannon_game.inference.api.calls import scoring_call
from shannon_game.inference.api.echo import TextTokens, text_tokens
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.api.stopping import ask_each
from shannon_game.inference.progress import stage


def score_at_endpoint(
    name: str, settings: ApiSettings, store: Path, texts: Sequence[str], *, boundaries: str = "script"
) -> Scored:
    """Score texts, one call each; what an endpoint does not tell, such as where words may end, is missing."""
    with stage(f"documents under {name}", announced=True) as show:
        calls = [scoring_call(settings, text) for text in texts]
        found, ledger = ask_each(calls, settings, store, partial(text_tokens, bos=settings.bos), progress=show)
    there = [(at, its) for at, its in enumerate(found) if isinstance(its, TextTokens) and its.token]
    if not there:
        raise InputError(f"have no token that {name} can score", source="study", field="text")
    lost = [its for its in found if not isinstance(its, TextTokens)]
    logprob, rank = ([np.array(getattr(its, what), dtype=float) for _, its in there] for what in ("logprob", "rank"))
    bos = next((its.bos for _, its in there if its.bos), "")
    # a first character in parts may hide what stands before one text, and not before the others
    places = [np.array([0 if bos else its.place[0], *its.place[1:]], dtype=np.int64) for _, its in there]
    contents = [texts[at].encode()[place[0] : place[-1]] for (at, _), place in zip(there, places, strict=True)]
    return Scored(
        document=np.array([at for at, _ in there], dtype=np.intp),
        scores=scores_of(logprob, rank, boundary=np.nan),
        places=places,
        units=np.array([units_of(content, boundaries) for content in contents]),
        bos=bos or "none",
        tokens=[its.token for _, its in there],
        notes=(f"{len(lost)} texts were left out, the first: {lost[0]}",) if lost else (),
        said=ledger.said(store),
    )
