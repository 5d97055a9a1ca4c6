"""Assembly of a designed study: candidates, who is asked, the comparisons one after the other, the dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from estimators.comparison.reports import log_ratio_from_report
from estimators.comparison.rounding import RoundingScheme, rounding_scheme
from estimators.comparison.simulation.language import draw_tokens
from estimators.comparison.simulation.players import Players, free_answers, report_comparisons, sample_rows
from estimators.comparison.simulation.questions import next_comparison, note_report, start_questions
from estimators.comparison.simulation.settings import random_stream
from estimators.comparison.simulation.study import participant_names
from estimators.comparison.study import validate_comparison_study
from estimators.comparison.study_sources import ANSWER, GENERATOR, PADDING, PROPOSAL, TARGET_POSITION
from estimators.layout import add_note

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Design", "designed_study"]

FloatArray = NDArray[Any]
IntArray = NDArray[np.intp]

_EMPTY = -1  # token of a cell without one
_STONE_EXPONENT = 0.5


class Design(Protocol):
    """What the assembly reads of :class:`~estimators.comparison.simulation.design.QuestionDesign`."""

    @property
    def n_draws(self) -> int:
        """Draws an item."""

    @property
    def n_answers(self) -> int:
        """Free answers an item."""
