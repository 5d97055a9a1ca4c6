"""What the accuracy model is given: guesses as arrays, and the scale on which practice is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.guesses.study import GUESSES, repeated_guesses
from shannon_game.estimators.layout import response_positions

if TYPE_CHECKING:
    import xarray as xr

PRACTICE_UNIT = 1000
"""Guesses of practice that the practice effect is of."""

PRACTICE_SCALE = 100.0
"""Guesses after which practice slows down."""

_N_BLOCKS = 50


@dataclass(frozen=True, eq=False)
class AccuracyData:
    """Guesses for :func:`shannon_game.models.accuracy_model`: R rows, U participants, D documents, B bands of context.

    Rows with all predictors equal are one binomial.
    """

    participant: NDArray[np.str_]
    document: NDArray[np.str_]
    band: NDArray[np.str_]  # (B,): numbers of tokens of context, such as "32-63", and their shares of the guesses
    band_share: NDArray[np.float64]
    person: NDArray[np.intp]  # (R,): positions of the participant, document and band
    place: NDArray[np.intp]
    context: NDArray[np.intp]
    practice: NDArray[np.float64]  # :func:`practice_amount` of the guesses given before, minus its mean over guesses
    practice_centre: float
    surprisal: NDArray[np.float64] | None  # of the target, nats, minus its centre
    surprisal_centre: float
    surprisal_model: str
    n: NDArray[np.int64]  # guesses, and those that are right
    hits: NDArray[np.int64]
    response: NDArray[np.intp]  # responses of the study that the rows are made of
    n_repeats: int  # responses left out: given again at the same place; without a surprisal
    n_unscored: int


def practice_amount(n_before: ArrayLike) -> NDArray[np.float64]:
    """Practice on the scale of the model: 0 before the first guess, 1 after 1,000."""
    before = np.asarray(n_before, dtype=float)
    amount: NDArray[np.float64] = np.log1p(before / PRACTICE_SCALE) / np.log1p(PRACTICE_UNIT / PRACTICE_SCALE)
    return amount


def context_band(position: ArrayLike) -> NDArray[np.intp]:
    """Band of a number of tokens of context: 0 for none, then 1, 2-3, 4-7, ...: each twice as long."""
    # frexp is exact where a logarithm may round: 2**k has exponent k + 1
    band: NDArray[np.intp] = np.frexp(np.asarray(position, dtype=float))[1].astype(np.intp)
    return band


def context_band_names(n_bands: int) -> list[str]:
    """Names of the first bands of :func:`context_band`."""
    bounds = [(0, 0), *((2 ** (k - 1), 2**k - 1) for k in range(1, n_bands))]
    return [f"{low}" if low == high else f"{low}-{high}" for low, high in bounds][:n_bands]


def accuracy_data(
    study: xr.Dataset,
    *,
    surprisal_model: str | None = None,
    responses: ArrayLike | None = None,
) -> AccuracyData:
    """Take what the accuracy model needs from a guess study.

    A participant's further guesses at a place are left out: after the first the token was shown. Guesses of one
    participant in one document and band of context, with the same practice (and surprisal), are one row. Within blocks
    of equal width, 50 from the first guess to the 1,000th, practice is taken as equal.

    Parameters
    ----------
    surprisal_model : str, optional
        A language model of the study whose surprisal of the target is a predictor; guesses at items that it did not
        score are left out.
    responses : array_like of bool, shape (response,), optional
        Which guesses to take; by default all.

    Examples
    --------
    >>> data = models.accuracy_data(guesses.examples.guess_study())
    >>> int(data.n.sum()), data.band.tolist()
    (192, ['1', '2-3', '4-7', '8-15', '16-31'])
    """
    study = GUESSES.read(study)
    source = f"guess study {study.attrs.get('name', '(unnamed)')!r}"
    wanted = np.ones(study.sizes["response"], dtype=bool) if responses is None else np.asarray(responses, dtype=bool)
    if wanted.shape != (study.sizes["response"],):
        raise InputError(
            f"has shape {wanted.shape}, should be one value per response", source=source, field="responses"
        )
    again = wanted & repeated_guesses(study)
    taken = np.flatnonzero(wanted & ~again)
    item = response_positions(study)
    surprisal, centre, n_unscored = None, 0.0, 0
    if surprisal_model is not None:
        values = _surprisals(study, surprisal_model, source)
        scored = np.isfinite(values[item[taken]])
        n_unscored = int((~scored).sum())
        taken = taken[scored]
        surprisal = values[item[taken]]
    if not taken.size:
        raise InputError("has no guess to fit", source=source)
    if surprisal is not None:
        centre = float(surprisal.mean())
        surprisal = surprisal - centre
    band = context_band(study["item_position"].values)[item[taken]]
    participant, person = np.unique(study["participant"].values[taken].astype(str), return_inverse=True)
    document, place = np.unique(study["item_document"].values[item[taken]].astype(str), return_inverse=True)
    lowest, n_bands = int(band.min()), int(band.max()) + 1
    practice = (np.floor(practice_amount(study["n_before"].values[taken]) * _N_BLOCKS) + 0.5) / _N_BLOCKS
    practice_centre = float(practice.mean())
    columns = [person, place, band - lowest, practice]
    keys = np.stack([column.astype(float) for column in columns] + ([] if surprisal is None else [surprisal]), axis=1)
    _, first, row = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    row = row.ravel()
    hits = np.bincount(row, weights=study["correct"].values[taken].astype(float))
    return AccuracyData(
        participant=participant,
        document=document,
        band=np.array(context_band_names(n_bands)[lowest:]),
        band_share=np.bincount(band - lowest, minlength=n_bands - lowest) / taken.size,
        person=person[first].astype(np.intp),
        place=place[first].astype(np.intp),
        context=(band - lowest)[first],
        practice=practice[first] - practice_centre,
        practice_centre=practice_centre,
        surprisal=None if surprisal is None else surprisal[first],
        surprisal_centre=centre,
        surprisal_model=surprisal_model or "",
        n=np.bincount(row).astype(np.int64),
        hits=hits.astype(np.int64),
        response=taken,
        n_repeats=int(again.sum()),
        n_unscored=n_unscored,
    )


def _surprisals(study: xr.Dataset, model: str, source: str) -> NDArray[np.float64]:
    names = study["model"].values.tolist() if "model" in study.coords else []
    if model not in names:
        raise unknown_choice("language model", model, names or ["(none in this study)"], source=source)
    if "target_surprisal_nats" not in study or not np.isfinite(study["target_surprisal_nats"].sel(model=model)).any():
        raise InputError(f"has none of model {model!r}", source=source, field="target_surprisal_nats")
    return study["target_surprisal_nats"].sel(model=model).to_numpy()
