"""Cloze studies whose distributions are known: Zipf-like people, and models at a known distance from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import Dataset, FloatArray
from shannon_game.estimators.checks import check_numbers, named
from shannon_game.estimators.cloze.study import SAMPLES
from shannon_game.estimators.errors import InputError, check_memory, unknown_choice

FAMILIES = ("mixture", "factors", "ranks", "tail", "sharper", "same")
"""How a model's distribution comes from people's, see :func:`word_pair`."""


@dataclass(frozen=True)
class ClozeSimulation:
    """Settings of a simulated study.

    Parameters
    ----------
    n_answers, n_samples : int
        People, and samples of each model, in each context.
    families : tuple of str
        One model for each (:data:`FAMILIES`).
    exponent, difference : tuple of float
        Ranges over contexts of the Zipf exponent, and of the amount by which a model differs.
    n_groups : int
        Groups of people, dealt out in turn; people are then named, and everybody answers every context. 0: no names.
    group_difference : float
        Share of the answers of every group but the first that are of another distribution, with the same probabilities
        of other words.
    """

    n_items: int = 40
    items_per_text: int = 10
    n_answers: int = 40
    n_samples: int = 40
    vocab_size: int = 2000
    families: tuple[str, ...] = ("mixture", "factors")
    exponent: tuple[float, float] = (0.9, 1.6)
    difference: tuple[float, float] = (0.5, 1.5)
    n_groups: int = 0
    group_difference: float = 0.3

    def __post_init__(self) -> None:
        """Check every setting."""
        sizes = named(self, "n_items", "items_per_text", "n_answers", "n_samples")
        check_numbers(sizes, whole=True, at_least=1)
        check_numbers(named(self, "n_groups"), whole=True, at_least=0, at_most=self.n_answers)
        check_numbers(named(self, "group_difference"), at_least=0, at_most=1)
        check_numbers(named(self, "vocab_size"), whole=True, at_least=10)
        for family in self.families:
            if family not in FAMILIES:
                raise unknown_choice("family", family, FAMILIES)
        if not self.families or len(set(self.families)) < len(self.families):
            raise InputError(f"is {self.families}; name each family once", field="families")
        for name in ("exponent", "difference"):
            low, high = getattr(self, name)
            if not 0 < low <= high:
                raise InputError(f"is {(low, high)}, should be two numbers above 0, the smaller first", field=name)


def word_pair(
    family: str, *, vocab_size: int, exponent: float, difference: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Distributions of people and of a model over 2 x vocab_size words."""
    rank = np.arange(1, vocab_size + 1)
    zipf = rank**-exponent
    zipf /= zipf.sum()
    nothing = np.zeros(vocab_size)
    people = np.concatenate([zipf, nothing])
    if family == "mixture":
        share = min(0.3 * difference, 1.0)
        return people, np.concatenate([(1 - share) * zipf, share * zipf])
    if family == "factors":
        model = zipf * np.exp(difference * rng.standard_normal(vocab_size))
    elif family == "ranks":
        model = np.empty(vocab_size)
        model[np.argsort(np.log(rank) + difference * rng.standard_normal(vocab_size))] = zipf
    elif family == "tail":
        model = rng.standard_gamma(20 * difference * zipf)
    elif family == "sharper":
        model = zipf ** (1 + 0.5 * difference)
    elif family == "same":
        return people, people
    else:
        raise unknown_choice("family", family, FAMILIES)
    return people, np.concatenate([model / model.sum(), nothing])


def simulate_cloze_study(settings: ClozeSimulation, rng: np.random.Generator) -> Dataset:
    """Draw a cloze study whose true distances are in ``true_tvd`` (dims model, item).

    The word of the text is drawn from people's distribution. Where there are groups, ``true_tvd`` is the distance to
    the first, and ``true_group_tvd`` (item) that between it and the second.

    Examples
    --------
    >>> settings = cloze.ClozeSimulation(n_items=3, vocab_size=20)
    >>> cloze.simulate_cloze_study(settings, np.random.default_rng(0))["true_tvd"].values.round(2)
    array([[0.23, 0.3 , 0.38],
           [0.41, 0.33, 0.36]])
    """
    import xarray as xr  # noqa: PLC0415 - at the door only

    n_items, names = settings.n_items, list(settings.families)
    field = "vocab_size" if settings.vocab_size > n_items else "n_items"
    check_memory(64 * settings.vocab_size + 500 * n_items * len(names), source="simulation", field=field)
    answers: list[NDArray[np.int64]] = []
    samples: list[NDArray[np.int64]] = []
    distributions: list[FloatArray] = []
    truth = np.zeros((len(names), n_items))
    target = np.empty(n_items, dtype=np.int64)
    for item in range(n_items):
        exponent = rng.uniform(*settings.exponent)
        people: FloatArray = np.zeros(0)
        for m, family in enumerate(names):
            people, model = word_pair(
                family, vocab_size=settings.vocab_size, exponent=exponent, difference=rng.uniform(*settings.difference),
                rng=rng,
            )  # fmt: skip
            truth[m, item] = 0.5 * np.abs(people - model).sum()
            drawn = rng.multinomial(settings.n_samples, model)
            seen = np.flatnonzero(drawn)
            samples.append(np.stack([np.full(len(seen), item * len(names) + m), seen, drawn[seen]]))
        given = rng.multinomial(settings.n_answers, people)
        seen = np.flatnonzero(given)
        answers.append(np.stack([np.full(len(seen), item), seen, given[seen]]))
        distributions.append(people)
        target[item] = rng.choice(len(people), p=people)
    more: dict[str, Any] = {}
    if settings.n_groups:
        answers, more = _answers_of_groups(settings, distributions, rng)
    response, sample = np.concatenate(answers, axis=1), np.concatenate(samples, axis=1)
    used, code = np.unique(np.concatenate([response[1], sample[1]]), return_inverse=True)
    items = np.arange(n_items)
    return xr.Dataset(
        {
            "text_id": ("item", _objects([f"{i // settings.items_per_text + 1}" for i in items.tolist()])),
            "word_num": ("item", items % settings.items_per_text + 2),
            "context": ("item", _objects([f"simulated context {i}" for i in items.tolist()])),
            "target_word": ("item", _objects([f"word{w}" for w in target])),
            "word_text": ("word", _objects([f"word{w}" for w in used])),
            "response_item": ("response", response[0]),
            "response_word": ("response", code[: response.shape[1]]),
            "response_count": ("response", response[2]),
            "entry_item": ("entry", np.repeat(items, len(names))),
            "entry_model": ("entry", np.tile(np.arange(len(names)), n_items)),
            "sample_entry": ("sample", sample[0]),
            "sample_word": ("sample", code[response.shape[1] :]),
            "sample_source": ("sample", np.zeros(sample.shape[1], dtype=np.int64)),
            "sample_count": ("sample", sample[2]),
            "true_tvd": (("model", "item"), truth),
            **more,
        },
        coords={"item": items, "model": names, "source": [SAMPLES]},
        attrs={"name": "cloze_simulated", "word_rules": "none"},
    )


def _answers_of_groups(
    settings: ClozeSimulation, distributions: list[FloatArray], rng: np.random.Generator
) -> tuple[list[NDArray[np.int64]], dict[str, Any]]:
    """One answer a person and context, and who they are; group g moves words up by g."""
    n_people, n_items = settings.n_answers, settings.n_items
    group = np.arange(n_people) % settings.n_groups
    answers, distance = [], np.zeros(n_items)
    for item, people in enumerate(distributions):
        # of the first vocab_size words, which alone have a probability
        own = rng.choice(people.size, size=n_people, p=people)
        other = (own + group) % settings.vocab_size
        moved = (group > 0) & (rng.uniform(size=n_people) < settings.group_difference)
        answers.append(
            np.stack([np.full(n_people, item), np.where(moved, other, own), np.ones(n_people, dtype=np.int64)])
        )
        zipf = people[: settings.vocab_size]
        distance[item] = settings.group_difference * 0.5 * np.abs(zipf - np.roll(zipf, 1)).sum()
    names = _objects([f"p{person}" for person in range(n_people)])
    groups = _objects([f"group {number + 1}" for number in group.tolist()])
    return answers, {
        "participant": ("response", np.tile(names, n_items)),
        "participant_group": ("response", np.tile(groups, n_items)),
        "true_group_tvd": ("item", distance if settings.n_groups > 1 else np.zeros(n_items)),
    }


def _objects(strings: list[str]) -> NDArray[np.object_]:
    return np.array(strings, dtype=object)
