"""The relevance regression written out row by row, and the paper's rows from the raw files by loops."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
from scipy.stats import beta, multivariate_normal, norm

from shannon_game.models.cloze.ard_data import ArdData
from tests.oracles.cloze import entropy, published_split, tvd


def ordered_beta(y: float, eta: float, concentration: float, low: float, high: float) -> float:
    p_zero, p_one = 1 / (1 + np.exp(eta + low)), 1 / (1 + np.exp(high - eta))
    if y == 0:
        return float(np.log(p_zero))
    if y == 1:
        return float(np.log(p_one))
    mu = 1 / (1 + np.exp(-eta))
    return float(np.log(1 - p_zero - p_one) + beta.logpdf(y, mu * concentration, (1 - mu) * concentration))


def censored_logit_normal(y: float, eta: float, noise: float, limits: tuple[float, float]) -> float:
    low, high = (np.log(v / (1 - v)) for v in limits)
    if y == 0:
        return float(norm.logcdf(low, eta, noise))
    if y == 1:
        return float(norm.logsf(high, eta, noise))
    return float(norm.logpdf(np.log(y / (1 - y)), eta, noise) - np.log(y * (1 - y)))


def measured_and_true(data: ArdData, point: dict[str, np.ndarray]) -> tuple[float, np.ndarray, np.ndarray]:
    """Log-density of the measurements, and mean and covariance of the true values given them, item by item."""
    k = len(data.noisy)
    exact = [at for at, name in enumerate(data.predictor) if name not in data.noisy]
    cross = np.zeros((k, k))
    cross[np.tril_indices(k, -1)] = point["latent_cross"] if k > 1 else []
    inverse = np.linalg.inv(np.eye(k) - cross)
    omega = inverse @ np.diag(point["latent_spread"] ** 2) @ inverse.T
    total, means, covariances = 0.0, [], []
    for i, values in enumerate(data.x_of_item):
        x = values[[data.predictor.index(name) for name in data.noisy]]
        own = point["latent_mean"] + (point["latent_slope"] @ values[exact] if exact else 0)
        mean = inverse @ own
        error = data.error_covariance[i]
        total += multivariate_normal.logpdf(x, mean, omega + error)
        gain = omega @ np.linalg.inv(omega + error)
        means.append(mean + gain @ (x - mean))
        covariances.append(omega - gain @ omega)
    return total, np.array(means), np.array(covariances)


def paper_rows(root: Path) -> tuple[np.ndarray, np.ndarray]:
    """Predictors (HE, ME, TVD between oracles, length) and target of appendix B, by loops over the raw files."""
    files = sorted(
        (root / "TVD/GPT2/Generations").glob("Paragraphs-*.json"),
        key=lambda path: int(re.findall(r"Paragraphs-(\d+)", path.name)[0]),
    )
    rows, target = [], []
    for path in files:
        for passage in json.loads(path.read_text(encoding="utf-8")).values():
            for entry in passage.values():
                human = [(x["pred"] if isinstance(x["pred"], str) else "", int(x["count"])) for x in entry["human"]]
                answers = [word for word, count in human for _ in range(count)]
                first, second = published_split(answers, 0, len(answers) // 2)
                drawn = [x for x in entry["ancestral_samples"] if x["pred"] != "Failed to generate word"]
                model = [x["pred"].lower() for x in drawn for _ in range(x["count"])]
                target.append(tvd(first, model))
                n_words = len(entry["context"]["text"].split(" "))
                said = [word for word in answers if word]
                rows.append([entropy(said), entropy(model), tvd(first, second), n_words])
    return np.array(rows), np.array(target)
