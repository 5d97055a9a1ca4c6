"""The accuracy model for simulation-based calibration, on a small design."""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from scipy.stats import norm

from shannon_game.estimators.checks import check_numbers
from shannon_game.inference.posterior.sbc import Design, SbcModel
from shannon_game.inference.settings import from_numbers
from shannon_game.models.guesses.accuracy import accuracy_model
from shannon_game.models.guesses.accuracy_data import AccuracyData, context_band_names, practice_amount
from shannon_game.models.guesses.accuracy_priors import AccuracyPriors


def accuracy(_study: xr.Dataset, design: Design) -> SbcModel:
    """Accuracy of guesses, on a design of its own: a comparison study has no guesses."""
    imagined = small_accuracy_design(design.n_participants, design.n_items, design.n_pairs)
    return accuracy_sbc(imagined, from_numbers(AccuracyPriors, design.priors))


def accuracy_sbc(data: AccuracyData, priors: AccuracyPriors | None = None) -> SbcModel:
    """Accuracy of guesses for SBC; the hits of `data` only give the shape of those simulated."""
    scalars: tuple[str, ...] = ("intercept", "practice_mean", "ability_spread", "practice_spread", "document_spread")
    scalars += ("context_step", "context_effect[0]") if data.band.size > 1 else ()
    scalars += ("surprisal_slope",) if data.surprisal is not None else ()
    return SbcModel(
        name="accuracy",
        build=partial(accuracy_model, data, priors),
        quantities=(*scalars, "ability[0]", "practice[0]", "document_effect[0]"),
    )


def small_accuracy_design(n_participants: int, n_documents: int, n_guesses: int) -> AccuracyData:
    """Guesses of an imagined study, all wrong: everybody reads every second document, and gives `n_guesses` in each."""
    sizes = {"n_participants": n_participants, "n_items": n_documents, "n_pairs": n_guesses}
    check_numbers(sizes, "accuracy design", at_least=1)
    per_person = (n_documents + 1) // 2
    person = np.repeat(np.arange(n_participants), per_person)
    turn = np.tile(np.arange(per_person), n_participants)
    place = np.unique((2 * turn + person) % n_documents, return_inverse=True)[1]
    size = person.size
    context = np.unique((turn + person) % 4, return_inverse=True)[1]
    practice = practice_amount(1500 * turn / max(per_person - 1, 1))
    # a fixed order that has nothing to do with the other predictors
    surprisal = norm.ppf((np.random.default_rng(0).permutation(size) + 0.5) / size)
    n_bands = int(context.max()) + 1
    return AccuracyData(
        participant=np.array([f"p{number}" for number in range(n_participants)]),
        document=np.array([f"d{number}" for number in range(int(place.max()) + 1)]),
        band=np.array(context_band_names(n_bands)),
        band_share=np.bincount(context, minlength=n_bands) / size,
        person=person.astype(np.intp),
        place=place.astype(np.intp),
        context=context.astype(np.intp),
        practice=practice - practice.mean(),
        practice_centre=float(practice.mean()),
        surprisal=surprisal,
        surprisal_centre=0.0,
        surprisal_model="imagined",
        n=np.full(size, n_guesses, dtype=np.int64),
        hits=np.zeros(size, dtype=np.int64),
        response=np.arange(size),
        n_repeats=0,
        n_unscored=0,
    )
