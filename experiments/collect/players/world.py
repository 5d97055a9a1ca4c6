"""What simulated players believe: of every item of a study, the tokens that it knows and their log-probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.cloze import normalise_words
from shannon_game.estimators.comparison.study_sources import PADDING
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import HUMAN, item_labels

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["World", "world_of"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class World:
    """Beliefs of all items of a comparison study.

    Parameters
    ----------
    belief : str
        Whose: "human" (a simulation's truth) or a language model of the study.
    name : list of str
        Of the items.
    target : list of str
    target_logprob : ndarray, shape (item,)
        ln h of the targets, nats.
    candidate : list of list of str
    candidate_logprob : ndarray, shape (item, candidate)
        ln h of the candidates, nats; NaN where there is none.
    tokens : list of list of str
        Target and distinct candidates of every item.
    token_logprob : list of ndarray
        ln h of these, nats; not normalised.
    by_context : mapping of str to list of int
        Items of a context, without the blanks at its end.
    """

    belief: str
    name: list[str]
    target: list[str]
    target_logprob: FloatArray
    candidate: list[list[str]]
    candidate_logprob: FloatArray
    tokens: list[list[str]]
    token_logprob: list[FloatArray]
    by_context: Mapping[str, list[int]]
    _words: dict[int, tuple[list[str], FloatArray]] = field(default_factory=dict, repr=False)

    def words(self, item: int) -> tuple[list[str], FloatArray]:
        """Words that can be typed among the tokens of an item, and ln h of each; each word once."""
        if item not in self._words:
            typed = [token.strip() for token in self.tokens[item]]
            kept = [at for at, word in enumerate(typed) if len(word.split()) == 1]
            keys = normalise_words([typed[at] for at in kept], "clean").words.tolist() if kept else []
            best: dict[str, int] = {}
            for at, cleaned in zip(kept, keys, strict=True):
                key = cleaned or typed[at]
                if key not in best or self.token_logprob[item][at] > self.token_logprob[item][best[key]]:
                    best[key] = at
            order = list(best.values())
            self._words[item] = [typed[at] for at in order], self.token_logprob[item][order]
        return self._words[item]

    def find(self, context: str, options: tuple[str, ...] = ()) -> int | None:
        """Find the item of a context, or of one that ends so: a page may show its last words alone.

        Where there are several, it is the first one that knows the options.
        """
        shown = context.strip(" ")
        found = self.by_context.get(shown, [])
        if not found and shown:
            found = [at for whole, items in self.by_context.items() if whole.endswith(shown) for at in items]
        return next((at for at in found if set(options) <= set(self.tokens[at])), None)


def world_of(study: xr.Dataset, belief: str | None = None) -> World:
    """Read what is believed from a comparison study."""
    source = f"study {study.attrs.get('name')!r}"
    if "candidate_token" not in study:
        raise InputError("has no candidates, whose beliefs simulated players need", source=source, field="players")
    models = study["model"].values.tolist()
    names = [*([HUMAN] if "human_target_logprob" in study else []), *models]
    if belief is None:
        others = [name for name in names if name != study.attrs["generator"]]
        belief = (others or names)[0]
    if belief not in names:
        raise unknown_choice("belief", belief, names, source=source)
    if belief == HUMAN:
        of_target, of_candidate = study["human_target_logprob"].values, study["human_candidate_logprob"].values
    else:
        of_target = study["target_logprob"].sel(model=belief).values
        of_candidate = study["candidate_logprob"].sel(model=belief).values
    target, candidate = study["target_token"].values.tolist(), study["candidate_token"].values.tolist()
    candidate_logprob = of_candidate.astype(float)
    if "candidate_source" in study:
        candidate_logprob = np.where(study["candidate_source"].values == PADDING, np.nan, candidate_logprob)
    tokens, logprobs = [], []
    for at, own in enumerate(target):
        pool = {own: float(of_target[at])}
        for token, logprob in zip(candidate[at], candidate_logprob[at].tolist(), strict=True):
            if not np.isnan(logprob):
                pool.setdefault(token, logprob)
        tokens.append(list(pool))
        logprobs.append(np.array(list(pool.values())))
    by_context: dict[str, list[int]] = {}
    for at, context in enumerate(study["context"].values.tolist()):
        by_context.setdefault(context.strip(" "), []).append(at)
    return World(
        belief,
        item_labels(study).astype(str).tolist(),
        target,
        of_target.astype(float),
        candidate,
        candidate_logprob,
        tokens,
        logprobs,
        by_context,
    )
