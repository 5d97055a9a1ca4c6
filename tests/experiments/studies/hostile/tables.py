"""Small tables of every kind of study, and what each states, read without the toolkit's readers."""

from __future__ import annotations

import csv
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import xarray as xr

from shannon_game import experiments as ex
from shannon_game.estimators.cloze import normalise_words

Rows = list[list[str]]
"""A table, its header first."""
Row = Mapping[str, str]
Record = tuple[Any, ...]

_NUMBER = re.compile(r" *[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)? *")
_UNSEEN = re.compile("[\u00ad\u200b\u200e\u202c\u2060\ufeff]")
PEOPLE, ITEMS, WORDS = ("Jürg", "bo", "Ann-Li", "P 4"), ("Ü1", "q2", "q3"), ("sat", "Tür", "no, yes", 'a "b"', "None")


def nine(value: object) -> str:
    """A number with nine digits; ValueError where there is more than one way to read it, or none."""
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise ValueError(value)
    return f"{float(str(value)) + 0.0:.9g}"


def word(text: object) -> str:
    return unicodedata.normalize("NFC", str(text)).strip()


def answer(text: object) -> str:
    """A cloze answer by the rules that decide whether two are one."""
    return str(normalise_words([str(text)], "clean").words[0])


@dataclass(frozen=True)
class Kind:
    """A table of a study: what makes a correct one, reads it, and what a row states and a study holds of it."""

    make: Callable[[random.Random], Rows]
    of_frame: Callable[..., xr.Dataset] | None
    of_file: Callable[..., xr.Dataset]
    states: Callable[[Row], list[Record]]
    found: Callable[[xr.Dataset], Iterable[Record]]
    ids: tuple[str, ...]
    words: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    real: tuple[str, ...] = ()
    scaled: str | None = None

    def truth(self, rows: Rows) -> Counter[Record] | None:
        """What the table states, in no order; None where it is no plain table of this kind."""
        header = rows[0] if rows else []
        if len(set(header)) < len(header) or len(rows) < 2 or any(len(row) != len(header) for row in rows):
            return None
        cells = [dict(zip(header, row, strict=True)) for row in rows[1:]]
        try:
            if any(word(row[name]) != row[name] or not row[name].isprintable() for row in cells for name in self.ids):
                return None
            if any(not row[name] for row in cells for name in self.ids):
                return None
            if any(float(nine(row[name])) % 1 for row in cells for name in self.whole):
                return None
            return Counter(record for row in cells for record in self.states(row))
        except (KeyError, ValueError):
            return None


def table(header: str, rows: list[Record]) -> Rows:
    return [header.split(), *([str(cell) for cell in row] for row in rows)]


def frame(rows: Rows) -> pd.DataFrame:
    return pd.DataFrame(rows[1:], columns=rows[0], dtype=object)


def written(rows: Rows, separator: str = ",", *, end: str = "\n", quoting: Any = csv.QUOTE_MINIMAL) -> str:
    text = StringIO()
    csv.writer(text, delimiter=separator, lineterminator=end, quoting=quoting).writerows(rows)
    return text.getvalue()


# ------------------------------------------------------------------------------------------------- correct tables


def pairs(rng: random.Random) -> Rows:
    rows: list[Record] = []
    for item in ITEMS:
        target, lm = rng.choice((" sat", " Tür")), nine(-rng.uniform(1, 3))
        for draw in "abc":
            said = target if draw == "b" else f" {rng.choice('xyz')}{draw}"
            rows.append((item, draw, f"C {item}", target, said, lm, lm if draw == "b" else nine(-rng.uniform(1, 3))))
    return table("item draw context target candidate target_logprob_lm candidate_logprob_lm", rows)


def answers(rng: random.Random) -> Rows:
    rows = [(item, rng.choice("abc"), who, rng.randint(5, 95) / 100) for who in PEOPLE for item in ITEMS]
    return table("item draw participant report", rows)


def cloze(rng: random.Random) -> Rows:
    rows = [(f"The {item}", rng.choice(WORDS), who) for who in PEOPLE for item in ITEMS]
    return table("context response participant", rows)


def weights(name: str, rng: random.Random) -> Rows:
    rows: list[Record] = []
    for item in ITEMS:
        low, high = sorted(rng.sample(range(5, 95, 5), 2))
        shares = [nine(share / 100) for share in (low, high - low, 100 - high)]
        weight = shares if name == "proportion" else [rng.randint(2, 40) for _ in range(3)]
        rows += [(item, said, each) for said, each in zip(rng.sample(WORDS, 3), weight, strict=True)]
    return table(f"context_id response {name}", rows)


def wide(rng: random.Random) -> Rows:
    return table("who S1 S2 S3", [(who, *rng.sample(WORDS, 3)) for who in PEOPLE])


def guesses(rng: random.Random) -> Rows:
    target = {(text, at): rng.choice(WORDS) for text in ITEMS[:2] for at in (1, 2)}
    rows = [(who, *at, true, rng.choice((true, *WORDS))) for who in PEOPLE for at, true in target.items()]
    return table("participant document position target guess", rows)


def bets(rng: random.Random) -> Rows:
    named = [(who, at, said) for who in PEOPLE for at in range(3) for said in rng.sample(WORDS, 3)]
    rows = [(who, ITEMS[at], WORDS[at], said, rng.randint(2, 30)) for who, at, said in named]
    return table("participant item target word stake", rows)


def ranks(rng: random.Random) -> Rows:
    rows: list[Record] = []
    for window, position in (("w1", 0), ("w1", 1), ("w2", 0)):
        tokens, low = rng.sample((" a", " Tür", " c", "."), 3), 0.5
        for rank, token in enumerate(tokens, 1):
            low += rng.uniform(0.7, 1)
            rows.append(("m", "t", 8, window, position, tokens[position], rank, token, nine(-low)))
    return table("model text context_length window position reference_token rank token logprob_nats", rows)


def estimates(rng: random.Random) -> Rows:
    return table("source estimate se", [(who, nine(rng.uniform(1, 3)), nine(rng.uniform(0.01, 0.2))) for who in PEOPLE])


# ------------------------------------------------------------------------------------------------- what studies hold


def in_pairs(study: xr.Dataset) -> Iterable[Record]:
    logprobs = [study[f"{name}_logprob"].to_numpy()[0] for name in ("target", "candidate")]
    texts = [study[name].to_numpy() for name in ("item_id", "context", "target_token")]
    for (i, j), token in dict(study["candidate_token"].to_series()).items():
        yield (*(str(each[i]) for each in texts), token, nine(logprobs[0][i]), nine(logprobs[1][i, j]))


def in_answers(study: xr.Dataset) -> Iterable[Record]:
    item = study["item_id"].to_numpy()[study["response_item"].to_numpy()]
    rows = zip(item, *(study[name].to_numpy() for name in ("response_candidate", "participant", "report")), strict=True)
    return ((str(each), "abc"[draw], str(who), nine(report)) for each, draw, who, report in rows)


def in_cloze(study: xr.Dataset) -> Iterable[Record]:
    item = study["item_id" if "item_id" in study else "context"].to_numpy()[study["response_item"].to_numpy()]
    said = study["word_text"].to_numpy()[study["response_word"].to_numpy()]
    weight = study.get("response_count", study.get("response_proportion")).to_numpy()
    people = study["participant"].to_numpy() if "participant" in study else [""] * len(item)
    for each, text, who, n in zip(item, said, people, weight, strict=True):
        # of a context one spelling is kept
        yield word(_UNSEEN.sub("", each)), answer(text), str(who), nine(n)


def in_guesses(study: xr.Dataset) -> Iterable[Record]:
    item = study["response_item"].to_numpy()
    at = [study[f"item_{name}"].to_numpy()[item] for name in ("document", "position")]
    rows = zip(study["participant"].to_numpy(), *at, study["correct"].to_numpy(), strict=True)
    return ((str(who), str(text), nine(place), bool(right)) for who, text, place, right in rows)


def in_bets(study: xr.Dataset) -> Iterable[Record]:
    of = study["bet_response"].to_numpy()
    who, item = study["participant"].to_numpy(), study["item_id"].to_numpy()[study["response_item"].to_numpy()]
    rows = zip(of, study["bet_hit"].to_numpy(), study["bet_stake"].to_numpy(), strict=True)
    return ((who[at], item[at], bool(hit), nine(stake)) for at, hit, stake in rows)


def in_ranks(study: xr.Dataset) -> Iterable[Record]:
    tokens, logprobs = study["ranked_token"].to_numpy(), study["ranked_logprob"].to_numpy()
    heads = [study[name].to_numpy() for name in ranks(random.Random(0))[0][:6]]
    for i, j in zip(*(~pd.isna(logprobs)).nonzero(), strict=True):
        places = (nine(head[i]) if head.dtype.kind in "iu" else word(head[i]) for head in heads)
        yield (*places, nine(j + 1), word(tokens[i, j]), nine(logprobs[i, j]))


def in_estimates(study: xr.Dataset) -> Iterable[Record]:
    values = (map(nine, study[name].to_numpy()) for name in ("estimate", "se"))
    return zip(map(str, study["source"].to_numpy()), *values, strict=True)


# ------------------------------------------------------------------------------------------------- kinds


def of(*columns: str) -> Callable[[Row], list[Record]]:
    """A row states its cells: words as they look, ``~`` cloze answers, ``#`` numbers, "" nothing."""

    def cell(row: Row, name: str) -> str:
        how = {"#": nine, "~": answer}.get(name[:1])
        return how(row[name[1:]]) if how else word(row[name]) if name else ""

    return lambda row: [tuple(cell(row, name) for name in columns)]


def guessed(row: Row) -> list[Record]:
    return [(row["participant"], row["document"], nine(row["position"]), row["target"] == row["guess"])]


def bet(row: Row) -> list[Record]:
    right = (row["participant"], row["item"], row["word"] == row["target"])
    return [(*right, nine(float(nine(row["stake"])) / 100))] if row["word"] or row["stake"] else []


def said_wide(row: Row) -> list[Record]:
    return [(name, answer(row[name]), row["who"], "1") for name in row if name[:1] == "S" and row[name]]


PAIRS, WIDE = pairs(random.Random(1)), {"wide": {"items": ["S*"]}, "columns": {"participant": "who"}}


def answers_file(path: Path, **settings: Any) -> xr.Dataset:
    with TemporaryDirectory() as folder:
        (of_pairs := Path(folder) / "pairs.csv").write_text(written(PAIRS), encoding="utf-8")
        return ex.comparison_table(pairs=of_pairs, answers=path, generator="lm", **settings)


def named(reader: Callable[..., xr.Dataset], key: str = "path", **given: Any) -> Callable[..., xr.Dataset]:
    return lambda path, **settings: reader(**{key: path}, **given, **settings)


_RANKED = ("#rank", "token", "#logprob_nats")
KINDS: dict[str, Kind] = {
    "pairs": Kind(
        *(pairs, lambda rows, **given: ex.comparison_study(None, rows, generator="lm", **given)),
        *(named(ex.comparison_table, "pairs", generator="lm"), lambda row: [tuple(pair(row))], in_pairs),
        *(("item", "draw"), ("context", "target", "candidate"), ()),
        real=("target_logprob_lm", "candidate_logprob_lm"),
    ),
    "answers": Kind(
        *(answers, lambda rows, **given: ex.comparison_study(rows, frame(PAIRS), generator="lm", **given)),
        *(answers_file, of("item", "draw", "participant", "#report"), in_answers, ("item", "draw", "participant")),
        real=("report",),
        scaled="report",
    ),
    "cloze": Kind(
        *(cloze, ex.cloze_study, named(ex.cloze_table)),
        *(lambda row: [(row["context"], answer(row["response"]), row["participant"], "1")], in_cloze),
        *(("participant", "context"), ("response",)),
    ),
    "counts": Kind(
        *(partial(weights, "count"), ex.cloze_study, named(ex.cloze_table)),
        *(of("context_id", "~response", "", "#count"), in_cloze, ("context_id",), ("response",), ("count",)),
    ),
    "wide": Kind(
        *(wide, partial(ex.cloze_study, **WIDE), named(ex.cloze_table, **WIDE), said_wide, in_cloze, ("who",)),
        words=("S1", "S2", "S3"),
    ),
    "guesses": Kind(
        *(guesses, ex.guess_study, named(ex.guess_table), guessed, in_guesses, ("participant", "document")),
        *(("target", "guess"), ("position",)),
    ),
    "bets": Kind(
        *(bets, ex.bet_study, named(ex.bet_table), bet, in_bets, ("participant", "item"), ("target", "word")),
        real=("stake",),
        scaled="stake",
    ),
    "ranks": Kind(
        *(ranks, ex.ranking_study, named(ex.ranking_table)),
        of("model", "text", "#context_length", "window", "#position", "reference_token", *_RANKED),
        *(in_ranks, ("model", "text", "window"), ("reference_token", "token")),
        *(("context_length", "position", "rank"), ("logprob_nats",)),
    ),
    "estimates": Kind(
        *(estimates, None, named(ex.estimates), of("source", "#estimate", "#se"), in_estimates, ("source",)),
        real=("estimate", "se"),
    ),
}


def pair(row: Row) -> Iterable[str]:
    yield from (row[name] for name in ("item", "context", "target", "candidate"))
    yield from (nine(row[name]) for name in ("target_logprob_lm", "candidate_logprob_lm"))
