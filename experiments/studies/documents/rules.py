"""Simulated texts with rules spread in noise, whose last word is known to who has read the rules."""

from __future__ import annotations

import hashlib

import numpy as np
import xarray as xr

from shannon_game.estimators.documents.rules import Inference, Place, rules_texts
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.harness.settings import Seeded
from shannon_game.experiments.studies.documents.tokens import Document, documents_study
from shannon_game.inference.progress import counted
from shannon_game.inference.settings import Count, Settings


class RulesSettings(Seeded, Settings):
    n_texts: Count = 20
    """Texts of each number of noise sentences, and as many controls without the rules."""
    noise: tuple[int, ...] = (0, 10, 40)
    """Sentences of noise among which the rules are spread."""
    n_rules: Count = 4
    """Colours that a text tells; one of them is asked for."""
    n_steps: Count = 1
    """Things from the one asked for to that of the colour: 1 says it, more make a chain."""
    inferences: tuple[Inference, ...] = ("chain",)
    """How the colour follows at last: chain (it is said), exclusion (one of two, and not the other), condition (if
    something holds, and it does)."""
    place: Place = "spread"
    """Where the rules that are needed stand: spread at random, first or last."""


@loader(RulesSettings)
def rules(settings: RulesSettings) -> xr.Dataset:
    """Simulate texts with rules spread in noise as a documents study; a split a number of noise sentences and control.

    Examples
    --------
    >>> from shannon_game import rules
    >>> rules(n_texts=2, noise=[0, 5])["split"].values.tolist()[:3]
    ['0 sentences of noise', '0 sentences of noise, no rule', '0 sentences of noise']
    """
    found = rules_texts(
        settings.n_texts,
        n_noise=settings.noise,
        n_rules=settings.n_rules,
        n_steps=settings.n_steps,
        inferences=settings.inferences,
        place=settings.place,
        seed=settings.seed,
    )
    documents = [
        Document(
            f"text {number}",
            one.text,
            f"{counted(one.n_noise, 'sentence')} of noise"
            + (f", {one.inference}" if len(settings.inferences) > 1 else "")
            + ("" if one.has_rule else ", no rule"),
        )
        for number, one in enumerate(found)
    ]
    digest = hashlib.sha256("\n".join(one.text for one in found).encode()).hexdigest()
    study = documents_study("rules", documents, {"simulated": digest}, source="study rules")
    return study.assign(
        rules_pair=("document", np.repeat(np.arange(len(found) // 2), 2)),
        is_control=("document", np.array([not one.has_rule for one in found])),
        distance=("document", np.array([one.distance for one in found])),
    )
