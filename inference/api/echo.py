"""Log-probabilities of the tokens of a text that an endpoint was given, one call a text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from shannon_game.inference.api.calls import Call, WrongAnswerError, choice_of, listed, logprob_of, readable, token_of

# of a character, and of what stands in a token for a part of one
_MOST_BYTES = 4
_PART = "\ufffd"
_UNNAMED = "the server's own"


@dataclass(frozen=True)
class TextTokens:
    """The tokens of a text that have a log-probability: all, without a token before the text all but the first."""

    bos: str
    """Token before the text, or none."""
    token: tuple[str, ...]
    place: tuple[int, ...]
    """Where the tokens begin, and the last one ends, in UTF-8 bytes of the text."""
    logprob: tuple[float, ...]
    rank: tuple[float, ...]
    """1 + the number of tokens more probable than it; NaN where the server does not tell."""


def text_tokens(answer: Any, call: Call, *, bos: str) -> TextTokens:
    """Read the tokens of a call's text from its answer."""
    choice, content, has_echo = choice_of(answer), call.body["prompt"].encode(), "echo" in call.body
    with readable():
        found = _of_echo(choice) if has_echo else _of_prompt_logprobs(choice, content, bos)
    # before the first token stands nothing; what has been written after the text has a number
    if not found or not math.isnan(found[0][1]):
        how = "echo with logprobs" if has_echo else "prompt_logprobs"
        problem = f"the server gave no log-probabilities of the text: it has no {how} for this model"
        raise WrongAnswerError(f"{problem}; text_scores={'prompt_logprobs' if has_echo else 'echo'} asks another way")
    tokens = [token for token, _, _ in found]
    ends = _aligned(content, tokens)
    if ends is None and bos:
        # llama-cpp-python leaves its model's own bos out, and gives the first token after it no score
        content, bos = content[len(bos.encode()) :], ""
        ends = _aligned(content, tokens)
    if ends is None:
        problem = "the server's tokens do not spell the text: its tokenizer changes it, or leaves out the last one"
        raise WrongAnswerError(f"{problem}, as llama-cpp-python does without the model's own bos")
    before = len(bos.encode())
    last = ends.index(before) if before in ends else 0
    if before and (ends[last] != before or any(ends[:last])):
        raise WrongAnswerError(f"bos={bos!r} is no token of the model there")
    # what has no length may be a part of the first character, which then has no score as a whole
    has_own = not ends[0] and _PART not in tokens[0] and bool(tokens[0] or content[:1].isascii())
    start = ends[last] if bos or has_own else max(ends[0], 1)
    kept = found[last + 1 : len(ends)]
    if any(math.isnan(logprob) for _, logprob, _ in kept):
        raise WrongAnswerError("a token of the text has no log-probability")
    return TextTokens(
        bos=bos or ((tokens[0] or _UNNAMED) if has_own else ""),
        token=tuple(token for token, _, _ in kept),
        place=tuple(max(end, start) - before for end in (start, *ends[last + 1 :])),
        logprob=tuple(logprob for _, logprob, _ in kept),
        rank=tuple(rank for _, _, rank in kept),
    )


_Token = tuple[str, float, float]
"""A token with its log-probability and rank, NaN where they are not told."""


def _of_echo(choice: Mapping[str, Any]) -> list[_Token]:
    """Tokens of a text, the one that was written after it left out where there is one, and their log-probabilities."""
    given = choice.get("logprobs") or {}
    if _are_of_the_next(given.get("tokens") or [], given.get("top_logprobs") or []):
        problem = (
            "the server's log-probabilities are of the tokens after those that it names, as llama-cpp-python's are"
        )
        raise WrongAnswerError(f"{problem} without the model's own bos; set bos to it, such as '<|im_start|>'")
    pairs = zip(listed(given.get("tokens", [])), listed(given.get("token_logprobs", [])), strict=True)
    found = [(token_of(token), math.nan if its is None else logprob_of(its), math.nan) for token, its in pairs]
    return found[: len(found) - int(choice.get("finish_reason") == "length")]


def _are_of_the_next(tokens: Sequence[Any], tops: Sequence[Any]) -> bool:
    """Whether the most probable tokens are far more often the next token than the one at their own place."""
    best = [max(top, key=top.__getitem__) if isinstance(top, Mapping) and top else None for top in tops]
    here, after = (
        sum(bool(its == token) for its, token in zip(best, those, strict=False)) for those in (tokens, tokens[1:])
    )
    return after > 2 * here + 2


def _of_prompt_logprobs(choice: Mapping[str, Any], content: bytes, bos: str) -> list[_Token]:
    """Tokens of a text, the first of which has no name: what the others leave of the text, if anything."""
    first, *others = listed(choice.get("prompt_logprobs") or [{}])
    if first is not None:
        return []
    # the token of the text is the first of those at its place
    entries = [next(iter(other.values())) for other in others]
    rest = [token_of(entry["decoded_token"]) for entry in entries]
    joined = "".join(rest).encode()
    start = content[: len(content) - len(joined)].decode(errors="replace") if content.endswith(joined) else bos
    # the server has put one before ours
    start = "" if bos and rest[:1] == [bos] else start
    scores = [(logprob_of(entry["logprob"]), float(entry.get("rank") or math.nan)) for entry in entries]
    return [(start, math.nan, math.nan), *((token, *its) for token, its in zip(rest, scores, strict=True))]


def _aligned(content: bytes, tokens: Sequence[str]) -> list[int] | None:
    """Where each token ends in a text; a token before the text and a space that is put there take no place."""
    for n_before, added in product((0, 1), (b"", b" ")):
        ends = _ends(added + content, tokens[n_before:])
        if ends is not None:
            return [0] * n_before + [max(end - len(added), 0) for end in ends]
    return None


def _ends(content: bytes, tokens: Sequence[str]) -> list[int] | None:
    """Where each token of a text ends, up to the end of the text; None where they are not its tokens.

    Servers name parts of characters by U+FFFD, by ``bytes:``, or not at all: they end where their characters begin, the
    last of them where these end.
    """
    ends: list[int] = []
    at, n_parts = 0, 0
    for token in tokens:
        its = re.sub(r"\\x[0-9a-f]{2}", _PART, token[6:]) if token.startswith("bytes:") else token
        own, *parts = its.split(_PART)
        named = own.encode()
        found = content.find(named, at, at + _MOST_BYTES * n_parts + len(named)) if named else at
        if at == len(content) or found < 0:
            break
        if named:
            ends[-1:] = [found] * bool(ends)
            at, n_parts = found + len(named), 0
        n_parts += len(parts) or not named
        ends.append(at)
    if ends and len(content) - at <= _MOST_BYTES * n_parts:
        ends[-1] = at = len(content)
    return ends if at == len(content) else None
