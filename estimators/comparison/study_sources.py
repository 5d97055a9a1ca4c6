"""Where candidates come from, and people's free answers: optional variables of a comparison study, and their rules."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import Dataset, IntArray
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_positions
from shannon_game.estimators.schema import Range, Variable, optional, refuse

GENERATOR, PROPOSAL, DISTINCT, ANSWER, PADDING = "generator", "proposal", "distinct", "answer", "padding"
SOURCES = (GENERATOR, PROPOSAL, DISTINCT, ANSWER, PADDING)
"""What ``candidate_source`` may say: drawn i.i.d. from the generator; drawn i.i.d. from another distribution; one of
distinct draws, with a probability of inclusion; a person's free answer; no candidate, an empty cell of the table."""

TARGET_POSITION = -1
"""What ``response_reference`` and ``answer_candidate`` hold where the token is the target."""
NOT_A_CANDIDATE = -2
"""What ``answer_candidate`` holds where the token is neither the target nor a candidate."""

_SLACK_NATS = 1e-6  # as in study.py: float32 softmax can round a probability to a hair above one
_IF_KNOWN = Range("a log-probability, at most 0, or NaN where unknown", highest=_SLACK_NATS, nan=True, unit="nats")
_BATCH = Range("at least 1", lowest=1)

SOURCE_VARIABLES = (
    optional(
        "candidate_source",
        "item, candidate",
        "str",
        'where the candidate comes from: "generator", "proposal" (another distribution), "distinct" (distinct draws), '
        '"answer" (a free answer), "padding" (no candidate: token "", log-probabilities NaN)',
    ),
    optional("proposal_logprob", "item, candidate", "float", "ln p of it in one draw of a proposal", range=_IF_KNOWN),
    optional("inclusion_logprob", "item, candidate", "float", "ln p that distinct draws hold it", range=_IF_KNOWN),
    optional(
        "response_reference",
        "response",
        "int",
        "what ``response_candidate`` was compared with, which ``report`` is of",
        position_along="candidate",
        codes=("the target",),
    ),
    Variable("answer_item", "answer", "int", "the item answered freely", needed="answer", label_of="item"),
    Variable("answer_participant", "answer", "str", "who answered freely", needed="answer", filled=True),
    Variable(
        "answer_candidate",
        "answer",
        "int",
        "the token answered",
        needed="answer",
        position_along="candidate",
        codes=("the target", "a token that is no candidate"),
    ),
    Variable("answer_batch", "answer", "int", "number of its batch of answers", needed="answer", range=_BATCH),
    Variable(
        "candidate_batch",
        "item, candidate",
        "int",
        "batch of answers after which the token was a candidate; 0 before any",
        needed="answer",
        range=Range("at least 0", lowest=0),
    ),
)
"""Variables of a comparison study that say where its candidates come from, and hold free answers."""


def has_free_answers(study: Dataset) -> bool:
    """Whether people answered contexts of the study freely."""
    return "answer" in study.dims and study.sizes["answer"] > 0


def candidate_sources(study: Dataset) -> NDArray[np.object_]:
    """Say where each candidate comes from, one of :data:`SOURCES`; (item, candidate).

    A study without ``candidate_source`` says it by its probabilities: ``distinct`` where an inclusion probability is
    known, ``proposal`` where a proposal's is, else ``generator``.
    """
    if "candidate_source" in study:
        return study["candidate_source"].values.astype(object)
    source = np.full(study["candidate_token"].shape, GENERATOR, dtype=object)
    for name, kind in (("proposal_logprob", PROPOSAL), ("inclusion_logprob", DISTINCT)):
        if name in study:
            source[~np.isnan(study[name].values)] = kind
    return source


def all_from_generator(study: Dataset) -> bool:
    """Whether the study has no variable that would say of a candidate that the generator did not draw it."""
    return not any(name in study for name in ("candidate_source", "proposal_logprob", "inclusion_logprob"))


def response_references(study: Dataset) -> IntArray:
    """With what each response compares its candidate: a position along ``candidate``, or -1 for the target."""
    if "response_reference" in study:
        return study["response_reference"].values.astype(np.intp)
    return np.full(study.sizes["response"], TARGET_POSITION, dtype=np.intp)


def require_generator_draws(study: Dataset, source: str, what: str) -> None:
    """Refuse a study whose candidates are not all draws of the generator, or that compares two of them."""
    other = np.zeros(0, dtype=bool) if all_from_generator(study) else candidate_sources(study) != GENERATOR
    if other.any():
        problem = f"is not {GENERATOR!r} for {int(other.sum())} candidates; {what} need draws from it"
        raise InputError(problem, source=source, field="candidate_source")
    between = response_references(study) != TARGET_POSITION
    if between.any():
        problem = f"is a candidate for {int(between.sum())} responses; {what} need comparisons with the target"
        raise InputError(problem, source=source, field="response_reference")


def check_sources(study: Dataset, source: str, same: NDArray[np.bool_]) -> None:
    """Check what the optional variables say of each other."""
    padding = np.zeros(study["candidate_token"].shape, dtype=bool)
    if "candidate_source" in study:
        given = study["candidate_source"].values
        refuse(study, source, "candidate_source", np.isin(given, SOURCES), f"should be one of {', '.join(SOURCES)}")
        padding = given == PADDING
    _check_padding(study, source, padding)
    _check_responses(study, source, padding)
    if "answer" in study.dims:
        _check_answers(study, source, padding, same)


def _check_padding(study: Dataset, source: str, padding: NDArray[np.bool_]) -> None:
    """Log-probabilities are known of every candidate, and of nothing else; of a person's answer the generator's are."""
    token = study["candidate_token"].values
    answered = np.zeros(padding.shape, dtype=bool)
    if "candidate_source" in study:
        answered = study["candidate_source"].values == ANSWER
    others = study["model"].values != study.attrs.get("generator")
    may_miss = {"candidate_logprob": padding | (answered & others[:, None, None])}
    refuse(study, source, "candidate_token", ~padding | (token == ""), 'padding; should be ""')
    for name in ("candidate_logprob", "human_candidate_logprob"):
        if name in study:
            unknown = np.isnan(study[name].values)
            right = "should be finite and at most 0, a log-probability"
            refuse(study, source, name, ~unknown | may_miss.get(name, padding), right)
            refuse(study, source, name, unknown | ~padding, "padding (candidate_source); should be NaN")
    for name in ("proposal_logprob", "inclusion_logprob"):
        if name in study:
            right = "padding (candidate_source); should be NaN"
            refuse(study, source, name, np.isnan(study[name].values) | ~padding, right)
    empty = padding.all(axis=1)
    if empty.any():
        item = study["item"].values[int(np.flatnonzero(empty)[0])]
        problem = f"is {PADDING!r} for every candidate of item {item} ({int(empty.sum())} such); at least one is needed"
        raise InputError(problem, source=source, field="candidate_source")


def _check_responses(study: Dataset, source: str, padding: NDArray[np.bool_]) -> None:
    """A response compares two tokens that there are, and that are two."""
    position = item_positions(study, "response_item")
    shown = study["response_candidate"].values
    right = "the item's candidate there is padding (candidate_source)"
    refuse(study, source, "response_candidate", ~padding[position, shown], right)
    if "response_reference" not in study:
        return
    reference = study["response_reference"].values
    refuse(study, source, "response_reference", reference != shown, "the response's own candidate (response_candidate)")
    empty = (reference >= 0) & padding[position, np.maximum(reference, 0)]
    refuse(study, source, "response_reference", ~empty, right)


def _check_answers(study: Dataset, source: str, padding: NDArray[np.bool_], same: NDArray[np.bool_]) -> None:
    """An answer is the target, a candidate, or neither, and a candidate that people gave has a batch."""
    answered = study["answer_candidate"].values
    at = item_positions(study, "answer_item"), np.maximum(answered, 0)
    candidate = answered >= 0
    right = "the item's candidate there is padding (candidate_source)"
    refuse(study, source, "answer_candidate", ~(candidate & padding[at]), right)
    right = f"the item's candidate there is the target; should be {TARGET_POSITION}"
    refuse(study, source, "answer_candidate", ~(candidate & same[at]), right)
    if "candidate_source" in study:
        right = "a free answer's (candidate_source); should be the batch of that answer, at least 1"
        batch = study["candidate_batch"].values
        given = study["candidate_source"].values == ANSWER
        refuse(study, source, "candidate_batch", (batch >= 1) | ~given, right)
