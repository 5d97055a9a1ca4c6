r"""How much better reading times are predicted with surprisal than without it, in texts that were left out.

For times :math:`y_i`, controls :math:`x_i` and surprisal :math:`s_i`, of the word and of words before it, and
:math:`k(i)` the part of the texts that holds time :math:`i`,

.. math::

    \Delta = \frac{1}{N} \sum_{i=1}^N \Big[ \ln p\big(y_i \mid x_i, s_i, \hat\theta_{-k(i)}\big)
             - \ln p\big(y_i \mid x_i, \hat\theta^0_{-k(i)}\big) \Big]

in nats per time: per word read, or per word where times are means. Densities are those of
:func:`~shannon_game.estimators.documents.mixed.held_out_loglik`. Sources: Goodkind and Bicknell (2018), who compare
likelihoods of the same times; Wilcox, Gauthier, Hu, Qian and Levy (2020) and Wilcox, Pimentel, Meister, Cotterell and
Levy (2023), who hold times out. Here whole texts are held out, since words of a text share their topic.

The ceiling is what people know: the mean times of a random half of the readers, in the place of surprisal, predict the
other half, which has as many readers. Noise in these means makes it a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.documents.clusters import answer_numbers, codes, t_half_width
from shannon_game.estimators.documents.corpus import unit_loss
from shannon_game.estimators.documents.mixed import held_out_loglik
from shannon_game.estimators.errors import InputError

# fewer times a reader leave no slope of their own, and fewer readers no halves with random effects
_FOLDS, _TIMES_FOR_SLOPE, _READERS_FOR_HALVES = 10, 5, 4


@dataclass(frozen=True, repr=False)
class ReadingGain(Result):
    """Gain in held-out log-likelihood, its Student's interval over texts, and the gain that other readers' times give.

    Attributes
    ----------
    gain_nats_per_word : float
        Nats per time: per word and reader, or per word where times are means.
    lower, upper : float
        Texts are what was sampled; the readers are those of the corpus.
    texts, gains_by_text, words_by_text, ceilings_by_text : array, shape (text,)
        Names, mean gain in nats, number of times, and ceiling of each text.
    n_readers : int
        0 where times are means.
    ceiling : float
        Gain of the mean times of another half of the readers; NaN with fewer than 4 readers, or means.
    """

    made_by = "reading_gain"

    gain_nats_per_word: float
    lower: float
    upper: float
    texts: NDArray[np.object_]
    gains_by_text: FloatArray
    words_by_text: NDArray[np.int64]
    n_readers: int
    ceiling: float
    ceilings_by_text: FloatArray


def text_folds(text: ArrayLike) -> NDArray[np.int64]:
    """Part of every time, 10 at most; texts stay whole."""
    code = codes(text, "text", np.size(text))
    place = np.argsort(np.argsort(np.unique(code, return_index=True)[1]))
    found: NDArray[np.int64] = place[code] % min(_FOLDS, place.size)
    return found


def reader_slope(columns: Mapping[str, ArrayLike], reader: ArrayLike | None) -> str | None:
    """First column, if readers have times enough for slopes of their own."""
    if reader is None or np.size(reader) < _TIMES_FOR_SLOPE * np.unique(reader).size:
        return None
    return next(iter(columns), None)


def held_out_densities(  # noqa: PLR0917 - as held_out_loglik, with texts for parts
    values: ArrayLike,
    controls: Mapping[str, ArrayLike],
    added: Mapping[str, ArrayLike],
    text: ArrayLike,
    reader: ArrayLike | None = None,
    word: ArrayLike | None = None,
) -> FloatArray:
    """Log-density of every time under regressions on other texts, in nats; `added` has surprisal, the word's first."""
    slope = reader_slope(added, reader)
    return held_out_loglik(values, {**controls, **added}, text_folds(text), reader, word, slope=slope)


def gain_over_texts(
    density: ArrayLike,
    baseline: ArrayLike,
    text: ArrayLike,
    *,
    n_readers: int = 0,
    ceiling: tuple[FloatArray, FloatArray] | None = None,
    probability: float = 0.9,
) -> ReadingGain:
    """Gain of one set of held-out log-densities over another, of the same times.

    `ceiling` has the sum of gains and the number of times of each text, of texts in the order of their names.

    Examples
    --------
    >>> documents.gain_over_texts([-1.0, -2.0, -1.5], [-1.5, -2.1, -1.9], ["a", "a", "b"])
    ReadingGain(gain_nats_per_word=0.3333, lower=0.05272, upper=0.6139, n_readers=0, ...)
    """
    new, old = answer_numbers(density, "density"), answer_numbers(baseline, "baseline")
    if new.shape != old.shape:
        raise InputError(f"has shape {old.shape}, `density` has {new.shape}", field="baseline")
    names, code = np.unique(np.asarray(text, dtype=str)), codes(np.asarray(text, dtype=str), "text", new.size)
    total: FloatArray = np.bincount(code, weights=new - old).astype(float)
    n = np.bincount(code)
    mean, half = _mean_and_half(total, n, probability)
    people, times = np.zeros((2, names.size)) if ceiling is None else ceiling
    return ReadingGain(
        gain_nats_per_word=mean,
        lower=mean - half,
        upper=mean + half,
        texts=names.astype(object),
        gains_by_text=total / n,
        words_by_text=n,
        n_readers=n_readers,
        ceiling=float(people.sum() / times.sum()) if times.sum() else float("nan"),
        ceilings_by_text=people / np.where(times > 0, times, np.nan),
    )


def gain_difference(one: ReadingGain, other: ReadingGain, *, probability: float = 0.9) -> tuple[float, float, float]:
    """Difference of two gains of the same times, and its interval: texts are paired.

    Examples
    --------
    >>> text, without = ["a", "a", "b"], [-1.5, -2.1, -1.9]
    >>> one = documents.gain_over_texts([-1.0, -2.0, -1.5], without, text)
    >>> other = documents.gain_over_texts([-1.2, -2.1, -1.7], without, text)
    >>> [round(number, 3) for number in documents.gain_difference(one, other)]
    [0.167, 0.026, 0.307]
    """
    ReadingGain.require(one=one, other=other)
    if one.texts.tolist() != other.texts.tolist() or one.words_by_text.tolist() != other.words_by_text.tolist():
        raise InputError("is of other times; give both models to one call of reading_gain", field="other")
    n = one.words_by_text
    mean, half = _mean_and_half((one.gains_by_text - other.gains_by_text) * n, n, probability)
    return mean, mean - half, mean + half


def _mean_and_half(total: FloatArray, n: NDArray[np.int64], probability: float) -> tuple[float, float]:
    found = unit_loss(total, n).nats
    return found.mean, t_half_width(found.se, total.size - 1, probability)


def people_ceiling(
    values: ArrayLike,
    controls: Mapping[str, ArrayLike],
    *,
    text: ArrayLike,
    reader: ArrayLike,
    word: ArrayLike,
    before: ArrayLike,
    n_splits: int,
    seed: int = 0,
    done: Callable[[int], None] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Sum of gains and number of times of each text, where half of the readers predict the other half.

    `before` has the numbers of each word itself and of those before it, shape (lag, word), -1 where there is none.
    """
    y = answer_numbers(values, "values")
    who, of_text = codes(reader, "reader", y.size), codes(np.asarray(text, dtype=str), "text", y.size)
    which, previous = np.asarray(word, dtype=np.intp), np.asarray(before).astype(np.intp)
    n_readers, n_texts = int(who.max()) + 1, int(of_text.max()) + 1
    total, n = np.zeros(n_texts), np.zeros(n_texts)
    if n_readers < _READERS_FOR_HALVES:
        return total, n
    # readers of other texts are no slower for it
    level = (np.bincount(who, weights=y) / np.bincount(who))[who]
    rng = np.random.default_rng(seed)
    for split in range(n_splits):
        order, size = rng.permutation(n_readers), n_readers // 2
        mine, theirs = (np.isin(who, half) for half in (order[:size], order[size : 2 * size]))
        sums = np.bincount(which[mine], weights=(y - level)[mine], minlength=previous.shape[1])
        times = np.bincount(which[mine], minlength=previous.shape[1])
        mean = np.append(sums / np.where(times > 0, times, np.nan), np.nan)
        people = mean[previous[:, which]]
        kept = theirs & np.isfinite(people).all(axis=0)
        if np.unique(of_text[kept]).size < 2:
            continue
        cut = {name: its for name, column in controls.items() if np.ptp(its := np.asarray(column)[kept]) > 0}
        added = {f"mean time, {lag} before": row[kept] for lag, row in enumerate(people)}
        of = of_text[kept], who[kept], which[kept]
        gain = held_out_densities(y[kept], cut, added, *of) - held_out_densities(y[kept], cut, {}, *of)
        total += np.bincount(of_text[kept], weights=gain, minlength=n_texts)
        n += np.bincount(of_text[kept], minlength=n_texts)
        if done is not None:
            done(split + 1)
    return total, n
