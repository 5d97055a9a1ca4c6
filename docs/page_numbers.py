"""The numbers of the pages, from results of runs: checks them, or writes them.

A page marks a number with where it comes from, ``<!-- FILE/ROW/COLUMN FORMAT -->102<!-- = -->``, or a whole table with
``<!-- table NAME -->`` and ``<!-- end -->``. FILE is ``docs/results/FILE.csv``, an extract of a run's ``table.csv``, or
``gallery``, which is ``docs/gallery/runs.csv``; ROW is a value of its first column. ``runs.csv`` says of each extract
which command made it, with which code (a commit, or the start of ``code_hash`` in ``status.json``), and which figure of
the pages is of the same run.

    python docs/page_numbers.py                        # says which marked numbers disagree with the results
    python docs/page_numbers.py --write                # writes them
    python docs/page_numbers.py --take NAME FOLDER     # replaces an extract, and its figure, by those of a new run
    python docs/page_numbers.py --time PAGE ...        # runs pages, or the demo, and keeps how long they take

``durations.csv`` is the one place of how long a page's blocks take, in processor time, which a busy machine changes
little; ``docs/gallery/runs.csv`` of how long an experiment takes at a small size.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

DOCS = Path(__file__).parent
RESULTS = DOCS / "results"
RUNS = RESULTS / "runs.csv"

NUMBER = re.compile(r"<!-- (?P<file>\w+)/(?P<row>[^/]+)/(?P<column>\w+) (?P<format>\S+) -->(?P<shown>.*?)<!-- = -->")
TABLE = re.compile(r"<!-- table (?P<name>\w+) -->\n(?P<shown>.*?)<!-- end -->", re.DOTALL)

HUMAN_LOSS = ("gap_median_nats", "gap_lower_nats", "gap_upper_nats", "perplexity_median")
HUMAN_LOSS += ("perplexity_posterior_lower", "perplexity_posterior_upper", "error_median_nats")
HUMAN_LOSS += ("gap_items_with_data_median_nats", "gap_items_with_data_lower_nats", "gap_items_with_data_upper_nats")
HUMAN_LOSS += (
    "individual_gap_upper_median_nats",
    "individual_gap_upper_upper_nats",
    "k0_median",
    "k0_lower",
    "k0_upper",
)
HUMAN_LOSS += ("tail_share_median", "tail_share_lower", "tail_share_upper", "tail_factor")
PERPLEXITY = ("gap_nats", "se_items_nats", "se_samples_nats", "perplexity", "true_loss_nats", "true_perplexity_asked")
PERPLEXITY += ("pareto_k", "share_starved")
BETS = ("loss_nats", "loss_se_nats", "loss_lower_nats", "loss_upper_nats", "perplexity", "gap_nats", "gap_se_nats")
TEXT_PLAYERS = ("points", "points_lower", "points_upper", "standing", "favoured", "position_bias_nats", "slope")
VERDICTS = {
    "reproduced to the digit": "to_the_digit",
    "within stated tolerance": "within_tolerance",
    "read": "read",
    "not available": "not_available",
    "differs, explained": "explained",
}


def take_rows(table: pd.DataFrame, keys: tuple[str, ...], columns: tuple[str, ...]) -> pd.DataFrame:
    """Keep some columns of a run's table; the row's name is the keys' values with a space between."""
    names = table[list(keys)].astype(str).agg(" ".join, axis=1).rename("row")
    kept = table[list(columns)].round(6).set_index(names).reset_index()
    # rows without one participant each have one name
    return kept[~kept["row"].duplicated(keep=False)]


def take_verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Count the verdicts of ``+exp=reproduce``: by paper, by origin and in all."""
    kinds = [table["paper"], table["origin"].replace("counted", "in files alone"), pd.Series("all", table.index)]
    counts = pd.concat([pd.crosstab(kind, table["verdict"]).rename_axis("published in") for kind in kinds])
    counts = counts.rename(columns=VERDICTS).reindex(columns=list(VERDICTS.values())).fillna(0).astype(int)
    counts.insert(0, "values", counts.sum(axis=1))
    return counts.reset_index()


FAMILIES = {
    "mixture": "words nobody says",
    "factors": "every probability by a factor",
    "ranks": "other ranks",
    "tail": "the tail only (Dirichlet)",
    "sharper": "a power of people's",
    "same": "not at all (TVD 0)",
}


def take_coverage(table: pd.DataFrame) -> pd.DataFrame:
    """Coverage of ``+exp=recovery of=tvd`` by family and size, and mean errors by size."""
    errors = table[["tvd", "tvd_bayes"]].sub(table["true_tvd"], axis=0)
    shares = table.assign(coverage=table["coverage"].map("{:.0%}".format))
    shown = shares.pivot_table(index="family", columns="n", values="coverage", aggfunc="first")
    shown = shown.reindex(FAMILIES).rename(index=FAMILIES)
    for column, name in (("tvd", "bias of the raw TVD"), ("tvd_bayes", "bias of the posterior mean")):
        by_size = errors[column].groupby(table["n"]).mean()
        shown.loc[name] = [f"{value:+.2f}" for value in by_size]
    shown.columns = pd.Index(f"{n:,} answers" for n in shown.columns)
    return shown.rename_axis("how the model differs").reset_index()


MIXTURE = ("loss_people_nats", "loss_model_nats", "loss_both_nats", "gain_nats", "gain_lower_nats", "gain_upper_nats")


def take_distances(table: pd.DataFrame) -> pd.DataFrame:
    """Distances of every player to people, as a page shows them."""
    numbers = {"contexts": ("n_contexts", ",.0f"), "samples per context": ("n_samples", ",.0f")}
    numbers |= {"raw TVD": ("tvd", ".2f"), "baseline": ("tvd_baseline", ".2f"), "corrected": ("tvd_corrected", ".2f")}
    shown = {name: table[column].map(f"{{:{form}}}".format) for name, (column, form) in numbers.items()}
    return pd.DataFrame({"player": table["player"], **shown}).replace("-0.00", "0.00")


def take_effects(table: pd.DataFrame) -> pd.DataFrame:
    """Effects of the main regression, as a page shows them."""
    main = table[table["fit"] == "main"]
    effects = main[["effect_tvd", "effect_tvd_lower", "effect_tvd_upper"]].to_numpy()
    return pd.DataFrame(
        {
            "predictor": main["predictor"].str.replace("_", " "),
            "effect on the TVD, 90% interval": ["{:.3f} [{:.3f}, {:.3f}]".format(*row) for row in effects],
            "probability of the largest": main["p_largest"].map("{:.2f}".format),
        }
    )


def take_majority(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracies of ensembles of people, and of models."""
    people = table["n_people"].map("{:.0f}".format).replace("nan", "alone")
    return take_rows(table.assign(n=people), ("predicts", "player", "n"), ("accuracy", "lower", "upper", "everybody"))


TAKES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "ard": take_effects,
    "human_loss": lambda table: take_rows(table, ("analysis",), HUMAN_LOSS),
    "bet_perplexity": lambda table: take_rows(table.fillna({"back_off": ""}), ("kind", "player", "back_off"), BETS),
    "perplexity": lambda table: take_rows(table, ("player", "rounding"), PERPLEXITY),
    "majority": take_majority,
    "mixture": lambda table: take_rows(table, ("model", "probability"), MIXTURE),
    "reading_times": lambda table: take_rows(table, ("player",), ("slope", "slope_lower", "slope_upper")),
    "reproduce": take_verdicts,
    "tvd": take_distances,
    "recovery_tvd": take_coverage,
    "text_players": lambda table: (
        take_rows(table[table["rounding"] == "none"], ("player", "way"), TEXT_PLAYERS)
        .round(3)
        .round(dict.fromkeys(TEXT_PLAYERS[:3], 1))
    ),
}
"""Name of an extract -> what it keeps of the run's table."""


def results(name: str) -> pd.DataFrame:
    """Read an extract; every value is the text in the file."""
    path = DOCS / "gallery" / "runs.csv" if name == "gallery" else RESULTS / f"{name}.csv"
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return table.set_index(table.columns[0])


def formatted(value: str, form: str) -> str:
    """Write a number as the pages do: a comma between thousands."""
    if form == "text":
        return value
    if form == "share":
        return f"{100 * float(value):.0f}%"
    return f"{float(f'{float(value):{form}}'):,.0f}" if form.endswith("g") else f"{float(value):,{form}}"


def expected_number(match: re.Match[str]) -> str:
    """Give what should stand between a number's marks."""
    table = results(match["file"])
    if match["row"] not in table.index or match["column"] not in table:
        raise SystemExit(f"docs/results/{match['file']}.csv has no {match['row']!r}, {match['column']!r}")
    return formatted(str(table.loc[match["row"], match["column"]]), match["format"])


def expected_table(match: re.Match[str]) -> str:
    """Give the Markdown of a whole extract, its header with spaces for underscores."""
    table = results(match["name"]).reset_index()
    header = [name.replace("_", " ") for name in table.columns]
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *table.astype(str).to_numpy().tolist()]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def filled(page: str) -> tuple[str, list[str]]:
    """Fill a page's marks; also say what disagreed."""
    wrong: list[str] = []

    def replace(match: re.Match[str], should: str) -> str:
        if match["shown"] != should:
            wrong.append(f"{match[0].splitlines()[0]} should be {should!r}")
        at = match.start("shown") - match.start(), match.end("shown") - match.start()
        return match[0][: at[0]] + should + match[0][at[1] :]

    page = NUMBER.sub(lambda match: replace(match, expected_number(match)), page)
    return TABLE.sub(lambda match: replace(match, expected_table(match)), page), wrong


def pages() -> list[Path]:
    """List the pages that may have numbers."""
    return [
        DOCS.parent / "README.md",
        *(path for where in ("*.md", "tutorials/*.md", "paper/*.md") for path in sorted(DOCS.glob(where))),
    ]


def digest(figure: str) -> str:
    """Hash a figure of the pages."""
    return hashlib.sha256((DOCS / "figures" / figure).read_bytes()).hexdigest()[:16]


def disagreements(*, write: bool = False) -> list[str]:
    """Say where pages, or figures, are not of the run that ``runs.csv`` names."""
    found = []
    for path in pages():
        text = path.read_text(encoding="utf-8")
        new, wrong = filled(text)
        found += [f"{path.name}: {each}" for each in wrong]
        if write and new != text:
            path.write_text(new, encoding="utf-8")
    runs = pd.read_csv(RUNS, dtype=str, keep_default_na=False)
    return found + [
        f"docs/figures/{run.figure} is not of the run of docs/results/{run.name}.csv: take both from one run"
        for run in runs.itertuples(index=False)
        if run.figure and digest(run.figure) != run.figure_hash
    ]


def take(name: str, folder: Path) -> None:
    """Replace an extract by that of a run, and the pages' figure of the same name by the run's."""
    status = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    if status["experiment"] != {"majority": "tvd"}.get(name, name) or status["status"] != "ok":
        raise SystemExit(f"{folder} holds a run of {status['experiment']} that is {status['status']}")
    TAKES[name](pd.read_csv(folder / "table.csv")).to_csv(RESULTS / f"{name}.csv", index=False)
    runs = pd.read_csv(RUNS, dtype=str, keep_default_na=False).set_index("name")
    figure = runs.loc[name, "figure"]
    if figure:
        shutil.copyfile(folder / "figures" / figure, DOCS / "figures" / figure)
        runs.loc[name, "figure_hash"] = digest(figure)
    runs.loc[name, "code"] = status["code_hash"][:12]
    runs.loc[name, "source"] = "table.csv of the run"
    runs.reset_index().to_csv(RUNS, index=False)


def time_pages(names: Sequence[str]) -> None:
    """Run the blocks of pages from an empty folder each, or the demo, and keep their processor time.

    Raises
    ------
    SystemExit
        Where one of them fails.
    """
    durations = pd.read_csv(RESULTS / "durations.csv", index_col="what")
    environment = os.environ | {"PYTHONPATH": str(DOCS.parent), "MPLBACKEND": "agg"}
    for name in names:
        (page,) = [DOCS / "index.md"] if name == "demo" else DOCS.rglob(f"{name}.md")
        run_page = f"import pathlib, tests.docs.pages as p; p.run_page(pathlib.Path({str(page)!r}), pathlib.Path())"
        command = ["-m", "experiments.run", "demo"] if name == "demo" else ["-c", run_page]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, *command], cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=False
            )
        if done.returncode:
            raise SystemExit(f"{name} failed")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        durations.loc[name, ["processor_seconds", "processor_minutes"]] = round(seconds), round(seconds / 60, 1)
        durations.sort_index().to_csv(RESULTS / "durations.csv")


def main() -> int:
    """Check, write, take or time; the exit code is 1 where a page disagrees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--take", nargs=2, metavar=("NAME", "FOLDER"))
    parser.add_argument("--time", nargs="+", default=[], metavar="PAGE")
    given = parser.parse_args()
    time_pages(given.time)
    if given.take:
        take(given.take[0], Path(given.take[1]))
    found = disagreements(write=given.write or bool(given.take))
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return int(bool(disagreements()))


if __name__ == "__main__":
    sys.exit(main())
