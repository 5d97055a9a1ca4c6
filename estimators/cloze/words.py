"""One function that makes words comparable: what people typed, what models generated, what the corpus printed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.display import INVISIBLE, Result
from shannon_game.estimators.errors import InputError, require_packages, unknown_choice
from shannon_game.estimators.messages import word as in_words
from shannon_game.estimators.word_spans import word_boundaries

FAILED = "Failed to generate word"
"""What "Predict the Next Word" wrote where a model's sample held no word."""

NON_ANSWERS = (
    *("no response", "no answer", "don't know", "dont know", "do not know", "I don't know", "I dont know"),
    *(
        "I do not know",
        "idk",
        "n/a",
        "weiß nicht",
        "ich weiß nicht",
        "keine Ahnung",
        "keine Antwort",
        "keine Angabe",
        "k.A.",
        "k. A.",
    ),
)
"""Answers that say that somebody has no word. "NA" and "none" are words that people say: name them if they are not."""

_CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "case": ("lower", "keep"),
        "unicode": ("NFC", "NFKC", "keep"),
        "newlines": ("space", "delete"),
        "contractions": ("host", "join", "keep"),
        "punctuation": ("all", "edges", "keep"),
        "pieces": ("first", "join", "keep", "drop"),
        "failed": ("drop", "keep"),
        "junk": ("drop", "keep"),
        "blank": ("drop", "keep"),
        "boundaries": ("spaces", "icu"),
    }
)
_APOSTROPHES = "\u2019\u2018\u02bc\u0060\u00b4\u02b9\uff07"
_ENDINGS = r"(?:n't|'(?:s|re|ve|ll|d|m))"
_IRREGULAR = {"won't": "will", "shan't": "shall", "can't": "can", "ain't": "be", "let's": "let", "y'all": "you"}
# contractions whose apostrophe is lost and that are no other English word; "its", "were", "well", "lets", "hell", "id"
# ("I'd"), "ill", "wed", "shed", "shell", "whos" and the like stay as they are
_VERBS = "do does did is are was were have has had could would should must need"
_BARE = {f"{verb}nt": verb for verb in _VERBS.split()} | {"wont": "will", "cant": "can", "im": "i", "ive": "i"}
_BARE |= {"youre": "you", "youve": "you", "youll": "you", "theyre": "they", "theyve": "they", "theyll": "they"}
_BARE |= {"weve": "we", "hes": "he", "shes": "she", "thats": "that", "theres": "there", "whats": "what"}
_BARE |= {"heres": "here", "wheres": "where", "itll": "it"}
_NO_LETTER = re.compile(r"[\W_]*\Z")


@dataclass(frozen=True)
class WordRules:
    """How a string becomes a word. The steps are taken in the order of the fields.

    Parameters
    ----------
    drop_matching : tuple of str
        Regular expressions; a raw string in which one is found is junk.
    non_answers : tuple of str
        Whole answers that are no word, such as "no response"; case, blanks and punctuation around them do not count.
    mac_roman : bool
        Read a capital O with tilde as an apostrophe, and a lone capital N with tilde as a dash: what the Mac's
        encoding of those two looks like when taken for Latin-1 (in the Provo Corpus).
    unicode : {"NFC", "NFKC", "keep"}
    newlines : {"space", "delete"}
        What a line break becomes; ``"delete"`` glues the words around it, as the paper's code does.
    case : {"lower", "keep"}
    pieces : {"first", "join", "keep", "drop"}
        Of several space-separated pieces take the first (one that is punctuation only does not count, unless
        punctuation is kept), write them together with a space, leave the string alone, or treat it as junk.
    contractions : {"host", "join", "keep"}
        ``"host"`` cuts a contraction down to its first part ("don't" and "dont" become "do", "bird's" "bird"), as the
        human answers of the Provo Corpus stand in the public files; ``"join"`` deletes the apostrophe; ``"keep"`` only
        makes every kind of apostrophe the same.
    punctuation : {"all", "edges", "keep"}
        What is deleted: everything that is neither letter, digit, underscore nor space; only around the word; nothing.
        ``"edges"`` and ``contractions="keep"`` leave the apostrophe inside a word alone, ``"all"`` does not.
    failed, junk, blank : {"drop", "keep"}
        Whether :data:`FAILED`, a word without any letter or digit ("?"), and an empty string are missing, or words of
        their own. Where nothing at all is left, it is missing.
    boundaries : {"spaces", "icu"}
        What stands between pieces: spaces, or the ends of words that ICU finds, by dictionaries in Chinese, Japanese
        and Thai (extra ``words``). Contractions stay whole. ``pieces="join"`` then puts spaces between words.
    lemmas : tuple of str
        Codes of languages, as ("en",): the last step replaces a word by its lemma (extra ``words``). None by default.
    """

    name: str = "clean"
    drop_matching: tuple[str, ...] = ()
    non_answers: tuple[str, ...] = NON_ANSWERS
    mac_roman: bool = False
    unicode: str = "NFC"
    newlines: str = "space"
    case: str = "lower"
    pieces: str = "first"
    contractions: str = "keep"
    punctuation: str = "edges"
    failed: str = "drop"
    junk: str = "drop"
    blank: str = "drop"
    boundaries: str = "spaces"
    lemmas: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check every choice."""
        for field, valid in _CHOICES.items():
            if getattr(self, field) not in valid:
                raise unknown_choice(field, getattr(self, field), valid, source="word rules")
        for field, what in (("drop_matching", "regular expressions"), ("non_answers", "answers"), ("lemmas", "codes")):
            texts: Any = getattr(self, field)
            if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
                raise InputError(f"is {texts!r}, should be a list of {what}", source="word rules", field=field)
            # a config gives a list, and a frozen dataclass should hash
            object.__setattr__(self, field, tuple(texts))
        for text in self.drop_matching:
            try:
                re.compile(text)
            except re.error as error:
                problem = f"{text!r} is no regular expression: {error}"
                raise InputError(problem, source="word rules", field="drop_matching") from error
        mac_roman: Any = self.mac_roman
        if not isinstance(mac_roman, bool):
            raise InputError(
                f"is {in_words(mac_roman)}, should be {in_words(True)} or {in_words(False)}",
                source="word rules",
                field="mac_roman",
            )


WORD_RULES: Mapping[str, WordRules] = MappingProxyType(
    {
        "clean": WordRules(),
        "provo": WordRules("provo", (r"^\*\*",), (), mac_roman=True, contractions="host", punctuation="all"),
        "none": WordRules(
            "none", (), (), False, "keep", "space", "keep", "keep", "keep", "keep", "keep", "keep", "keep"
        ),
    }
)
"""Named rules: ``clean`` for any study, ``provo`` for the Provo Corpus, ``none`` for the string itself."""


@dataclass(frozen=True, eq=False, repr=False)
class NormalisedWords(Result):
    """Strings and the words that they became.

    Parameters
    ----------
    words : ndarray of str objects, shape (string,)
        "" where the string is missing.
    missing : ndarray of bool, shape (string,)
    reason : ndarray of str objects, shape (string,)
        Why it is missing: "blank", "failed", "junk", "no answer"; "" where it is not.
    cut : ndarray of bool, shape (string,)
        Whether it is the first of several words, the others of which are lost.
    """

    words: NDArray[np.object_]
    missing: NDArray[np.bool_]
    reason: NDArray[np.object_]
    cut: NDArray[np.bool_]

    def codes(self, known: dict[str, int], *, grow: bool = False) -> NDArray[np.int64]:
        """Code of every word, -1 where it is missing or not known; with `grow` new words get the next codes."""
        pairs = zip(self.words.tolist(), self.missing.tolist(), strict=True)
        if grow:
            found = [-1 if missing else known.setdefault(word, len(known)) for word, missing in pairs]
        else:
            found = [-1 if missing else known.get(word, -1) for word, missing in pairs]
        return np.array(found, dtype=np.int64)


def word_rules(name: str, changes: Mapping[str, Any] | None = None) -> WordRules:
    """Return named rules of :data:`WORD_RULES`, some of their fields changed.

    Examples
    --------
    >>> cloze.word_rules("clean", {"case": "keep"}).name
    'clean, changed'
    """
    if not isinstance(name, str) or name not in WORD_RULES:  # type: ignore[redundant-expr]
        raise unknown_choice("word rules", name, WORD_RULES)
    if not changes:
        return WORD_RULES[name]
    valid = [field.name for field in fields(WordRules) if field.name != "name"]
    for field in changes:
        if field not in valid:
            raise unknown_choice("word rule", field, valid)
    return replace(WORD_RULES[name], name=f"{name}, changed", **dict(changes))


def normalise_words(strings: Sequence[str] | NDArray[Any], rules: WordRules | str) -> NormalisedWords:
    """Turn strings ("" is an answer left blank) into words, by rules or the name of some in :data:`WORD_RULES`.

    Examples
    --------
    >>> cloze.normalise_words(["The", "don't", "cat.", "?", ""], "clean").words.tolist()
    ['the', "don't", 'cat', '', '']
    """
    words = np.empty(len(strings), dtype=object)
    reason = np.empty(len(strings), dtype=object)
    cut = np.zeros(len(strings), dtype=bool)
    one = _normaliser(rules if isinstance(rules, WordRules) else word_rules(rules))
    # strings of an array are plain objects only after tolist()
    plain: Iterable[Any] = strings.tolist() if isinstance(strings, np.ndarray) else strings
    for position, text in enumerate(plain):
        if not isinstance(text, str):
            raise InputError(f"is {text!r} at position {position}, should be a string", field="strings")
        words[position], reason[position], cut[position] = one(text)
    return NormalisedWords(words, reason != "", reason, cut)


_PUNCTUATION = re.compile(r"[^\w\s]")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_MAC_APOSTROPHE = re.compile("(?<=[a-z])\u00d5")
_MAC_DASH = re.compile("(?<!\\w)\u00d1(?!\\w)")
_TO_APOSTROPHE = str.maketrans(dict.fromkeys(_APOSTROPHES, "'"))
_ENDING = re.compile(rf"(?<=[^\W\d_]){_ENDINGS}\Z|(?<=s)'\Z")
_POSSESSIVE = re.compile(r"s'\W*\Z")


def _normaliser(rules: WordRules) -> Callable[[str], tuple[str, str, bool]]:
    unwanted = [re.compile(text) for text in rules.drop_matching]
    space = re.compile(r" +" if rules.unicode == "keep" else r"\s+")
    no_answers = {_folded(text) for text in rules.non_answers}
    lemma = lemmatizer(rules.lemmas) if rules.lemmas else None

    def one(text: str) -> tuple[str, str, bool]:
        if not text or text.isspace():
            return "", "" if rules.blank == "keep" else "blank", False
        if text == FAILED:
            kept = text.lower() if rules.case == "lower" else text
            return (kept, "", False) if rules.failed == "keep" else ("", "failed", False)
        if any(pattern.search(text) for pattern in unwanted):
            return "", "junk", False
        if no_answers and no_answers & {_folded(text), _EDGES.sub("", _folded(text))}:
            return "", "no answer", False
        word, cut = _pieces(_characters(text, rules), rules, space)
        word = _without_punctuation(word, rules)
        if not word or (rules.junk == "drop" and _NO_LETTER.match(word)):
            return "", "junk", False
        return (lemma(word) if lemma else word), "", cut

    return one


def _folded(text: str) -> str:
    return " ".join(INVISIBLE.sub("", unicodedata.normalize("NFC", text)).translate(_TO_APOSTROPHE).casefold().split())


def _characters(text: str, rules: WordRules) -> str:
    word = text
    if rules.mac_roman:
        word = _MAC_DASH.sub("-", _MAC_APOSTROPHE.sub("'", word))
    if rules.unicode != "keep":
        form: Any = rules.unicode
        word = INVISIBLE.sub("", unicodedata.normalize(form, word)).translate(_TO_APOSTROPHE)
    word = word.replace("\n", "" if rules.newlines == "delete" else " ")
    return word.lower() if rules.case == "lower" else word


def _pieces(word: str, rules: WordRules, space: re.Pattern[str]) -> tuple[str, bool]:
    """The word of several, and whether the others are lost."""
    if rules.pieces == "keep":
        return word, False
    parts = space.split(word) if rules.boundaries == "spaces" else map(str.strip, word_boundaries(word))
    pieces = [piece for piece in parts if piece]
    if rules.punctuation != "keep":
        # a lone dash or quotation mark is no word
        pieces = [piece for piece in pieces if _PUNCTUATION.sub("", piece)]
    if rules.pieces == "join":
        return " ".join(pieces), False
    # more than one piece where one is asked for: nothing is left, which is junk
    kept = pieces[0] if pieces and (rules.pieces == "first" or len(pieces) == 1) else ""
    return kept, len(pieces) > 1


def _without_punctuation(word: str, rules: WordRules) -> str:
    if rules.contractions == "host":
        word = " ".join(map(_host, word.split(" ")))
    elif rules.contractions == "join":
        word = word.replace("'", "")
    if rules.punctuation == "all":
        return _PUNCTUATION.sub("", word)
    return _EDGES.sub("", word) if rules.punctuation == "edges" else word


def _host(piece: str) -> str:
    """Cut a contraction or possessive down to its first part."""
    core = _EDGES.sub("", piece) + ("'" if _POSSESSIVE.search(piece) else "")
    low = core.lower()
    found = _IRREGULAR.get(low) or _BARE.get(low)
    return found if found is not None else _ENDING.sub("", core)


@cache
def lemmatizer(languages: tuple[str, ...]) -> Callable[[str], str]:
    """Give what makes lemmas of words, by simplemma's tables; a word that they lack stays as it is."""
    require_packages(("simplemma",), "words", source="word rules", field="lemmas")
    import simplemma  # noqa: PLC0415 - an optional extra

    try:
        simplemma.lemmatize("a", lang=languages)
    except (TypeError, ValueError) as error:
        problem = f"is {', '.join(languages)}, one unknown to simplemma ({error}); give codes such as en, de, fr"
        raise InputError(problem, source="word rules", field="lemmas") from error

    @cache
    def lemma(word: str) -> str:
        return " ".join(str(simplemma.lemmatize(piece, lang=languages)) for piece in word.split(" "))

    return lemma
