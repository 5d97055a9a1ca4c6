"""Tokens of a text in the answers of servers, and answers in which they are not."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.inference.api.calls import UnusableAnswerError, scoring_call, tokens_paid
from shannon_game.inference.api.client import UnusableCallError
from shannon_game.inference.api.echo import TextTokens, text_tokens
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.api.stopping import ask_each
from shannon_game.inference.api.store import Ledger
from tests.inference.api.fake_server import KEY, FakeEndpoint, never, serving
from tests.inference.api.hostile_server import hostile, says
from tests.inference.api.test_api import settings

LOCAL = "http://localhost/v1"


def echoed(tokens: list[str], **more: Any) -> dict[str, Any]:
    """An answer with echo: nothing for the first token, -1, -2 and so on for the others."""
    logprobs = [None, *(-float(at) for at in range(1, len(tokens)))]
    return {"choices": [{"logprobs": {"tokens": tokens, "token_logprobs": logprobs}, **more}]}


def prompted(tokens: list[str]) -> dict[str, Any]:
    """An answer with prompt_logprobs, which names every token but the first."""
    entries = [{"7": {"logprob": -float(at), "rank": at, "decoded_token": its}} for at, its in enumerate(tokens, 1)]
    return {"choices": [{"prompt_logprobs": [None, *entries]}]}


def read(answer: dict[str, Any], text: str, bos: str = "") -> TextTokens:
    way = "prompt_logprobs" if "prompt_logprobs" in answer["choices"][0] else "echo"
    return text_tokens(answer, scoring_call(settings(LOCAL, bos=bos, text_scores=way), text), bos=bos)


_SPOKEN = ["One", " two", " three", " four", " five", " six"]


def by_llama_cpp(best: list[str], finish: str, *written: str) -> dict[str, Any]:
    """As llama-cpp-python 0.3.36 answers: never with its own bos, each token with the most probable one there."""
    answer = echoed([*_SPOKEN, *written], finish_reason=finish)
    tops = [{its: -0.1} | {token: -9.0} for its, token in zip(best, [*_SPOKEN, *written][1:], strict=True)]
    answer["choices"][0]["logprobs"]["top_logprobs"] = [None, *tops]
    return answer


@pytest.mark.parametrize("finish", ["length", "stop"])
def test_log_probabilities_of_the_next_tokens_are_refused(finish: str) -> None:
    """Without the model's own bos its server gives those, and after an end of text nothing else tells."""
    text = "".join(_SPOKEN)
    shifted = by_llama_cpp([*_SPOKEN[2:], ""], finish)
    for bos in ("", "<b>"):
        with pytest.raises(UnusableAnswerError, match="of the tokens after those that it names"):
            read(shifted, text, bos)
    written = [" seven"] * (finish == "length")
    own = read(by_llama_cpp([*_SPOKEN[1:], *written], finish, *written), text, "<b>")
    assert (own.bos, own.token, own.place[0]) == ("", tuple(_SPOKEN[1:]), 3)
    assert own.logprob == tuple(-float(at) for at in range(1, 6))


@pytest.mark.parametrize(
    ("answer", "text", "bos", "place", "stands_before"),
    [
        # nothing before the text, and what was written after it
        (echoed(["A", " dog", "!"]), "A dog", "", (1, 5), ""),
        (prompted([" dog"]), "A dog", "", (1, 5), ""),
        # the server's own token, named or not; a space that its tokenizer puts before a text
        (echoed(["<s>", "A", " dog"]), "A dog", "", (0, 1, 5), "<s>"),
        (prompted(["A", " dog"]), "A dog", "", (0, 1, 5), "the server's own"),
        # ours, alone or after the server's own
        (echoed(["<b>", "A", " dog"]), "A dog", "<b>", (0, 1, 5), "<b>"),
        (echoed(["<s>", "<b>", "A", " dog"]), "A dog", "<b>", (0, 1, 5), "<b>"),
        (prompted(["A", " dog"]), "A dog", "<b>", (0, 1, 5), "<b>"),
        # parts of characters: as bytes, as nothing, as a mark for them
        (echoed(["<s>", "a", "bytes: \\xe2\\x80", "bytes:\\x94", "b"]), "a —b", "", (0, 1, 2, 5, 6), "<s>"),
        (echoed(["<s>", "a", " ", "", "—", "b"]), "a —b", "", (0, 1, 2, 2, 5, 6), "<s>"),
        (echoed(["<s>", "a", " \ufffd", "\ufffd", "b"]), "a —b", "", (0, 1, 2, 5, 6), "<s>"),
        (echoed(["<s>", "a", "\ufffd", "\ufffd", "\ufffd"], finish_reason="length"), "aé", "", (0, 1, 1, 3), "<s>"),
    ],
)
def test_tokens_have_their_places(
    answer: dict[str, Any], text: str, bos: str, place: tuple[int, ...], stands_before: str
) -> None:
    found = read(answer, text, bos)
    assert found.place == place
    assert found.bos == stands_before
    assert len(found.logprob) == len(found.token) == len(place) - 1
    # in the order of the answer, without what stands before the text
    assert list(found.logprob) == sorted(found.logprob, reverse=True)


def score_texts(
    texts: list[str], chosen: ApiSettings, store: Path
) -> tuple[list[TextTokens | UnusableCallError], Ledger]:
    calls = [scoring_call(chosen, text) for text in texts]
    return ask_each(calls, chosen, store, partial(text_tokens, bos=chosen.bos))


NONE = {"choices": [{"text": "!", "logprobs": None}]}
NO_ECHO = "no log-probabilities of the text"


@pytest.mark.parametrize(
    ("answer", "bos", "message"),
    [
        (NONE, "", NO_ECHO),
        ({"choices": [{"logprobs": {"tokens": ["!"], "token_logprobs": [-1.0]}}]}, "", NO_ECHO),
        (echoed(["a", " dog"]), "", "do not spell the text"),
        (echoed(["<", "b>", "A", " dog"]), "<b>", "is no token of the model"),
        ({"choices": [{"logprobs": {"tokens": ["A", " dog"], "token_logprobs": [None, 0.5]}}]}, "", "above 0"),
        ({"choices": [{"logprobs": {"tokens": ["A", " dog"], "token_logprobs": [None, None]}}]}, "", "no log-prob"),
        ({"choices": [{"logprobs": {"tokens": ["A", " dog"], "token_logprobs": [None]}}]}, "", "cannot be read"),
    ],
)
def test_answers_without_the_text_are_refused(answer: dict[str, Any], bos: str, message: str) -> None:
    with pytest.raises(UnusableAnswerError, match=message):
        read(answer, "A dog", bos)


def test_servers_without_echo_are_refused_in_one_line(tmp_path: Path) -> None:
    refusing = says({"error": {"message": "Only no echo is supported"}}, "400 Bad Request")
    with hostile({"ignores": says(NONE), "refuses": refusing}) as (url, counted):
        for name, message in (("ignores", NO_ECHO), ("refuses", "HTTP 400: .*no echo")):
            with pytest.raises(InputError) as caught:
                score_texts(["A dog"], settings(f"{url}/{name}/v1", concurrency=1), tmp_path / f"{name}.db")
            assert re.search(message, str(caught.value))
            assert str(caught.value).isprintable()
            assert KEY not in str(caught.value)
        assert counted == {"ignores": 2, "refuses": 1}
    with pytest.raises(InputError, match="kind"):
        score_texts(["A dog"], settings(LOCAL, kind="chat"), tmp_path / "s.db")


def test_one_text_that_cannot_be_scored_does_not_end_the_others_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    class Echo(FakeEndpoint):
        def answer(self, path: str, body: dict[str, Any]) -> bytes:
            tokens = ["<s>", *re.findall(r" ?\w+", body["prompt"].replace("three", "thr")), "!"]
            usage = {"prompt_tokens": 3, "completion_tokens": 1}
            return json.dumps(echoed(tokens) | {"usage": usage}).encode()

    texts = ["one dog", "two dogs", "three dogs", "one dog"]
    with serving(Echo(never)) as endpoint:
        for _ in range(2):
            found, ledger = score_texts(texts, settings(endpoint.url, concurrency=1), tmp_path / "s.db")
            assert [isinstance(its, UnusableCallError) for its in found] == [False, False, True, False]
            assert endpoint.n_requests == 4
            assert (ledger.n_answers, ledger.n_apart) == (2, 2)
        # $100 a million tokens: the text is input, and one token was written
        assert ledger.paid_usd == pytest.approx(2 * 4e-4)
        assert KEY.encode() not in (tmp_path / "s.db").read_bytes()


def test_what_comes_back_of_a_text_is_not_paid_as_written() -> None:
    call = scoring_call(settings(LOCAL), "A dog")
    assert tokens_paid(call, echoed(["A"] * 300, text="A dog" * 100)) == (len("A dog") + 1, 1)
