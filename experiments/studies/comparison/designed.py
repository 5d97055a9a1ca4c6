"""The embedded designed study: people of known beliefs who answer freely and compare, under a design of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field

from shannon_game.estimators.comparison import (
    HUMAN,
    ParticipantPopulation,
    QuestionDesign,
    SimulationSettings,
    simulate_designed_study,
    validate_comparison_study,
)
from shannon_game.estimators.comparison.simulation.language import divergence, draw_tokens, looked_up, simulate_language
from shannon_game.estimators.comparison.simulation.settings import LANGUAGE_MODELS, random_stream
from shannon_game.estimators.errors import check_memory
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.harness.settings import Seeded
from shannon_game.experiments.studies.comparison.simulated import Population
from shannon_game.inference.settings import Count, Positive, Settings, settings_of, to_dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


_SOURCE = "study designed_simulated"

Design = settings_of(QuestionDesign, "Design", base=Settings)
"""What people are asked; the fields of ``QuestionDesign``."""


class Crowd(Population):  # type: ignore[misc, valid-type]
    """How people differ, who are no simulator's alone: with beliefs of their own, and bots among them."""

    private_sd_nats: Annotated[float, Field(ge=0)] = 0.0
    """How far a person's own ln h of a token is from the shared one."""
    bots: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the people who answer anything."""


class DesignedSettings(Seeded):
    n_items: Count = 40
    """Contexts, all of them asked."""
    vocab_size: Count = 2000
    """Tokens of the language."""
    entropy_nats: Positive = 2.47
    """Mean entropy of the true distribution of the next token."""
    generator: Literal["lm-weak", "lm-medium", "lm-strong"] = "lm-medium"
    """The language model that draws the candidates."""
    belief: Literal["human", "lm-weak", "lm-medium", "lm-strong"] = "human"
    """What people believe: a view of their own, or what a language model believes."""
    design: Design = Design()  # type: ignore[valid-type]
    """What people are asked about each item, and the scale on which they report."""
    participants: Population = Population()  # type: ignore[valid-type]
    """How participants differ; slope_median is k0, how large the log-odds of reports are beside those of the belief."""
    answer_exponent: Positive = 1.0
    """Free answers are drawn from the belief to this power: 3 is near the most probable token."""
    private_sd_nats: float = 0.0
    """How far a participant's own ln h of a token is from the shared one."""
    bots: float = 0.0
    """Share of the participants who answer anything."""
    player: Literal["belief", "equation_6"] = "belief"
    """What people report: their belief, or the posterior that the reference is the true token and the other drawn."""


@loader(DesignedSettings)
def designed_simulated(settings: DesignedSettings) -> xr.Dataset:
    """Simulate a comparison study of a given design, in which people also answer freely, and whose truth is known.

    See :func:`shannon_game.estimators.comparison.simulate_designed_study`; with the three language models of
    :func:`shannon_game.estimators.comparison.simulate_comparison_study`, of which one drew the candidates.

    Examples
    --------
    >>> from shannon_game import designed_simulated
    >>> study = designed_simulated(n_items=5, vocab_size=100, design={"n_answers": 3, "n_comparisons": 4})
    >>> study.sizes["answer"], study.sizes["response"], study["model"].values.tolist()
    (15, 20, ['lm-weak', 'lm-medium', 'lm-strong'])
    """
    # four players' log-probabilities and what they are made of, four bytes each
    check_memory(60 * settings.n_items * settings.vocab_size, source=_SOURCE, field="vocab_size")
    language = simulate_language(
        SimulationSettings(
            n_items=settings.n_items,
            n_reference_items=settings.n_items,
            vocab_size=settings.vocab_size,
            seed=settings.seed,
            generator=settings.generator,
            entropy_nats=settings.entropy_nats,
        )
    )
    logprob = language.player_logprob
    belief = logprob[HUMAN if settings.belief == "human" else settings.belief]
    target = draw_tokens(language.true_logprob, 1, random_stream(settings.seed, "target"))[:, 0]
    study = simulate_designed_study(
        logprob[settings.generator],
        belief,
        target,
        to_dataclass(QuestionDesign, settings.design),
        to_dataclass(ParticipantPopulation, settings.participants),
        seed=settings.seed,
        tokens=language.vocabulary.tolist(),
        answer_exponent=settings.answer_exponent,
        private_sd_nats=settings.private_sd_nats,
        bots=settings.bots,
        player=settings.player,
    )
    return validate_comparison_study(_with_models(study, logprob, target, settings.generator))


def _with_models(
    study: xr.Dataset, logprob: Mapping[str, NDArray[np.floating]], target: NDArray[np.intp], generator: str
) -> xr.Dataset:
    place = {token: number for number, token in enumerate(study["token"].values.tolist())}
    candidate = study["candidate_token"].values
    known = study["candidate_source"].values != "padding"
    at = np.array([[place.get(token, 0) for token in row] for row in candidate.tolist()])
    found = [looked_up(logprob[model], target[:, None], at) for model in LANGUAGE_MODELS]
    dims = ("model", "item")
    with_models = study.drop_dims("model").assign_coords(model=np.array(LANGUAGE_MODELS, dtype=object))
    return with_models.assign(
        target_logprob=(dims, np.stack([own for own, _ in found])),
        candidate_logprob=((*dims, "candidate"), np.stack([np.where(known, own, np.nan) for _, own in found])),
        kl_nats=(dims, np.stack([divergence(logprob[model], logprob[generator]) for model in LANGUAGE_MODELS])),
    ).assign_attrs(generator=generator)
