"""Adaptive against fixed questions: people's time for the same width, and coverage under stopping.

``adaptive_questions.py RULE RESULT.csv [STUDIES]`` simulates studies of 100 contexts that stop at a width of .5 nats,
in the worlds that ``+exp=design`` assumes (six beliefs, six typical slopes), under one rule: ``gain``, ``neyman``,
``fixed`` (:class:`estimators.comparison.QuestionPlan`), or ``bets``: bets on chosen contexts
(:func:`estimators.documents.context_choice`), ``bets_fixed``: on contexts drawn alike.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from estimators.comparison import QuestionPlan, simulate_adaptive
from estimators.documents import chosen_context_terms, chosen_mean, context_choice
from experiments import designed_simulated
from experiments.planning.settings import DesignSettings
from experiments.planning.worlds import World, draw_worlds, study_contexts

N_CONTEXTS, N_PEOPLE, WIDTH, BETS_A_LOOK = 100, 80, 0.5, 20
BET_MINUTES = 40 / 60


def bets(world: World, rng: np.random.Generator, *, chosen: bool) -> dict[str, float]:
    """Bet until two looks in a row find an interval of the width, contexts chosen or drawn alike."""
    g, target = world.known.generator, world.known.target
    n = target.size
    surprisal = -g[np.arange(n), target]
    entropy = -(np.exp(g) * g).sum(axis=1)
    known = (surprisal, entropy, surprisal**2, entropy**2, surprisal * entropy, world.against_gap_nats)
    features = np.stack(known, axis=1)
    kind = rng.integers(0, world.bet_gap_nats.shape[0], N_PEOPLE)
    probability, predicted = np.full(n, 1 / n), np.zeros(n)
    columns: list[tuple[np.ndarray, ...]] = []
    narrow = 0
    while True:
        context = rng.choice(n, BETS_A_LOOK, p=probability / probability.sum())
        person = (len(columns) * BETS_A_LOOK + np.arange(BETS_A_LOOK)) % N_PEOPLE
        value = world.bet_gap_nats[kind[person], context]
        mean = np.full(BETS_A_LOOK, predicted.mean())
        columns.append((value, probability[context], predicted[context], mean, person, context))
        x, p, m, whole, who, where = (np.concatenate(each) for each in zip(*columns, strict=True))
        found = chosen_mean(chosen_context_terms(x, p, m, whole, n), who, where)
        narrow = narrow + 1 if found.upper - found.lower <= WIDTH else 0
        if narrow == 2 or x.size > 5000:
            truth = float(world.bet_gap_nats.mean())
            covers = found.lower <= truth <= found.upper
            return {"minutes": x.size * BET_MINUTES, "covers": covers, "error_nats": found.mean - truth}
        if chosen:
            probability, predicted = context_choice(features, where, x)


def main(rule: str, path: Path, n_studies: int) -> None:
    """Simulate the studies of one rule and say what they took."""
    study = designed_simulated(n_items=300, vocab_size=600, design={"n_draws": 1, "n_answers": 1, "n_comparisons": 1})
    worlds = draw_worlds(study_contexts(study), DesignSettings(), "adaptive")
    rows = []
    for number in range(n_studies):
        rng, world = np.random.default_rng(number), worlds[number % len(worlds)]
        if rule.startswith("bets"):
            rows.append(bets(world, rng, chosen=rule == "bets"))
            continue
        fixed = {"n_answers": 4, "n_comparisons": 8} if rule == "fixed" else {}
        plan = QuestionPlan(rule=rule, width_nats=WIDTH, **fixed)
        context = rng.integers(0, world.known.target.size, N_CONTEXTS)
        found = simulate_adaptive(world.known, context, world.people, plan, n_people=N_PEOPLE, rng=rng)
        error = found.estimate.gap_nats - found.truth_nats
        rows.append({"minutes": found.minutes, "covers": found.covers, "error_nats": error, "reached": found.reached})
        pd.DataFrame(rows).to_csv(path, index=False)
    table = pd.DataFrame(rows)
    table.to_csv(path, index=False)
    minutes = table["minutes"]
    print(
        f"{rule}: {minutes.mean():.0f} minutes (90% of the studies: {minutes.quantile(0.9):.0f}), covers "
        f"{table['covers'].mean():.3f}, bias {table['error_nats'].mean():+.3f}, "
        f"RMSE {(table['error_nats'] ** 2).mean() ** 0.5:.3f}"
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 200)
