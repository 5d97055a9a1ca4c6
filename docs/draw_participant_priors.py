"""Draw ``docs/figures/participant_priors.png``: what the participant model expects before it sees an answer.

python docs/draw_participant_priors.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pymc as pm
from scipy.special import expit

from shannon_game import designed_simulated
from shannon_game.estimators.comparison import rounding_scheme
from shannon_game.experiments.harness.figures import STYLE, new_figure
from shannon_game.inference.comparison.participant_gap import SharedBelief, loss_gap
from shannon_game.models.comparison.participant_data import participant_data
from shannon_game.models.comparison.participants import participant_model

N_DRAWS = 400
BLUE = "#0072B2"
rng, study = np.random.default_rng(0), designed_simulated(n_items=40)
data = participant_data(study.drop_dims("answer"), "slider")
k0 = pm.draw(participant_model(participant_data(study, "slider"))["k0"], N_DRAWS, random_seed=1)
model = participant_model(data, k0=1.0)
people = [model[name] for name in ("slope", "bias", "noise", "lapse", "half")]
law, log_target, slope, bias, noise, lapse, half = pm.draw([*model.latent_inputs[:2], *people], N_DRAWS, random_seed=2)
e, t, log_g = model.grid.e_values, model.grid.t_values, model.table.bin_log_g


def drawn(grid: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Draw a place on a grid by every row of probabilities."""
    total = chance.cumsum(axis=-1)
    return grid[(total < rng.random((*chance.shape[:-1], 1)) * total[..., -1:]).sum(axis=-1)]


target = drawn(t, np.exp(log_target))
token = np.stack([drawn(e, one[model.table.token_bin]) for one in law])
rest = (model.table.rest_bin, model.table.silence, np.zeros(target.shape, dtype=int))
gap = loss_gap(SharedBelief(data, target, token, law, e, *rest, rng.normal(size=(*target.shape, 2)))).mean(axis=1)
person, item = data.row_participant, data.row_item
ratio = target[:, item] - token[:, data.row_token] + data.target_log_g[item] - data.token_log_g[data.row_token]
log_odds = k0[:, None] * slope[:, person] * (ratio + bias[:, person]) + rng.normal(size=ratio.shape) * noise[:, person]
values = np.asarray(rounding_scheme("interface").values)
slipped = np.where(rng.random(ratio.shape) < half[:, None], 0.5, rng.choice(values, ratio.shape))
report = values[np.abs(expit(log_odds)[..., None] - values).argmin(axis=-1)]
share = (np.where(rng.random(ratio.shape) < lapse[:, None], slipped, report)[..., None] == values).mean(axis=1)

with mpl.rc_context(STYLE):
    # as wide as a page of a paper
    figure = new_figure(6.7, 2.5)
    left, middle, right = figure.subplots(1, 3)
    middling = model.table.bin_class == 1  # of three classes of items by entropy
    law, log_g = law[:, middling], log_g[middling]
    median = e[(law.cumsum(axis=2) < 0.5).sum(axis=2)]
    left.plot(log_g, median[:60].T, color=BLUE, alpha=0.15, lw=0.8)
    ends = [e[(law.mean(axis=0).cumsum(axis=1) < at).sum(axis=1)] for at in (0.05, 0.95)]
    left.fill_between(log_g, *ends, color=BLUE, alpha=0.2, lw=0)
    left.set(xlabel="ln g(x)", ylabel="log-ratio, nats")
    middle.bar(100 * values, share.mean(axis=0), 7, color=BLUE, alpha=0.4)
    middle.vlines(100 * values, *np.quantile(share, [0.05, 0.95], axis=0), color=BLUE)
    middle.set_xticks([1, 20, 40, 60, 80, 99])
    middle.set(xlabel="report on the target, %", ylabel="share of reports")
    right.hist(gap.clip(-3, 9), bins=36, color=BLUE, alpha=0.6)
    for end in np.quantile(gap, [0.05, 0.95]):
        right.axvline(end, color="0", linestyle="--", linewidth=1)
    right.set(xlabel="mean gap, nats", ylabel="prior draws")
    figure.savefig(Path(__file__).parent / "figures/participant_priors.png", dpi=200)
