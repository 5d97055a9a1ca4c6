"""N-gram models: a corpus of five sentences by hand, the formula over all counts, and damaged ARPA files."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.ngram import NgramModel, load_ngram, pieces, read_arpa, train
from shannon_game.inference.lm.settings import ModelSettings

FIVE = ["the cat sat", "the dog sat", "a cat ran", "the cat ran", "a dog sat"]
ARPA = r"""
\data\
ngram 1=5
ngram 2=3

\1-grams:
-99	<s>	-0.3
-0.7	the	-0.2
-0.8	cat	-0.1
-1.0	</s>
-2.0	<unk>

\2-grams:
-0.2	<s> the
-0.3	the cat
-0.4	cat </s>

\end\
"""


def trained(order: int) -> NgramModel:
    return NgramModel(train([sentence.split() for sentence in FIVE], order), order, "")


def slow(order: int, history: tuple[str, ...], word: str) -> float:
    """The formula, with every count taken from the sentences anew."""
    padded = [("<s>", *sentence.split(), "</s>") for sentence in FIVE]

    def grams(n: int) -> list[tuple[str, ...]]:
        return [words[i : i + n] for words in padded for i in range(len(words) - n + 1)]

    def count(gram: tuple[str, ...]) -> int:
        if gram == ("<s>",):
            return 0
        if len(gram) == order or gram[0] == "<s>":
            return grams(len(gram)).count(gram)
        return len({longer[0] for longer in grams(len(gram) + 1) if longer[1:] == gram})

    n = len(history) + 1
    counts = [count(gram) for gram in set(grams(n))]
    n1, n2 = counts.count(1), counts.count(2)
    discount = n1 / (n1 + 2 * n2) if n1 and n2 else 0.75
    after = [count(gram) for gram in set(grams(n)) if gram[:-1] == history and count(gram)]
    kinds = {other for words in padded for other in words[1:]} | {"<unk>"}
    lower = slow(order, history[1:], word) if history else 1 / len(kinds)
    if not after:
        return lower
    return (max(count((*history, word)) - discount, 0) + discount * len(after) * lower) / sum(after)


def test_two_probabilities_by_hand() -> None:
    model = trained(2)
    # 11 kinds of pairs: two words before "cat", one before "the"; 3 words with one kind, 4 with two: D = 3 / 11
    cat, the = (k / 11 - 3 / 121 + 3 / 11 * 7 / 11 / 8 for k in (2, 1))
    assert math.exp(model.logprob((), "cat")) == pytest.approx(cat)
    assert math.exp(model.logprob((), "the")) == pytest.approx(the)
    # of 11 pairs 4 come once, 5 twice: D = 2 / 7; three of five sentences begin with "the", two with "a"
    assert math.exp(model.logprob(("<s>",), "the")) == pytest.approx((3 - 2 / 7 + 2 / 7 * 2 * the) / 5)
    assert math.exp(model.logprob(("ran",), "cat")) == pytest.approx(2 / 7 * 1 * cat / 2)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_probabilities_are_those_of_the_formula_and_sum_to_one(order: int) -> None:
    model = trained(order)
    words = ["the", "a", "cat", "dog", "sat", "ran", "</s>", "<unk>"]
    for history in ((), ("<s>",), ("<s>", "the"), ("the", "cat"), ("sat", "dog"), ("<s>", "a", "dog"), ("<unk>", "a")):
        found = [math.exp(model.logprob(history, word)) for word in words]
        seen = tuple(history[max(0, len(history) - order + 1) :])
        assert found == pytest.approx([slow(order, seen, word) for word in words])
        assert sum(found) == pytest.approx(1)


def test_an_arpa_file_by_hand(tmp_path: Path) -> None:
    (tmp_path / "two.arpa.gz").write_bytes(gzip.compress(ARPA.encode()))
    model = load_ngram(ModelSettings(name="two", source="ngram", path=str(tmp_path / "two.arpa.gz")))
    assert model.order == 2
    known = [model.known(word) for word in ("The", "cat", "zebra")]
    assert known == ["the", "cat", "<unk>"]
    by_hand = {("<s>", "the"): -0.2, ("the", "cat"): -0.3, ("<s>", "cat"): -1.1, ("cat", "the"): -0.8}
    by_hand |= {("<unk>", "cat"): -0.8, ("the", "<unk>"): -2.2}
    for (before, word), value in by_hand.items():
        assert model.logprob(["<s>", "the", before], word) == pytest.approx(value * math.log(10))


def test_text_is_cut_into_words_and_marks() -> None:
    assert [piece for _, piece in pieces("“Don't” 3.5 well-known—ends.")] == [
        *("“", "Don't", "”", "3.5", "well-known—ends", ".")
    ]
    assert list(pieces(" a, b")) == [(1, "a"), (2, ","), (4, "b")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("-0.8\tcat", "x\tcat"), "line 9"),
        (("-0.3\tthe cat", "-0.3\tthe"), "line 15"),
        (("-0.3\tthe cat\n", ""), "has n-grams by length {1: 5, 2: 2}, states {1: 5, 2: 3}"),
        (("ngram 2=3", "ngram 2=30000000"), "at most 20,000,000 are held"),
    ],
)
def test_damaged_arpa_files_are_refused(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        read_arpa(tmp_path / "two.arpa", ARPA.replace(*change).encode())
    assert message in str(refused.value)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    for path, message in ((tmp_path / "none.txt", "should be an ARPA file"), (tmp_path, "should be an ARPA file")):
        with pytest.raises(InputError, match=message):
            load_ngram(ModelSettings(name="n", source="ngram", path=str(path)))
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(InputError, match="no sentence"):
        load_ngram(ModelSettings(name="n", source="ngram", path=str(tmp_path)))
    with pytest.raises(InputError, match="no tokens"):
        load_language_model(ModelSettings(name="n", source="ngram", path="x.arpa"))
