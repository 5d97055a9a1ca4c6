"""Draw settings, texts, tables, folders and studies as outsiders bring them, and class what comes of each.

    python -m tests.benchmarks.fuzz_contact --cases 1500 --seed 0

"right": answered with the number that plain code expects; "answered": nothing independent expects one; "refused": one
line; "silent": answered with another number, or with a setting that is none; "wrongly refused"; "traceback"; "hang".
Cases run one after the other in a process of their own, which is stopped where a case takes too long.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import multiprocessing
import os
import random
import resource
import shutil
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.errors import InputError

Outcome = tuple[str, str]
"""Class of a case, and what to print of it."""

SMALL = ("study.n_items=3", "study.n_reference_items=6", "study.vocab_size=200", "study.n_candidates=8")
QUICK = ("+exp=perplexity", *SMALL, "study.n_participants=4", "output.dpi=40", "output.print=false")
GIGABYTES = 8
HOME = "FUZZ_TEMPLATES"
"""Variable with the folder of what cases take copies of."""


# --- the command ------------------------------------------------------------------------------------------------------


def command(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and words of a command, in this process and a folder."""
    from hydra.core.global_hydra import GlobalHydra

    from shannon_game.experiments import run
    from shannon_game.experiments.harness import sweep

    run._exit_codes.clear()
    sweep.STARTED.clear()
    GlobalHydra.instance().clear()
    said, before, argv = io.StringIO(), Path.cwd(), sys.argv
    os.chdir(folder)
    sys.argv = ["shannon-game", *arguments]
    kept = sys.stdout, sys.stderr
    try:
        sys.stdout, sys.stderr = io.StringIO(), said
        code = run.main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    finally:
        sys.stdout, sys.stderr = kept
        sys.argv = argv
        os.chdir(before)
        os.environ.pop(run._STARTER, None)
    return code, said.getvalue()


def refused(code: int, said: str) -> Outcome | None:
    """What a failed command is; None if it did not fail."""
    if code in (0, 3):
        return None
    errors = [line for line in said.splitlines() if "error" in line]
    if code == 2 and len(errors) == 1 and errors[0].isprintable() and "Traceback" not in said:
        return "refused", errors[0]
    return "traceback", said[-1500:]


def gaps_in(folder: Path) -> list[float]:
    return pd.read_csv(folder / "table.csv")["gap_nats"].tolist()


@cache
def template(what: str) -> Path:
    """A run, a sweep, a study or a language model that cases take copies of."""
    place = Path(tempfile.mkdtemp(dir=os.environ[HOME]))
    if what in ("run", "multirun"):
        arguments = (*QUICK, "hydra.run.dir=run") if what == "run" else ("-m", *QUICK, "seed=0,1", "sweep=s")
        code, said = command(place, *arguments)
        assert code == 0, said
        return place / what
    if what == "tiny":
        from tests.inference.lm import tiny_models

        return tiny_models.save(place / what, "gpt2", tiny_models.byte_level())
    from shannon_game.experiments.studies.study_file import write_study
    from tests.contact.cut_studies import KINDS

    make, validate, _ = KINDS[what]
    return write_study(validate(make()), place / f"{what}.nc", kind=what)


# --- settings ---------------------------------------------------------------------------------------------------------


def _is_int(text: str, lowest: int, highest: float = np.inf) -> bool:
    with contextlib.suppress(ValueError):
        return lowest <= int(text) <= highest
    return False


def _is_float(text: str, lowest: float, highest: float) -> bool:
    with contextlib.suppress(ValueError):
        return lowest < float(text) < highest
    return False


# fmt: off
VALUES = [
    "-1", "0", "1", "2", "3", "20", "0.5", "1.5", "1e400", "nan", "null", "true", "yes", "[]", "{}", "[a,b]", "[1]",
    "false", "${eval:1}", "${seed}", "${oc.env:NO}", "${nowhere}", "é", "日本", "os.system", "../x", "human", "''",
    "' '", "-0",
    *["99999999999999999999", "-99999999999999999999", "'a b'", "postgresql://me:word@host/a", "none", "coarse", "inf"],
    *["naive", "psis", "interface", "[human]", "[human,human]", "'\ud83d'", "\u200b1", "1_0", "0x10", "1,2", "{a: 1}"],
    *["[0.1,0.9]", "[0.1,nan]", "[2]", "'1'", "!!int 1", "a=b", "a:b", "..", ".", "/", "~", "@", "--help", "[", "'"],
]
# fmt: on
_FLAG = {"true", "false"}.__contains__
RIGHT: Mapping[str, Callable[[str], bool]] = {
    "seed": lambda text: _is_int(text, 0),
    "n": lambda text: text == "null" or _is_int(text, 1, 3),
    "players": lambda text: text in ("null", "[human]", "human"),
    "estimator": lambda text: text in ("naive", "psis", "importance"),
    "rounding": lambda text: text in ("none", "coarse", "interface"),
    "output.dpi": lambda text: _is_int(text, 20, 2400),
    "output.html": _FLAG,
    "output.print": _FLAG,
    "study.seed": lambda text: _is_int(text, 0),
    "study.n_items": lambda text: _is_int(text, 1, 6),
    "study.n_participants": lambda text: _is_int(text, 1),
    "study.n_candidates": lambda text: _is_int(text, 1),
    "study.entropy_nats": lambda text: _is_float(text, 0, 6),
    "+rounding.values": lambda _text: False,
    **dict.fromkeys(("+study.token", "+bogus", "study.n_item", "+output.x", "+experiment.estimator.log_mean"), bool),
    **dict.fromkeys(("é", "+seed.a", "output", "study", "study.participants", "resume", "hydra", "+models.a.source")),
}
"""Setting -> whether a value of it is right: `bool` of a setting that there is not is never asked."""
UNKNOWN = ("+study.token", "+bogus", "study.n_item", "+output.x", "+experiment.estimator.log_mean", "é")
NEUTRAL = ("output.dpi", "output.html", "output.print")


def settings(draw: random.Random, folder: Path) -> Outcome:
    """One or two settings with values at random."""
    names = draw.sample(list(RIGHT), draw.randint(1, 2))
    right = {name: [value for value in VALUES if RIGHT[name] and not is_wrong(name, value)] for name in names}
    given = {name: draw.choice(right[name] if right[name] and draw.random() < 0.5 else VALUES) for name in names}
    return of_settings(folder, given)


def of_settings(folder: Path, given: Mapping[str, str]) -> Outcome:
    """Whether the command with some settings does what they say."""
    more = [f"{name}={value}" for name, value in given.items()]
    code, said = command(folder, *QUICK, "hydra.run.dir=run", *more)
    wrong = [text for text, (name, value) in zip(more, given.items(), strict=True) if is_wrong(name, value.strip("'"))]
    failed = refused(code, said)
    if failed is not None:
        known = all(RIGHT[name] is not None and name not in UNKNOWN for name in given)
        # quoted, it is a text; interpolated, it is another setting's value; values alone are no rounding
        plain = len(given) == 1 and not any(mark in more[0] for mark in ("'", "$", "rounding"))
        over = failed[0] == "refused" and plain and known and not wrong
        return ("wrongly refused", f"{more}: {failed[1]}") if over else (failed[0], f"{more}: {failed[1]}")
    if wrong:
        return "silent", f"{more}: accepted {wrong}"
    if set(given) <= set(NEUTRAL):
        same = np.allclose(gaps_in(folder / "run"), gaps_in(template("run")))
        return ("right" if same else "silent"), f"{more}: other numbers"
    return "answered", str(more)


def is_wrong(name: str, value: str) -> bool:
    rule = RIGHT[name]
    return name in UNKNOWN or (rule is not None and not rule(value) and value != "${seed}")


def python(draw: random.Random, folder: Path) -> Outcome:
    """A question in Python with a setting of a wrong type."""
    import shannon_game as sg
    from tests.contact.cut_studies import KINDS

    questions = {
        **dict.fromkeys(("perplexity",), "comparison"),
        **dict.fromkeys(("mixture", "improve", "groups"), "cloze"),
        **dict.fromkeys(("accuracy", "bounds"), "guess"),
        "ranks": "ranking",
        "bet_perplexity": "bet",
    }
    name = draw.choice(list(questions))
    make, validate, _ = KINDS[questions[name]]
    question: Any = getattr(sg, name)
    field = draw.choice(
        sorted(
            set(question.settings_class.model_fields)
            - {"posterior", "bayes", "models", "model", "sampler", "live_guesses"}
        )
    )
    odd = [
        np.nan,
        np.inf,
        -1,
        0,
        10**30,
        "",
        "é",
        b"x",
        object(),
        [],
        {},
        {"a": object()},
        [np.nan],
        None,
        True,
        1.5,
        "1",
    ]
    good = [2, 3, 10, 0.5, 0.95, None, True, False, ["lm"], ["human"], ["mixture"], "exact", "floor", "uniform", "best"]
    value = draw.choice(
        good
        if draw.random() < 0.5
        else [*odd, np.float32(2), np.array([1, 2]), "\ud800", "\0", range(3), pd.NA, lambda: 1]
    )
    shown = f"{name}({field}={value!r})"
    try:
        result = question(validate(make()), **{field: value})
    except InputError as error:
        return one_line(error, shown)
    return "answered", f"{shown}: {len(result.table)} rows"


def one_line(error: InputError, shown: str) -> Outcome:
    text = str(error)
    return ("refused" if text.isprintable() and len(text) < 8000 else "traceback"), f"{shown}: {text}"


# --- texts, tables, studies -------------------------------------------------------------------------------------------

# fmt: off
PIECES = [
    "The old clock ", "struck nine", " \u200b", "\u00ad", "\ufeff", "\r\n", "\r", "\n", "\t", " ", "e\u0301", "日本語",
    "\x00", "\x1b[31m", "\u202e", "\u2028", "a" * 3000, "<|endoftext|>", "\ud83d\ude00", "{{x}}", "\x85", "\x0b",
    "\U0001d4b3", ".",
]
# fmt: on


def texts(draw: random.Random, folder: Path) -> Outcome:
    """Documents as files, JSON lines or a list, now and then damaged or scored by a small model."""
    from shannon_game.experiments.studies.documents.texts import text_study
    from shannon_game.experiments.studies.documents.texts import texts as load

    written = ["".join(draw.choices(PIECES, k=draw.randint(0, 6))) for _ in range(draw.randint(1, 4))]
    written = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in written]
    how, damaged = draw.choice(["files", "lines", "list", "csv"]), draw.random() < 0.15
    try:
        if how == "list":
            study = text_study(written)
        else:
            given: dict[str, bytes] = {"t.jsonl": "\n".join(json.dumps({"text": text}) for text in written).encode()}
            if how == "files":
                given = {f"{number}.txt": text.encode() for number, text in enumerate(written)}
            if how == "csv":
                given = {"t.csv": pd.DataFrame({"text": written}).to_csv(index=False, quoting=csv.QUOTE_ALL).encode()}
            for name, content in given.items():
                junk = bytes(draw.randrange(256) for _ in range(3))
                (folder / name).write_bytes(content[: draw.randint(0, len(content))] + junk if damaged else content)
            study = load(path=folder if how == "files" else folder / next(iter(given)))
        read = study["text"].to_numpy().tolist()
        scored = surprisals(study, folder) if draw.random() < 0.4 else {}
    except InputError as error:
        return one_line(error, f"{how} {written!r}"[:300])
    if damaged and how != "list":
        return "answered", f"{how} {given!r}"[:300]

    def plain(text: str) -> str:
        text = text.removeprefix("\ufeff") if how == "files" else text
        return text.replace("\r\n", "\n").replace("\r", "\n")

    expected = [plain(text) for text in written if plain(text).strip()]
    if read != expected:
        return "silent", f"{how} {written!r} read as {read!r}"[:1500]
    for number, (got, wanted) in scored.items():
        if not np.isclose(got, wanted, rtol=1e-3, atol=1e-3):
            return "silent", f"{how} {read[number]!r} has {got} bits for {wanted}"[:1500]
    return "right", ""


def surprisals(study: xr.Dataset, folder: Path) -> dict[int, tuple[float, float]]:
    """Bits of every short document, and bits by the model alone."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from shannon_game import experiments

    place = template("tiny")
    models = {"tiny": {"source": "folder", "path": str(place), "bos": "none"}}
    tokens = experiments.surprisal(study, models=models, store=folder / "store").tables["tokens"]
    model, tokenizer = AutoModelForCausalLM.from_pretrained(place), AutoTokenizer.from_pretrained(place)
    found = {}
    for number, name in enumerate(study["document"].to_numpy().tolist()):
        text = str(study["text"].to_numpy()[number])
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if 1 < len(ids) < 90 and "<|" not in text:
            with torch.no_grad():
                logits = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
            bits = -sum(float(logits[at, one]) for at, one in enumerate(ids[1:])) / np.log(2)
            found[number] = (float(tokens[tokens["document"] == name]["surprisal_bits"].sum()), bits)
    return found


def tables(draw: random.Random, folder: Path) -> Outcome:
    """A table of any kind, changed, with the readings that it may have."""
    from tests.experiments.studies.hostile.fuzz import CHANGES
    from tests.experiments.studies.hostile.tables import KINDS
    from tests.experiments.studies.hostile.test_fuzz import outcome

    part, which = draw.choice(list(CHANGES)), draw.choice(list(KINDS))
    name = draw.choice(list(CHANGES[part]))
    said = outcome(KINDS[which], CHANGES[part][name], draw, folder)
    if said.startswith("wrong: refused"):
        return "wrongly refused", f"{part} {name} {which}: {said}"
    if said.startswith("wrong: no line") or (
        said.startswith("wrong") and "accepted" not in said and "silent" not in said
    ):
        return "traceback", f"{part} {name} {which}: {said}"
    if said.startswith("wrong"):
        return "silent", f"{part} {name} {which}: {said}"
    return {"left out": "answered", "refused": "refused"}.get(said, "right"), said


def studies(draw: random.Random, folder: Path) -> Outcome:
    """A study of any kind after operations of xarray."""
    from tests.contact.cut_studies import KINDS, changed, left

    kind = draw.choice(list(KINDS))
    make, validate, numbers = KINDS[kind]
    new, kept = changed(validate(make()), draw)
    shown = f"{kind} {dict(new.sizes)}"
    try:
        found = numbers(new)
    except InputError as error:
        return one_line(error, shown)
    plain = left(validate(make()), kept)
    wanted = {} if plain is None else numbers(plain)
    same = found.keys() == wanted.keys() and all(
        np.isclose(found[name], wanted[name], rtol=1e-5, equal_nan=True) for name in found
    )
    return ("right" if same else "silent"), f"{shown}: {found} for {wanted}"


# --- folders ----------------------------------------------------------------------------------------------------------


def damage(draw: random.Random, path: Path, other: Path) -> str:
    """Change one file as disks and people do; say how."""
    how = draw.choice(
        ["cut", "empty", "link", "dangling", "folder", "swap", "bytes", "gone", "fifo", "json", "loop", "none"]
    )
    content = path.read_bytes() if path.is_file() else b""
    moved = path.with_name(f"{path.name}.moved")
    if how in ("link", "dangling", "folder", "gone", "fifo", "loop") and path.exists():
        path.rename(moved)
    if how == "cut":
        path.write_bytes(content[: draw.randint(0, len(content))])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "link":
        path.symlink_to(moved)
    elif how == "dangling":
        path.symlink_to("nowhere")
    elif how == "loop":
        path.symlink_to(path.name)
    elif how == "folder":
        path.mkdir()
    elif how == "swap":
        shutil.copyfile(other, path)
    elif how == "bytes" and content:
        at = draw.randrange(len(content))
        path.write_bytes(content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :])
    elif how == "fifo":
        os.mkfifo(path)
    elif how == "json":
        path.write_text(
            draw.choice(["[]", "{}", "null", '{"status": "ok"}', '{"status": 1, "overrides": null}', "[" * 9999])
        )
    if how in ("gone", "fifo", "loop", "dangling") and moved.exists():
        moved.unlink()
    return how


def run_folders(draw: random.Random, folder: Path) -> Outcome:
    """A run's or a sweep's folder with a damaged file, and the same command again."""
    in_sweep = draw.random() < 0.3
    run = folder / ("multirun/perplexity/s" if in_sweep else "run")
    before = template("multirun") / "perplexity" / "s" if in_sweep else template("run")
    shutil.copytree(before, run)
    files = sorted(path for path in run.rglob("*") if path.is_file())
    path, other = draw.choice(files), before / draw.choice(files).relative_to(run)
    if draw.random() < 0.4:
        path = draw.choice([each for each in files if each.name == "status.json"])
    if draw.random() < 0.2:
        path = path.parent / draw.choice([".running", ".shannon-game-attempt", "mine", ".hydra", "parts"])
        path = path if not path.exists() else path.parent / "mine.txt"
    how = damage(draw, path, other)
    mine = {each: each.read_bytes() for each in folder.rglob("*mine*") if each.is_file()}
    more = ("-m", *QUICK, "seed=0,1", "sweep=s", "resume=true") if in_sweep else (*QUICK, "hydra.run.dir=run")
    code, said = command(folder, *more)
    shown = f"{path.relative_to(folder)} {how}"
    if any(not each.is_file() or each.read_bytes() != content for each, content in mine.items()):
        return "silent", f"{shown}: a user's file was changed"
    failed = refused(code, said)
    if failed is not None:
        # of a sweep the summary names the job that was refused
        if in_sweep and code == 1 and "Traceback" not in said and "unexpected" not in said:
            return "refused", shown
        return failed[0], f"{shown}: {failed[1]}"
    beside = sorted(folder.glob("multirun/perplexity/s/[01]") if in_sweep else folder.glob("run*"))
    places = [(each, before / each.name if in_sweep else before) for each in beside if (each / "table.csv").is_file()]
    same = places and all(np.allclose(gaps_in(a), gaps_in(b)) for a, b in places)
    return ("right" if same else "silent"), f"{shown}: other numbers"


def study_files(draw: random.Random, folder: Path) -> Outcome:
    """A study's file that is damaged or another's."""
    import shannon_game as sg
    from tests.contact.cut_studies import KINDS

    kind = draw.choice(["comparison", "cloze"])
    other = "cloze" if kind == "comparison" else "comparison"
    path = folder / draw.choice(["study.nc", "é.nc", "a b.nc"])
    shutil.copyfile(template(kind), path)
    how = damage(draw, path, draw.choice([template(other), template("run") / "results.nc", Path(__file__)]))
    load: Any = getattr(sg, f"{kind}_file")
    numbers = KINDS[kind][2]
    try:
        found = numbers(load(path=path))
    except InputError as error:
        return one_line(error, f"{kind} {how}")
    right = numbers(KINDS[kind][1](KINDS[kind][0]()))
    return ("right" if found == right else "silent"), f"{kind} {how}: {found}"


# fmt: off
LINES = [
    "a: 1", "name: x", "\tb: 2", "- c", "d: [", "kind: cloze", "e: &e [1]", "f: *e", "_target_: os.system", "é: ü",
    "? x", "kind: comparison", "extra: [x]", "_target_: shannon_game.simulated", "<<: {a: 1}", "n_items: 3",
    "seed: !!int a", "defaults: [x]", "defaults: {a: b}", "a.b: 1", "1: 2", "null: 1", "{}: 1", "[a]: 1", "---",
    "%YAML 9", "x: ${y}", "x: ???", "_target_: shannon_game.experiments.studies.comparison.simulated.simulated",
]
# fmt: on


def yaml_files(draw: random.Random, folder: Path) -> Outcome:
    """A file of settings of the user's with lines at random."""
    group = draw.choice(["study", "exp", "rounding", "estimator", "model", "generator"])
    (folder / group).mkdir()
    content = "\n".join(draw.choices(LINES, k=draw.randint(0, 5))).encode(draw.choice(["utf-8", "latin-1", "utf-16"]))
    path = folder / group / "mine.yaml"
    path.write_bytes(content)
    how = damage(draw, path, template("run") / "status.json") if draw.random() < 0.2 else ""
    first = () if group == "exp" else QUICK[:1]
    named = f"{'+' * (group == 'exp')}{group}={'[mine]' if group == 'model' else 'mine'}"
    code, said = command(folder, "--config-dir", ".", *first, *QUICK[1:], named, "hydra.run.dir=run")
    failed = refused(code, said)
    shown = f"{group} {how} {content!r}"
    return (failed[0], f"{shown}: {failed[1]}") if failed else ("answered", shown)


# --- counting ---------------------------------------------------------------------------------------------------------

SOURCES: Mapping[str, Callable[[random.Random, Path], Outcome]] = {
    each.__name__: each for each in (settings, studies, python, texts, tables, run_folders, study_files, yaml_files)
}
"""Name of a source -> what draws a case of it, runs it and judges it."""
TEMPLATES = {
    "texts": ("tiny",),
    "settings": ("run",),
    "run_folders": ("run", "multirun"),
    "study_files": ("run", "comparison", "cloze"),
    "yaml_files": ("run",),
}
# a command takes ten times as long as a study
ORDER = ["studies", "python", "tables", "texts", "study_files"] * 4 + ["settings", "run_folders", "yaml_files"]
BAD = ("silent", "wrongly refused", "traceback", "hang")


def one(number: int, seed: int) -> Outcome:
    """Outcome of a case."""
    name = ORDER[number % len(ORDER)]
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return SOURCES[name](random.Random(f"{seed} {number}"), Path(place))
        except Exception:
            return "traceback", traceback.format_exc()[-1500:]


def _batch(numbers: list[int], seed: int, to: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES * 2**30, GIGABYTES * 2**30))
    asked = {ORDER[number % len(ORDER)] for number in numbers}
    # what is imported and made once is no case's time
    for what in sorted({what for name in asked for what in TEMPLATES.get(name, ())}):
        template(what)
    to.send(None)
    for number in numbers:
        to.send((number, one(number, seed)))


def outcomes(numbers: list[int], seed: int, seconds: float) -> Iterator[tuple[int, Outcome]]:
    """Outcomes of cases; a case that takes too long, or kills its process, is followed by a new process."""
    context = multiprocessing.get_context("spawn")
    while numbers:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_batch, args=(numbers, seed, theirs))
        process.start()
        theirs.close()
        try:
            # the first word says that the templates stand
            if ours.poll(10 * seconds):
                ours.recv()
            while numbers:
                if not ours.poll(seconds):
                    yield numbers.pop(0), ("hang", f"over {seconds} s")
                    break
                yield ours.recv()
                numbers.pop(0)
        except EOFError:
            yield numbers.pop(0), ("traceback", "its process died")
        process.join(0 if numbers else seconds)
        process.kill()


def main() -> int:
    """Draw, class and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--source", choices=SOURCES, help="cases of one source alone")
    parser.add_argument("--seconds", type=float, default=120.0, help="limit of a case")
    parser.add_argument("--all", action="store_true", help="print every case")
    given = parser.parse_args()
    numbers = list(range(given.first, given.first + given.cases))
    if given.source:
        numbers = [number for number in numbers if ORDER[number % len(ORDER)] == given.source]
    found: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory(prefix="fuzz-templates-") as os.environ[HOME]:
        for number, (verdict, shown) in outcomes(numbers, given.seed, given.seconds):
            name = ORDER[number % len(ORDER)]
            found[name, verdict] += 1
            if verdict in BAD or given.all:
                print(f"{verdict}: case {number} of seed {given.seed}, {name}: {shown}", flush=True)
    rows = pd.DataFrame([(*key, number) for key, number in found.items()], columns=["source", "class", "n"])
    counted = rows.pivot_table("n", "source", "class", fill_value=0)
    print(counted.assign(cases=counted.sum(axis=1)).to_string())
    print(counted.sum().to_string())
    return int(any(verdict in BAD for _, verdict in found))


if __name__ == "__main__":
    sys.exit(main())
