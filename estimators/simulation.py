"""A simulated comparison study whose truth is known: true distributions, players at stated losses, noisy participants.

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

The participants. See :func:`simulate_reports`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.comparison import HUMAN, validate_comparison_study
from estimators.errors import InputError, unknown_choice
from estimators.rounding import SCHEMES, round_reports
from estimators.study_notes import add_note

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "DEFAULT_EXCESS_NATS",
    "LANGUAGE_MODELS",
    "LAPSE_REPORTS",
    "Language",
    "ParticipantPopulation",
    "Participants",
    "SimulationSettings",
    "draw_participants",
    "simulate_comparison_study",
    "simulate_language",
    "simulate_reports",
]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

LANGUAGE_MODELS = ("lm-weak", "lm-medium", "lm-strong")
"""The simulated language models, from the highest loss to the lowest."""

LAPSE_REPORTS = (0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
"""The eleven boxes of the game: what a participant who clicks anywhere reports."""

DEFAULT_EXCESS_NATS: Mapping[str, float] = {"lm-weak": 2.14, "lm-medium": 0.72, "lm-strong": 0.45, HUMAN: 1.53}
"""Excess losses that, on the default entropy of 2.47 nats, give the losses of the 14M model (4.61), GPT-2 small (3.19)
and GPT-2 medium (2.92) on the real questions, and 4.0 nats for the humans."""

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

# One independent stream per purpose, so that a change of one setting leaves everything drawn for another as it was.
_STREAMS = ("vocabulary", "context", "signal", "shared", "target", "candidate", "participant", "shown", *_SHARED)


@dataclass(frozen=True)
class ParticipantPopulation:
    """How participants differ from each other and from an ideal reporter.

    Each participant has a bias ~ Normal(`bias_mean_nats`, `bias_sd_nats`), a slope with ln slope ~
    Normal(ln `slope_median`, `slope_log_sd`), a noise sd with ln sd ~ Normal(ln `noise_median_nats`,
    `noise_log_sd`), and a lapse rate ~ Beta(m n, (1 - m) n), m = `lapse_mean`, n = `lapse_concentration`.

    Parameters
    ----------
    bias_mean_nats, bias_sd_nats : float
        Bias towards the target, added to the log-odds before the slope.
    slope_median, slope_log_sd : float
        Slope on the log-odds; 1 is calibrated, less than 1 is under-confident.
    noise_median_nats, noise_log_sd : float
        Standard deviation of the noise on the reported log-odds.
    lapse_mean, lapse_concentration : float
        Probability of an answer that has nothing to do with the belief; the concentration is like a number of answers.
    bias, slope, noise, lapses : bool
        Switches: off means bias 0, slope 1, noise 0, lapse rate 0. With all four off and no rounding the
        reports are the exact h(y) / (h(y) + h(x)).

    Raises
    ------
    InputError
        If a spread is negative, a slope or concentration is not positive, or a lapse rate is outside [0, 1].
    """

    bias_mean_nats: float = 0.0
    bias_sd_nats: float = 0.5
    slope_median: float = 1.0
    slope_log_sd: float = 0.5
    noise_median_nats: float = 0.9
    noise_log_sd: float = 0.3
    lapse_mean: float = 0.05
    lapse_concentration: float = 40.0
    bias: bool = True
    slope: bool = True
    noise: bool = True
    lapses: bool = True

    def __post_init__(self) -> None:
        source = "participant population"
        _check_number("bias_mean_nats", self.bias_mean_nats, source)
        for name in ("bias_sd_nats", "slope_log_sd", "noise_median_nats", "noise_log_sd"):
            _check_number(name, getattr(self, name), source, at_least=0.0)
        for name in ("slope_median", "lapse_concentration"):
            _check_number(name, getattr(self, name), source, above=0.0)
        _check_number("lapse_mean", self.lapse_mean, source, at_least=0.0, at_most=1.0)
        for name in ("bias", "slope", "noise", "lapses"):
            _check_switch(name, getattr(self, name), source)


@dataclass(frozen=True)
class SimulationSettings:
    """Everything that a simulated study depends on.

    Parameters
    ----------
    n_items : int
        Items that are asked; the first ones of the reference items.
    n_reference_items : int
        Items in all; the reference loss L_G is a mean over all of them.
    n_participants : int
    n_candidates : int
        Candidates drawn from the generator for an item, repeats kept. A participant sees the same position
        along them on every item, and different participants different ones until all are used.
    vocab_size : int
    seed : int
    generator : str
        The language model that draws the candidates, one of :data:`LANGUAGE_MODELS`.
    rounding : str
        What reports are rounded to, one of :data:`estimators.rounding.SCHEMES`.
    entropy_nats : float
        Mean over items of the entropy of the true distribution: the loss that nobody can beat.
    excess_nats : mapping of str to float
        Mean over items of KL(T || player) for each language model and ``human``. Players left out have
        :data:`DEFAULT_EXCESS_NATS`.
    store_reference : bool
        Also store the generator's whole distribution (n_reference_items x vocab_size float32).
    participants : ParticipantPopulation

    Raises
    ------
    InputError
        Names the field, its value and what would be right.
    """

    n_items: int = 120
    n_reference_items: int = 1000
    n_participants: int = 29
    n_candidates: int = 400
    vocab_size: int = 5000
    seed: int = 0
    generator: str = "lm-medium"
    rounding: str = "interface"
    entropy_nats: float = 2.47
    excess_nats: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_EXCESS_NATS))
    store_reference: bool = False
    participants: ParticipantPopulation = field(default_factory=ParticipantPopulation)

    def __post_init__(self) -> None:
        source = "simulation"
        for name in ("n_items", "n_reference_items", "n_participants", "n_candidates"):
            _check_count(name, getattr(self, name), source, at_least=1)
        _check_count("vocab_size", self.vocab_size, source, at_least=10)
        _check_count("seed", self.seed, source, at_least=0)
        if self.n_items > self.n_reference_items:
            raise InputError(
                f"is {self.n_items}, should be at most n_reference_items ({self.n_reference_items}): the asked items "
                "are among the reference items",
                source=source,
                field="n_items",
            )
        if self.generator not in LANGUAGE_MODELS:
            raise unknown_choice("generator", self.generator, LANGUAGE_MODELS, source=source)
        if self.rounding not in SCHEMES:
            raise unknown_choice("rounding", self.rounding, SCHEMES, source=source)
        _check_number("entropy_nats", self.entropy_nats, source, above=0.0)
        _check_switch("store_reference", self.store_reference, source)
        if not isinstance(self.participants, ParticipantPopulation):
            raise InputError(f"is {self.participants!r}, should be a ParticipantPopulation", field="participants")
        if not isinstance(self.excess_nats, Mapping):
            raise InputError(
                f"is {self.excess_nats!r}, should give each player's excess loss", source=source, field="excess_nats"
            )
        for player, excess in self.excess_nats.items():
            if player not in _SHARED:
                raise unknown_choice("player in excess_nats", player, _SHARED, source=source)
            _check_number(f"excess_nats.{player}", excess, source, at_least=0.0)
        complete = {player: float(self.excess_nats.get(player, DEFAULT_EXCESS_NATS[player])) for player in _SHARED}
        object.__setattr__(self, "excess_nats", complete)

    def to_json(self) -> str:
        """Write the settings as one JSON object, the participants' as an object in it."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return json.dumps(values | {"participants": asdict(self.participants), "excess_nats": dict(self.excess_nats)})


@dataclass(frozen=True)
class Language:
    """The true distributions and every player's view of them.

    Attributes
    ----------
    vocabulary : ndarray of str, shape (vocab,)
        Distinct tokens, from the most to the least frequent.
    unigram_logprob : ndarray of float32, shape (vocab,)
        The Zipf-Mandelbrot base, nats.
    true_logprob : ndarray of float32, shape (item, vocab)
        ln T(v|c), nats.
    player_logprob : mapping of str to ndarray of float32, shape (item, vocab)
        ln p(v|c) for each language model and ``human``, nats.
    """

    vocabulary: NDArray[np.str_]
    unigram_logprob: Singles
    true_logprob: Singles
    player_logprob: Mapping[str, Singles]


@dataclass(frozen=True)
class Participants:
    """Parameters of simulated participants; every array has shape (participant,).

    Attributes
    ----------
    bias : ndarray of float
        Bias towards the target, nats of log-odds.
    slope : ndarray of float
    noise_sd : ndarray of float
        Nats of log-odds.
    lapse_rate : ndarray of float
    """

    bias: Floats
    slope: Floats
    noise_sd: Floats
    lapse_rate: Floats


def simulate_reports(
    log_odds: ArrayLike,
    *,
    rng: np.random.Generator,
    bias: ArrayLike = 0.0,
    slope: ArrayLike = 1.0,
    noise_sd: ArrayLike = 0.0,
    lapse_rate: ArrayLike = 0.0,
    automatic: ArrayLike = False,
    rounding: str = "interface",
) -> Floats:
    """Report the probability of the target, as a participant with a given belief would.

    The latent report is sigmoid(slope * (log_odds + bias) + noise), noise ~ Normal(0, noise_sd). A lapse
    replaces it, half of the time by .5 and half of the time by one of :data:`LAPSE_REPORTS`. The
    report is then rounded; an automatic answer is exactly .5.

    Parameters
    ----------
    log_odds : array_like of float, any shape
        ln h(y) / h(x), nats: positive where the target is the likelier.
    rng : numpy.random.Generator
        As many numbers are drawn whatever the parameters, so switching one error off leaves the others as they were.
    bias, slope, noise_sd, lapse_rate : array_like of float, optional
        Broadcast against `log_odds`.
    automatic : array_like of bool, optional
        Where the two tokens were the same and the site answered by itself; broadcast against `log_odds`.
    rounding : str, optional
        A name in :data:`estimators.rounding.SCHEMES`.

    Returns
    -------
    ndarray of float, shape of `log_odds`
        In (0, 1): without rounding, a probability that floating point cannot tell from 0 or 1 becomes
        the nearest one whose likelihood ratio is finite.

    Raises
    ------
    InputError
        If `log_odds` is not finite, a slope is not positive, a noise sd is negative, a lapse rate is outside
        [0, 1], or the rounding is unknown.
    """
    belief = np.asarray(log_odds, dtype=float)
    shape = belief.shape
    shift, gain, spread, rate = (
        _broadcast(name, value, shape)
        for name, value in (("bias", bias), ("slope", slope), ("noise_sd", noise_sd), ("lapse_rate", lapse_rate))
    )
    for name, values, good, right in (
        ("log_odds", belief, np.isfinite(belief), "finite"),
        ("bias", shift, np.isfinite(shift), "finite"),
        ("slope", gain, (gain > 0) & np.isfinite(gain), "positive and finite"),
        ("noise_sd", spread, (spread >= 0) & np.isfinite(spread), "at least 0 and finite"),
        ("lapse_rate", rate, (rate >= 0) & (rate <= 1), "from 0 to 1"),
    ):
        if not good.all():
            raise InputError(f"is {values[~good].flat[0]}, should be {right}", source="reports", field=name)

    noise = rng.standard_normal(shape)
    lapsed = rng.random(shape) < rate
    undecided = rng.random(shape) < 0.5
    clicked = np.asarray(LAPSE_REPORTS)[rng.integers(0, len(LAPSE_REPORTS), shape)]

    report = _sigmoid(gain * (belief + shift) + spread * noise)
    report = np.where(lapsed, np.where(undecided, 0.5, clicked), report)
    report = round_reports(report, rounding)
    report = np.clip(report, np.finfo(float).tiny, np.nextafter(1, 0))
    return np.where(np.broadcast_to(np.asarray(automatic, dtype=bool), shape), 0.5, report)


def draw_participants(population: ParticipantPopulation, n_participants: int, seed: int) -> Participants:
    """Draw participants; the first ones are the same however many are drawn.

    Parameters
    ----------
    population : ParticipantPopulation
    n_participants : int
    seed : int

    Returns
    -------
    Participants
    """
    mean, concentration = population.lapse_mean, population.lapse_concentration
    normal = np.empty((n_participants, 3))
    lapse = np.full(n_participants, mean, dtype=float)
    for person in range(n_participants):
        rng = _stream(seed, "participant", person, 0)
        normal[person] = rng.standard_normal(3)
        if 0 < mean < 1:  # a Beta distribution does not exist at the ends, where everybody has the mean itself
            lapse[person] = rng.beta(mean * concentration, (1 - mean) * concentration)
    bias = population.bias_mean_nats + population.bias_sd_nats * normal[:, 0]
    slope = population.slope_median * np.exp(population.slope_log_sd * normal[:, 1])
    noise = population.noise_median_nats * np.exp(population.noise_log_sd * normal[:, 2])
    return Participants(
        bias=bias if population.bias else np.zeros(n_participants),
        slope=slope if population.slope else np.ones(n_participants),
        noise_sd=noise if population.noise else np.zeros(n_participants),
        lapse_rate=lapse if population.lapses else np.zeros(n_participants),
    )


def simulate_language(settings: SimulationSettings) -> Language:
    """Draw the true distributions of all reference items and solve for every player's view of them.

    Parameters
    ----------
    settings : SimulationSettings

    Returns
    -------
    Language

    Raises
    ------
    InputError
        If the entropy or a player's excess loss cannot be reached on this vocabulary; names the range that can.
    """
    n_items, n_tokens = settings.n_reference_items, settings.vocab_size
    seed = settings.seed
    base = -np.log(np.arange(n_tokens) + 1 + _ZIPF_SHIFT)
    base -= np.log(np.exp(base).sum())
    unigram = base.astype(np.float32)

    true_logprob, signal = _true_distributions(settings, unigram)
    shared = _errors(_stream(seed, "shared"), n_items, n_tokens)
    players = {}
    for player, share in _SHARED.items():
        excess = settings.excess_nats[player]
        direction = _degradation(_stream(seed, player), shared, share, signal)
        players[player] = _degraded_view(player, excess, true_logprob, direction)
    return Language(_vocabulary(n_tokens, _stream(seed, "vocabulary")), unigram, true_logprob, players)


def _divergence(logprob: NDArray[np.floating], generator: NDArray[np.floating]) -> NDArray[np.float64]:
    """KL(player || generator) of every item, nats; both of shape (item, token)."""
    # in float32 the sum of thousands of terms that cancel can come out a hair below zero
    kl: NDArray[np.float64] = np.maximum(np.einsum("ij,ij->i", np.exp(logprob), logprob - generator), 0).astype(float)
    return kl


def simulate_comparison_study(settings: SimulationSettings | None = None) -> xr.Dataset:
    """Simulate a comparison study, as a loader would give it, together with the truth.

    Parameters
    ----------
    settings : SimulationSettings, optional
        The default settings if left out.

    Returns
    -------
    xarray.Dataset
        Passes :func:`~estimators.comparison.validate_comparison_study`. Items are labelled 0, 1, ...; the
        asked ones come first and have ``item_set`` "asked". The context is text drawn from the unigram base, for show:
        it does not determine the item's distribution. In addition to the study's own variables:

        - ``human_target_logprob``, ``human_candidate_logprob``: the participants' shared belief h, nats;
        - ``kl_nats``, ``human_kl_nats``: KL(player || generator), nats;
        - ``true_bias``, ``true_slope``, ``true_noise``, ``true_lapse``, dim ``participant_truth`` (names of
          the participants): see :class:`Participants`;
        - ``reference_logprob`` (item, token) if asked for, nats, with the tokens as coordinate;
        - attribute ``settings``: the settings as JSON;
        - attribute ``truth``: JSON with ``entropy_nats`` and ``expected_loss_nats`` of every player, means over
          all items of H(T) and of H(T) + KL(T || player). The mean of -ln p(y|c) over the
          sampled targets differs from it by sampling error.

    Raises
    ------
    InputError
        If the settings cannot be met.
    """
    import xarray as xr  # noqa: PLC0415  (an import of estimators needs NumPy and SciPy only)

    settings = SimulationSettings() if settings is None else settings
    language = simulate_language(settings)
    seed, n_asked, n_items = settings.seed, settings.n_items, settings.n_reference_items
    generator = language.player_logprob[settings.generator]

    target = _sample(language.true_logprob, 1, _stream(seed, "target"))
    candidate = _sample(generator, settings.n_candidates, _stream(seed, "candidate"))
    human_target, human_candidate = _looked_up(language.player_logprob[HUMAN], target, candidate)
    looked_up = [_looked_up(language.player_logprob[model], target, candidate) for model in LANGUAGE_MODELS]

    kl = {player: _divergence(logprob, generator) for player, logprob in language.player_logprob.items()}

    people = draw_participants(settings.participants, settings.n_participants, seed)
    names = _participant_names(settings.n_participants)
    shown = _shown_positions(settings)
    log_odds = (human_target[:n_asked, None] - human_candidate[:n_asked])[:, shown].T
    same = (candidate == target)[:n_asked][:, shown].T
    report = np.empty(log_odds.shape)
    for person in range(settings.n_participants):
        report[person] = simulate_reports(
            log_odds[person],
            rng=_stream(seed, "participant", person, 1),
            bias=people.bias[person],
            slope=people.slope[person],
            noise_sd=people.noise_sd[person],
            lapse_rate=people.lapse_rate[person],
            automatic=same[person],
            rounding=settings.rounding,
        )

    study = xr.Dataset(
        {
            "context": ("item", _contexts(language, n_items, _stream(seed, "context"))),
            "target_token": ("item", language.vocabulary[target[:, 0]]),
            "candidate_token": (("item", "candidate"), language.vocabulary[candidate]),
            "target_logprob": (("model", "item"), np.stack([pair[0] for pair in looked_up])),
            "candidate_logprob": (("model", "item", "candidate"), np.stack([pair[1] for pair in looked_up])),
            "item_set": ("item", np.where(np.arange(n_items) < n_asked, "asked", "")),
            "selected": ("item", np.ones(n_items, dtype=bool)),
            "in_reference": ("item", np.ones(n_items, dtype=bool)),
            "participant": ("response", np.repeat(names, n_asked)),
            "response_item": ("response", np.tile(np.arange(n_asked), len(names))),
            "response_candidate": ("response", np.repeat(shown, n_asked)),
            "report": ("response", report.ravel()),
            "automatic": ("response", same.ravel()),
            "human_target_logprob": ("item", human_target),
            "human_candidate_logprob": (("item", "candidate"), human_candidate),
            "kl_nats": (("model", "item"), np.stack([kl[model] for model in LANGUAGE_MODELS])),
            "human_kl_nats": ("item", kl[HUMAN]),
            "true_bias": ("participant_truth", people.bias),
            "true_slope": ("participant_truth", people.slope),
            "true_noise": ("participant_truth", people.noise_sd),
            "true_lapse": ("participant_truth", people.lapse_rate),
        },
        coords={
            "item": np.arange(n_items),
            "model": np.asarray(LANGUAGE_MODELS),
            "participant_truth": names,
        },
        attrs={"name": "simulated", "generator": settings.generator, "seed": seed, "settings": settings.to_json()},
    )
    if settings.store_reference:
        study["reference_logprob"] = (("item", "token"), np.minimum(generator, 0))
        study = study.assign_coords(token=language.vocabulary)
    losses = {player: round(settings.entropy_nats + excess, 12) for player, excess in settings.excess_nats.items()}
    study.attrs["truth"] = json.dumps({"entropy_nats": settings.entropy_nats, "expected_loss_nats": losses})
    add_note(study, f"simulated with seed {seed}: items, of which the first {n_asked} are asked", count=n_items)
    add_note(study, "responses, every participant answering every asked item", count=report.size)
    add_note(study, "answers that were automatic because the candidate was the target", count=int(same.sum()))
    return validate_comparison_study(study)


def _true_distributions(settings: SimulationSettings, unigram: Singles) -> tuple[Singles, Singles]:
    """Draw the true log-probabilities and the scaled context signal, both (item, vocab)."""
    rng = _stream(settings.seed, "signal")
    shape = (settings.n_reference_items, settings.vocab_size)
    strength = _sigmoid(_SIGNAL_SPREAD * rng.standard_normal((shape[0], 1)))
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
        raise InputError(
            f"is {target}, which cannot be reached; with vocab_size {shape[1]} it should be well above 0 and "
            f"below {highest:.2f}",
            source="simulation",
            field="entropy_nats",
        )
    signal *= np.float32(scale)
    return _log_normalised(unigram + signal), signal


def _errors(rng: np.random.Generator, n_items: int, n_tokens: int) -> tuple[Singles, Singles, Singles]:
    """Draw noise (item, vocab), lost part of the signal (item, vocab) and log hardness (item, 1), before scaling."""
    shape = (n_items, n_tokens)
    noise = rng.standard_exponential(shape, dtype=np.float32)
    noise -= rng.standard_exponential(shape, dtype=np.float32)
    lost = rng.random(shape, dtype=np.float32)
    lost **= _LOSS_POWER
    return noise, lost, rng.standard_normal((n_items, 1), dtype=np.float32)


def _degradation(
    rng: np.random.Generator, shared: tuple[Singles, Singles, Singles], share: float, signal: Singles
) -> Singles:
    """Draw what lambda multiplies in a player's log-probabilities, (item, vocab)."""
    noise, lost, hardness = _errors(rng, *signal.shape)
    common, own = np.float32(share), np.float32(np.sqrt(1 - share**2))
    from_shared = rng.random(signal.shape, dtype=np.float32) < common
    hardness = np.exp(np.float32(_HARDNESS_LOG_SD) * (common * shared[2] + own * hardness))
    # at most the whole signal is lost, whatever lambda in [0, 1]: a player is never led away from the truth by design
    lost = np.minimum(hardness * np.where(from_shared, shared[1], lost), np.float32(1))
    noise = np.float32(_NOISE_SCALE) * hardness * (common * shared[0] + own * noise)
    return noise - lost * signal


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
        raise InputError(
            f"is {excess}, which cannot be reached: a player who lost all it can is {divergence(1.0)[0]:.3f} nats from "
            "the truth with these settings; lower the excess or raise vocab_size or lower entropy_nats",
            source="simulation",
            field=f"excess_nats.{player}",
        )
    return _log_normalised(true_logprob + np.float32(strength) * direction)


def _solve(
    function: Callable[[float], tuple[float, float]], target: float, *, start: float, low: float, high: float
) -> float | None:
    """Where an increasing function equals `target`, by Newton steps inside a bracket; None if only beyond `high`.

    The function returns its value and its derivative, and is below the target at `low`.
    """
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


def _sample(logprob: Singles, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw `n` tokens for each row, (item, n)."""
    uniform = rng.random((logprob.shape[0], n))
    drawn = np.empty(uniform.shape, dtype=np.intp)
    for row, values in enumerate(uniform):
        cumulated = np.cumsum(np.exp(logprob[row], dtype=float))
        drawn[row] = np.searchsorted(cumulated, values * cumulated[-1], side="right")
    # a product that rounds up to the whole mass would fall off the end
    np.minimum(drawn, logprob.shape[1] - 1, out=drawn)
    return drawn


def _looked_up(logprob: Singles, target: NDArray[np.intp], candidate: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Log-probabilities of the target (item,) and of the candidates (item, candidate), at most 0."""
    of_target = np.take_along_axis(logprob, target, axis=1)[:, 0]
    of_candidate = np.take_along_axis(logprob, candidate, axis=1)
    return np.minimum(of_target, 0).astype(float), np.minimum(of_candidate, 0).astype(float)


def _shown_positions(settings: SimulationSettings) -> NDArray[np.int64]:
    order: NDArray[np.int64] = _stream(settings.seed, "shown").permutation(settings.n_candidates)
    return np.resize(order, settings.n_participants)


def _participant_names(n: int) -> NDArray[np.str_]:
    return np.asarray([f"p{person:03d}" for person in range(n)])


def _contexts(language: Language, n_items: int, rng: np.random.Generator) -> NDArray[np.str_]:
    tokens = _sample(language.unigram_logprob[None, :], n_items * _CONTEXT_TOKENS, rng)
    rows = language.vocabulary[tokens.reshape(n_items, _CONTEXT_TOKENS)]
    return np.asarray(["".join(row) for row in rows.tolist()])


_ONSETS = [*"bcdfghlmnprstvw", "br", "ch", "cl", "cr", "dr", "fl", "gr", "pl", "pr", "sh", "sl", "st", "th", "tr"]
_VOWELS = [*"aeiou", "ai", "ea", "ee", "ie", "ou"]
_CODAS = ["", "", "", *"nrstldm", "ck", "nd", "ng", "nt", "rt", "st"]
_MARKS = [*",.-\"'):;?!", "'s", "\n", " (", ' "', "...", " -", "'t", "/", " $", "%"]
_KINDS = (" word", "piece", " Name", " number")
_KIND_PROBABILITIES = (0.68, 0.19, 0.09, 0.04)


def _vocabulary(size: int, rng: np.random.Generator) -> NDArray[np.str_]:
    """Distinct strings shaped like the tokens of a byte-pair encoding, shorter ones among the more frequent.

    About 70% of the frequent ones are word tokens, as in the real questions; the others are marks, pieces and numbers.
    """
    places = [int(place) for place in np.linspace(0, min(size, 200) - 1, min(len(_MARKS), size // 5))]
    marks = dict(zip(places, _MARKS, strict=False))
    taken = set(_MARKS)
    tokens: list[str] = []
    for rank in range(size):
        token = marks.get(rank, "")
        kind = int(rng.choice(len(_KINDS), p=_KIND_PROBABILITIES)) if not token else -1
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


def _stream(seed: int, purpose: str, *index: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAMS.index(purpose), *index)))


def _sigmoid(log_odds: Floats) -> Floats:
    smaller = np.exp(-np.abs(log_odds))
    return np.where(log_odds >= 0, 1.0, smaller) / (1.0 + smaller)


def _broadcast(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Floats:
    array = np.asarray(value, dtype=float)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise InputError(
            f"has shape {array.shape}, which does not fit log_odds of shape {shape}", source="reports", field=name
        ) from None


def _check_count(name: str, value: object, source: str, *, at_least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < at_least:
        raise InputError(f"is {value!r}, should be a whole number of at least {at_least}", source=source, field=name)


def _check_number(
    name: str,
    value: Any,
    source: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> None:
    limits = []
    good = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    good = good and bool(np.isfinite(value))
    if above is not None:
        limits.append(f"above {above:g}")
        good = good and value > above
    if at_least is not None:
        limits.append(f"at least {at_least:g}")
        good = good and value >= at_least
    if at_most is not None:
        limits.append(f"at most {at_most:g}")
        good = good and value <= at_most
    if not good:
        right = " and ".join(["a finite number", *limits])
        raise InputError(f"is {value!r}, should be {right}", source=source, field=name)


def _check_switch(name: str, value: object, source: str) -> None:
    if not isinstance(value, bool):
        raise InputError(f"is {value!r}, should be true or false", source=source, field=name)
