"""The page docs/coverage.md from experiments/papers/coverage.csv: writes it, or says that it is not of the table.

A row of the table is one thing that a source describes: what it needs, where it is, the command that shows it, the test
that holds it, and whether it works, works in part, or is absent.

    python docs/coverage_page.py            # says whether page and table agree
    python docs/coverage_page.py --write    # writes the page
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path

DOCS = Path(__file__).parent
PAGE = DOCS / "coverage.md"
TABLE = DOCS.parent / "experiments" / "papers" / "coverage.csv"

COLUMNS = ("row", "paper", "section", "need", "where", "command", "test", "status", "note")
STATUSES = ("works", "partial", "absent")
PAPERS = {
    "lm_game": "Language Models Are Better Than Humans at Next-token Prediction",
    "rank_perplexity": "An Alternative to Perplexity for the Evaluation of Long-context LLMs",
    "provo": "Predict the Next Word",
    "project": "What the project was asked for",
}
"""Short name of a source -> its heading."""

Row = dict[str, str]


def read_rows(path: Path = TABLE) -> list[Row]:
    """Read the table; every cell is text."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def counted(rows: list[Row]) -> str:
    """Count the statuses: ``3 work, 2 work in part, 1 is absent``."""
    found = Counter(row["status"] for row in rows)
    works, partial, absent = (found[status] for status in STATUSES)
    return f"{works} work, {partial} work in part, {absent} are absent"


def page_of(rows: list[Row]) -> str:
    """Write the page of a table."""
    lines = [
        "# Every row of the papers",
        "",
        "<!-- made by docs/coverage_page.py from experiments/papers/coverage.csv; change the table, not the page -->",
        "",
        f"What three papers describe, and what the project was asked for, in {len(rows)} rows: {counted(rows)}. A test "
        "composes the command of every row that works, checks its settings, and looks for its test. *In part* says "
        "what is missing; *absent* is nowhere. Sections are those of the sources, and what a row needs is said in our "
        "words. [Limitations](limitations_overcome.md) lists what the papers themselves call their limits.",
    ]
    for paper, heading in PAPERS.items():
        mine = [row for row in rows if row["paper"] == paper]
        lines += ["", f"## {heading}", "", f"{len(mine)} rows: {counted(mine)}.", ""]
        lines += [
            "| row | section | what it needs | status | command, place | note |",
            "| ---: | --- | --- | --- | --- | --- |",
        ]
        lines += [_line(row) for row in mine]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    shown = f"`{row['command']}`" if row["command"] else ""
    place = f"`{row['where']}`" if row["where"] else ""
    together = "<br>".join(part for part in (shown, place) if part)
    cells = (row["row"], row["section"], row["need"], row["status"], together, row["note"])
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main() -> int:
    """Write the page, or check it; the exit code is 1 where it is not of the table."""
    text = page_of(read_rows())
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    agrees = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text
    if not agrees:
        sys.stdout.write("docs/coverage.md is not of the table: python docs/coverage_page.py --write\n")
    return int(not agrees)


if __name__ == "__main__":
    sys.exit(main())
