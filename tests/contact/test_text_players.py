"""Models behind servers of others: one that answers at random, one that knows, one that answers half, one that is free.

The last layout is that of llama-cpp-python 0.3 (``python -m llama_cpp.server``), made by hand.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from shannon_game.estimators.comparison import HUMAN, estimate_perplexity
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import response_positions
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.text.prompts import shown
from tests.experiments.command import prepared
from tests.inference.api.fake_server import serving
from tests.inference.api.talking_server import TalkingEndpoint

STUDY = ("study.n_items=40", "study.n_reference_items=60", "study.vocab_size=300", "study.n_candidates=6")
STUDY = (*STUDY, "study.n_participants=6", "output.dpi=40")
_ASKED = re.compile(r"Text: (.*)\n\nA: (.*)\nB: (.*)\n(.*)", re.DOTALL)
Says = Callable[[str, str], tuple[str, dict[str, float]]]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def at_random(system: str, user: str) -> tuple[str, dict[str, float]]:
    # by 90% intervals one such server in ten is not said to be at chance, which tests of chance.py count: this is none
    draws = random.Random(f"2 {user}")
    p = draws.uniform(0.02, 0.98)
    return f"{draws.choice([1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99])}%", {"A": 0.9 * p, "B": 0.9 * (1 - p)}


def knowing(study: Any, share: float = 1.0) -> Says:
    """Gives the token of the text 80%, in words and by first tokens; of the other questions it says that it refuses."""
    pairs = zip(study["context"].to_numpy(), study["target_token"].to_numpy(), strict=True)
    true = {(str(context), shown(str(token))) for context, token in pairs}

    def says(system: str, user: str) -> tuple[str, dict[str, float]]:
        context, a, _, _ = _ASKED.search(user).groups()
        if random.Random(context).random() > share:
            return "I cannot say", {"I": 0.9}
        p = 0.8 if (context, a) in true else 0.2
        return f"{round(100 * p)}%", {"A": 0.9 * p, "B": 0.9 * (1 - p)}

    return says


def play(folder: Path, *more: str, says: Says | None = None, endpoint: Any = None) -> tuple[Any, Any]:
    """A server without a price, a budget or a key, as it is on this machine; and the study that it was asked about."""
    with serving(endpoint or TalkingEndpoint(says)) as server:
        given = [f"models.api.base_url={server.url}", "models.api.model=fake", "+models.api.kind=chat"]
        stores = [f"experiment.api_store={folder / 'answers.db'}", f"experiment.store={folder / 'store'}"]
        job = prepared("+exp=text_players", "model=[api]", *STUDY, *given, *stores, *more)
        assert "Authorization" not in {name for headers in server.headers for name in headers}
        return job.study, job.run()


@pytest.fixture(scope="module")
def study() -> Any:
    return prepared("+exp=perplexity", *STUDY).study


def by_way(result: Any) -> pd.DataFrame:
    return result.table[result.table["rounding"] == "none"].set_index("way")


@pytest.mark.parametrize("more", [("experiment.pairs_per_item=1",), ()])
def test_a_server_that_answers_at_random_is_at_chance(tmp_path: Path, more: tuple[str, ...]) -> None:
    asked, result = play(tmp_path, *more, says=at_random)
    table = by_way(result)
    assert table.loc[["options", "verbalised"], "standing"].tolist() == ["at chance", "at chance"]
    assert len(set(table["n_pairs"])) == 1

    # people stand beside it by their answers to the same pairs, and no perplexity of one pair per item is said
    def named(data: Any, kind: str) -> list[tuple[Any, ...]]:
        return [*zip(*(data[f"{kind}_{name}"].to_numpy().tolist() for name in ("item", "candidate")), strict=True)]

    where = set(named(result.dataset, "pair"))
    mine = asked.isel(response=[at for at, pair in enumerate(named(asked, "response")) if pair in where])
    assert table.loc["people", "perplexity"] == pytest.approx(estimate_perplexity(mine, HUMAN).perplexity)
    assert "perplexity" not in result.text.split("\n\n")[0].lower()


def test_a_server_that_knows_is_better_than_chance(tmp_path: Path, study: Any) -> None:
    _, result = play(tmp_path, says=knowing(study))
    table = by_way(result)
    assert table.loc[["options", "verbalised"], "standing"].tolist() == ["better than 50%"] * 2
    assert table.loc["verbalised", "points"] == pytest.approx(table.loc["options", "points"])
    # the score of 80% for the token of the text, weighted as the game pays
    logprob = study["target_logprob"].sel(model=study.attrs["generator"]).to_numpy()
    items = pd.unique(response_positions(study)[~study["automatic"].to_numpy()])
    expected = 1000 * (pd.Series(logprob[items]).map(math.exp) * math.log(1.6)).mean()
    assert table.loc["options", "points"] == pytest.approx(expected)


@pytest.mark.parametrize(("share", "is_apart"), [(0.8, False), (0.2, True)])
def test_everybody_is_cut_to_what_all_answered(tmp_path: Path, study: Any, share: float, is_apart: bool) -> None:
    _, result = play(tmp_path, "experiment.ways=verbalised", says=knowing(study, share))
    n = by_way(result)["n_pairs"]
    n_asked = by_way(result).loc["verbalised", "n_questions"] / 2
    # whoever answers less than half of the pairs takes them from nobody
    assert (n["people"] == n_asked) == is_apart
    assert (n["verbalised"] == n["people"] == n["baseline"]) != is_apart
    assert n["verbalised"] < n_asked


class LlamaCpp(TalkingEndpoint):
    """Names the model by its file, and lists a chat's tokens with bytes, as llama-cpp-python's server does."""

    def answer(self, path: str, body: dict[str, Any]) -> bytes:
        found = json.loads(super().answer(path, body))
        choice = found["choices"][0]
        for entry in (choice.get("logprobs") or {}).get("content", []):
            for token in (entry, *entry["top_logprobs"]):
                token["bytes"] = None
        about = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"]}
        return json.dumps(about | found).encode()


def test_the_layout_of_a_server_of_llama_cpp(tmp_path: Path, study: Any) -> None:
    _, result = play(tmp_path, endpoint=LlamaCpp(knowing(study)))
    assert by_way(result).loc[["options", "verbalised"], "standing"].tolist() == ["better than 50%"] * 2


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ([], "base_url model usd_per_million_input usd_per_million_output budget_usd OPENAI_API_KEY"),
        (["base_url=https://api.example.com/v1", "budget_usd=1"], "model usd_per_million_input usd_per_million_output"),
        (["base_url=https://api.example.com/v1", "model=m", "free=true"], ""),
        (["base_url=http://10.0.0.7:8000/v1", "model=m"], ""),
        (["base_url=http://gpu-box:8000/v1", "model=m"], ""),
        (["base_url=http://localhost:8000/v1", "model=m", "free=false"], "usd_per_million_input budget_usd"),
    ],
)
def test_all_that_an_endpoint_lacks_is_named_at_once(given: list[str], missing: str) -> None:
    own = ["+exp=text_players", "model=[api]", *STUDY, *(f"models.api.{each}" for each in given)]
    if not missing:
        assert prepared(*own).settings.models["api"].key_variable == ""
        return
    with pytest.raises(InputError) as caught:
        prepared(*own)
    names = [name if name.isupper() else f"models.api.{name}" for name in missing.split()]
    assert all(name in str(caught.value) for name in names)
    assert ("models.api.model" in str(caught.value)) == ("models.api.model" in names)


def test_a_key_is_sent_to_nobody_who_was_not_named_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    assert ApiSettings(base_url="http://localhost:8000/v1", model="m").key_variable == ""
    assert ApiSettings(base_url="https://llm.example.org/v1", model="m", free=True).key_variable == ""
    paid = dict.fromkeys(("usd_per_million_input", "usd_per_million_output", "budget_usd"), 1.0)
    assert ApiSettings(base_url="https://api.openai.com/v1", model="m", **paid).key_variable == "OPENAI_API_KEY"


def test_answers_of_a_batch_are_counted_while_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from shannon_game.inference import progress

    monkeypatch.setattr(progress, "_EVERY_SECONDS", 0.02)
    play(tmp_path, "experiment.pairs_per_item=1", "experiment.ways=verbalised", says=at_random)
    counts = {int(n) for n in re.findall(r"api answers (\d+) of \d+", capsys.readouterr().err)}
    assert len(counts - {0}) > 1
