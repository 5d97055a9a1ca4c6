"""What is known against the intervals of the models of belief, until other models replace them."""

from __future__ import annotations

import pandas as pd
import xarray as xr

__all__ = ["FEW_PEOPLE", "NOT_RELIED_ON", "caveat_warnings", "caveats"]

FEW_PEOPLE = 12
NOT_RELIED_ON = "interval not to be relied on"
"""What figures call an estimate with a caveat."""

_WHOLE = "no whole distribution"
_FEW = "few people"
_COMPARED = "comparisons only"
_WORDS = {
    _COMPARED: "comparisons alone fix neither the scale of people's belief nor its tail; in simulated studies of 12 to "
    "120 people, 90% intervals held the truth in 38 of 104 fits, and errors had both signs",
    _WHOLE: "the study lacks the generator's whole distribution (build_study writes it), so that tokens never drawn "
    "rest on stand-ins; a loss can come out far too low",
    _FEW: f"fewer than {FEW_PEOPLE} people took part",
}


def caveats(study: xr.Dataset, n_people: int | None = None, *, compared: bool = True) -> str:
    """Name what is known against an interval; no probability is stated where anything is.

    Comparisons alone always have a caveat: in simulated studies (five beliefs, 60 items, 20 questions a person, k0
    about 1), 90% intervals held the truth in 14 of 40 fits without and 18 of 38 with the whole distribution (12 and 30
    people), and in 6 of 26 with it and 60 or 120 people. With free answers, the intervals
    held in 6 of 6 short fits of 12 people; fewer were not tried.
    """
    found = {
        _COMPARED: compared and n_people is not None,
        _WHOLE: "reference_logprob" not in study,
        _FEW: n_people is not None and n_people < FEW_PEOPLE,
    }
    return ", ".join(name for name, holds in found.items() if holds)


def caveat_warnings(table: pd.DataFrame) -> tuple[str, ...]:
    """One warning that says what the caveats of a table mean."""
    said = ", ".join(dict.fromkeys(table["caveat"]))
    why = "; ".join(words for name, words in _WORDS.items() if name in said)
    return (f"intervals with a caveat are {NOT_RELIED_ON.removeprefix('interval ')}: {why}",) if why else ()
