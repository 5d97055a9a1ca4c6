"""The table of the thesis's printed values (rank_perplexity_published.csv), made again from the author's workbooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from shannon_game.experiments.papers.ranks_published import MODELS, as_printed
from shannon_game.experiments.studies.rankings.rank_perplexity_workbooks import (
    ARCHIVES,
    Archive,
    Workbook,
    read_workbooks,
)

_AVERAGES_ROWS = ("linear", "reciprocal", "perplexity", "exponential_01", "exponential_03", "average")
_APPENDIX = {"text 1": "appendix A", "text 2": "appendix B"}
# the row "RP" of appendix A at this length repeats the row "PPL"
_MISPRINT = ("text 1", 1024, "reciprocal")
# top left cell of the tables that the author pasted beside the averages of repeat 0: (row, column) from 0, quantity
_PASTED: Mapping[str, Sequence[tuple[int, int, str]]] = {
    "text 1": ((3, 10, "perplexity"), (10, 10, "average")),
    "text 2": ((3, 9, "average"), (9, 9, "perplexity")),
}
_STARTS = {"text 1": (9175, 13000, 4669, 10430, 8190), "text 2": (7159, 12860, 8944, 4829, 1285)}
_FROM_TEXT = (
    *(
        ("mean", "mean_perplexity", model, printed, 2)
        for model, printed in zip(
            ("gpt-4o", "gpt-4-turbo", "gpt-4", "gpt-3.5-turbo"), (109.64, 169.87, 191.49, 208.20), strict=True
        )
    ),
    ("mean of text 1", "mean_average", "", 0.52, 2),
    ("mean of text 1", "mean_perplexity", "", 161.11, 2),
    ("mean of text 2", "mean_average", "", 0.53, 2),
    ("mean of text 2", "mean_perplexity", "", 178.49, 2),
    ("repeats", "sd_average", "", 0.049, 3),
    ("repeats", "sd_perplexity", "", 93.00, 2),
    ("repeats and main run", "sd_average", "", 0.053, 3),
    ("repeats and main run", "sd_perplexity", "", 119.36, 2),
    ("appendix C, both texts", "slope_perplexity", "gpt-3.5-turbo", -0.00909, 5),
    ("appendix C, both texts", "slope_se_perplexity", "gpt-3.5-turbo", 0.0343, 4),
    ("appendix C, both texts", "p_value_perplexity", "gpt-3.5-turbo", 0.795, 3),
)


def make_published(root: Path, path: Path) -> None:
    """Write the table of printed values from a folder with the four archives."""
    rows = [row for archive in ARCHIVES for row in _rows_of(archive, root)]
    for place, quantity, model, printed, decimals in _FROM_TEXT:
        rows.append(_row(place, ("", None, "", model), quantity, printed, "the thesis's text", decimals=decimals))
    table = pd.DataFrame(rows)
    table["context_length"] = table["context_length"].astype("Int64")
    order = ["place", "text", "context_length", "window", "quantity"]
    table = table.sort_values(order, kind="stable")
    table.to_csv(path, index=False, lineterminator="\n")


def _rows_of(archive: Archive, root: Path) -> list[dict[str, Any]]:
    path = root / archive.name
    books = list(read_workbooks(archive, path.read_bytes(), path))
    if archive.part == "repeats":
        averages = [book for book in books if book.is_averages]
        pasted = next(book for book in averages if book.start == 0)
        return [*_pasted(pasted), *(row for book in averages for row in _repeat(book))]
    rows: list[dict[str, Any]] = []
    perplexity = {(book.length, book.model): book.rows[1][6] for book in books if not book.is_averages}
    for book in (book for book in books if book.is_averages):
        header = book.rows[0][:4]
        scores = {
            (quantity, model): book.rows[1 + number][header.index(model)]
            for number, quantity in enumerate(_AVERAGES_ROWS)
            for model in MODELS
        }
        for model in MODELS:
            key = (archive.text, book.length, "main", model)
            for quantity in _AVERAGES_ROWS:
                is_perplexity = quantity == "perplexity" or (archive.text, book.length, quantity) == _MISPRINT
                # the averages' own row of perplexities is of an earlier run
                value = perplexity[book.length, model] if is_perplexity else scores[quantity, model]
                source = "data workbook, Perplexity" if is_perplexity else "AVERAGES workbook"
                if is_perplexity and quantity != "perplexity":
                    source += " (misprint: the row repeats PPL)"
                rows.append(_row(_APPENDIX[archive.text], key, quantity, value, source))
                if quantity in ("average", "perplexity"):
                    rows.append(_row("tables 1-2", key, quantity, value, source))
    return rows


def _pasted(book: Workbook) -> list[dict[str, Any]]:
    text = book.archive.text
    return [
        _row(
            "tables 3-4",
            (text, book.length, f"start {start}", model),
            quantity,
            book.rows[top + number][left + column],
            "table pasted into the AVERAGES workbook of repeat 0",
        )
        for top, left, quantity in _PASTED[text]
        for number, start in enumerate(_STARTS[text])
        for column, model in enumerate(MODELS)
    ]


def _repeat(book: Workbook) -> list[dict[str, Any]]:
    """The single scores of a repeat; its average and perplexity stand in tables 3 and 4."""
    if book.start is None:
        raise ValueError(f"{book.place} has no number of a repeat")
    header = book.rows[0][:4]
    window = f"start {_STARTS[book.archive.text][book.start]}"
    return [
        _row(
            "repeats, stored averages",
            (book.archive.text, book.length, window, model),
            quantity,
            book.rows[1 + number][header.index(model)],
            "AVERAGES workbook of the repeat; the thesis prints only average and perplexity",
        )
        for number, quantity in enumerate(_AVERAGES_ROWS)
        if quantity not in ("average", "perplexity")
        for model in MODELS
    ]


def _row(
    place: str, key: tuple[str, int | None, str, str], quantity: str, value: float, source: str, *, decimals: int = 2
) -> dict[str, Any]:
    text, length, window, model = key
    return {
        "place": place,
        "text": text,
        "context_length": length,
        "window": window,
        "model": model,
        "quantity": quantity,
        "printed": f"{float(as_printed(value, decimals)):.{decimals}f}",
        "decimals": decimals,
        "source": source,
    }
