"""What players believe: of every item of a study, the log-probability of every token of the vocabulary."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import BoolArray, FloatArray, IntArray
from shannon_game.estimators.cloze import normalise_words
from shannon_game.estimators.comparison.planning.questions import assumed_belief
from shannon_game.estimators.comparison.study_sources import PADDING
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import HUMAN, item_labels
from shannon_game.experiments.collect.games.cloze import JOINER, LONGEST_WORD
from shannon_game.experiments.collect.games.protocol import QuestionRow
from shannon_game.experiments.collect.games.top1 import can_be_guessed
from shannon_game.experiments.collect.settings import PlayerPopulation
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.inference.text.prompts import shown

if TYPE_CHECKING:
    import xarray as xr

ASSUMED = "assumed"
"""A belief made of the generator's whole distribution, as the worlds of ``+exp=design`` are."""
INVENTED = "invented"
"""A belief in the words of texts, where no language model says anything of them: made up by the seed, to try pages."""
_LEAST = 1e-12


def typed(token: str) -> str:
    """Write a token as somebody types it: no blank before it, other blanks as the page shows them."""
    signs = shown(token.removeprefix(" ") or token)[: LONGEST_WORD - 1]
    # a sign that no page takes: a word that nobody knows
    return "".join("\ufffd" if unicodedata.category(sign)[0] in "CZ" else sign for sign in signs) or "\ufffd"


def continued(token: str) -> str:
    """Write a token as :func:`typed` does, joined to the text before it where no blank begins it."""
    return typed(token) if token.startswith(" ") else JOINER + typed(token)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """All tokens that may be answered."""

    tokens: list[str]
    place: Mapping[str, int]
    typed: list[str]
    """What is typed for each."""
    key: IntArray
    """The same number for tokens that are one word, whatever its case and punctuation."""
    can_be_guessed: BoolArray
    """Which tokens top1 takes."""


@dataclass(frozen=True, eq=False)
class World:
    """Beliefs of all items of a comparison study, ln h in nats."""

    belief: str
    """Whose: "human" (a simulation's truth), "assumed", or a language model of the study."""
    name: list[str]
    target: list[str]
    target_logprob: FloatArray
    candidate: list[list[str]]
    candidate_logprob: FloatArray
    """(item, candidate); NaN where there is none."""
    by_context: Mapping[str, list[int]]
    """Items of a context, without the blanks at its end."""
    vocabulary: Vocabulary
    rest_logprob: NDArray[np.floating]
    """(item, token): what the belief in tokens that are neither target nor candidate is proportional to."""
    is_whole: bool
    """The last one is the belief itself, of all tokens."""

    def known(self, item: int) -> dict[str, float]:
        """Target and distinct candidates of an item, and ln h of each."""
        found = {self.target[item]: float(self.target_logprob[item])}
        for token, logprob in zip(self.candidate[item], self.candidate_logprob[item].tolist(), strict=True):
            if not np.isnan(logprob):
                found.setdefault(token, logprob)
        return found

    def logprob(self, item: int) -> FloatArray:
        """Give ln h of every token of the vocabulary; what the known tokens leave is spread over the others."""
        found: FloatArray = self.rest_logprob[item].astype(float)
        if self.is_whole:
            return found
        known = self.known(item)
        at = [self.vocabulary.place[token] for token in known]
        found[at] = -np.inf
        left = max(1.0 - float(np.exp(list(known.values())).sum()), _LEAST)
        if np.isfinite(found).any():
            found += np.log(left) - np.logaddexp.reduce(found)
        found[at] = list(known.values())
        return found

    def find(self, context: str, options: tuple[str, ...] = ()) -> int | None:
        """Find the item of a context, or of one that ends so: a page may show its last words alone.

        Where there are several, it is the first one that knows the options.
        """
        shown = context.strip(" ")
        found = self.by_context.get(shown, [])
        if not found and shown:
            found = [at for whole, items in self.by_context.items() if whole.endswith(shown) for at in items]
        return next((at for at in found if set(options) <= {self.target[at], *self.candidate[at]}), None)


def invented_world(rows: Sequence[QuestionRow], source: str, belief: str | None, seed: int) -> World:
    """Invent what is believed at places of texts: from 0.1 to 0.9 on the text's word, the rest on the texts' words."""
    if belief not in (None, INVENTED):
        raise unknown_choice("belief", belief, [INVENTED], source=source)
    rng = rng_for(seed, "invented belief")
    contexts, targets = ([row.content[name] for row in rows] for name in ("context", "target"))
    # the longest contexts hold all others
    said = [word.strip(",;:.!?()") for text in contexts for word in text.split()]
    words, counts = np.unique([" " + word for word in [*said, *targets] if word], return_counts=True)
    belief_in = np.log(counts) + 2.0 * rng.standard_normal((len(rows), len(words)))
    belief_in -= np.logaddexp.reduce(belief_in, axis=1, keepdims=True)
    vocabulary = _vocabulary(words.tolist(), None)
    names = [f" {target}" for target in targets]
    of_target = np.full(len(rows), np.nan)
    for at, (name, share) in enumerate(zip(names, rng.uniform(0.1, 0.9, len(rows)), strict=True)):
        # a gap whose word is not known has none of it
        if name in vocabulary.place:
            place = vocabulary.place[name]
            belief_in[at] += np.log1p(-share) - np.log1p(-np.exp(belief_in[at, place]))
            belief_in[at, place] = of_target[at] = np.log(share)
    by_context: dict[str, list[int]] = {}
    for at, context in enumerate(contexts):
        by_context.setdefault(context.strip(" "), []).append(at)
    nothing = np.empty((len(rows), 0))
    items = [row.item_id for row in rows]
    empty: list[list[str]] = [[] for _ in rows]
    return World(INVENTED, items, names, of_target, empty, nothing, by_context, vocabulary, belief_in, is_whole=True)


def world_of(
    study: xr.Dataset,
    belief: str | None = None,
    *,
    population: PlayerPopulation | None = None,
    seed: int = 0,
    guesses: frozenset[str] | None = None,
) -> World:
    """Read what is believed from a comparison study; `guesses` are the tokens that top1 takes, by default all."""
    source = f"study {study.attrs.get('name')!r}"
    whole = study["reference_logprob"].transpose("item", "token").values if "reference_logprob" in study else None
    models, generator = study["model"].values.tolist(), study.attrs["generator"]
    of_people = [*([HUMAN] if "human_target_logprob" in study else []), *([] if whole is None else [ASSUMED])]
    names = [*of_people, *models]
    if belief is None:
        belief = next((name for name in names if name != generator), generator)
    if belief not in names:
        raise unknown_choice("belief", belief, names, source=source)
    target, candidate = study["target_token"].values.tolist(), study["candidate_token"].values.tolist()
    there = np.ones((len(candidate), len(candidate[0])), dtype=bool)
    if "candidate_source" in study:
        there = study["candidate_source"].values != PADDING
    if whole is None:
        used = {token for row, kept in zip(candidate, there.tolist(), strict=True) for token in np.array(row)[kept]}
        tokens = sorted(used | set(target))
        whole = np.zeros((len(target), len(tokens)))
    else:
        tokens = study["token"].values.tolist()
    words = _vocabulary(tokens, guesses)
    missing = ({*target, *(token for row in candidate for token in row)} - {""}) - words.place.keys()
    if missing:
        raise InputError(f"has no {min(missing)!r}, which is asked about", source=source, field="token")
    is_whole = "reference_logprob" in study and belief in (ASSUMED, generator)
    if belief == ASSUMED:
        its = population or PlayerPopulation()
        whole = assumed_belief(
            whole,
            exponent=its.exponent,
            unigram_share=its.unigram_share,
            noise_nats=its.noise_nats,
            rng=rng_for(seed, "assumed belief"),
        )
        of_target, of_candidate = _looked_up(study, words, whole, target, candidate)
    elif belief == HUMAN:
        of_target, of_candidate = study["human_target_logprob"].values, study["human_candidate_logprob"].values
    else:
        of_target = study["target_logprob"].sel(model=belief).values
        of_candidate = study["candidate_logprob"].sel(model=belief).values
    by_context: dict[str, list[int]] = {}
    for at, context in enumerate(study["context"].values.tolist()):
        by_context.setdefault(context.strip(" "), []).append(at)
    return World(
        belief,
        item_labels(study).astype(str).tolist(),
        target,
        of_target.astype(float),
        candidate,
        np.where(there, of_candidate.astype(float), np.nan),
        by_context,
        words,
        whole,
        is_whole,
    )


def with_truth(study: xr.Dataset, world: World) -> xr.Dataset:
    """Add what people believe to the study that they are asked about."""
    return study.assign(
        human_target_logprob=("item", world.target_logprob, {"units": "nats"}),
        human_candidate_logprob=(("item", "candidate"), world.candidate_logprob, {"units": "nats"}),
    )


def _vocabulary(tokens: list[str], guesses: frozenset[str] | None) -> Vocabulary:
    words = [typed(token) for token in tokens]
    cleaned = normalise_words(words, "clean").words.tolist()
    _, key = np.unique([clean or word for clean, word in zip(cleaned, words, strict=True)], return_inverse=True)
    taken = [can_be_guessed(token) and (guesses is None or token in guesses) for token in tokens]
    place = {token: at for at, token in reversed(list(enumerate(tokens)))}
    return Vocabulary(tokens, place, words, key, np.array(taken, dtype=bool))


def _looked_up(
    study: xr.Dataset, words: Vocabulary, logprob: FloatArray, target: list[str], candidate: list[list[str]]
) -> tuple[FloatArray, FloatArray]:
    """Take ln h of targets and candidates from that of all tokens; halves of characters are known by their ids."""
    if "target_id" in study and "candidate_id" in study:
        own, drawn = study["target_id"].values, study["candidate_id"].values
    else:
        own = np.array([words.place[token] for token in target])
        drawn = np.array([[words.place.get(token, 0) for token in row] for row in candidate])
    return logprob[np.arange(len(target)), own], np.take_along_axis(logprob, drawn, axis=1)
