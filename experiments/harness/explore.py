"""The explorer: one HTML file that shows every item of a study, from disk and without a network.

The list, the search and the items are plain HTML, which any browser and screen reader knows; the overview is drawn by
Vega-Lite, whose whole source ``vl-convert`` brings (0.9 MB: Bokeh's is 1.2, Plotly's 4.7).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from hydra.utils import get_object

from shannon_game.estimators.errors import InputError, require_packages
from shannon_game.experiments.harness.exploration import BETTER, Exploration
from shannon_game.experiments.harness.figures import player_colours, player_label
from shannon_game.inference.disk import refuse_other, write_whole
from shannon_game.inference.progress import counted

if TYPE_CHECKING:
    import xarray as xr

    from shannon_game.experiments.harness.result import ExperimentResult

EXPLORERS: Mapping[str, tuple[str, str, str]] = {
    "comparison": ("shannon_game.experiments.comparison.explore.comparison_exploration", "report", "comparison study"),
    "cloze": ("shannon_game.experiments.cloze.explore.cloze_exploration", "word_text", "cloze study"),
    "guess": ("shannon_game.experiments.guesses.explore.guess_exploration", "correct", "study of guesses"),
    "ranking": ("shannon_game.experiments.rankings.explore.ranking_exploration", "ranked_token", "ranking study"),
    "bet": ("shannon_game.experiments.bets.explore.bet_exploration", "bet_hit", "study of bets"),
}
"""Kind of study -> what describes its items, a variable that no other kind has, its name in the page."""

MAX_ITEMS = 5000
"""Items of one page; a browser on a phone cannot hold many more."""

# what draws Vega-Lite into the page
_NEEDED = ("vl_convert",)
_TEMPLATE = Path(__file__).with_name("explore_page.html")
_SIGNIFICANT = 5
# what could end the script that holds the data, or begin a comment in it; JSON reads the escapes as the characters
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def check_explorer(study: xr.Dataset | None = None) -> None:
    """Refuse to begin a run whose explorer could not be written."""
    require_packages(_NEEDED, "data", source="output.explore")
    if study is not None:
        _kind_of(study)


def _kind_of(study: xr.Dataset) -> str:
    for kind, (_, variable, _) in EXPLORERS.items():
        if variable in study:
            return kind
    raise InputError(
        f"needs a study with items: {', '.join(EXPLORERS)}; study {study.attrs.get('name')!r} is none",
        source="settings",
        field="output.explore",
    )


def explore(study: xr.Dataset, result: ExperimentResult | None, path: str | Path) -> Path:
    """Write one HTML file that shows every item of a study.

    Every item with its context, what people answered, what each language model expected, the posterior where one was
    made, and who was better. The list can be sorted, searched and filtered; a point of the overview opens its item.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison, cloze, guess, ranking or bet study.
    result : ExperimentResult or None
        Of an experiment on it: its table, warnings, numbers by item and posteriors are shown. None shows the study.
    path : str or Path
        The file; a page that this function wrote is replaced. People's ids that are long become P1, P2, ...; texts of
        the study are inside.
    """
    check_explorer(study)
    describe: Callable[..., Exploration] = get_object(EXPLORERS[_kind_of(study)][0])
    found = describe(study, result)
    path = Path(path)
    refuse_other(path, lambda other: _GENERATOR in other.read_bytes()[:500], "page")
    return write_whole(path, explorer_page(found, name=str(study.attrs.get("name", "study")), result=result))


def explorer_page(found: Exploration, *, name: str, result: ExperimentResult | None = None) -> str:
    """HTML of an exploration."""
    data = _safe_json(_content(found, name, result))
    page = _TEMPLATE.read_text(encoding="utf-8")
    # the texts of a study may say what stands for the library
    before, between = page.split("@@DATA@@")
    between, after = between.split("@@LIBRARY@@")
    return f"{before}{data}{between}{_library()}{after}"


_GENERATOR = b'<meta name="generator" content="Shannon game">'


@cache
def _library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert  # noqa: PLC0415 - the extra data

    # its annotation wants a snippet of one's own, which may be left out
    bundle: Any = vl_convert.javascript_bundle
    script = str(bundle())
    if "</script" in script.lower() or "<!--" in script:
        raise RuntimeError("the plotting library would end the script that holds it")
    return script


def _safe_json(content: object) -> str:
    """JSON that can stand in a script element: no text of a study can end it."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # half a surrogate pair, as a broken file may hold, cannot be written
    text = text.encode("utf-8", "replace").decode()
    for character, escape in _UNSAFE.items():
        text = text.replace(character, escape)
    return text


def _content(found: Exploration, name: str, result: ExperimentResult | None) -> dict[str, Any]:
    items = found.items.head(MAX_ITEMS)
    columns = [
        {
            "name": str(column),
            "label": found.labels.get(str(column), str(column)),
            "number": pd.api.types.is_numeric_dtype(items[column]) and not pd.api.types.is_bool_dtype(items[column]),
            "shown": column in found.shown,
        }
        for column in items.columns
    ]
    order = {str(column): at for at, column in enumerate(items.columns)}
    said = [] if len(items) == len(found.items) else [f"The first {MAX_ITEMS:,} of {len(found.items):,} are shown."]
    summary = None if result is None else result.summary()
    return {
        "title": f"{name}: every item of a {EXPLORERS[found.kind][2]}",
        "about": " ".join([f"{counted(len(found.items), 'item')}.", *said, found.about]),
        "warnings": [] if result is None else list(result.warnings),
        "table": None
        if summary is None
        else {"columns": [str(column) for column in summary.columns], "rows": _rows(summary)},
        "columns": columns,
        "rows": _rows(items),
        # the target of a game of tokens has its own white space
        "joined": found.kind in ("cloze", "bet"),
        "axes": [order[axis] for axis in found.axes],
        "sort": [order[found.first[0]], found.first[1]],
        "answered": order[found.answered] if found.answered and (items[found.answered] > 0).any() else None,
        "better": order.get(BETTER),
        "colours": {player_label(player): colour for player, colour in player_colours(found.players).items()},
        "details": [
            [
                {"heading": one.heading, "columns": one.columns, "rows": [[_plain(v) for v in row] for row in one.rows]}
                for one in tables
            ]
            for tables in found.tables[:MAX_ITEMS]
        ],
    }


def _rows(table: pd.DataFrame) -> list[list[Any]]:
    columns = [[_plain(value) for value in table[column].tolist()] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    """Value as JSON: short numbers; nothing for what is not known; infinite ones as texts that the page knows."""
    if value is None or value is pd.NA:
        return None
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            return None
        return float(f"{value:.{_SIGNIFICANT}g}") if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    return int(value) if isinstance(value, int | np.integer) else str(value)
