"""An endpoint that fails, a process that is killed, and a purse that is limited."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.estimators.rankings import score_study
from shannon_game.inference.api.calls import call_for, tokens_paid
from shannon_game.inference.api.keys import key_of
from shannon_game.inference.api.scoring import TextWindow, estimate_cost, score_windows
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.api.store import AnswerStore, BudgetSpentError
from shannon_game.inference.settings import Settings, settings_from
from tests.inference.api.fake_server import FAULTS, KEY, FakeEndpoint, completion, never, ranking, serving, three_in_ten

ROOT = Path(__file__).parents[3]


class Holder(Settings):
    """Settings with settings of endpoints in them, as an experiment has them."""

    models: Mapping[str, ApiSettings]


def settings(url: str, **changes) -> ApiSettings:
    default = {
        "model": "fake",
        "key_env": "FAKE_KEY",
        "top_logprobs": 5,
        "reuse": False,
        "timeout_s": 1.0,
        "backoff_s": 0.005,
        "backoff_max_s": 0.02,
        "max_attempts": 12,
        "concurrency": 8,
        "usd_per_million_input": 100.0,
        "usd_per_million_output": 100.0,
        "budget_usd": 100.0,
    }
    return ApiSettings(base_url=url, **{**default, **changes})


def windows(n_windows: int = 3, n_tokens: int = 10, sliding: bool = False) -> list[TextWindow]:
    """Reference text that the fake model itself often predicts."""
    found = []
    for number in range(n_windows):
        context = (f"{number}", " sat", " on", " mat")
        half = n_tokens // 2
        tokens = [sampled for sampled, _ in completion("".join(context), half, 5)] + [" zebra"]
        tokens += [sampled for sampled, _ in completion("".join((*context, *tokens)), n_tokens - half - 1, 5)]
        found.append(TextWindow("text", f"window {number}", context, tuple(tokens), sliding=sliding))
    return found


def test_what_is_free_needs_no_budget(tmp_path: Path) -> None:
    paid = dict.fromkeys(("usd_per_million_input", "usd_per_million_output", "budget_usd"))
    with serving(FakeEndpoint(never)) as endpoint:
        study = score_windows(windows(), settings(endpoint.url, **paid), tmp_path / "store.db")
        assert study.sizes["token"] == 30
        priced = settings(endpoint.url, **paid | {"usd_per_million_input": 1.0})
        with pytest.raises(InputError, match=r"budget_usd: is \$0.0000"):
            score_windows(windows(), priced, tmp_path / "other.db")


def test_rankings_are_those_of_the_text_before(tmp_path: Path) -> None:
    given = windows(sliding=True)
    with serving(FakeEndpoint(never)) as endpoint:
        study = score_windows(given, settings(endpoint.url), tmp_path / "store.db")
    assert study.sizes["token"] == 30
    flat = [(window, position) for window in given for position in range(10)]
    for row, (window, position) in enumerate(flat):
        expected = ranking(window.before(position), 5)
        assert study["ranked_token"].to_numpy()[row].tolist() == [token for token, _ in expected]
        np.testing.assert_allclose(study["ranked_logprob"].to_numpy()[row], [value for _, value in expected])
    assert set(study["context_length"].to_numpy()) == {4}
    assert score_study(study).average.max() == 1
    assert endpoint.most_at_once <= 8
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("kind", ["completions", "chat"])
def test_reuse_never_conditions_on_other_text_than_the_reference(tmp_path: Path, kind: str) -> None:
    """Growing windows: with and without reuse the rankings are the same, for fewer calls."""
    given = windows(4, 20, sliding=False)
    tables = {}
    for reuse in (False, True):
        with serving(FakeEndpoint(never)) as endpoint:
            chosen = settings(endpoint.url, reuse=reuse, max_tokens=6, kind=kind)
            tables[reuse] = score_windows(given, chosen, tmp_path / f"{reuse}.db")
        if reuse:
            assert sum(endpoint.charged.values()) < 40
        else:
            assert sum(endpoint.charged.values()) == 80
    for name in ("ranked_token", "ranked_logprob"):
        np.testing.assert_array_equal(tables[True][name].to_numpy(), tables[False][name].to_numpy())
    # the fake model samples another token than its best one now and then: the rule of the top-ranked token goes wrong
    wrong = 0
    for window in given:
        for position, reference in enumerate(window.reference):
            sampled, ranked = completion(window.before(position), 1, 5)[0]
            wrong += ranked[0][0] == reference != sampled or (sampled == reference != ranked[0][0])
    assert wrong


def test_an_exhaustive_run_ends_after_so_many_calls(tmp_path: Path) -> None:
    """What it scores is the beginning of what a whole run scores; the last call is used to its end."""
    given, shown = windows(3, 20), []
    with serving(FakeEndpoint(never)) as endpoint:
        chosen = settings(endpoint.url, reuse=True, max_tokens=6)
        whole = score_windows(given, chosen, tmp_path / "whole.db").to_dataframe()
    with serving(FakeEndpoint(never)) as endpoint:
        few = chosen.changed(base_url=endpoint.url, calls_per_window=2)
        assert estimate_cost(given, few).n_calls_most == 6
        study = score_windows(given, few, tmp_path / "few.db", progress=lambda n, total: shown.append((n, total)))
        assert sum(endpoint.charged.values()) == 6
    assert shown[-1] == (60, 60)
    keys = ["window", "position", "rank"]
    both = study.to_dataframe().reset_index().merge(whole.reset_index(), on=keys, suffixes=("", "_whole"))
    assert (both["ranked_token"] == both["ranked_token_whole"]).all()
    n_tokens = study.to_dataframe().groupby("window")["position"].nunique()
    assert len(both) == len(study.to_dataframe())
    assert n_tokens.min() >= 2
    assert n_tokens.max() > 2


def test_faults_lose_no_call_and_double_none(tmp_path: Path) -> None:
    with serving(FakeEndpoint(three_in_ten(1))) as endpoint:
        study = score_windows(windows(8, 10), settings(endpoint.url), tmp_path / "store.db")
        assert set(endpoint.faults) == set(FAULTS)
        assert list(endpoint.charged.values()) == [1] * 80
        with AnswerStore(tmp_path / "store.db") as store:
            ledger = store.ledger()
        assert ledger.n_answers == 80
        # 10 tokens in and 1 out at $100 a million
        assert ledger.paid_usd == pytest.approx(80 * 11e-4)
        unsure = sum(endpoint.faults[name] for name in ("timeout", "truncated", "broken off", "no logprobs"))
        # on a busy machine an answer may be late by itself
        assert unsure <= ledger.n_unsure <= unsure + 5
        before = endpoint.n_requests
        again = score_windows(windows(8, 10), settings(endpoint.url), tmp_path / "store.db")
        assert endpoint.n_requests == before
    assert again.drop_attrs().equals(study.drop_attrs())
    assert any(note["level"] == "warning" and f"{ledger.n_unsure} calls" in note["text"] for note in notes(study))


RUN = """
import json, sys
from pathlib import Path
from shannon_game.inference.api.scoring import score_windows
from tests.inference.api.test_api import settings, windows
n_windows, n_tokens, chosen = json.loads(sys.argv[3])
study = score_windows(windows(n_windows, n_tokens), settings(sys.argv[1], **chosen), Path(sys.argv[2]))
print(study.sizes["token"])
"""


def started(
    endpoint: FakeEndpoint, store: Path, n_windows: int = 20, n_tokens: int = 10, **chosen: float
) -> subprocess.Popen[str]:
    """A process that scores windows."""
    return subprocess.Popen(
        [sys.executable, "-c", RUN, endpoint.url, str(store), json.dumps([n_windows, n_tokens, chosen])],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def killed_and_run_again(endpoint: FakeEndpoint, store: Path, **chosen: float) -> set[str]:
    """Kill a run and start it again; gives the keys whose answers it had stored when it was killed."""
    process = started(endpoint, store, **chosen)
    deadline = time.monotonic() + 600
    while endpoint.n_requests < 80 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.005)
    assert process.poll() is None, process.communicate()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert 80 <= endpoint.n_requests < 250
    stored = stored_keys(store)
    assert score_windows(windows(20, 10), settings(endpoint.url, **chosen), store).sizes["token"] == 200
    return stored


def stored_keys(store: Path) -> set[str]:
    connection = sqlite3.connect(store)
    found = {row[0] for row in connection.execute("SELECT key FROM answers")}
    connection.close()
    return found


@pytest.mark.subprocess
def test_a_killed_run_with_faults_loses_no_paid_call_and_doubles_none(tmp_path: Path) -> None:
    """200 calls, 30% faults, one SIGKILL, an endpoint that knows idempotency keys."""
    with serving(FakeEndpoint(three_in_ten(2), seconds=0.005)) as endpoint:
        killed_and_run_again(endpoint, tmp_path / "store.db")
        assert len(endpoint.charged) == 200
        assert set(endpoint.charged.values()) == {1}
        assert sum(endpoint.faults.values()) / endpoint.n_requests == pytest.approx(0.3, abs=0.1)
        keys = set(endpoint.charged)
    assert stored_keys(tmp_path / "store.db") == keys


def test_hard_budget(tmp_path: Path) -> None:
    """A call may cost 100 bytes' worth at most; the run stops before the budget, keeps its answers and goes on."""
    store = tmp_path / "store.db"
    with serving(FakeEndpoint(never)) as endpoint:
        with pytest.raises(
            InputError, match=r"\$0.0010, but these windows cost \$0.0285 to \$0.0285; nothing was asked"
        ):
            score_windows(windows(), settings(endpoint.url, budget_usd=0.001), store)
        assert endpoint.n_requests == 0
        with pytest.raises(BudgetSpentError, match="a larger budget_usd goes on"):
            score_windows(windows(), settings(endpoint.url, budget_usd=0.03), store)
        paid = sum(endpoint.charged.values())
        assert 0 < paid < 30
        assert paid * 11e-4 <= 0.03
        with AnswerStore(store) as answers:
            assert answers.ledger().most_usd <= 0.03
        score_windows(windows(), settings(endpoint.url), store)
        assert sum(endpoint.charged.values()) == 30


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base_url": "ftp://x"}, "base_url: is 'ftp://x'"),
        ({"base_url": "https://me:pw@host/v1"}, "base_url: has a name, password"),
        ({"base_url": "http://far.example/v1"}, "a key is not sent over plain http"),
        ({"base_url": "http://localhost.far.example/v1"}, "a key is not sent over plain http"),
        ({"base_url": "http://128.0.0.1/v1"}, "a key is not sent over plain http"),
        ({"base_url": "https://host:99999/v1"}, "should be https://HOST/v1"),
        ({"budget_usd": float("nan")}, "budget_usd: is nan"),
    ],
)
def test_wrong_settings(changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ApiSettings(**{"base_url": "https://host/v1", "model": "m", **changes})


@pytest.mark.parametrize("given", [KEY, KEY.upper(), 12345, " FAKE_KEY", "1KEY", "my_key", [KEY]])
def test_what_is_given_for_the_name_of_the_variable_is_not_shown(given: object) -> None:
    address = {"base_url": "https://host/v1", "model": "m", "usd_per_million_input": 1.0}
    own = {**address, "key_env": given}
    for cls, its in ((ApiSettings, own), (Holder, {"models": {"api": own}})):
        with pytest.raises(InputError, match="key_env: should be the NAME of an environment variable") as caught:
            settings_from(cls, its)
        assert str(given) not in str(caught.value)
    with pytest.raises(InputError, match="unknown setting 'api_key'") as caught:
        ApiSettings(**address, api_key=given)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("held", "key_env", "message"),
    [
        ("", "FAKE_KEY", "the environment variable FAKE_KEY is not set"),
        ("sk-né", "FAKE_KEY", "FAKE_KEY holds spaces, line breaks or letters that no key has"),
        *(
            (held, "FAKE_KEY", "FAKE_KEY holds spaces, line breaks or")
            for held in ("sk-a\nb", "sk-two words", "sk-\x07")
        ),
        ("sk-good", "AKIAIOSFODNN7EXAMPLE", "the environment variable that key_env names is not set"),
    ],
)
def test_a_key_that_cannot_be_used_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, held: str, key_env: str, message: str
) -> None:
    monkeypatch.setenv("FAKE_KEY", held)
    with pytest.raises(InputError, match=message) as caught:
        key_of(settings("https://host", key_env=key_env))
    assert not held or held not in str(caught.value)
    assert "AKIA" not in str(caught.value)
    assert key_of(settings("https://host", key_env="")) == ""


TEXTS = st.text(max_size=200)
COUNTS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3))


@given(context=TEXTS, written=TEXTS, told=st.tuples(COUNTS, COUNTS), kind=st.sampled_from(["completions", "chat"]))
def test_what_is_booked_is_never_less_than_texts_can_cost(context: str, written: str, told: Any, kind: str) -> None:
    call = call_for(settings("https://host/v1", kind=kind), context)
    choice = {"text": written} if kind == "completions" else {"message": {"content": written}}
    usage = dict(zip(("prompt_tokens", "completion_tokens"), told, strict=True))
    booked = tokens_paid(call, {"choices": [choice], "usage": usage})
    for count, says, text, most in zip(
        booked, told, (context, written), (call.most_input_tokens, call.most_output_tokens), strict=True
    ):
        assert count >= max(len(text) / 8, 1)
        # what can be is booked as it is
        if type(says) is int and 200 <= says <= 10**12:
            assert count == says
        elif type(says) is not int or says < 1:
            assert count >= most


def test_identity_of_a_call() -> None:
    first = settings("https://host/v1")
    assert call_for(first, "text").key == call_for(settings("https://host/v1/", timeout_s=9.0), "text").key
    for other in (settings("https://other/v1"), settings("https://host/v1", temperature=1.0)):
        assert call_for(other, "text").key != call_for(first, "text").key
    assert call_for(first, "é").most_input_tokens == 3
    # another key would pay again for every answer on disk
    plain = call_for(ApiSettings(base_url="https://host/v1", model="m"), "text")
    assert plain.key == "c088ffef79bb148f1655ac1b25f258a4e8f400f7d6ba3bce75a8b2be9dd3e81c"
    # 1 and 1.0 are one setting
    whole, broken = (call_for(settings("https://host/v1", temperature=value), "text") for value in (1, 1.0))
    assert whole == broken


@pytest.mark.subprocess
def test_without_idempotency_only_what_was_in_flight_can_be_paid_twice(tmp_path: Path) -> None:
    with serving(FakeEndpoint(three_in_ten(3, ("429", "500")), idempotent=False, seconds=0.01)) as endpoint:
        # nobody gives a call up: what a loaded machine answers late is waited for
        stored = killed_and_run_again(endpoint, tmp_path / "store.db", timeout_s=600.0)
        assert len(endpoint.charged) == 200
        assert set(endpoint.charged.values()) <= {1, 2}
        twice = {key for key, n in endpoint.charged.items() if n == 2}
    with AnswerStore(tmp_path / "store.db") as store:
        ledger = store.ledger()
    # calls that the kill found in flight, no more than are sent at once, and every one of them is in the books
    assert not twice & stored
    assert len(twice) <= ledger.n_unsure <= 8
    assert ledger.most_usd >= sum(endpoint.charged.values()) * 11e-4


def test_hosts_of_this_machine() -> None:
    for host, here in (("localhost", True), ("127.0.0.9", True), ("[::1]", True), ("10.0.0.1", False), ("a.b", False)):
        assert settings(f"https://{host}:1/v1").is_here == here
    assert settings("http://127.0.0.9/v1").key_env
