"""The bet study: people name words that may come next and stake shares of one unit on them and on anything else."""

from __future__ import annotations

import numpy as np

from shannon_game.estimators.arrays import Dataset, FloatArray, IntArray
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import ITEM_ID, item_positions
from shannon_game.estimators.schema import Range, Schema, Variable, optional, owned, refuse

GENERATOR = "generator"
"""Attribute of a study: which of its models is the generator."""

# shares that a table rounds, and probabilities in single precision
_SLACK = 1e-6
_MASS_SLACK = 1e-3

_SHARE = Range("a share from 0 to 1", 0, 1)
_LOGPROB = Range(
    "a log-probability, at most 0, or NaN if not asked", highest=1e-5, nan=True, infinite=True, unit="nats"
)


BETS = Schema(
    kind="bet",
    cure="bet_study(df) makes one of a table (from shannon_game import bet_study)",
    variables=(
        Variable("item", "item", "int", "a place of a text whose next word was bet on"),
        ITEM_ID,
        Variable("target", "item", "str", "the word of the text", filled=True),
        optional("context", "item", "str", "the text before the place"),
        Variable("participant", "response", "str", "who bet", filled=True),
        Variable("response_item", "response", "int", "the item", label_of="item"),
        Variable("other_stake", "response", "float", "share on any word that is not named", range=_SHARE),
        owned("bet_response", "bet", "int", "the answer that the bet is part of", position_along="response"),
        Variable("bet_word", "bet", "str", "the word named", filled=True),
        Variable("bet_stake", "bet", "float", "share on it", range=_SHARE),
        Variable("bet_hit", "bet", "bool", "the word named is the target"),
        Variable("model", "model", "str", "name of a language model that scored the words", needed="model"),
        Variable("target_logprob", "model, item", "float", "ln p(target | context)", "model", range=_LOGPROB),
        Variable("bet_logprob", "model, bet", "float", "ln p(word named | context)", "model", range=_LOGPROB),
    ),
    may_be_empty=("bet",),
)
"""Variables of a bet study."""


@BETS.documented
def validate_bet_study(study: Dataset) -> Dataset:
    """Check a bet study, and return it read by its labels: cut or reordered, it is what it says.

    Dimensions are ``item``, ``response`` (the answer of one participant to one item), ``bet`` (a word named in an
    answer, in long form), and where there are any ``model`` (language models whose probabilities of the words are
    known). Attribute ``generator``: which model is the generator, where one is.

    {variables}

    The stakes of an answer, with that on anything else, add up to 1; it names a word once, and a participant answers
    an item once: after the first answer the word was shown.

    Examples
    --------
    >>> bets.validate_bet_study(bets.examples.bet_study()).attrs["generator"]
    'lm'
    """
    study, source = BETS.check(study)
    answer = study["bet_response"].values
    n_answers = study.sizes["response"]
    total = study["other_stake"].values + np.bincount(answer, weights=study["bet_stake"].values, minlength=n_answers)
    refuse(study, source, "other_stake", np.abs(total - 1) <= _SLACK, "stakes should sum to 1")
    named = list(zip(answer.tolist(), study["bet_word"].values.tolist(), strict=True))
    refuse(study, source, "bet_word", _first(named), "is named twice in one answer")
    hits = np.bincount(answer, weights=study["bet_hit"].values, minlength=n_answers)
    refuse(study, source, "bet_hit", hits[answer] <= 1, "two words of one answer are the target")
    asked = zip(study["participant"].values.tolist(), study["response_item"].values.tolist(), strict=True)
    refuse(study, source, "response_item", _first(list(asked)), "its participant has answered it before")
    generator = study.attrs.get(GENERATOR)
    if generator is not None and generator not in (study["model"].values.tolist() if "model" in study.coords else []):
        raise InputError(f"is {generator!r}, which is no model of the study", source=source, field=GENERATOR)
    if "model" in study.coords:
        _check_mass(study, source)
    return study


def _first(values: list[tuple[object, object]]) -> list[bool]:
    seen: set[tuple[object, object]] = set()
    # add gives None
    return [value not in seen and not seen.add(value) for value in values]  # type: ignore[func-returns-value]


def _check_mass(study: Dataset, source: str) -> None:
    """No model can give the words named and the target more than the whole probability."""
    hit = hit_of_answers(study) >= 0
    item = item_positions(study, "response_item")
    for at, name in enumerate(study["model"].values.tolist()):
        target = np.exp(study["target_logprob"].values[at])[item]
        mass = named_mass(study, at) + np.where(hit, 0, target)
        over = mass > 1 + _MASS_SLACK
        if over.any():
            where = f"over the words of response {int(np.flatnonzero(over)[0])} under model {name!r}"
            problem = f"adds up to {mass[over][0]:.4f} {where}, should be at most 1; are these natural logarithms?"
            raise InputError(problem, source=source, field="bet_logprob")


def hit_of_answers(study: Dataset) -> IntArray:
    """Position along ``bet`` of the bet on the target, -1 where the target was not named; (response,)."""
    found = np.full(study.sizes["response"], -1, dtype=np.intp)
    hits = np.flatnonzero(study["bet_hit"].values)
    found[study["bet_response"].values[hits]] = hits
    return found


def named_mass(study: Dataset, model: int) -> FloatArray:
    """What a model gives to the words that an answer names, together; (response,), NaN where it was not asked."""
    share = np.exp(study["bet_logprob"].values[model]).astype(float)
    # of no bet at all they would be whole numbers
    return np.bincount(study["bet_response"].values, share, minlength=study.sizes["response"]).astype(np.float64)
