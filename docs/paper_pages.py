"""The pages docs/coverage.md and docs/literature.md from tables: writes them, or says that they are not of the tables.

A row of experiments/papers/coverage.csv is one thing that a source describes: what it needs, where it is, the command
that shows it, the test that holds it, and whether it works, works in part, or is absent. A row of
experiments/papers/literature.csv is an earlier number of people or of a language model; ours beside it come from
extracts of runs (docs/results) and from the table of published values.

    python docs/paper_pages.py            # says whether pages and tables agree
    python docs/paper_pages.py --write    # writes the pages
"""

from __future__ import annotations

import csv
import math
import sys
from collections import Counter
from pathlib import Path

DOCS = Path(__file__).parent
PAPERS_FOLDER = DOCS.parent / "experiments" / "papers"
COVERAGE = PAPERS_FOLDER / "coverage.csv"
LITERATURE = PAPERS_FOLDER / "literature.csv"
PUBLISHED = PAPERS_FOLDER / "published.csv"

COLUMNS = ("row", "paper", "section", "need", "where", "command", "test", "status", "note")
STATUSES = ("works", "partial", "absent")
PAPERS = {
    "lm_game": "Language Models Are Better Than Humans at Next-token Prediction",
    "rank_perplexity": "An Alternative to Perplexity for the Evaluation of Long-context LLMs",
    "provo": "Predict the Next Word",
    "project": "What the project was asked for",
}
"""Short name of a source -> its heading."""

MADE = "<!-- made by docs/paper_pages.py from experiments/papers/{}; change the table, not the page -->"

Row = dict[str, str]


def read_rows(path: Path) -> list[Row]:
    """Read a table; every cell is text."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def table_of(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Write a Markdown table."""
    lines = [header, tuple("---" for _ in header), *(tuple(cell.replace("|", "\\|") for cell in row) for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def counted(rows: list[Row]) -> str:
    """Count the statuses: ``3 work, 2 work in part, 1 are absent``."""
    found = Counter(row["status"] for row in rows)
    works, partial, absent = (found[status] for status in STATUSES)
    return f"{works} work, {partial} work in part, {absent} are absent"


def coverage_page(rows: list[Row]) -> str:
    """Write the page of the table of coverage."""
    lines = [
        "# Every row of the papers",
        "",
        MADE.format(COVERAGE.name),
        "",
        f"What three papers describe, and what the project was asked for, in {len(rows)} rows: {counted(rows)}. A test "
        "composes the command of every row that works, checks its settings, and looks for its test. *In part* says "
        "what is missing; *absent* is nowhere. Sections are those of the sources, and what a row needs is said in our "
        "words. [Limitations](limitations_overcome.md) lists what the papers themselves call their limits.",
    ]
    for paper, heading in PAPERS.items():
        mine = [row for row in rows if row["paper"] == paper]
        header = ("row", "section", "what it needs", "status", "command, place", "note")
        lines += ["", f"## {heading}", "", f"{len(mine)} rows: {counted(mine)}.", ""]
        lines += table_of(header, [_cells(row) for row in mine])
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    places = [f"`{row[name]}`" for name in ("command", "where") if row[name]]
    return row["row"], row["section"], row["need"], row["status"], "<br>".join(places), row["note"]


def literature_page(rows: list[Row]) -> str:
    """Write the page of earlier numbers, with ours."""
    header = ("who", "text", "player", "how", "quantity", "value")
    earlier = [
        (
            f"{row['who']} ({row['year']})" if row["year"] else row["who"],
            f"{row['corpus']}, by {row['unit']}",
            row["player"],
            row["method"],
            row["quantity"],
            _value(row),
        )
        for row in rows
    ]
    sources = [f"- {row['who']}{' ' + row['year'] if row['year'] else ''}: {row['source']}." for row in rows]
    lines = [
        "# People and language models elsewhere",
        "",
        MADE.format(LITERATURE.name),
        "",
        "Earlier numbers of how well people and models predict a text, and ours. They are of other texts, other units "
        "and other methods: a perplexity per word is not one per token, and a bound of an entropy is not a loss.",
        "",
        *table_of(header, earlier),
        "",
        "Ours, of the public data (`+exp=perplexity study=lm_game`, `+exp=accuracy study=lm_game_top1`):",
        "",
        *table_of(header, _ours()),
        "",
        "For text of your own `+exp=surprisal` gives bits a byte, `+exp=bounds` Shannon's "
        "bounds, and `+exp=bet_perplexity` the gambling estimate.",
        "",
        "## Sources",
        "",
        *dict.fromkeys(sources),
    ]
    return "\n".join(lines) + "\n"


def _value(row: Row) -> str:
    both = f"{row['value']} to {row['upper']}" if row["upper"] else row["value"]
    return f"{both} {row['value_unit']}".strip()


def _ours() -> list[tuple[str, ...]]:
    perplexity = {row["row"]: float(row["perplexity"]) for row in read_rows(DOCS / "results" / "perplexity.csv")}
    text, how = "OpenWebText, by token", "comparison game, equation 5"
    names = {"human none": ("people", how), "gpt2-small none": ("GPT-2 small", "exact")}
    rows = [
        (
            "this project",
            text,
            player,
            method,
            "perplexity",
            f"{perplexity[key]:.1f} ({math.log2(perplexity[key]):.2f} bits a token)",
        )
        for key, (player, method) in names.items()
    ]
    share = "visible tokens, shared name left out: share right"
    value = next(row["printed"] for row in read_rows(PUBLISHED) if row["quantity"] == share)
    return [*rows, ("this project", text, "people", "one guess", "top-1 accuracy", f"{float(value):.3f}")]


def pages() -> dict[Path, str]:
    """Give every page with the text that it should have."""
    return {
        DOCS / "coverage.md": coverage_page(read_rows(COVERAGE)),
        DOCS / "literature.md": literature_page(read_rows(LITERATURE)),
    }


def main() -> int:
    """Write the pages, or check them; the exit code is 1 where one is not of its table."""
    wrong = 0
    for path, text in pages().items():
        if "--write" in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            sys.stdout.write(f"docs/{path.name} is not of its table: python docs/paper_pages.py --write\n")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
