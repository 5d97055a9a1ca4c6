r"""Word n-gram models: an ARPA file, or trained here by interpolated Kneser-Ney smoothing (Ney, Essen and Kneser 1994).

.. math:: p(w \mid h) = \frac{\max(c(hw) - D, 0) + D \, n(h) \, p(w \mid h')}{c(h)}

:math:`n(h)` is the number of different words after h, and h' is h without its first word. Below the highest order,
:math:`c(g)` counts the different words before g (if it does not begin a sentence), and :math:`D = n_1 / (n_1 + 2 n_2)`
of the order's counts of one and two. Below one word all words are alike, an unknown one and the sentence's end too.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.word_spans import word_spans
from shannon_game.inference.lm.settings import ModelSettings

START, END, UNKNOWN = "<s>", "</s>", "<unk>"
ARPA = (".arpa", ".arpa.gz")
_ORDER = 3
_MOST = 20_000_000
# where an order lacks n-grams that were seen once or twice
_DISCOUNT = 0.75
_PIECE = re.compile(r"\w+(?:[^\w\s]+\w+)*|[^\w\s]")

Gram = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class NgramModel:
    """Log10 of the probability of n-grams, and of the weight that they give to shorter ones, as in an ARPA file."""

    grams: Mapping[Gram, tuple[float, float]]
    order: int
    sha256: str

    @cached_property
    def has_capitals(self) -> bool:
        """Whether some word has one: texts are folded to lower case where none has."""
        return any(gram[0] != gram[0].lower() for gram in self.grams if len(gram) == 1 and gram[0][:1] != "<")

    @cached_property
    def has_punctuation(self) -> bool:
        """Whether marks are words of their own: they are left out of texts where none is."""
        return any(not any(map(str.isalnum, gram[0])) for gram in self.grams if len(gram) == 1)

    def known(self, word: str) -> str:
        """The word as the model has it, or its word for unknown ones."""
        word = word if self.has_capitals else word.lower()
        return word if (word,) in self.grams else UNKNOWN

    def logprob(self, context: Sequence[str], word: str) -> float:
        """Ln of the probability of a known word after known ones."""
        history, backoff = tuple(context[max(0, len(context) - self.order + 1) :]), 0.0
        while (*history, word) not in self.grams:
            if not history:
                return -math.inf
            backoff += self.grams.get(history, (0.0, 0.0))[1]
            history = history[1:]
        return (backoff + self.grams[*history, word][0]) * math.log(10)


def load_ngram(settings: ModelSettings) -> NgramModel:
    """Read an ARPA file, or train on a text file with a sentence per line, or on the .txt files of a folder."""
    path = Path(str(settings.path)).expanduser()
    files = sorted(path.rglob("*.txt")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        problem = f"is {path}, should be an ARPA file, a text file, or a folder of .txt files"
        raise InputError(problem, source=f"model {settings.name!r}", field="path")
    contents = [file.read_bytes() for file in files]
    sha256 = hashlib.sha256(b"".join(contents)).hexdigest()
    if path.name.endswith(ARPA):
        grams, order = read_arpa(path, contents[0])
        return NgramModel(grams, order, sha256)
    lines = [line for content in contents for line in content.decode(errors="replace").splitlines()]
    order = settings.order or _ORDER
    sentences = [[piece.lower() for _, piece in pieces(line)] for line in lines if line.strip()]
    return NgramModel(train(sentences, order), order, hashlib.sha256(f"{order} {sha256}".encode()).hexdigest())


def pieces(text: str, boundaries: str = "script") -> Iterator[tuple[int, str]]:
    """Words without their punctuation, and marks, with the character at which each begins."""
    for word in word_spans(text, boundaries=boundaries):
        for found in _PIECE.finditer(text, word.start, word.stop):
            yield found.start(), found[0]


def read_arpa(path: Path, content: bytes) -> tuple[dict[Gram, tuple[float, float]], int]:
    """Read the n-grams of an ARPA file, and their largest length."""
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    grams: dict[Gram, tuple[float, float]] = {}
    order = 0
    stated: Counter[int] = Counter()
    for number, line in enumerate(content.decode().splitlines(), start=1):
        cells = line.split()
        section = re.fullmatch(r"\\(\d+)-grams:", line.strip())
        count = re.fullmatch(r"ngram (\d+)\s*=\s*(\d+)", line.strip())
        if section:
            order = int(section[1])
        elif count:
            stated[int(count[1])] = int(count[2])
            if stated.total() > _MOST:
                raise InputError(f"has {stated.total():,} n-grams, at most {_MOST:,} are held; prune it", source=path)
        elif order and cells and not line.startswith("\\"):
            try:
                value, backoff = float(cells[0]), float(cells[order + 1]) if len(cells) > order + 1 else 0.0
            except ValueError:
                value = math.nan
            if math.isnan(value) or len(cells) not in (order + 1, order + 2):
                problem = f"is {line[:60]!r}, should be log10 p, {order} words and perhaps a back-off weight"
                raise InputError(problem, source=path, field=f"line {number}")
            grams[tuple(cells[1 : order + 1])] = value, backoff
    found = Counter(map(len, grams))
    if not grams or found != stated:
        raise InputError(f"has n-grams by length {dict(found)}, states {dict(stated)}; take a whole copy", source=path)
    return grams, order


def train(sentences: Iterable[Sequence[str]], order: int) -> dict[Gram, tuple[float, float]]:
    """Train by interpolated Kneser-Ney smoothing, in the form of an ARPA file."""
    counts: list[Counter[Gram]] = [Counter() for _ in range(order)]
    for sentence in sentences:
        words = (START, *sentence, END)
        for n in range(1, order + 1):
            counts[n - 1].update(words[i : i + n] for i in range(len(words) - n + 1))
    if not counts[0]:
        raise InputError("holds no sentence to train an n-gram model on", field="path")
    for n in range(order - 1):
        # what begins a sentence has nothing before it
        before = Counter(gram[1:] for gram in counts[n + 1])
        counts[n] = Counter({gram: c if gram[0] == START else before[gram] for gram, c in counts[n].items()})
    # all words but the beginning, and the unknown one
    p: dict[Gram, float] = {(): 1 / (len(counts[0].keys() - {(START,)}) + 1)}
    weight: dict[Gram, float] = {}
    for n, its in enumerate(counts, start=1):
        total, kinds = defaultdict[Gram, int](int), Counter[Gram]()
        its.pop((START,), None)
        for gram, c in its.items():
            total[gram[:-1]] += c
            kinds[gram[:-1]] += 1
        n1, n2 = (sum(c == k for c in its.values()) for k in (1, 2))
        discount = n1 / (n1 + 2 * n2) if n1 and n2 else _DISCOUNT
        weight |= {history: discount * kinds[history] / total[history] for history in total}
        for gram, c in (its if n > 1 else {**its, (UNKNOWN,): 0}).items():
            history = gram[:-1]
            lower = p[gram[1:]] if n > 1 else p[()]
            p[gram] = max(c - discount, 0) / total[history] + weight[history] * lower
    return {
        **{gram: (math.log10(q), math.log10(weight.get(gram, 1.0))) for gram, q in p.items() if gram},
        (START,): (-99.0, math.log10(weight.get((START,), 1.0))),
    }
