"""The gallery: runs the questions at a small size, keeps figure and time of each, and writes the pages.

``docs/gallery/entries.yaml`` has the words, the commands and the Python, ``docs/gallery/runs.csv`` what the last run of
each took. Pages and pictures follow from both.

    python docs/make_gallery.py                          # writes the pages of docs/gallery
    python docs/make_gallery.py --run NAME ... | all     # runs commands, takes figure and time, writes the pages
    python docs/make_gallery.py --python NAME ... | all  # runs the Python of the entries, each in a process of its own

Entries on public data need the folder in ``SHANNON_DATA``.
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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import yaml
from PIL import Image

DOCS = Path(__file__).parent
GALLERY = DOCS / "gallery"
RUNS = GALLERY / "runs.csv"
PICTURES = GALLERY / "pictures"
THUMBNAILS = GALLERY / "thumbnails"

DPI = 150
WIDTH, SMALL = 900, 400
"""Most pixels that a picture is wide, and a thumbnail."""
LIMIT_S = 900
COLUMNS = 84
"""Letters in a line of a command: what a page shows without scrolling."""
RUN_COLUMNS = ("name", "processor_seconds", "exit_code", "code")
DATA = {
    "simulated": "simulated data, whose truth is known",
    "demo": "the texts that come with the project",
    "lm_game": "the public data of the comparison game",
    "provo": "the public data of *Predict the Next Word*",
    "rank_perplexity": "the public data of the thesis on rank-based perplexity",
    "papers": "the public data of three papers",
}
"""What an entry's ``data`` says on its page."""
ASKED = r"(\+exp|vary|of|experiment\.(of|item|times)|look|n|study|study\.(path|game)|model)="
"""Settings that a card's command keeps."""
HEAD = "<!-- made by docs/make_gallery.py from entries.yaml and runs.csv; change these, not the page -->"
FRONT = """# Gallery

{head}

Find your question. Each card leads to a figure, its command, the same in Python, and how to read it. All run at
small sizes: the figures show what you get, [results](../results.md) what is true of people and models. Times are of one
processor.
"""


@dataclass(frozen=True)
class Entry:
    """A question, its words, its command, and which figure of the run is shown (with .png one of docs/figures)."""

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
        """The command without sizes, which runs as it stands."""
        return " ".join(word for word in shlex.split(self.command) if re.match(ASKED, word))


@dataclass(frozen=True)
class Group:
    """A page of the gallery: its file's stem, title, first sentence, and its entries in order."""

    stem: str
    title: str
    about: str
    entries: tuple[Entry, ...]


def read_groups() -> tuple[Group, ...]:
    """Read the entries, by page."""
    pages = yaml.safe_load((GALLERY / "entries.yaml").read_text(encoding="utf-8"))
    return tuple(Group(**page | {"entries": tuple(Entry(**entry) for entry in page["entries"])}) for page in pages)


def read_runs() -> dict[str, dict[str, str]]:
    """Read what the last run of each entry took, by name."""
    with RUNS.open(newline="", encoding="utf-8") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def slug(title: str) -> str:
    """Give the anchor of a heading, as code hosts and MyST make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def spoken(run: Mapping[str, str]) -> str:
    """Say how long a run took: seconds under two minutes, else minutes."""
    seconds = float(run["processor_seconds"])
    if seconds < 115:
        return f"{max(1, round(seconds)) if seconds < 20 else round(seconds / 5) * 5} s"
    return f"{round(seconds / 60)} minutes"


def section(entry: Entry, run: Mapping[str, str]) -> str:
    """Write an entry's section."""
    lines, line = [], "shannon-game"
    for word in (text.removeprefix("+exp=") for text in shlex.split(entry.command)):
        shown = word if re.fullmatch(r"[\w+=./,:\[\]@-]+", word) else shlex.quote(word)
        if len(line) + 1 + len(shown) > COLUMNS:
            lines.append(f"{line} \\")
            line = "   "
        line += f" {shown}"
    command = "\n".join([*entry.before.strip().splitlines(), *lines, line])
    check = " Its check failed at this size (exit code 3)." if run["exit_code"] == "3" else ""
    return (
        f"## {entry.title}\n\n"
        f"`{entry.asked}` on {DATA[entry.data]}: {spoken(run)}.{check}\n\n"
        f"![{entry.alt or entry.title}](pictures/{entry.name}.png)\n\n"
        f"{entry.says.strip()}\n\n"
        f"```sh\n{command}\n```\n\n"
        f"```python\n{entry.python.strip()}\n```\n"
    )


def card(entry: Entry, stem: str, run: Mapping[str, str]) -> str:
    """Write an entry's card: a link with picture and question, then what runs it; site.css makes it a card."""
    link = f"[![](thumbnails/{entry.name}.png)<br>{entry.title}]({stem}.md#{slug(entry.title)})"
    return f"- {link}<br>`{entry.asked}` {spoken(run)}\n"


def pages() -> dict[Path, str]:
    """Give every page of the gallery as it should be, by file."""
    groups, runs = read_groups(), read_runs()
    missing = [entry.name for group in groups for entry in group.entries if entry.name not in runs]
    if missing:
        raise SystemExit(f"these were never run, so that no page can be written: {', '.join(missing)}")
    front, texts = [FRONT.format(head=HEAD)], {}
    for group in groups:
        sections = "\n".join(section(entry, runs[entry.name]) for entry in group.entries)
        texts[GALLERY / f"{group.stem}.md"] = f"# {group.title}\n\n{HEAD}\n\n{group.about.strip()}\n\n{sections}"
        cards = "".join(card(entry, group.stem, runs[entry.name]) for entry in group.entries)
        front.append(f"## {group.title}\n\n{cards}")
    return {GALLERY / "README.md": "\n".join(front), **texts}


def shrink(source: Path, target: Path, width: int) -> None:
    """Write a picture at most so wide, in the colours that it has the most of."""
    with Image.open(source) as opened:
        picture = opened.convert("RGB")
    if picture.width > width:
        height = round(picture.height * width / picture.width)
        picture = picture.resize((width, height), Image.Resampling.LANCZOS)
    # by coverage: the median cut gives all colours to the greys, and blue becomes green
    colours = picture.quantize(128, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    colours.save(target, optimize=True)


def processor_seconds() -> float:
    """Give the processor time of all child processes that have ended, with their own."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def execute(entry: Entry, folder: Path, words: list[str]) -> tuple[int, float]:
    """Run a program of the checkout in a folder, after the commands that come first; give exit code and time."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    # a store of before would make the run look shorter than it is
    own = {"PYTHONPATH": str(DOCS.parent), "PATH": path, "XDG_CACHE_HOME": str(folder / "cache")}
    own |= {"MPLBACKEND": "agg", "MPLCONFIGDIR": mpl.get_cachedir()}
    how = {"cwd": folder, "env": os.environ | own, "capture_output": True, "text": True}
    subprocess.run(["bash", "-euc", entry.before], check=True, **how)  # type: ignore[call-overload]
    before = processor_seconds()
    done = subprocess.run([sys.executable, *words], check=False, timeout=LIMIT_S, **how)  # type: ignore[call-overload]
    if done.returncode not in (0, 3):
        raise SystemExit(f"{entry.name} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.returncode, processor_seconds() - before


def run(entry: Entry, folder: Path) -> None:
    """Run an entry's command in a folder, and take its figure and its time."""
    out = folder / "out"
    words = ["-m", "experiments.run", *shlex.split(entry.command), f"hydra.run.dir={out}", f"output.dpi={DPI}"]
    code, seconds = execute(entry, folder, words)
    of_pages = entry.figure.endswith(".png")
    figure = DOCS / "figures" / entry.figure if of_pages else out / "figures" / f"{entry.figure}.png"
    if not figure.exists():
        raise SystemExit(f"{entry.name} has no figure {entry.figure}: {sorted(figure.parent.glob('*.png'))}")
    shrink(figure, PICTURES / f"{entry.name}.png", WIDTH)
    shrink(figure, THUMBNAILS / f"{entry.name}.png", SMALL)
    status = json.loads((out / "status.json").read_text(encoding="utf-8"))
    row = (entry.name, f"{seconds:.1f}", str(code), status["code_hash"][:12])
    runs = read_runs() | {entry.name: dict(zip(RUN_COLUMNS, row, strict=True))}
    with RUNS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, RUN_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(runs[name] for name in sorted(runs))


def run_python(entry: Entry, folder: Path) -> None:
    """Run the Python of an entry, whose last line has to be a figure."""
    *lines, last = entry.python.strip().splitlines()
    lines += ["from matplotlib.figure import Figure", f"assert isinstance({last}, Figure)"]
    execute(entry, folder, ["-c", "\n".join(lines)])


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
