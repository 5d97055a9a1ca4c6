r"""A simulated language: true next-token distributions, and language models and people who know them less well.

The language. Every context *c* gets a true distribution over the vocabulary,

    ln T(v|c) = b_v + S_cv - normaliser,

a Zipf-Mandelbrot base *b* plus a context signal *S*: exponential variates times a strength that
varies over contexts, so that the sorted probabilities of a context fall as a power law and contexts
range from nearly known to flat. One scale is solved for so that the mean entropy is the one asked for.

The players. A language model or the human belief is a degraded view of *T*,

    ln p(v|c) = ln T(v|c) + lambda * (k_c E_cv - min(k_c M_cv, 1) S_cv) - normaliser:

it loses a part *M* of the signal and adds heavy-tailed (Laplace) noise *E*, more of both on the items
that are hard for it (*k*). KL(T || p) is convex and increasing in lambda, which is solved for so that
its mean over items is the stated excess loss. Players share part of *E*, *M* and *k*, as models
trained on the same text do. The constants below were chosen so that the control estimator (eq. 5 of
"Language Models Are Better Than Humans at Next-token Prediction", Shlegeris et al.) is as
biased here as on that paper's 1,000 questions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.comparison.simulation.settings import SimulationSettings, random_stream, sigmoid
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import HUMAN

Singles = NDArray[np.float32]

# The texture of the language, matched to the real questions (see the module's docstring).
_ZIPF_SHIFT = 2.7  # Zipf-Mandelbrot: frequency of rank r is proportional to 1 / (r + shift)
_SIGNAL_SPREAD = 1.2  # sd over items of the logit of the signal strength
_NOISE_SCALE = 2.5  # of the Laplace noise at lambda = 1, nats
_LOSS_POWER = 0.5  # the lost part of the signal is U ** power, U uniform
_HARDNESS_LOG_SD = 0.35  # sd over items of ln k
_SHARED = {"lm-weak": 0.565, "lm-medium": 0.86, "lm-strong": 0.8, HUMAN: 0.3}  # part of the error common to players

_TOLERANCE_NATS = 1e-5  # of a solved mean entropy or mean divergence
_MAX_SIGNAL_SCALE = 100.0
_CHUNK_CELLS = 200_000  # rows are handled in blocks that stay in the processor's cache
_CONTEXT_TOKENS = 12


@dataclass(frozen=True)
class Language:
    """The true distributions and every player's view of them."""

    vocabulary: NDArray[np.str_]
    unigram_logprob: Singles
    true_logprob: Singles
    player_logprob: Mapping[str, Singles]


def simulate_language(settings: SimulationSettings) -> Language:
    """Draw the true distributions of all reference items and solve for every player's view of them."""
    n_items, n_tokens = settings.n_reference_items, settings.vocab_size
    seed = settings.seed
    base = -np.log(np.arange(n_tokens) + 1 + _ZIPF_SHIFT)
    base -= np.log(np.exp(base).sum())
    unigram = base.astype(np.float32)

    true_logprob, signal = _true_distributions(settings, unigram)
    shared = _errors(random_stream(seed, "shared"), n_items, n_tokens)
    players = {}
    for player, share in _SHARED.items():
        excess = settings.excess_nats[player]
        direction = _degradation(random_stream(seed, player), shared, share, signal)
        players[player] = _degraded_view(player, excess, true_logprob, direction)
    return Language(_vocabulary(n_tokens, random_stream(seed, "vocabulary")), unigram, true_logprob, players)


def divergence(logprob: NDArray[np.floating], generator: NDArray[np.floating]) -> FloatArray:
    """KL(player || generator) of every item, nats; both of shape (item, token)."""
    # in float32 the sum of thousands of terms that cancel can come out a hair below zero
    kl: FloatArray = np.maximum(np.einsum("ij,ij->i", np.exp(logprob), logprob - generator), 0).astype(float)
    return kl


def _true_distributions(settings: SimulationSettings, unigram: Singles) -> tuple[Singles, Singles]:
    """Draw the true log-probabilities and the scaled context signal, both (item, vocab)."""
    rng = random_stream(settings.seed, "signal")
    shape = (settings.n_reference_items, settings.vocab_size)
    strength = sigmoid(_SIGNAL_SPREAD * rng.standard_normal((shape[0], 1)))
    signal = rng.standard_exponential(shape, dtype=np.float32)
    signal *= strength.astype(np.float32)

    highest = float(-(np.exp(unigram, dtype=float) * unigram).sum())
    target = settings.entropy_nats
    scale = None
    if target < highest:

        def negative_entropy(scale: float) -> tuple[float, float]:
            value = slope = 0.0
            for rows in _blocks(shape):
                logits = unigram + np.float32(scale) * signal[rows]
                p, normaliser = _softmax(logits)
                mean_logit = (p * logits).sum(axis=1)
                value += float((mean_logit - normaliser).sum(dtype=float))
                slope += float(np.einsum("ij,ij,ij->", p, logits - mean_logit[:, None], signal[rows], dtype=float))
            return value / shape[0], slope / shape[0]

        scale = _solve(negative_entropy, -target, start=4.0, low=0.0, high=_MAX_SIGNAL_SCALE)
    if scale is None:
        right = f"with vocab_size {shape[1]} it should be well above 0 and below {highest:.2f}"
        problem = f"is {target}, which cannot be reached; {right}"
        raise InputError(problem, source="simulation", field="entropy_nats")
    signal *= np.float32(scale)
    return _log_normalised(unigram + signal), signal


def _errors(rng: np.random.Generator, n_items: int, n_tokens: int) -> tuple[Singles, Singles, Singles]:
    """Draw noise (item, vocab), lost part of the signal (item, vocab) and log hardness (item, 1), before scaling."""
    shape = (n_items, n_tokens)
    noise = rng.standard_exponential(shape, dtype=np.float32)
    for rows in _blocks(shape):
        noise[rows] -= rng.standard_exponential(noise[rows].shape, dtype=np.float32)
    lost = rng.random(shape, dtype=np.float32)
    lost **= _LOSS_POWER
    return noise, lost, rng.standard_normal((n_items, 1), dtype=np.float32)


def _degradation(
    rng: np.random.Generator, shared: tuple[Singles, Singles, Singles], share: float, signal: Singles
) -> Singles:
    """Draw what lambda multiplies in a player's log-probabilities, (item, vocab)."""
    noise, lost, hardness = _errors(rng, *signal.shape)
    common, own = np.float32(share), np.float32(np.sqrt(1 - share**2))
    hardness = np.exp(np.float32(_HARDNESS_LOG_SD) * (common * shared[2] + own * hardness))
    scale = np.float32(_NOISE_SCALE) * hardness
    # in place and in blocks: the arithmetic on arrays of their own would take longer than drawing them
    for rows in _blocks(signal.shape):
        np.copyto(lost[rows], shared[1][rows], where=rng.random(lost[rows].shape, dtype=np.float32) < common)
        lost[rows] *= hardness[rows]
        # at most the whole signal is lost, whatever lambda in [0, 1]: no player is led away from the truth by design
        np.minimum(lost[rows], np.float32(1), out=lost[rows])
        lost[rows] *= signal[rows]
        noise[rows] *= own
        noise[rows] += common * shared[0][rows]
        noise[rows] *= scale[rows]
        noise[rows] -= lost[rows]
    return noise


def _degraded_view(player: str, excess: float, true_logprob: Singles, direction: Singles) -> Singles:
    """Log-probabilities of a player whose mean KL(T || p) is `excess` nats, (item, vocab)."""
    if excess == 0:
        return true_logprob
    n_items = true_logprob.shape[0]
    expected = sum(
        float((np.exp(true_logprob[rows]) * direction[rows]).sum(dtype=float)) for rows in _blocks(direction.shape)
    )
    expected /= n_items

    def divergence(strength: float) -> tuple[float, float]:
        # KL(T || T e^{l D} / Z) = ln Z - l E_T D, with derivative E_p D - E_T D >= 0
        value = slope = 0.0
        for rows in _blocks(direction.shape):
            p, normaliser = _softmax(true_logprob[rows] + np.float32(strength) * direction[rows])
            value += float(normaliser.sum(dtype=float))
            slope += float(np.einsum("ij,ij->", p, direction[rows], dtype=float))
        return value / n_items - strength * expected, slope / n_items - expected

    strength = _solve(divergence, excess, start=0.25, low=0.0, high=1.0)
    if strength is None:
        most = f"a player who lost all it can is {divergence(1.0)[0]:.3f} nats from the truth"
        problem = f"is {excess}, which cannot be reached: {most}; lower it, raise vocab_size or lower entropy_nats"
        raise InputError(problem, source="simulation", field=f"excess_nats.{player}")
    return _log_normalised(true_logprob + np.float32(strength) * direction)


def _solve(
    function: Callable[[float], tuple[float, float]], target: float, *, start: float, low: float, high: float
) -> float | None:
    """Where an increasing function equals `target`, by Newton steps inside a bracket; None if only beyond `high`."""
    x, highest = start, high
    while True:
        value, slope = function(x)
        error = value - target
        # a bracket as narrow as float32 resolves cannot be improved on
        if abs(error) <= _TOLERANCE_NATS or high - low <= 1e-7 * highest:
            return x
        if error > 0:
            high = x
        elif x >= highest:
            return None
        else:
            low = x
        x = x - error / slope if slope > 0 else highest
        if not low < x < high:
            x = highest if x >= high == highest else (low + high) / 2


def _blocks(shape: tuple[int, ...]) -> list[slice]:
    rows = max(1, _CHUNK_CELLS // shape[1])
    return [slice(start, start + rows) for start in range(0, shape[0], rows)]


def _softmax(logits: Singles) -> tuple[Singles, Singles]:
    """Probabilities along the last axis, and the log normaliser."""
    top = logits.max(axis=-1, keepdims=True)
    p = np.exp(logits - top)
    total = p.sum(axis=-1, keepdims=True)
    p /= total
    return p, (top + np.log(total))[..., 0]


def _log_normalised(logits: Singles) -> Singles:
    """Subtract the log normaliser of every row, in place."""
    for rows in _blocks(logits.shape):
        logits[rows] -= _softmax(logits[rows])[1][:, None]
    return logits


def draw_tokens(logprob: NDArray[np.floating], n: int, rng: np.random.Generator) -> IntArray:
    """Draw `n` tokens for each row, (item, n)."""
    uniform = rng.random((logprob.shape[0], n))
    drawn = np.empty(uniform.shape, dtype=np.intp)
    for row, values in enumerate(uniform):
        cumulated = np.cumsum(np.exp(logprob[row], dtype=float))
        drawn[row] = np.searchsorted(cumulated, values * cumulated[-1], side="right")
    # a product that rounds up to the whole mass would fall off the end
    np.minimum(drawn, logprob.shape[1] - 1, out=drawn)
    return drawn


def looked_up(logprob: NDArray[np.floating], target: IntArray, candidate: IntArray) -> tuple[FloatArray, FloatArray]:
    """Log-probabilities of the target (item,) and of the candidates (item, candidate), at most 0."""
    of_target = np.take_along_axis(logprob, target, axis=1)[:, 0]
    of_candidate = np.take_along_axis(logprob, candidate, axis=1)
    return np.minimum(of_target, 0).astype(float), np.minimum(of_candidate, 0).astype(float)


def context_texts(language: Language, n_items: int, rng: np.random.Generator) -> NDArray[np.str_]:
    """Make a context of each item: frequent and rare tokens as the language has them, without its meaning."""
    tokens = draw_tokens(language.unigram_logprob[None, :], n_items * _CONTEXT_TOKENS, rng)
    rows = language.vocabulary[tokens.reshape(n_items, _CONTEXT_TOKENS)]
    return np.asarray(["".join(row) for row in rows.tolist()])


_ONSETS = [*"bcdfghlmnprstvw", "br", "ch", "cl", "cr", "dr", "fl", "gr", "pl", "pr", "sh", "sl", "st", "th", "tr"]
_VOWELS = [*"aeiou", "ai", "ea", "ee", "ie", "ou"]
_CODAS = ["", "", "", *"nrstldm", "ck", "nd", "ng", "nt", "rt", "st"]
_MARKS = [*",.-\"'):;?!", "'s", "\n", " (", ' "', "...", " -", "'t", "/", " $", "%"]
_KINDS = (" word", "piece", " Name", " number")
_KIND_PROBABILITIES = (0.68, 0.19, 0.09, 0.04)


def _vocabulary(size: int, rng: np.random.Generator) -> NDArray[np.str_]:
    """Distinct strings shaped like the tokens of a byte-pair encoding, shorter ones among the more frequent."""
    places = [int(place) for place in np.linspace(0, min(size, 200) - 1, min(len(_MARKS), size // 5))]
    marks = dict(zip(places, _MARKS, strict=False))
    taken = set(_MARKS)
    cumulated = (np.cumsum(_KIND_PROBABILITIES) / np.cumsum(_KIND_PROBABILITIES)[-1]).tolist()
    tokens: list[str] = []
    for rank in range(size):
        token = marks.get(rank, "")
        # what rng.choice draws with these probabilities, without checking them for every token
        kind = bisect_right(cumulated, rng.random()) if not token else -1
        syllables = 1 + int(rng.random() < rank / (rank + 300)) if not token else 0
        while not token or (kind >= 0 and token in taken):
            text = "".join(_pick(rng, part) for _ in range(syllables) for part in (_ONSETS, _VOWELS, _CODAS))
            if _KINDS[kind] == " number":
                text = str(rng.integers(0, 10 ** (syllables + 1)))
            elif _KINDS[kind] == " Name":
                text = text.capitalize()
            token = text if _KINDS[kind] == "piece" else f" {text}"
            syllables += token in taken
        taken.add(token)
        tokens.append(token)
    return np.asarray(tokens)


def _pick(rng: np.random.Generator, parts: list[str]) -> str:
    return parts[int(rng.random() * len(parts))]
