"""The participant model written out with loops, SciPy's distributions and numerical integrals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr
from scipy import integrate, special, stats

from tests.oracles.belief import density, log_two_piece

Point = Mapping[str, Any]


def two_piece_mode(left: float, right: float) -> float:
    return math.sqrt(2 / math.pi) * (left - right)


def integral(function: Any, left: float, right: float, *, cuts: Sequence[float] = ()) -> float:
    """Integral of a function times the density of the mean-zero two-piece normal."""
    mode = two_piece_mode(left, right)
    low, high = mode - 11 * left, mode + 11 * right
    edges = [low, *sorted(cut for cut in {mode, *cuts} if low < cut < high), high]
    return sum(
        integrate.quad(lambda e: function(e) * density(e, left, right), a, b, epsabs=1e-12, limit=200)[0]
        for a, b in pairwise(edges)
    )


def normal_box(low: float, high: float, centre: float, noise: float) -> float:
    if low > centre:  # the tail in which the CDF keeps its relative precision
        return float(stats.norm.sf(low, centre, noise) - stats.norm.sf(high, centre, noise))
    return float(stats.norm.cdf(high, centre, noise) - stats.norm.cdf(low, centre, noise))


def answered_box(
    box: tuple[float, float], log_ratio: float, person: Mapping[str, float], residual: tuple[float, float] | None = None
) -> float:
    """Probability of a box without a lapse, the residual of D integrated over its density where it is open."""

    def given(e: float) -> float:
        return normal_box(*box, person["slope"] * (person["bias"] - log_ratio - e), person["noise"])

    if residual is None:
        return given(0.0)
    wanted = [-edge / person["slope"] + person["bias"] - log_ratio for edge in box if math.isfinite(edge)]
    return integral(given, *residual, cuts=wanted)


def slipped_box(box: int, half: float, n_boxes: int, half_box: int) -> float:
    return half * (box == half_box) + (1 - half) / n_boxes


def people(point: Point, data: Any, scale: float) -> list[dict[str, float]]:
    """Parameters of every participant; only those with an answer count in what is centred."""
    counted = sorted(set(data.row_participant.tolist()))
    deviation = [1.5 * math.tanh(point["slope_spread"] * unit / 1.5) for unit in point["slope_unit"]]
    bias = [point["bias_spread"] * unit for unit in point["bias_unit"]]
    mean_deviation = math.fsum(deviation[u] for u in counted) / len(counted)
    mean_bias = math.fsum(bias[u] for u in counted) / len(counted)
    return [
        {
            "slope": scale * math.exp(deviation[u] - mean_deviation),
            "bias": bias[u] - mean_bias,
            "noise": math.exp(point["log_noise"] + point["noise_spread"] * point["noise_unit"][u]),
            "lapse": float(special.expit(point["logit_lapse"] + point["lapse_spread"] * point["lapse_unit"][u])),
        }
        for u in range(len(data.participant))
    ]


def item_scale(point: Point, data: Any, q: int) -> float:
    own = 0.5 * math.tanh(2 * point["omega"] * point["z"][q])
    return math.sqrt((point["sigma"] * math.exp(own + point["c"] * (data.surprisal[q] - 4))) ** 2 + 0.02**2)


def mean_log_ratio(point: Point, data: Any, q: int, log_g: float) -> float:
    """Mean of D = ln h(x)/h(y)."""
    p = math.exp(data.target_log_g[q])
    logit = min(max(math.log(p / (1 - p)), -16), 9)
    s = item_scale(point, data, q)
    place = point["mu"] + point["a"] * (logit + 3) - point["t_b"] * point["zeta"][q] * (logit + 5)
    intercept = place - point["kap"] * s**2 / 2 + point["rho"] * s * point["A_unit"][q]
    v = intercept + (point["b"] + point["t_b"] * point["zeta"][q]) * (log_g + 5) + point["b2"] * max(-log_g - 7, 0)
    return float(v + log_g - data.target_log_g[q])


def row_probability(point: Point, data: Any, scale: float, row: int, box: int | None = None) -> float:
    """Probability of an answer (or of another box) given the parameters, single pairs' residuals integrated out."""
    chosen = int(data.row_box[row]) if box is None else box
    pair = int(data.row_pair[row])
    q = int(data.pair_item[pair])
    s, person = item_scale(point, data, q), people(point, data, scale)[data.row_participant[row]]
    log_ratio, residual = mean_log_ratio(point, data, q, data.pair_log_g[pair]), None
    if pair < data.n_shared:
        log_ratio += s * point["e_unit"][pair]
    else:
        residual = (s * math.exp(point["ga"]), s * math.exp(-point["ga"]))
    edges = (float(data.box_edges[chosen, 0]), float(data.box_edges[chosen, 1]))
    slip = slipped_box(chosen, point["half"], len(data.box_edges), data.half_box)
    return (1 - person["lapse"]) * answered_box(edges, log_ratio, person, residual) + person["lapse"] * slip


def log_prior(point: Point, data: Any) -> float:
    """Log-density of the parameters under the default priors."""
    total = 0.0
    for name, mean, sd in (
        ("mu", 0, 1),
        ("a", 0, 0.7),
        ("b", 0, 0.6),
        ("b2", 0, 0.3),
        ("c", 0, 0.15),
        ("kap", 0.7, 0.6),
        ("ga", 0.1, 0.1),
        ("delta", 0, 0.15),
        ("log_noise", math.log(0.9), 0.5),
        ("logit_lapse", math.log(0.05 / 0.95), 0.7),
    ):
        total += stats.norm.logpdf(point[name], mean, sd)
    for name, sd in (
        ("sigma", 1.5),
        ("omega", 0.2),
        ("t_b", 0.2),
        ("slope_spread", 0.4),
        ("bias_spread", 0.5),
        ("noise_spread", 0.4),
        ("lapse_spread", 0.7),
    ):
        total += stats.halfnorm.logpdf(point[name], scale=sd)
    total += stats.lognorm.logpdf(point["rho"], 0.5) + stats.beta.logpdf(point["half"], 2, 2)
    for name in ("z", "zeta", "slope_unit", "noise_unit", "lapse_unit"):
        total += stats.norm.logpdf(point[name]).sum()
    total += stats.t.logpdf(point["A_unit"], 5).sum() + stats.t.logpdf(point["bias_unit"], 4).sum()
    left, right = math.exp(point["ga"]), math.exp(-point["ga"])
    return float(total + sum(log_two_piece(e, left, right) for e in point["e_unit"]))


def log_density(point: Point, data: Any, scale: float) -> float:
    rows = range(data.row_box.size)
    return log_prior(point, data) + sum(math.log(row_probability(point, data, scale, row) + 1e-12) for row in rows)


def study_rows(study: xr.Dataset) -> dict[str, Any]:
    """Read answers, pairs and the tokens nobody was asked about with loops over items and candidates.

    Tokens of an item are told apart by string and by ln g to five decimals.
    """
    generator = study.attrs["generator"]
    names = study["model"].values.tolist()
    at_generator = names.index(generator)
    position = {int(label): k for k, label in enumerate(study["item"].values)}
    asked = sorted({int(label) for label in study["response_item"].values}, key=lambda label: position[label])

    def token(label: int, column: int) -> tuple[int, str, float] | None:
        k = position[label]
        log_g = float(study["candidate_logprob"].values[at_generator, k, column])
        own = float(study["target_logprob"].values[at_generator, k])
        string, target = str(study["candidate_token"].values[k, column]), str(study["target_token"].values[k])
        if string == target and abs(log_g - own) <= 1e-6:
            return None
        return label, string, round(log_g, 5)

    shown: Counter[tuple[int, str, float]] = Counter()
    same: Counter[int] = Counter()
    rows = []
    for response in range(study.sizes["response"]):
        label = int(study["response_item"].values[response])
        about = token(label, int(study["response_candidate"].values[response]))
        if about is None:
            same[label] += 1
            continue
        shown[about] += 1
        if not study["automatic"].values[response]:
            rows.append(
                (about, str(study["participant"].values[response]), float(study["report"].values[response]), response)
            )
    answered = Counter(row[0] for row in rows)
    stored = {
        found
        for label in asked
        for column in range(study.sizes["candidate"])
        if (found := token(label, column)) is not None
    }
    return {
        "item": asked,
        "same": [same[label] for label in asked],
        "shown": shown,
        "rows": rows,
        "answered": answered,
        "rest": stored - set(answered),
        "target_log_g": [float(study["target_logprob"].values[at_generator, position[label]]) for label in asked],
    }


def gap_of_draw(belief: Any, draw: int, c: float) -> list[float]:
    """R_q(c) of one draw, term by term: tokens that stand for others count as many as they stand for."""
    data = belief.data
    gaps = []
    for q in range(data.item.size):
        total = 1.0
        for at, ratio in zip(data.pair_item, belief.pair_log_ratio[draw], strict=True):
            total += math.exp(c * ratio) if at == q else 0.0
        for at, ratio in zip(data.rest_item, belief.rest_log_ratio[draw], strict=True):
            total += math.exp(c * ratio) if at == q else 0.0
        left, right = c * belief.item_left[draw, q], c * belief.item_right[draw, q]
        for at, ratio, log_g, mass in zip(
            data.tail_item, belief.tail_log_ratio[draw], data.tail_log_g, data.tail_mass, strict=True
        ):
            if at == q:
                mean_exp = integral(math.exp, left, right, cuts=[two_piece_mode(left, right) + right**2])
                total += mass / math.exp(log_g) * math.exp(c * ratio) * mean_exp
        gaps.append(float(data.target_log_g[q]) + math.log(total))
    return gaps


def label_loss(belief: Any, draw: int, weight: Sequence[float], c: float, objective: str) -> float:
    """What the temperature minimises, written as the loss of the labels."""
    data = belief.data
    total = 0.0
    for q in range(data.item.size):
        pairs = [
            (float(ratio), float(shift), int(times))
            for at, ratio, shift, times in zip(
                data.pair_item, belief.pair_log_ratio[draw], data.pair_log_g_ratio, data.pair_n_shown, strict=True
            )
            if at == q
        ]
        if not pairs:
            continue
        if objective == "pair":
            total += weight[q] * sum(n * math.log1p(math.exp(c * ratio - shift)) for ratio, shift, n in pairs)
        else:
            among = 1 + int(data.n_same[q]) + sum(n * math.exp(c * ratio - shift) for ratio, shift, n in pairs)
            total += weight[q] * math.log(among)
    return total


def residual_cdf(
    grid: Sequence[float],
    box: int,
    log_ratio: float,
    person: Mapping[str, float],
    residual: tuple[float, float],
    grid_of_boxes: Mapping[str, Any],
) -> list[float]:
    """CDF of the residual of D given the answer, by numerical integration over the residual."""
    edges = grid_of_boxes["box_edges"]
    low, high = float(edges[box, 0]), float(edges[box, 1])
    slip = slipped_box(box, grid_of_boxes["half"], len(edges), grid_of_boxes["half_box"])

    def likelihood(e: float) -> float:
        inside = normal_box(low, high, person["slope"] * (person["bias"] - log_ratio - e), person["noise"])
        return (1 - person["lapse"]) * inside + person["lapse"] * slip

    mode = two_piece_mode(*residual)
    edges_e = np.sort(np.concatenate([np.linspace(mode - 9 * residual[0], mode + 9 * residual[1], 4001), [mode]]))
    weight = np.array([likelihood(e) * density(e, *residual) for e in edges_e])
    mass = np.concatenate([[0.0], np.cumsum((weight[1:] + weight[:-1]) / 2 * np.diff(edges_e))])
    return [float(value) for value in np.interp(grid, edges_e, mass / mass[-1])]
