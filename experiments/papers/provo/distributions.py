"""``+exp=distributions_legacy``: figure 1 and appendix G with the words as the paper's code takes them."""

from __future__ import annotations

import xarray as xr

from estimators.cloze import WORD_RULES, study_words
from experiments.cloze.distributions import ItemNames, ItemSettings, distributions_result
from experiments.cloze.settings import PlayerSettings, chosen_models
from experiments.harness.result import ExperimentResult, experiment
from experiments.papers.provo.quirks import PUBLISHED, PUBLISHED_RAW

__all__ = ["DistributionsLegacySettings", "distributions_legacy"]


class DistributionsLegacySettings(ItemSettings, PlayerSettings):
    """Settings of :func:`distributions_legacy`."""

    item: ItemNames | None = ("1:2", "1:10", "2:20")
    """Contexts: "TEXT:WORD", "TEXT" for every context of a text, or a list of them; null takes the three on which
    people disagree most."""


@experiment(DistributionsLegacySettings)
def distributions_legacy(study: xr.Dataset, settings: DistributionsLegacySettings) -> ExperimentResult:
    """Show people's and models' most probable words side by side, words as the paper's code takes them.

    Parameters
    ----------
    study : xarray.Dataset
        Of :func:`~experiments.studies.cloze.provo.provo`.
    settings : DistributionsLegacySettings, optional
        Or its fields by name.

    Returns
    -------
    ExperimentResult
        One row a context, player and word.

    Raises
    ------
    InputError
        If there is no such text or word.

    Examples
    --------
    >>> from experiments import distributions_legacy, provo
    >>> distributions_legacy(provo(root="predict_next_word"), item="1:2").table  # doctest: +SKIP
    """
    models = chosen_models(settings, study, needed=False)
    by_model = {name: PUBLISHED if name.startswith("gpt2") else PUBLISHED_RAW for name in models}
    words = study_words(study, human=PUBLISHED, model=by_model, corpus=WORD_RULES["none"], models=models)
    return distributions_result(study, words, settings)
