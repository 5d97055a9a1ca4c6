"""The gallery: runs every experiment at a small size, keeps its figure and its time, and writes the pages.

``docs/gallery/entries.yaml`` has the words, the commands and the Python of every experiment, ``docs/gallery/runs.csv``
what the last run of each took. Pages and pictures follow from both.

    python docs/make_gallery.py                          # writes the pages of docs/gallery
    python docs/make_gallery.py --run NAME ... | all     # runs experiments, takes figure and time, writes the pages
    python docs/make_gallery.py --python NAME ... | all  # runs the Python of the entries, each in a process of its own

Experiments on public data read the folder in ``SHANNON_DATA``; their commands name it ``FOLDER``.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from PIL import Image

DOCS = Path(__file__).parent
GALLERY = DOCS / "gallery"
ENTRIES = GALLERY / "entries.yaml"
RUNS = GALLERY / "runs.csv"
PICTURES = GALLERY / "pictures"
THUMBNAILS = GALLERY / "thumbnails"

DPI = 120
WIDTH = 800
"""Of a picture, in pixels, at most; of a thumbnail it is ``SMALL``."""
SMALL = 300
LIMIT_S = 900
COLUMNS = 84
"""Of a command's lines: what a page shows without scrolling."""
RUN_COLUMNS = ("name", "processor_seconds", "exit_code", "code")

DATA = {
    "simulated": "simulated data, whose truth is known",
    "demo": "the texts that are shipped with the project",
    "lm_game": "the public files of the comparison game's paper",
    "provo": "the public files of *Predict the Next Word*",
    "rank_perplexity": "the public files of the thesis on rank-based perplexity",
    "papers": "the public files of three papers",
    "endpoint": "public texts, and an endpoint that stands in for a paid one: its ranks mean nothing",
}
"""What an entry's ``data`` says on its page."""
ADDRESS = "https://HOST/v1"
"""What stands for an endpoint's address on a page."""
FOLDERS = {"lm_game": "lm_game", "endpoint": "lm_game", "provo": "provo", "rank_perplexity": "rank_perplexity"}
"""What an entry's ``data`` reads -> its folder below ``SHANNON_DATA``."""


@dataclass(frozen=True)
class Entry:
    """One experiment of the gallery.

    Attributes
    ----------
    name : str
        Of its picture; an experiment may have several entries, and what a choice changes has its own.
    title : str
        The question, in plain words; the heading of its section.
    data : str
        A key of ``DATA``.
    figure : str
        Which of the run's figures is shown; with ``.png`` it is one of ``docs/figures``.
    command : str
        What is run, from ``+exp=`` on, as the page prints it.
    says : str
        How to read the figure, in Markdown.
    python : str
        The same in Python; the last line gives the figure.
    before : str
        Commands that come first, in a shell.
    alt : str
        The figure, for those who do not see it.
    """

    name: str
    title: str
    data: str
    figure: str
    command: str
    says: str
    python: str
    before: str = ""
    alt: str = ""

    @property
    def experiment(self) -> str:
        """What its command runs."""
        return shlex.split(self.command)[0].removeprefix("+exp=")

    @property
    def asked(self) -> str:
        """Experiment, and the choice that it was given, as in the command."""
        return " ".join(re.findall(r"\+exp=\w+|\b(?:vary|of|look)=\w+", self.command))


@dataclass(frozen=True)
class Group:
    """A page of the gallery: its file's stem, title, first sentence, and its entries in order."""

    stem: str
    title: str
    about: str
    entries: tuple[Entry, ...]


def read_groups() -> tuple[Group, ...]:
    """Read the entries, by page."""
    pages = yaml.safe_load(ENTRIES.read_text(encoding="utf-8"))
    return tuple(
        Group(page["stem"], page["title"], page["about"], tuple(Entry(**entry) for entry in page["entries"]))
        for page in pages
    )


def read_runs() -> dict[str, dict[str, str]]:
    """Read what the last run of each experiment took, by name."""
    if not RUNS.exists():
        return {}
    with RUNS.open(newline="", encoding="utf-8") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def slug(title: str) -> str:
    """Give the anchor of a heading, as code hosts and MyST make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def spoken(seconds: float) -> str:
    """Say a duration: seconds under two minutes, else minutes."""
    if seconds < 20:
        return f"{max(1, round(seconds))} s"
    if seconds < 115:
        return f"{round(seconds / 5) * 5} s"
    return f"{round(seconds / 60)} minutes"


def section(entry: Entry, run: Mapping[str, str]) -> str:
    """Write an experiment's section."""
    before = f"{entry.before.strip()}\n" if entry.before else ""
    words = shlex.split(entry.command)
    lines, line = [], "python -m experiments.run"
    for word in (word if re.fullmatch(r"[\w+=./,:\[\]@-]+", word) else shlex.quote(word) for word in words):
        if len(line) + 1 + len(word) > COLUMNS:
            lines.append(f"{line} \\")
            line = "   "
        line += f" {word}"
    command = "\n".join([*lines, line])
    check = " Its check failed at this size (exit code 3)." if run["exit_code"] == "3" else ""
    return (
        f"## {entry.title}\n\n"
        f"`{entry.asked}` on {DATA[entry.data]}: "
        f"{spoken(float(run['processor_seconds']))} of processor time.{check}\n\n"
        f"![{entry.alt or entry.title}](pictures/{entry.name}.png)\n\n"
        f"{entry.says.strip()}\n\n"
        f"```sh\n{before}{command}\n```\n\n"
        f"```python\n{entry.python.strip()}\n```\n"
    )


def page(group: Group, runs: Mapping[str, Mapping[str, str]]) -> str:
    """Write a page of the gallery."""
    sections = "\n".join(section(entry, runs[entry.name]) for entry in group.entries)
    return f"# {group.title}\n\n{HEAD}\n\n{group.about.strip()}\n\n{sections}"


HEAD = "<!-- made by docs/make_gallery.py from entries.yaml and runs.csv; change these, not the page -->"


def front(groups: tuple[Group, ...], runs: Mapping[str, Mapping[str, str]]) -> str:
    """Write the gallery's front page: a picture and a question for every experiment."""
    count = sum(len(group.entries) for group in groups)
    parts = [
        f"# Gallery\n\n{HEAD}\n\n"
        f"All experiments and what they can be asked to vary, {count} in all, each with a figure, a command, eight "
        "lines of Python, what it says and how long it took. They were run at small sizes, to be quick: the numbers "
        "show how to read a figure, not what is true of "
        "people or models ([results](../results.md) has those). Times are processor time of one run with its start, "
        "which a busy machine changes little. By the clock, two idle cores take about as long, or less; a busy machine "
        "takes longer, and so does the first run after the installation, which compiles."
    ]
    for group in groups:
        rows = [f"## {group.title}", group.about.strip(), "| figure | question | time |\n| --- | --- | --- |"]
        table = [
            f"| [![{entry.alt or entry.title}](thumbnails/{entry.name}.png)]({group.stem}.md#{slug(entry.title)}) "
            f"| [{entry.title}]({group.stem}.md#{slug(entry.title)})<br>`{entry.asked}` "
            f"| {spoken(float(runs[entry.name]['processor_seconds']))} |"
            for entry in group.entries
        ]
        parts.append("\n\n".join(rows) + "\n" + "\n".join(table))
    return "\n\n".join(parts) + "\n"


def pages() -> dict[Path, str]:
    """Give every page of the gallery as it should be.

    Returns
    -------
    dict
        File -> text.

    Raises
    ------
    SystemExit
        Where an experiment was never run.
    """
    groups, runs = read_groups(), read_runs()
    missing = [entry.name for group in groups for entry in group.entries if entry.name not in runs]
    if missing:
        raise SystemExit(f"these were never run, so that no page can be written: {', '.join(missing)}")
    texts = {GALLERY / f"{group.stem}.md": page(group, runs) for group in groups}
    return {GALLERY / "README.md": front(groups, runs), **texts}


def data_root() -> Path:
    """Give the folder of the public files.

    Raises
    ------
    SystemExit
        Where ``SHANNON_DATA`` names none.
    """
    root = os.environ.get("SHANNON_DATA", "")
    if not Path(root).is_dir() or not root:
        raise SystemExit("set SHANNON_DATA to the folder that holds lm_game/, provo/ and rank_perplexity/")
    return Path(root).resolve()


def on_this_machine(entry: Entry) -> list[str]:
    """Give the overrides of an entry's command, with the data's real folder and a store of its own."""
    from shannon_game import experiments  # noqa: PLC0415 - pages are written without it

    words = shlex.split(entry.command)
    settings = getattr(getattr(experiments, entry.experiment, None), "settings_class", None)
    if settings is not None and "store" in settings.model_fields:
        # a store of before would make the run look shorter than it is
        words.append("experiment.store=store")
    if entry.data == "papers":
        return [word.replace("=FOLDER", f"={data_root()}") for word in words]
    if entry.data in FOLDERS:
        folder = data_root() / FOLDERS[entry.data]
        words = [word.replace("=FOLDER", f"={folder}") for word in words]
        # these are downloaded where nobody names a folder
        return words if any("root=" in word for word in words) else [*words, f"study.root={folder}"]
    return words


@contextmanager
def endpoint(entry: Entry) -> Iterator[tuple[str, dict[str, str]]]:
    """Start the endpoint that stands in for a paid one, where an entry asks one; gives its address and key."""
    if entry.data != "endpoint":
        yield "", {}
        return
    from tests.inference.api.fake_server import KEY, FakeEndpoint, never, serving  # noqa: PLC0415 - one entry needs it

    with serving(FakeEndpoint(never)) as server:
        yield server.url, {"OPENAI_API_KEY": KEY, "NO_PROXY": "*"}


def environment() -> dict[str, str]:
    """Give the environment in which the checkout is used, whatever is installed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {"PYTHONPATH": str(DOCS.parent), "MPLBACKEND": "agg", "PATH": path}


def shrink(source: Path, target: Path, width: int) -> None:
    """Write a picture at most so wide, in the colours that it has the most of."""
    with Image.open(source) as opened:
        picture = opened.convert("RGB")
    if picture.width > width:
        height = round(picture.height * width / picture.width)
        picture = picture.resize((width, height), Image.Resampling.LANCZOS)
    target.parent.mkdir(exist_ok=True)
    # by coverage: the median cut gives all colours to the greys, and blue becomes green
    colours = picture.quantize(128, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    colours.save(target, optimize=True)


def processor_seconds() -> float:
    """Give the processor time of all child processes that have ended, with their own."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(entry: Entry, folder: Path) -> None:
    """Run an experiment in a folder, and take its figure and its time.

    Raises
    ------
    SystemExit
        Where it failed, or has no such figure.
    """
    out = folder / "out"
    with endpoint(entry) as (url, more):
        if entry.before:
            subprocess.run(
                ["bash", "-euc", entry.before], cwd=folder, env=environment(), check=True, capture_output=True
            )
        words = [word.replace(ADDRESS, url) if url else word for word in on_this_machine(entry)]
        before = processor_seconds()
        done = subprocess.run(
            [sys.executable, "-m", "experiments.run", *words, f"hydra.run.dir={out}", f"output.dpi={DPI}"],
            cwd=folder,
            env=environment() | more,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    if done.returncode not in (0, 3):
        raise SystemExit(f"{entry.name} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    take(entry, out, processor_seconds() - before)


def take(entry: Entry, out: Path, seconds: float) -> None:
    """Take the figure of a run that is done, and say how long it took."""
    pages = entry.figure.endswith(".png")
    figure = DOCS / "figures" / entry.figure if pages else out / "figures" / f"{entry.figure}.png"
    if not figure.exists():
        raise SystemExit(f"{entry.name} has no figure {entry.figure}: {sorted(figure.parent.glob('*.png'))}")
    shrink(figure, PICTURES / f"{entry.name}.png", WIDTH)
    shrink(figure, THUMBNAILS / f"{entry.name}.png", SMALL)
    status = json.loads((out / "status.json").read_text(encoding="utf-8"))
    runs = read_runs()
    row = (entry.name, f"{seconds:.1f}", str(3 if status["gate_failed"] else 0), status["code_hash"][:12])
    runs[entry.name] = dict(zip(RUN_COLUMNS, row, strict=True))
    with RUNS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, RUN_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(runs[name] for name in sorted(runs))


def run_python(entry: Entry, folder: Path) -> None:
    """Run the Python of an entry, whose last line has to be a figure.

    Raises
    ------
    SystemExit
        Where it failed.
    """
    *lines, last = entry.python.strip().splitlines()
    code = "\n".join([*lines, "from matplotlib.figure import Figure", f"assert isinstance({last}, Figure)"])
    if entry.data in FOLDERS or entry.data == "papers":
        root = data_root() / FOLDERS.get(entry.data, "")
        code = code.replace('"FOLDER"', repr(str(root)))
        # these are downloaded where nobody names a folder
        code = re.sub(r"\b(lm_game\w*|rank_perplexity)\(", rf"\1(root={str(root)!r}, ", code)
    with endpoint(entry) as (url, more):
        if entry.before:
            subprocess.run(
                ["bash", "-euc", entry.before], cwd=folder, env=environment(), check=True, capture_output=True
            )
        done = subprocess.run(
            [sys.executable, "-c", code.replace(ADDRESS, url) if url else code],
            cwd=folder,
            env=environment() | more,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    if done.returncode:
        raise SystemExit(f"the Python of {entry.name} failed:\n{done.stderr[-2000:]}")


def main() -> int:
    """Run what is asked for, then write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--python", nargs="+", default=[], metavar="NAME")
    given = parser.parse_args()
    entries = {entry.name: entry for group in read_groups() for entry in group.entries}
    for asked, what in ((given.run, run), (given.python, run_python)):
        for name in entries if asked == ["all"] else asked:
            if name not in entries:
                raise SystemExit(f"there is no entry {name!r}; the names are {', '.join(entries)}")
            with tempfile.TemporaryDirectory() as folder:
                what(entries[name], Path(folder))
            sys.stdout.write(f"{name}: done\n")
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
