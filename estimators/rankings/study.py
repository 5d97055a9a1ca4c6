"""The ranking study: one ``xarray.Dataset``, one validator, and the scores of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from shannon_game.estimators.arrays import BoolArray, Dataset, FloatArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.rankings.perplexity import Censoring, reference_log_probability
from shannon_game.estimators.rankings.ranks import Match, Tie, match_tokens, rank_at, ranks_among
from shannon_game.estimators.rankings.scores import DECAYS, exponential_score, linear_score, reciprocal_score
from shannon_game.estimators.schema import Range, Schema, Variable, optional, refuse

_KEY = ("model", "text", "context_length", "window", "position")
# APIs round log-probabilities, and float32 softmax can round a probability to a hair above one
_SLACK_NATS = 1e-5
_LOGPROB = Range("a log-probability, at most 0", highest=_SLACK_NATS, infinite=True, unit="nats")
_RANK = Range("1 or more", lowest=1, infinite=True)

RANKINGS = Schema(
    kind="ranking",
    cure="ranking_study(df) makes one of tables (from shannon_game import ranking_study)",
    variables=(
        Variable("model", "token", "str", "name of the language model", filled=True),
        Variable("text", "token", "str", "name of the text", filled=True),
        Variable("context_length", "token", "int", "tokens that the model saw", range=Range("1 or more", lowest=1)),
        Variable("window", "token", "str", "run of consecutive tokens, of one name for all models", filled=True),
        Variable("position", "token", "int", "place in the window, from 0", range=Range("0 or more", lowest=0)),
        Variable("reference_token", "token", "str", "the token of the text, with its white space", filled=True),
        Variable("ranked_token", "token, rank", "str", "the most probable tokens; None after the last", gaps=True),
        Variable("ranked_logprob", "token, rank", "float", "their ln p, falling; NaN after the last", unit="nats"),
        optional("generated_token", "token", "str", 'the token that was sampled there; "" for none'),
        optional("reference_id", "token", "int", "id of the reference token"),
        optional("ranked_id", "token, rank", "int", "ids of the ranked tokens; -1 after the last"),
        optional("reference_logprob", "token", "float", "ln p of the reference token", range=_LOGPROB),
        optional("reference_rank", "token", "float", "its rank in the whole vocabulary; halves for ties", range=_RANK),
    ),
    ordered=("rank",),
)
"""Variables of a ranking study."""


@RANKINGS.documented
def validate_ranking_study(study: Dataset) -> Dataset:
    """Check a ranking study, and return it read by its labels: cut or reordered, it is what it says.

    Dimensions are ``token`` (one reference token scored by one model, in long form) and ``rank`` (the model's most
    probable tokens, the best first; a position, so that rank 1 is at 0).

    {variables}

    Other variables are left alone.

    Examples
    --------
    >>> rankings.validate_ranking_study(rankings.examples.ranking_study()).sizes["token"]
    120
    """
    study, source = RANKINGS.check(study)
    seen: dict[tuple[Any, ...], int] = {}
    for row, key in enumerate(zip(*(study[name].values.tolist() for name in _KEY), strict=True)):
        if seen.setdefault(key, row) != row:
            where = ", ".join(f"{name} {value}" for name, value in zip(_KEY, key, strict=True))
            problem = f"tokens {seen[key]} and {row} are the same place ({where}); repeated scorings need a window each"
            raise InputError(problem, source=source, field="position")
    _check_lists(study, source)
    return study


def _check_lists(study: Dataset, source: str) -> None:
    logprob, token = study["ranked_logprob"].values, study["ranked_token"].values
    absent = np.isnan(logprob)
    wrong = absent[:, :1] | (absent[:, :-1] & ~absent[:, 1:]).any(axis=1, keepdims=True)
    rising = np.zeros_like(absent)
    rising[:, 1:] = logprob[:, 1:] > logprob[:, :-1] + _SLACK_NATS
    for bad, right in (
        (np.broadcast_to(wrong, absent.shape), "NaN may stand after the last ranked token only"),
        (logprob > _SLACK_NATS, "should be a log-probability (nats, at most 0)"),
        (np.isneginf(logprob), "is no log-probability of a token that was ranked"),
        (rising, "is above the one before it; the most probable token comes first"),
    ):
        refuse(study, source, "ranked_logprob", ~bad, right)
    is_text = np.array([isinstance(value, str) for value in token.ravel().tolist()]).reshape(token.shape)
    if (is_text == absent).any():
        row, rank = (int(at) for at in np.argwhere(is_text == absent)[0])
        where = f"is {token[row, rank]!r} at token {row}, rank {rank} with log-probability {logprob[row, rank]}"
        problem = f"{where}; a string goes with every log-probability, None with NaN"
        raise InputError(problem, source=source, field="ranked_token")


@dataclass(frozen=True, eq=False, repr=False)
class TokenScores(Result):
    """Scores of every token of a study.

    Attributes
    ----------
    rank : ndarray, shape (token,)
        From 1; ``inf`` where the reference token is not among the `k` ranked ones.
    exponential : ndarray, shape (decay, token)
    logprob_nats : ndarray, shape (token,)
        Under the censoring policy.
    censored : ndarray of bool, shape (token,)
        Not among the ranked tokens, so that `logprob_nats` is the policy's and not the model's.
    """

    rank: FloatArray
    linear: FloatArray
    reciprocal: FloatArray
    exponential: FloatArray
    average: FloatArray
    logprob_nats: FloatArray
    censored: BoolArray
    k: int


def match_in_study(study: Dataset, match: Match | str = "stripped") -> BoolArray:
    """Say where every reference token is in its ranking, (token, rank)."""
    study = RANKINGS.read(study)
    if match == "id":
        for name in ("reference_id", "ranked_id"):
            if name not in study:
                raise InputError(f"is 'id', but the study has no {name}; use exact or stripped", field="match")
        return match_tokens(study["reference_id"].values, study["ranked_id"].values, match="id")
    return match_tokens(study["reference_token"].values, study["ranked_token"].values, match=match)


def score_study(
    study: Dataset,
    *,
    match: Match | str = "stripped",
    tie: Tie | str = "listed",
    top_k: int | None = None,
    decays: Sequence[float] = DECAYS,
    whole_vocabulary: bool = False,
    censoring: Censoring | str = "below_last",
    offset_nats: float = 3.0,
    vocab_size: int | None = None,
) -> TokenScores:
    """Score every token of a ranking study; the defaults are the thesis's.

    Parameters
    ----------
    match, tie
        See :func:`match_tokens` and :func:`ranks_among`. Neither is used with `whole_vocabulary`.
    top_k : int, optional
        Look at the `top_k` best tokens only, and take it for the `k` of the linear score; by default all that are
        listed.
    whole_vocabulary : bool
        Take the ranks from ``reference_rank``, limited to `top_k`, which must then be given.
    censoring, offset_nats, vocab_size
        See :func:`reference_log_probability`; "exact" takes ``reference_logprob``.

    Examples
    --------
    >>> found = rankings.score_study(rankings.examples.ranking_study())
    >>> found.rank[:4], found.average[:4].round(3)
    (array([ 3., inf,  1.,  1.]), array([0.509, 0.   , 1.   , 1.   ]))
    """
    study = RANKINGS.read(study)
    listed = int(study.sizes["rank"])
    if whole_vocabulary:
        if "reference_rank" not in study or top_k is None:
            raise InputError("needs reference_rank in the study, and top_k", field="whole_vocabulary")
        k = top_k
        rank = rank_at(study["reference_rank"].values, k)
    else:
        k = listed if top_k is None else top_k
        if k > listed:
            raise InputError(f"is {k}, but the study lists {listed} tokens", field="top_k")
    exact = study["reference_logprob"].values if "reference_logprob" in study else None
    if censoring == "exact" and exact is None:
        raise InputError("is 'exact', but the study has no reference_logprob", field="censoring")
    kept = min(k, listed)
    hit = match_in_study(study, match)[:, :kept]
    logprob = np.minimum(study["ranked_logprob"].values[:, :kept].astype(float), 0.0)
    if not whole_vocabulary:
        rank = rank_at(ranks_among(hit, logprob, tie=tie), k)
    unlisted = ~np.asarray(hit.any(axis=1), dtype=bool)
    scores = [linear_score(rank, k), reciprocal_score(rank), *(exponential_score(rank, a) for a in decays)]
    return TokenScores(
        rank=rank,
        linear=scores[0],
        reciprocal=scores[1],
        exponential=np.asarray(scores[2:]),
        average=np.mean(scores, axis=0),
        logprob_nats=reference_log_probability(
            logprob,
            hit,
            censoring=censoring,
            offset_nats=offset_nats,
            vocab_size=vocab_size,
            exact=None if exact is None else np.minimum(exact, 0.0),
        ),
        censored=unlisted & (censoring != "exact"),
        k=int(k),
    )


def conditioned_on_other_text(study: Dataset, match: Match | str = "stripped") -> BoolArray:
    """Tokens, (token,), whose ranking was, or may have been, made after another text than the reference.

    A run that asks for several tokens at once goes on with the same completion while the TOP-RANKED token is the
    reference; where the SAMPLED token was another one, all that follows in that completion is conditioned on it. The
    study is taken to have reused completions as the thesis did.
    """
    study = RANKINGS.read(study)
    if "generated_token" not in study:
        raise InputError("is missing; what was sampled is not known", field="generated_token")
    if match not in ("stripped", "exact"):
        raise InputError(f"is {match!r}, should be stripped or exact", field="match")
    generated = study["generated_token"].values
    same = match_tokens(study["reference_token"].values, generated[:, None], match=match)[:, 0]
    first = match_in_study(study, match)[:, 0]
    keys = list(zip(*(study[name].values.tolist() for name in _KEY), strict=True))
    wrong = np.zeros(len(keys), dtype=bool)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    for before, row in pairwise(order):
        follows = keys[before][:-1] == keys[row][:-1] and keys[before][-1] + 1 == keys[row][-1]
        if follows and first[before]:
            wrong[row] = wrong[before] or not same[before]
    return wrong
