"""The comparison study and the forecast study, each with its validator, and the arrays that estimators read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import BoolArray, Dataset, FloatArray, IntArray
from shannon_game.estimators.comparison.study_sources import (
    NOT_A_CANDIDATE,
    PADDING,
    SOURCE_VARIABLES,
    TARGET_POSITION,
    candidate_sources,
    check_sources,
    response_references,
)
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import HUMAN, ITEM_ID, response_positions
from shannon_game.estimators.schema import KIND, Range, Schema, Variable, optional, refuse

SAME_TOKEN_TOLERANCE_NATS = 1e-6
"""Two log-probabilities of one token under one model differ by no more than this (float32 noise)."""

# float32 softmax can round a probability to a hair above one; beyond that it is not a log-probability
_SLACK_NATS = 1e-6

# infinite for a whole distribution only: what was drawn or asked has some probability
_LOGPROB = Range("finite and at most 0, a log-probability", highest=_SLACK_NATS, unit="nats")

# NaN in empty cells alone, where items have different numbers of candidates: check_sources
_CANDIDATE_LOGPROB = Range("finite and at most 0, a log-probability", highest=_SLACK_NATS, nan=True, unit="nats")

_WHOLE = Range("at most 0, a log-probability", highest=_SLACK_NATS, infinite=True, unit="nats")

# infinite where the generator rules out what a player expects
_DIVERGENCE = Range("a divergence, at least 0", lowest=-_SLACK_NATS, infinite=True, unit="nats")

_REPORT = Range("strictly between 0 and 1, which mean an infinite likelihood ratio", 0, 1, open_ends=True)

COMPARISON = Schema(
    kind="comparison",
    cure="comparison_study(answers, candidates, generator=NAME) makes one of tables that hold the generator's "
    "log-probabilities (from shannon_game import comparison_study)",
    may_be_empty=("response", "answer"),
    variables=(
        Variable("item", "item", "int", "question"),
        ITEM_ID,
        Variable("model", "model", "str", "name of the language model"),
        Variable("context", "item", "str", "text before the target"),
        Variable("target_token", "item", "str", "the token of the text, *y*"),
        Variable("candidate_token", "item, candidate", "str", "tokens *x*; drawn i.i.d. from *G*, repeats kept"),
        Variable("target_logprob", "model, item", "float", "ln p(y|c)", range=_LOGPROB),
        Variable("candidate_logprob", "model, item, candidate", "float", "ln p(x|c)", range=_CANDIDATE_LOGPROB),
        Variable("item_set", "item", "str", 'name of the set in which it was asked, "" if never'),
        Variable("selected", "item", "bool", "passes the study's item filter"),
        Variable("in_reference", "item", "bool", "belongs to the items whose mean -ln g(y) is L_G"),
        Variable("participant", "response", "str", "who answered", filled=True),
        Variable("response_item", "response", "int", "the item answered", label_of="item"),
        Variable("response_candidate", "response", "int", "the token shown", position_along="candidate"),
        Variable("report", "response", "float", "probability given to the target", range=_REPORT),
        Variable("automatic", "response", "bool", "the site answered by itself: both strings were equal"),
        optional("human_target_logprob", "item", "float", "truth of a simulation: ln h(y|c)", range=_LOGPROB),
        optional("human_candidate_logprob", "item, candidate", "float", "its ln h(x|c)", range=_CANDIDATE_LOGPROB),
        optional("reference_logprob", "item, token", "float", "the generator's whole distribution", range=_WHOLE),
        optional("kl_nats", "model, item", "float", "exact KL(model || generator)", range=_DIVERGENCE),
        optional("human_kl_nats", "item", "float", "truth of a simulation: KL(h || g)", range=_DIVERGENCE),
        *SOURCE_VARIABLES,
    ),
)
"""Variables of a comparison study."""

_OF_REPORTS = ("item", "item_id", "participant", "response_item", "report", "automatic")
FORECAST = Schema(
    kind="forecast",
    cure="comparison_study(answers) makes one of a table (from shannon_game import comparison_study)",
    variables=(
        *(each for each in COMPARISON.variables if each.name in _OF_REPORTS),
        Variable("outcome", "response", "bool", "the event came true: ``report`` was stated, else 1 - ``report``"),
        optional("option", "response", "str", "of two tokens, the one whose probability was stated"),
        optional("other", "response", "str", "the other one"),
    ),
)
"""Variables of a forecast study: what a comparison study has of reports and outcomes, without a generator."""


@FORECAST.documented
def validate_forecast_study(study: Dataset) -> Dataset:
    """Check a forecast study, and return it read by its labels: cut or reordered, it is what it says.

    Dimensions are ``item`` (what was forecast) and ``response`` (in long form); the target is what came true.

    {variables}

    Examples
    --------
    >>> import xarray as xr
    >>> said = {"participant": ["p1", "p2"], "response_item": [0, 0], "report": [0.7, 0.2], "outcome": [True, True]}
    >>> study = xr.Dataset({name: ("response", values) for name, values in said.items()})
    >>> study = study.assign(automatic=("response", [False, False]), item_id=("item", ["rain"]))
    >>> study = study.assign_coords(item=[0]).assign_attrs(kind="forecast", name="rain")
    >>> comparison.validate_forecast_study(study).sizes["response"]
    2
    """
    return FORECAST.check(study)[0]


def read_kind(study: Dataset) -> Dataset:
    """Read a comparison or a forecast study by its labels: what needs reports and outcomes alone takes both kinds."""
    is_forecast = getattr(study, "attrs", {}).get(KIND) == FORECAST.kind
    return (FORECAST if is_forecast else COMPARISON).read(study)


@COMPARISON.documented
def validate_comparison_study(study: Dataset) -> Dataset:
    """Check a comparison study, and return it read by its labels: cut or reordered, it is what it says.

    Dimensions are ``item`` (questions), ``candidate`` (tokens drawn from the generator for an item), ``model``,
    ``response`` (answers, in long form), and ``answer`` (free continuations, in long form too).

    {variables}

    A participant may answer a pair more than once: every answer counts, loaders decide what to keep. Candidates are
    i.i.d. draws from the generator, named by attribute ``generator``, unless ``candidate_source`` says otherwise; items
    may then have different numbers of them, and the cells left over are ``padding``. An answer of batch b is held out
    against the candidates with ``candidate_batch`` < b: the target, and what was a candidate before the answer was
    given.

    Examples
    --------
    >>> comparison.validate_comparison_study(comparison.examples.comparison_study()).attrs["generator"]
    'lm-medium'
    """
    study, source = COMPARISON.check(study)
    models = study["model"].values.tolist()
    generator = study.attrs.get("generator")
    if generator not in models:
        raise unknown_choice("generator", generator, models, source=source)
    if HUMAN in models:
        raise InputError(f"{HUMAN!r} is kept for the participants; rename the model", source=source, field="model")
    asked = (study["item_set"].values != "") & study["selected"].values
    right = "an item that is not selected or has no item_set; only items asked can have responses"
    refuse(study, source, "response_item", asked[response_positions(study)], right)
    check_sources(study, source, same_token(study))
    return study


def same_token(study: Dataset) -> NDArray[np.bool_]:
    """Which candidates are the very target token: the string AND the log-probability under the generator agree."""
    string = study["candidate_token"].transpose("item", "candidate").values == study["target_token"].values[:, None]
    target, drawn = generator_logprobs(study)
    return np.asarray(string & (np.abs(drawn - target[:, None]) <= SAME_TOKEN_TOLERANCE_NATS))


def generator_logprobs(study: Dataset) -> tuple[FloatArray, FloatArray]:
    """Ln g of the targets, (item,), and of the candidates, (item, candidate)."""
    its = study.isel(model=study["model"].values.tolist().index(study.attrs["generator"]))
    return its["target_logprob"].values, its["candidate_logprob"].transpose("item", "candidate").values


def candidate_tokens(study: Dataset) -> IntArray:
    """First position of each candidate's token in its item, (item, candidate); the target has -1, an empty cell -2."""
    study = COMPARISON.read(study)
    target = same_token(study)
    row, column = (axis.ravel() for axis in np.indices(target.shape))
    # NaN (an empty cell) differs from nothing: the cells of an item's padding are one token, and replaced below
    token = token_codes(row, study["candidate_token"].values.ravel(), generator_logprobs(study)[1].ravel())
    first = np.full(row.size, column.size)
    np.minimum.at(first, token, column)
    code: IntArray = first[token].reshape(target.shape)
    code[target] = TARGET_POSITION
    code[candidate_sources(study) == PADDING] = NOT_A_CANDIDATE
    return code


def token_codes(item: IntArray, string: NDArray[np.object_], logprob: FloatArray) -> IntArray:
    """Code of every token: those of one item with equal strings and log-probabilities have the same."""
    strings: dict[object, int] = {}
    text = np.array([strings.setdefault(one, len(strings)) for one in string.tolist()], dtype=np.intp)
    order = np.lexsort((logprob, text, item))
    differs = [np.diff(item[order]) != 0, np.diff(text[order]) != 0]
    differs.append(np.diff(logprob[order]) > SAME_TOKEN_TOLERANCE_NATS)
    code = np.empty(text.size, dtype=np.intp)
    code[order] = np.concatenate([[0], np.cumsum(np.logical_or.reduce(differs))])
    return code


def compared_tokens(study: Dataset, code: IntArray) -> tuple[IntArray, IntArray]:
    """Codes of the two tokens that each response compares: its candidate's, and that of its reference."""
    position, reference = response_positions(study), response_references(study)
    against = np.where(reference < 0, TARGET_POSITION, code[position, np.maximum(reference, 0)])
    return code[position, study["response_candidate"].values], against


def compared_with_target(study: Dataset, code: IntArray) -> tuple[IntArray, BoolArray]:
    """Code of each response's candidate, and which responses compare one with the target, by themselves."""
    candidate, reference = compared_tokens(study, code)
    return candidate, (candidate >= 0) & (reference == TARGET_POSITION) & ~study["automatic"].to_numpy()
