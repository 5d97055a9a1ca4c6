r"""Whether people are one population: groups of them, and single people, compared under permutations.

Groups: the mean TVD of two groups' answers over the contexts that both answered, against its distribution when people
are dealt to groups of the same sizes at random. People stay whole, as one person's answers go together.

People: a person's agreement is the mean share of the others who gave the same answer. If all people draw from one
distribution a context, its spread over people is that of answers dealt out again within every context.

Both p values are exact permutation tests' up to the number of permutations, :math:`p = (1 + n_{\ge}) / (1 + n)`
(Phipson and Smyth 2010): at most :math:`\alpha` in a share :math:`\alpha` of studies of one population.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import BoolArray, FloatArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.display import Result
from shannon_game.estimators.documents.clusters import codes
from shannon_game.estimators.errors import InputError

Ints = NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class GroupDistance(Result):
    """Distance between the answers of two groups of people.

    Attributes
    ----------
    tvd : float
        Mean over contexts that both groups answered; biased up, as any TVD of samples.
    baseline : float
        Mean of the same under permuted people: what one population gives.
    baseline_lower, baseline_upper : float
        Central 90% of the same.
    n_contexts, n_first, n_second : int
        Contexts, and people of either group.
    """

    tvd: float
    baseline: float
    baseline_lower: float
    baseline_upper: float
    p_value: float
    n_contexts: int
    n_first: int
    n_second: int


@dataclass(frozen=True, repr=False)
class AgreementSpread(Result):
    """How much people differ in their agreement with the others.

    Attributes
    ----------
    sd : float
        Standard deviation over people of their mean agreement.
    expected : float
        The same if all people draw from one distribution per context.
    """

    sd: float
    expected: float
    p_value: float
    n_participants: int


def group_distance(
    item: ArrayLike,
    word: ArrayLike,
    participant: ArrayLike,
    second: ArrayLike,
    rng: np.random.Generator,
    *,
    n_permutations: int = 999,
) -> GroupDistance:
    """Compare two groups of people by the words with which they continue the same contexts.

    Every answer has its context, its word, who gave it (itself where nobody is named), and whether this is somebody of
    the second group.

    Examples
    --------
    >>> rng, person = np.random.default_rng(0), np.repeat(np.arange(8), 5)
    >>> same = cloze.group_distance(np.tile(np.arange(5), 8), rng.integers(0, 3, 40), person, person % 2, rng)
    >>> same.n_first, same.n_second
    (4, 4)
    """
    place, code, who = _responses(item, word, participant)
    of_second = np.asarray(second).astype(bool)
    if of_second.shape != place.shape:
        raise InputError(f"has shape {of_second.shape}, `item` has {place.shape}", field="second")
    check_numbers({"n_permutations": n_permutations}, at_least=1)
    n_people = int(who.max()) + 1
    share = np.bincount(who, weights=of_second, minlength=n_people) / np.bincount(who, minlength=n_people)
    if ((share > 0) & (share < 1)).any():
        raise InputError(f"puts {int(((share > 0) & (share < 1)).sum())} people into both groups", field="second")
    label = share > 0
    if label.all() or not label.any():
        raise InputError("puts everybody into one group; there is nothing to compare", field="second")
    observed, n_contexts = _mean_tvd(place, code, label[who])
    if not n_contexts:
        raise InputError("has no context that both groups answered", field="item")
    others = np.array([_mean_tvd(place, code, rng.permutation(label)[who])[0] for _ in range(n_permutations)])
    others = others[np.isfinite(others)]
    return GroupDistance(
        tvd=observed,
        baseline=float(others.mean()),
        baseline_lower=float(np.quantile(others, 0.05)),
        baseline_upper=float(np.quantile(others, 0.95)),
        p_value=float((1 + np.sum(others >= observed - 1e-12)) / (1 + others.size)),
        n_contexts=n_contexts,
        n_first=int((~label).sum()),
        n_second=int(label.sum()),
    )


def agreement_spread(
    item: ArrayLike, word: ArrayLike, participant: ArrayLike, rng: np.random.Generator, *, n_permutations: int = 999
) -> AgreementSpread:
    """Say whether single people differ: some give the common answers, some answers of their own.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> item, person = np.tile(np.arange(6), 9), np.repeat(np.arange(9), 6)
    >>> cloze.agreement_spread(item, rng.integers(0, 4, 54), person, rng).n_participants
    9
    """
    place, code, who = _responses(item, word, participant)
    check_numbers({"n_permutations": n_permutations}, at_least=1)
    answers = np.bincount(place)[place]
    key = np.unique(place * (int(code.max()) + 1) + code, return_inverse=True)[1]
    agreement = (np.bincount(key)[key] - 1) / np.maximum(answers - 1, 1)
    # an answer that nobody else could have given says nothing
    keep = answers > 1
    place, who, agreement = place[keep], np.unique(who[keep], return_inverse=True)[1], agreement[keep]
    if who.size == 0 or int(who.max()) < 1:
        raise InputError("has fewer than two people who answered what others answered, too", field="participant")
    observed = _spread(agreement, who)
    order = np.argsort(place, kind="stable")
    others = []
    for _ in range(n_permutations):
        dealt = np.empty_like(agreement)
        # random keys within the contexts: every context's answers go to its people in another order
        dealt[order] = agreement[np.lexsort((rng.uniform(size=place.size), place))]
        others.append(_spread(dealt, who))
    return AgreementSpread(
        sd=observed,
        expected=float(np.mean(others)),
        p_value=float((1 + np.sum(np.array(others) >= observed - 1e-12)) / (1 + len(others))),
        n_participants=int(who.max()) + 1,
    )


def _responses(item: ArrayLike, word: ArrayLike, participant: ArrayLike) -> tuple[Ints, ...]:
    """Codes of the item, word and participant of every response."""
    given = {"item": item, "word": word, "participant": participant}
    return tuple(codes(values, name, np.size(item), "item") for name, values in given.items())


def _spread(agreement: FloatArray, who: Ints) -> float:
    return float(np.std(np.bincount(who, weights=agreement) / np.bincount(who), ddof=1))


def _mean_tvd(place: Ints, code: Ints, second: BoolArray) -> tuple[float, int]:
    """Mean TVD over the contexts that both groups answered, and their number."""
    n_items = int(place.max()) + 1
    n = np.stack([np.bincount(place, weights=side, minlength=n_items) for side in (~second, second)])
    both = (n > 0).all(axis=0)
    if not both.any():
        return float("nan"), 0
    cell = place * (int(code.max()) + 1) + code
    known, at = np.unique(cell, return_inverse=True)
    counts = np.stack([np.bincount(at, weights=side, minlength=known.size) for side in (~second, second)])
    of_item = known // (int(code.max()) + 1)
    p = counts / np.maximum(n[:, of_item], 1)
    tvd = 0.5 * np.bincount(of_item, weights=np.abs(p[0] - p[1]), minlength=n_items)
    return float(tvd[both].mean()), int(both.sum())
