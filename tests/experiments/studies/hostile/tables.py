"""Small tables of every kind of study, and what each states, read without the toolkit's readers."""

from __future__ import annotations

import csv
import math
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import xarray as xr

from estimators.cloze import normalise_words
from experiments import (
    bet_study,
    bet_table,
    cloze_study,
    cloze_table,
    comparison_study,
    comparison_table,
    estimates,
    guess_study,
    guess_table,
    ranking_study,
    ranking_table,
)

Rows = list[list[str]]
"""A table, its header first."""
Records = Counter[tuple[Any, ...]]
"""What a table states, in no order; numbers have nine digits."""
Row = Mapping[str, str]

_NUMBER = re.compile(r" *[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)? *")
INVISIBLE = re.compile("[\u00ad\u200b\u200e\u202c\u2060\ufeff]")
PEOPLE, ITEMS, WORDS = ("Jürg", "bo", "Ann-Li", "P 4"), ("Ü1", "q2", "q3"), ("sat", "Tür", "no, yes", 'a "b"', "None")


class NotPlain(Exception):
    """A table that can be read in more than one way, or in none."""


def number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise NotPlain(text)
    return float(text)


def nine(value: float) -> str:
    return f"{float(value) + 0.0:.9g}"


def word(text: object) -> str:
    """A word, or a context, as a person sees it but for what no one sees inside."""
    return unicodedata.normalize("NFC", str(text)).strip()


def clean(text: object) -> str:
    """A word as the rules of cloze answers have it: those decide whether two answers are one."""
    return str(normalise_words([str(text)], "clean").words[0])


def check(holds: bool) -> None:
    if not holds:
        raise NotPlain


def agreed(rows: list[Row], key: Callable[[Row], object], *names: str) -> None:
    """Rows of one key say the same of it."""
    said: dict[object, list[str]] = {}
    for row in rows:
        check(said.setdefault(key(row), [row[name] for name in names]) == [row[name] for name in names])


@dataclass(frozen=True)
class Kind:
    """A table of a study: what makes a correct one, reads it, says what it states, and what a study holds of that."""

    make: Callable[[random.Random], Rows]
    of_frame: Callable[..., xr.Dataset]
    of_file: Callable[..., xr.Dataset]
    states: Callable[[list[Row]], Records]
    found: Callable[[xr.Dataset], Records]
    ids: tuple[str, ...]
    words: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    real: tuple[str, ...] = ()
    scaled: str | None = None

    def truth(self, rows: Rows) -> Records | None:
        """What the table states; None where it is no plain table of this kind."""
        header = rows[0] if rows else []
        needed = (*self.ids, *(() if self.states is state_wide else self.words), *self.whole, *self.real)
        if len(set(header)) < len(header) or not set(needed) <= set(header) or len(rows) < 2:
            return None
        if any(len(row) != len(header) for row in rows):
            return None
        try:
            cells = [dict(zip(header, row, strict=True)) for row in rows[1:]]
            for row in cells:
                check(all(word(row[name]) == row[name] != "" and row[name].isprintable() for name in self.ids))
                for name in (*self.whole, *self.real):
                    # a bet on no word has no stake
                    if row[name] != "" or name != "stake":
                        found = number(row[name])
                        check(name not in self.whole or (found >= 0 and found == int(found)))
            return self.states(cells)
        except NotPlain:
            return None


def table(header: str, rows: list[tuple[object, ...]]) -> Rows:
    return [header.split(), *([str(cell) for cell in row] for row in rows)]


# ------------------------------------------------------------------------------------------------- comparison


def make_pairs(rng: random.Random) -> Rows:
    rows = []
    for item in ITEMS:
        target, lm = rng.choice((" sat", " Tür")), nine(-rng.uniform(1, 3))
        for draw in "abc":
            said = target if draw == "b" else f" {rng.choice('xyz')}{draw}"
            rows.append((item, draw, f"C {item}", target, said, lm, lm if draw == "b" else nine(-rng.uniform(1, 3))))
    return table("item draw context target candidate target_logprob_lm candidate_logprob_lm", rows)


def make_answers(rng: random.Random) -> Rows:
    rows = [
        (item, rng.choice("abc"), who, nine(rng.randint(5, 95) / 100))
        for who in PEOPLE
        for item in rng.sample(ITEMS, 3)
    ]
    return table("item draw participant report", rows)


PAIRS, ANSWERS = make_pairs(random.Random(1)), make_answers(random.Random(2))


def frame(rows: Rows) -> pd.DataFrame:
    return pd.DataFrame(rows[1:], columns=rows[0], dtype=object)


def pairs_file(path: Path, **settings: Any) -> xr.Dataset:
    return comparison_table(pairs=path, generator="lm", **settings)


def answers_file(path: Path, **settings: Any) -> xr.Dataset:
    with TemporaryDirectory() as folder:
        (pairs := Path(folder) / "pairs.csv").write_text(written(PAIRS), encoding="utf-8")
        return comparison_table(pairs=pairs, answers=path, generator="lm", **settings)


def state_pairs(rows: list[Row]) -> Records:
    agreed(rows, lambda row: row["item"], "context", "target", "target_logprob_lm")
    sizes = Counter(row["item"] for row in rows)
    check(len(set(sizes.values())) == 1 and len({(row["item"], row["draw"]) for row in rows}) == len(rows))
    check(all(row["target"] and row["candidate"] for row in rows))
    logprobs = ("target_logprob_lm", "candidate_logprob_lm")
    check(all(number(row[name]) <= 0 for row in rows for name in logprobs))
    names = ("item", "context", "target", "candidate")
    return Counter((*(row[each] for each in names), *(nine(number(row[each])) for each in logprobs)) for row in rows)


def found_pairs(study: xr.Dataset) -> Records:
    each = study["candidate_token"].to_numpy()
    of_item = [study[name].to_numpy() for name in ("item_id", "context", "target_token")]
    target, said = (study[f"{name}_logprob"].to_numpy()[0] for name in ("target", "candidate"))
    return Counter(
        (*(str(values[i]) for values in of_item), each[i, j], nine(target[i]), nine(said[i, j]))
        for i in range(each.shape[0])
        for j in range(each.shape[1])
    )


def state_answers(rows: list[Row]) -> Records:
    check(all(row["item"] in ITEMS and row["draw"] in ("a", "b", "c") for row in rows))
    check(all(0 < number(row["report"]) < 1 for row in rows))
    return Counter((row["item"], row["draw"], row["participant"], nine(number(row["report"]))) for row in rows)


def found_answers(study: xr.Dataset) -> Records:
    item = study["item_id"].to_numpy()[study["response_item"].to_numpy()]
    draw = ["abc"[at] for at in study["response_candidate"].to_numpy()]
    people, reports = study["participant"].to_numpy(), study["report"].to_numpy()
    return Counter(zip(map(str, item), draw, map(str, people), map(nine, reports), strict=True))


# ------------------------------------------------------------------------------------------------- cloze


def make_cloze(rng: random.Random) -> Rows:
    rows = [(f"The {item}", rng.choice(WORDS), who) for who in PEOPLE for item in ITEMS]
    return table("context response participant", rows)


def make_counts(rng: random.Random) -> Rows:
    rows = [(item, said, rng.randint(2, 40)) for item in ITEMS for said in rng.sample(WORDS, 3)]
    return table("context_id response count", rows)


def make_shares(rng: random.Random) -> Rows:
    rows = []
    for item in ITEMS:
        cuts = sorted(rng.sample(range(5, 95, 5), 2))
        shares = (cuts[0], cuts[1] - cuts[0], 100 - cuts[1])
        rows += [(item, said, nine(s / 100)) for said, s in zip(rng.sample(WORDS, 3), shares, strict=True)]
    return table("context_id response proportion", rows)


def make_wide(rng: random.Random) -> Rows:
    return table("who S1 S2 S3", [(who, *(rng.choice(WORDS) for _ in range(3))) for who in PEOPLE])


def state_cloze(rows: list[Row]) -> Records:
    check(all(row["context"] for row in rows))
    return Counter((row["context"], clean(row["response"]), row["participant"], "1") for row in rows)


def state_weights(name: str, rows: list[Row]) -> Records:
    once = [(row["context_id"], row["response"]) for row in rows]
    check(len(set(once)) == len(once) or all(number(row[name]) == 1 for row in rows))
    check(name == "count" or all(0 <= number(row[name]) <= 1 for row in rows))
    return Counter((row["context_id"], clean(row["response"]), "", nine(number(row[name]))) for row in rows)


def state_wide(rows: list[Row]) -> Records:
    names = [name for name in rows[0] if name.startswith("S")]
    said = [(name, clean(row[name]), row["who"], "1") for row in rows for name in names if row[name]]
    check(bool(said))
    return Counter(said)


def found_cloze(study: xr.Dataset) -> Records:
    name = "item_id" if "item_id" in study else "context"
    item = study[name].to_numpy()[study["response_item"].to_numpy()]
    said = study["word_text"].to_numpy()[study["response_word"].to_numpy()]
    weight = study.get("response_count", study.get("response_proportion"))
    people = study["participant"].to_numpy() if "participant" in study else [""] * len(item)
    item = [word(INVISIBLE.sub("", text)) for text in item]
    return Counter(zip(item, map(clean, said), map(str, people), map(nine, weight.to_numpy()), strict=True))


WIDE: dict[str, Any] = {"wide": {"items": ["S*"]}, "columns": {"participant": "who"}}

# ------------------------------------------------------------------------------------------------- others


def make_guesses(rng: random.Random) -> Rows:
    target = {(text, at): rng.choice(WORDS) for text in ITEMS[:2] for at in (1, 2)}
    rows = [
        (who, *place, true, true if rng.random() < 0.5 else rng.choice(WORDS))
        for who in PEOPLE
        for place, true in target.items()
    ]
    return table("participant document position target guess", rows)


def state_guesses(rows: list[Row]) -> Records:
    check(all(row["target"] and row["guess"] for row in rows))
    agreed(rows, lambda row: (row["document"], number(row["position"])), "target")
    return Counter(
        (row["participant"], row["document"], nine(number(row["position"])), row["target"] == row["guess"])
        for row in rows
    )


def found_guesses(study: xr.Dataset) -> Records:
    item = study["response_item"].to_numpy()
    of_item = (study[f"item_{name}"].to_numpy()[item] for name in ("document", "position"))
    rows = zip(study["participant"].to_numpy(), *of_item, study["correct"].to_numpy(), strict=True)
    return Counter((str(who), str(text), nine(at), bool(right)) for who, text, at, right in rows)


def make_bets(rng: random.Random) -> Rows:
    rows = [
        (who, item, WORDS[at], said, rng.randint(2, 30))
        for who in PEOPLE
        for at, item in enumerate(ITEMS)
        for said in rng.sample(WORDS, 3)
    ]
    return table("participant item target word stake", rows)


def state_bets(rows: list[Row], total: float = 100) -> Records:
    agreed(rows, lambda row: row["item"], "target")
    named = [(row["participant"], row["item"], row["word"]) for row in rows]
    check(len(set(named)) == len(named) and all(row["target"] for row in rows))
    check(all((row["word"] == "") == (row["stake"] == "") for row in rows))
    rest: dict[tuple[str, str], float] = {}
    records: Records = Counter()
    for row in rows:
        who, item, stake = row["participant"], row["item"], number(row["stake"]) if row["word"] else 0
        check(stake >= 0)
        rest[who, item] = rest.get((who, item), total) - stake
        if row["word"]:
            records[who, item, row["word"] == row["target"], nine(stake / total)] += 1
    check(min(rest.values()) > -1e-9)
    return records + Counter((*key, "rest", nine(round(value / total, 9))) for key, value in rest.items())


def found_bets(study: xr.Dataset) -> Records:
    answer = study["bet_response"].to_numpy()
    who, item = study["participant"].to_numpy(), study["item_id"].to_numpy()[study["response_item"].to_numpy()]
    rest = study["other_stake"].to_numpy()
    bets = zip(answer, study["bet_hit"].to_numpy(), study["bet_stake"].to_numpy(), strict=True)
    records = Counter((who[at], item[at], bool(hit), nine(stake)) for at, hit, stake in bets)
    return records + Counter((who[at], item[at], "rest", nine(round(rest[at], 9))) for at in range(len(who)))


_PLACE = ("model", "text", "context_length", "window", "position")


def make_ranks(rng: random.Random) -> Rows:
    rows = []
    for window in ("w1", "w2"):
        for position in (0, 1):
            tokens, low = rng.sample((" a", " Tür", " c", "."), 3), 0.5
            for rank, token in enumerate(tokens, 1):
                low += rng.uniform(0.7, 1)
                rows.append(("m", "t", 8, window, position, tokens[position], rank, token, nine(-low)))
    return table(" ".join((*_PLACE, "reference_token", "rank", "token", "logprob_nats")), rows)


def state_ranks(rows: list[Row]) -> Records:
    def place(row: Row) -> tuple[str, ...]:
        return tuple(nine(number(row[each])) if each in kind_of_ranks.whole else row[each] for each in _PLACE)

    agreed(rows, place, "reference_token")
    lists: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        lists.setdefault(place(row), []).append(row)
    for own in lists.values():
        check(sorted(number(row["rank"]) for row in own) == list(range(1, len(own) + 1)))
        check(len({row["token"] for row in own}) == len(own) and all(number(row["logprob_nats"]) <= 0 for row in own))
        check(sum(math.exp(number(row["logprob_nats"])) for row in own) <= 1.01)
    return Counter(
        (*place(row), word(row["reference_token"]), nine(number(row["rank"])), word(row["token"]))
        + (nine(number(row["logprob_nats"])),)
        for row in rows
    )


def found_ranks(study: xr.Dataset) -> Records:
    tokens, logprobs = study["ranked_token"].to_numpy(), study["ranked_logprob"].to_numpy()
    heads = [study[name].to_numpy() for name in (*_PLACE, "reference_token")]
    return Counter(
        (*(nine(head[i]) if head.dtype.kind in "iu" else word(head[i]) for head in heads),)
        + (nine(j + 1), word(tokens[i, j]), nine(logprobs[i, j]))
        for i, j in zip(*(~pd.isna(logprobs)).nonzero(), strict=True)
    )


def make_estimates(rng: random.Random) -> Rows:
    rows = [(who, nine(rng.uniform(1, 3)), nine(rng.uniform(0.01, 0.2))) for who in PEOPLE]
    return table("source estimate se", rows)


def state_estimates(rows: list[Row]) -> Records:
    check(len({row["source"] for row in rows}) == len(rows) and all(number(row["se"]) > 0 for row in rows))
    return Counter((row["source"], nine(number(row["estimate"])), nine(number(row["se"]))) for row in rows)


def found_estimates(study: xr.Dataset) -> Records:
    values = (map(nine, study[name].to_numpy()) for name in ("estimate", "se"))
    return Counter(zip(map(str, study["source"].to_numpy()), *values, strict=True))


def estimates_frame(rows: pd.DataFrame, **settings: Any) -> xr.Dataset:
    raise LookupError("estimates are read from files alone")


def path_named(reader: Callable[..., xr.Dataset], **given: Any) -> Callable[..., xr.Dataset]:
    return lambda path, **settings: reader(path=path, **given, **settings)


kind_of_ranks = Kind(
    *(make_ranks, ranking_study, path_named(ranking_table), state_ranks, found_ranks, ("model", "text", "window")),
    *(("reference_token", "token"), ("context_length", "position", "rank"), ("logprob_nats",)),
)
KINDS: dict[str, Kind] = {
    "pairs": Kind(
        *(make_pairs, lambda rows, **given: comparison_study(None, rows, generator="lm", **given), pairs_file),
        *(state_pairs, found_pairs, ("item", "draw"), ("context", "target", "candidate")),
        real=("target_logprob_lm", "candidate_logprob_lm"),
    ),
    "answers": Kind(
        *(make_answers, lambda rows, **given: comparison_study(rows, frame(PAIRS), generator="lm", **given)),
        *(answers_file, state_answers, found_answers, ("item", "draw", "participant")),
        real=("report",),
        scaled="report",
    ),
    "cloze": Kind(
        *(make_cloze, cloze_study, path_named(cloze_table), state_cloze, found_cloze, ("participant", "context")),
        words=("response",),
    ),
    "counts": Kind(
        *(make_counts, cloze_study, path_named(cloze_table), partial(state_weights, "count"), found_cloze),
        *(("context_id",), ("response",), ("count",)),
    ),
    "shares": Kind(
        *(make_shares, cloze_study, path_named(cloze_table), partial(state_weights, "proportion"), found_cloze),
        *(("context_id",), ("response",)),
        real=("proportion",),
        scaled="proportion",
    ),
    "wide": Kind(
        *(make_wide, partial(cloze_study, **WIDE), path_named(cloze_table, **WIDE), state_wide, found_cloze, ("who",)),
        words=("S1", "S2", "S3"),
    ),
    "guesses": Kind(
        *(make_guesses, guess_study, path_named(guess_table), state_guesses, found_guesses),
        *(("participant", "document"), ("target", "guess"), ("position",)),
    ),
    "bets": Kind(
        *(make_bets, bet_study, path_named(bet_table), state_bets, found_bets, ("participant", "item")),
        words=("target", "word"),
        real=("stake",),
        scaled="stake",
    ),
    "ranks": kind_of_ranks,
    "estimates": Kind(
        *(make_estimates, estimates_frame, path_named(estimates), state_estimates, found_estimates, ("source",)),
        real=("estimate", "se"),
    ),
}


def written(rows: Rows, separator: str = ",", *, end: str = "\n", quoting: Any = csv.QUOTE_MINIMAL) -> str:
    text = StringIO()
    csv.writer(text, delimiter=separator, lineterminator=end, quoting=quoting).writerows(rows)
    return text.getvalue()
