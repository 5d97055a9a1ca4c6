"""The participant model written out with loops over tokens, reports and places of its grids."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ndtr

Cdf = Callable[[float], float]


_PLACES = np.linspace(-8, 8, 4097)
_CDF = ndtr(_PLACES)


def tabulated_cdf(z: float) -> float:
    """Normal CDF by linear interpolation in steps of 1/256, and none of it beyond 8."""
    return 0.0 if z <= -8 else 1.0 if z >= 8 else float(np.interp(z, _PLACES, _CDF))


def report_probability(data: Any, row: int, log_ratio: float, people: Sequence[Any], cdf: Cdf) -> float:
    """Probability of a report where the target's log-odds to the token are `log_ratio`."""
    slope, bias, noise, lapse, half = people
    p = data.row_participant[row]
    centre = slope[p] * (log_ratio + bias[p])
    inside = cdf((data.row_high[row] - centre) / noise[p]) - cdf((data.row_low[row] - centre) / noise[p])
    slip = half * (data.row_box[row] == data.half_box) + (1 - half) / len(data.box_edges)
    return float((1 - lapse) * inside + lapse * slip)


def item_posterior(
    data: Any, q: int, law: np.ndarray, start: np.ndarray, grid: Any, people: Sequence[Any], cdf: Cdf
) -> tuple[float, np.ndarray]:
    """Likelihood of an item and the joint posterior of (lambda, t, e of each of its tokens), place by place.

    `law` (token, e) and exp of `start` (lambda, t) are prior weights; a token that was answered a times weighs
    (lambda g e^e)^a exp(-lambda g e^e).
    """
    e, t = grid.e_values.tolist(), grid.t_values.tolist()
    log_lambda = grid.log_lambda(data.n_answers).tolist()
    tokens = np.flatnonzero(data.token_item == q).tolist()
    joint = np.zeros((len(log_lambda), len(t), *[len(e)] * len(tokens)))
    for z, i in product(range(len(log_lambda)), range(len(t))):
        weight = np.zeros((len(tokens), len(e)))
        for (at, x), j in product(enumerate(tokens), range(len(e))):
            weight[at, j] = law[x, j]
            if data.n_answers[q]:
                log_rate = log_lambda[z] + data.token_log_g[x] + e[j]
                weight[at, j] *= math.exp(data.token_answers[x] * log_rate - math.exp(log_rate))
            for row in np.flatnonzero(data.row_token == x).tolist():
                log_odds = t[i] + data.target_log_g[q] - e[j] - data.token_log_g[x]
                weight[at, j] *= report_probability(data, row, log_odds, people, cdf)
        for places in product(range(len(e)), repeat=len(tokens)):
            joint[(z, i, *places)] = math.exp(start[z, i]) * math.prod(weight[range(len(tokens)), places])
    return float(joint.sum()), joint / joint.sum()


def study_rows(study: xr.Dataset) -> dict[str, Any]:
    """Reports, answers and tokens, by loops over responses, answers and candidates.

    Tokens of an item are told apart by string and by ln g to five decimals; None is the target.
    """
    generator = study["model"].values.tolist().index(study.attrs["generator"])
    position = {label: k for k, label in enumerate(study["item"].values.tolist())}
    source = study["candidate_source"].values if "candidate_source" in study else None

    def token(label: int, column: int) -> tuple[int, str, float] | None:
        k = position[label]
        log_g = float(study["candidate_logprob"].values[generator, k, column])
        own = float(study["target_logprob"].values[generator, k])
        string, target = str(study["candidate_token"].values[k, column]), str(study["target_token"].values[k])
        return None if string == target and abs(log_g - own) <= 1e-6 else (label, string, round(log_g, 5))

    rows, other, shown = [], 0, set()
    for response in range(study.sizes["response"]):
        label, column = (int(study[name].values[response]) for name in ("response_item", "response_candidate"))
        if source is None or source[position[label], column] == "generator":
            shown.add((label, column))
        reference = int(study["response_reference"].values[response]) if "response_reference" in study else -1
        against = None if reference < 0 else token(label, reference)
        about = token(label, column)
        if about == against or study["automatic"].values[response]:
            continue
        if against is not None or about is None:
            other += 1
            continue
        who, report = str(study["participant"].values[response]), float(study["report"].values[response])
        rows.append((about, who, report, response))
    answers: Counter[Any] = Counter()
    unknown: Counter[int] = Counter()
    total: Counter[int] = Counter()
    for answer in range(study.sizes.get("answer", 0)):
        label, column = (int(study[name].values[answer]) for name in ("answer_item", "answer_candidate"))
        total[label] += 1
        if column == -2:
            unknown[label] += 1
        else:
            answers[label, None if column == -1 else token(label, column)] += 1
    asked = {int(label) for label in study["response_item"].values} | set(total)
    return {
        "item": sorted(asked, key=lambda label: position[label]),
        "rows": rows,
        "n_other": other,
        "answers": answers,
        "unknown": unknown,
        "total": total,
        "tokens": {about for about, *_ in rows} | {about for _, about in answers if about is not None},
        "shown": Counter((label, token(label, column)) for label, column in shown),
    }


def label_loss(belief: Any, draw: int, weight: Sequence[float], c: float, objective: str) -> float:
    """What the temperature minimises, written as the loss of the labels."""
    data = belief.data
    total = 0.0
    for q in range(data.item.size):
        pairs = [
            (float(belief.token_log_ratio[draw, x]), float(data.token_log_g[x] - data.target_log_g[q]), int(times))
            for x, times in enumerate(data.token_shown)
            if data.token_item[x] == q and times
        ]
        if objective == "pair":
            total += weight[q] * sum(n * math.log1p(math.exp(c * ratio - shift)) for ratio, shift, n in pairs)
        elif pairs:
            among = 1 + int(data.target_shown[q]) + sum(n * math.exp(c * ratio - shift) for ratio, shift, n in pairs)
            total += weight[q] * math.log(among)
    return total
