"""A language model as a participant of the comparison game."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from estimators.comparison.reports import two_alternative_report
from estimators.comparison.rounding import RoundingScheme, round_reports
from inference.lm.next_token import next_token_distributions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from inference.lm.language_model import LanguageModel

__all__ = ["play"]


def play(
    model: LanguageModel,
    contexts: Sequence[Sequence[int]],
    targets: Sequence[int],
    others: Sequence[int],
    *,
    rounding: RoundingScheme | None = None,
    progress: Callable[[int], None] | None = None,
) -> NDArray[np.float64]:
    """Report the probability that the next token is the target and not the other one."""
    scored = next_token_distributions(
        model, contexts, probed=[[y, x] for y, x in zip(targets, others, strict=True)], progress=progress
    )
    logprob = scored["probed_logprob"].values.astype(np.float64)
    reports = two_alternative_report(logprob[:, 0], logprob[:, 1])
    return reports if rounding is None else round_reports(reports, rounding)
