"""The comparison study: one ``xarray.Dataset``, one validator, and the arrays that estimators read.

In a comparison study a participant sees a context *c* and two tokens, the target *y* (the token of
the text) and a candidate *x* (drawn from the generator *G*), and reports the probability of the
target. See :func:`validate_comparison_study` for the variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from estimators.errors import InputError, unknown_choice
from estimators.layout import HUMAN, check_layout, response_positions, study_source

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["SAME_TOKEN_TOLERANCE_NATS", "same_token", "validate_comparison_study"]

SAME_TOKEN_TOLERANCE_NATS = 1e-6
"""Two log-probabilities of one token under one model differ by no more than this (float32 noise)."""

_REQUIRED: dict[str, tuple[str, ...]] = {
    "context": ("item",),
    "target_token": ("item",),
    "candidate_token": ("item", "candidate"),
    "target_logprob": ("model", "item"),
    "candidate_logprob": ("model", "item", "candidate"),
    "item_set": ("item",),
    "selected": ("item",),
    "in_reference": ("item",),
    "participant": ("response",),
    "response_item": ("response",),
    "response_candidate": ("response",),
    "report": ("response",),
    "automatic": ("response",),
}
_OPTIONAL: dict[str, tuple[str, ...]] = {
    "human_target_logprob": ("item",),
    "human_candidate_logprob": ("item", "candidate"),
    "reference_logprob": ("item", "token"),
    "kl_nats": ("model", "item"),
    "human_kl_nats": ("item",),
}
_DTYPES = {
    **dict.fromkeys(("item", "response_item", "response_candidate"), ("iu", "an integer")),
    **dict.fromkeys(("selected", "in_reference", "automatic"), ("b", "bool")),
    **dict.fromkeys(("context", "target_token", "candidate_token", "item_set", "participant"), ("OUT", "str")),
    **dict.fromkeys(("report", "target_logprob", "candidate_logprob"), ("f", "float")),
    **dict.fromkeys(("human_target_logprob", "human_candidate_logprob", "reference_logprob"), ("f", "float")),
    **dict.fromkeys(("kl_nats", "human_kl_nats"), ("f", "float")),
}
_LOGPROBS = (
    "target_logprob",
    "candidate_logprob",
    "human_target_logprob",
    "human_candidate_logprob",
    "reference_logprob",
)
# float32 softmax can round a probability to a hair above one; beyond that it is not a log-probability
_LOGPROB_SLACK = 1e-6


def validate_comparison_study(study: xr.Dataset) -> xr.Dataset:
    """Check a comparison study and return it unchanged.

    Dimensions are ``item`` (questions), ``candidate`` (tokens drawn from the generator for an
    item), ``model`` (language models), ``response`` (answers, in long form).

    ===========================  ========================  ==================================================
    variable                     dims                      meaning
    ===========================  ========================  ==================================================
    ``item``                     item                      integer label of the question (coordinate)
    ``model``                    model                     name of the language model (coordinate)
    ``context``                  item                      text before the target (str)
    ``target_token``             item                      the token of the text, *y* (str)
    ``candidate_token``          item, candidate           tokens *x* drawn i.i.d. from *G*, repeats kept (str)
    ``target_logprob``           model, item               ln p(y|c), nats
    ``candidate_logprob``        model, item, candidate    ln p(x|c), nats
    ``item_set``                 item                      name of the set in which it was asked, "" if never (str)
    ``selected``                 item                      passes the study's item filter (bool)
    ``in_reference``             item                      belongs to the items whose mean -ln g(y) is L_G (bool)
    ``participant``              response                  who answered (str)
    ``response_item``            response                  label of the item answered (int)
    ``response_candidate``       response                  position along ``candidate`` of the token shown (int)
    ``report``                   response                  probability given to the target, in (0, 1)
    ``automatic``                response                  the site answered by itself: both strings were equal (bool)
    ``human_target_logprob``     item                      optional truth of a simulation: ln h(y|c), nats
    ``human_candidate_logprob``  item, candidate           optional truth of a simulation: ln h(x|c), nats
    ``reference_logprob``        item, token               optional: the generator's whole distribution, nats
    ``kl_nats``                  model, item               optional: KL(model || generator), exact, nats
    ``human_kl_nats``            item                      optional truth of a simulation: KL(h || generator), nats
    ===========================  ========================  ==================================================

    A participant may answer a pair more than once: every answer counts, loaders decide what to keep.

    Attributes: ``name``; ``generator``, the model that drew the candidates; ``notes``, see
    :func:`estimators.notes.notes`.

    Parameters
    ----------
    study : xarray.Dataset

    Returns
    -------
    xarray.Dataset
        The same object.

    Raises
    ------
    InputError
        Names the variable, the item or response, the value found and what would be right.
    """
    source = study_source(study, "comparison")
    check_layout(
        study,
        source,
        required=_REQUIRED,
        optional=_OPTIONAL,
        dtypes=_DTYPES,
        not_empty=("item", "candidate", "model"),
        labelled=("item", "model"),
    )
    _check_models(study, source)
    _check_logprobs(study, source)
    _check_divergences(study, source)
    _check_responses(study, source)
    return study


def _check_models(study: xr.Dataset, source: str) -> None:
    models = study["model"].values.tolist()
    generator = study.attrs.get("generator")
    if generator not in models:
        raise unknown_choice("generator", generator, models, source=source)
    if HUMAN in models:
        raise InputError(f"{HUMAN!r} is kept for the participants; rename the model", source=source, field="model")


def _check_logprobs(study: xr.Dataset, source: str) -> None:
    for name in _LOGPROBS:
        if name not in study:
            continue
        values = study[name].values
        # -inf is a legal log-probability of the whole distribution and of a player, not of what was drawn
        bad = ~(values <= _LOGPROB_SLACK)
        if name != "reference_logprob":
            bad |= ~np.isfinite(values)
        if not bad.any():
            continue
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        where = ", ".join(
            f"{dim} {study[dim].values[i]}" if dim in study.coords else f"{dim} {i}"
            for dim, i in zip(study[name].dims, index, strict=True)
        )
        raise InputError(
            f"is {values[index]} at {where} ({int(bad.sum())} such); a log-probability is finite and at most 0",
            source=source,
            field=name,
        )


def _check_divergences(study: xr.Dataset, source: str) -> None:
    for name in ("kl_nats", "human_kl_nats"):
        if name not in study:
            continue
        values = study[name].values
        # infinity is legal: the generator may rule out what a player expects
        bad = ~(values >= -_LOGPROB_SLACK)
        if bad.any():
            raise InputError(
                f"is {values[bad][0]} ({int(bad.sum())} such); a divergence is at least 0", source=source, field=name
            )


def _check_responses(study: xr.Dataset, source: str) -> None:
    report = study["report"].values
    bad = ~((report > 0) & (report < 1))
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"is {report[first]} at response {first} ({int(bad.sum())} such); a probability strictly between 0 and 1 "
            "is needed, because 0 and 1 mean an infinite likelihood ratio",
            source=source,
            field="report",
        )
    candidate = study["response_candidate"].values
    bad = (candidate < 0) | (candidate >= study.sizes["candidate"])
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"is {candidate[first]} at response {first}, should be 0 to {study.sizes['candidate'] - 1}",
            source=source,
            field="response_candidate",
        )
    position = response_positions(study, source=source)
    asked = (study["item_set"].values != "") & study["selected"].values
    if not asked[position].all():
        first = int(np.flatnonzero(~asked[position])[0])
        raise InputError(
            f"is {study['response_item'].values[first]} at response {first}, an item that is not selected or has no "
            "item_set; only items asked can have responses",
            source=source,
            field="response_item",
        )
    nameless = [who for who in study["participant"].values.tolist() if not isinstance(who, str) or not who]
    if nameless:
        raise InputError(
            f"is {nameless[0]!r} ({len(nameless)} such); every response needs the name of its participant",
            source=source,
            field="participant",
        )


def same_token(study: xr.Dataset) -> NDArray[np.bool_]:
    """Which candidates are the very target token.

    Equal strings are not enough: a string such as U+FFFD (half a character) stands for many tokens.
    A candidate is the target when its string AND its log-probability under the generator agree.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.

    Returns
    -------
    ndarray of bool, shape (item, candidate)
    """
    string = study["candidate_token"].values == study["target_token"].values[:, None]
    generator = study.attrs["generator"]
    drawn = study["candidate_logprob"].sel(model=generator).values
    target = study["target_logprob"].sel(model=generator).values
    equal: NDArray[np.bool_] = string & (np.abs(drawn - target[:, None]) <= SAME_TOKEN_TOLERANCE_NATS)
    return equal
