"""The lists of docs/papers.md from tables: writes them, or says that they are not of the tables.

A row of experiments/papers/coverage.csv is one thing that a paper describes: what it needs, where it is, the command
that shows it, the test that holds it, and whether it works or works in part; the page has their numbers. A row of
experiments/papers/literature.csv is an earlier number of people or of a language model; ours beside it come from
extracts of runs (docs/results) and from the table of published values. A list stands between ``<!-- rows NAME -->``
and ``<!-- rows end -->``.

    python docs/paper_pages.py            # says whether page and tables agree
    python docs/paper_pages.py --write    # writes the lists
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from pathlib import Path

DOCS = Path(__file__).parent
PAPERS_FOLDER = DOCS.parent / "experiments" / "papers"
COVERAGE = PAPERS_FOLDER / "coverage.csv"
LITERATURE = PAPERS_FOLDER / "literature.csv"
PUBLISHED = PAPERS_FOLDER / "published.csv"
PAGE = DOCS / "papers.md"

COLUMNS = ("row", "paper", "section", "need", "where", "command", "test", "status", "note")
STATUSES = ("works", "partial")
LIST = re.compile(r"<!-- rows (?P<name>\w+) -->\n(?P<shown>.*?)<!-- rows end -->", re.DOTALL)

Row = dict[str, str]


def read_rows(path: Path) -> list[Row]:
    """Read a table; every cell is text."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def coverage_table(rows: list[Row]) -> list[str]:
    """Count what can be repeated, and what in part, by paper."""
    found = Counter((row["paper"], row["status"]) for row in rows)
    papers = dict.fromkeys(row["paper"] for row in rows)
    lines = [f"| {paper} | " + " | ".join(str(found[paper, status]) for status in STATUSES) + " |" for paper in papers]
    return ["| paper | can be repeated | in part |", "| --- | ---: | ---: |", *lines]


def literature_list(rows: list[Row]) -> list[str]:
    """List earlier numbers, and ours."""
    earlier = [
        f"- {row['who']} ({row['year']}): {row['player']}, {row['method']}, {row['corpus']}. "
        f"{row['quantity'].capitalize()} {_value(row)}{_unit(row)}."
        for row in rows
    ]
    return [*earlier, *_ours()]


def _value(row: Row) -> str:
    both = f"{row['value']} to {row['upper']}" if row["upper"] else row["value"]
    return f"{both} {row['value_unit']}".strip()


def _unit(row: Row) -> str:
    return "" if "accuracy" in row["quantity"] else f" per {row['unit']}"


def _ours() -> list[str]:
    perplexity = {row["row"]: float(row["perplexity"]) for row in read_rows(DOCS / "results" / "perplexity.csv")}
    names = {"human none": "people, comparison game, equation 5", "gpt2-small none": "GPT-2 small, exact"}
    lines = [f"- Here: {who}, OpenWebText. Perplexity {perplexity[key]:.1f} per token." for key, who in names.items()]
    share = "visible tokens, shared name left out: share right"
    value = next(row["printed"] for row in read_rows(PUBLISHED) if row["quantity"] == share)
    return [*lines, f"- Here: people, one guess, OpenWebText. Top-1 accuracy {float(value):.3f}."]


def filled(page: str) -> str:
    """Fill a page's lists."""
    lists = {"coverage": coverage_table(read_rows(COVERAGE)), "literature": literature_list(read_rows(LITERATURE))}

    def should(match: re.Match[str]) -> str:
        name = match["name"]
        return f"<!-- rows {name} -->\n" + "".join(f"{line}\n" for line in ["", *lists[name], ""]) + "<!-- rows end -->"

    return LIST.sub(should, page)


def main() -> int:
    """Write the lists, or check them; the exit code is 1 where one is not of its table."""
    text = PAGE.read_text(encoding="utf-8")
    should = filled(text)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(should, encoding="utf-8")
    elif text != should:
        sys.stdout.write("docs/papers.md is not of its tables: python docs/paper_pages.py --write\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
