"""Endpoints beside people: the scores of what they serve, what they cannot say, a kill, a budget, a key."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shannon_game as sg
from shannon_game.estimators.errors import InputError
from shannon_game.inference.api.store import BudgetSpentError
from tests.experiments.command import command, environment, run, run_experiment
from tests.inference.api.fake_server import KEY, FakeEndpoint, never, serving

READING = """\
name: spr
ability: reading_times
study: texts
settings: {path: texts.csv, id_field: id}
times: {path: spr.csv, columns: {participant: subject, text_id: text, word_num: place, time: rt}}
licence: CC0
citation: me (2026)
"""
ODDS = """\
name: game
ability: odds
study: simulated
settings: {n_items: 6, n_reference_items: 10, vocab_size: 200, n_candidates: 4, n_participants: 4}
licence: CC0
citation: me (2026)
"""
WORDS = """\
name: cloze
ability: next_words
study: cloze_table
settings: {path: answers.csv, columns: {context: sentence, response: said}}
licence: CC0
citation: me (2026)
"""
VOCABULARY = ["the", "old", "clock", "in", "hall", "struck", "nine", "nobody", "moved", "rain", "fell", "on", "roof"]
ALL = ["spr.yaml", "game.yaml", "cloze.yaml"]


class Echo(FakeEndpoint):
    """Scores the words of a prompt by their digests and the model's name; without `scores` it writes alone."""

    def __init__(self, *, scores: bool = True, **how: Any) -> None:
        super().__init__(never, **how)
        self.scores = scores

    def answer(self, path: str, body: dict[str, Any]) -> bytes:
        tokens = re.findall(r"\s*\S+", body["prompt"])
        names = [f"{body['model']} {token}".encode() for token in tokens]
        nats = [-int(hashlib.sha256(name).hexdigest()[:4], 16) / 8e3 for name in names]
        logprobs = {"tokens": [*tokens, "."], "token_logprobs": [None, *nats[1:], -1.0]}
        choice = {"text": "", "finish_reason": "length", "logprobs": logprobs if self.scores else None}
        return json.dumps({"model": body["model"], "choices": [choice]}).encode()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with reading times of 6 people, a comparison game, and cloze answers."""
    rng = np.random.default_rng(0)
    texts = {f"t{at}": rng.choice(VOCABULARY, 14).tolist() for at in range(6)}
    pd.DataFrame({"id": list(texts), "text": map(" ".join, texts.values())}).to_csv(tmp_path / "texts.csv", index=False)
    rows = [(f"s{s}", t, n, rng.normal(300, 30)) for s in range(6) for t in texts for n in range(1, 15)]
    pd.DataFrame(rows, columns=["subject", "text", "place", "rt"]).to_csv(tmp_path / "spr.csv", index=False)
    said = pd.DataFrame(
        {"sentence": ["the old", "rain fell on the"] * 4, "said": ["clock", "roof", "hall", "roof"] * 2}
    )
    said.to_csv(tmp_path / "answers.csv", index=False)
    for name, entry in zip(ALL, (READING, ODDS, WORDS), strict=True):
        (tmp_path / name).write_text(entry, encoding="utf-8")
    (tmp_path / "texts.txt").write_text(" ".join(rng.choice(VOCABULARY, 200)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def echo() -> Iterator[FakeEndpoint]:
    with serving(Echo()) as served:
        yield served


def asked(corpora: list[str], **models: Any) -> Any:
    return sg.beside_people(corpora=corpora, models=models, n_splits=2, n_replicates=20, store="store")


def behind(endpoint: FakeEndpoint, **more: Any) -> dict[str, Any]:
    return {"source": "api", "base_url": endpoint.url, "model": "real", "backoff_s": 0.0, **more}


def left_out(result: Any, name: str = "api") -> dict[str, str]:
    card = json.loads((result.files["cards"] / f"{name}.json").read_text(encoding="utf-8"))
    return {each["corpus"]: each["why"] for each in card["left_out"]}


@pytest.mark.torch
def test_a_model_has_the_scores_that_it_has_behind_an_endpoint(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from shannon_game.inference import lm
    from tests.inference.api.model_server import ModelEndpoint
    from tests.inference.lm import tiny_models

    tiny_models.save(home / "e", "llama", tiny_models.byte_level(), seed=4)
    path = home / "e" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"max_position_embeddings": 4096}))
    here = {"name": "here", "source": "folder", "path": str(home / "e"), "device": "cpu", "bos": tiny_models.END}
    local = lm.open_engine("here", lm.ModelSettings(**here))

    class Sums:
        """The same model, which tells nothing of the ends of words."""

        name = "sums"

        def encode(self, texts: list[str]) -> Any:
            return local.encode(texts)

        def score(self, texts: list[str]) -> list[Any]:
            return [row["logprob"] for row in local.score(texts)]

    # the bos is ours
    monkeypatch.setattr(ModelEndpoint, "start", "")
    with serving(ModelEndpoint(tiny_models.load(home / "e", bos=tiny_models.END))) as served:
        its = behind(served, bos=tiny_models.END)
        result = asked(ALL, api=its, here=here, sums=Sums())
        n_requests = served.n_requests
        again = asked(ALL, api=its)
    assert n_requests == served.n_requests > 0
    value = result.table.set_index(["score", "model"])["value"]
    assert value["gain", "api"] == pytest.approx(value["gain", "sums"], abs=1e-4)
    for score in ("points", "loss", "true_loss", "overconfidence"):
        assert value[score, "api"] == pytest.approx(value[score, "here"], abs=1e-4)
    same = again.table.set_index(["score", "model"])["value"]
    assert same["gain", "api"] == value["gain", "api"]
    why = left_out(result)
    assert set(why) == {"spr", "cloze"}
    assert "does not give probabilities of words" in why["cloze"]
    assert why["spr"].startswith("ends of words")


def test_a_card_names_model_and_host_and_a_run_its_cost(
    home: Path, echo: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    paid = {"free": False, "usd_per_million_input": 100.0, "usd_per_million_output": 0.0, "budget_usd": 9.0}
    result = asked(ALL[:1], api=behind(echo, **paid))
    text = (result.files["cards"] / "api.json").read_text(encoding="utf-8")
    engine = json.loads(text)["engine"]
    assert (engine["endpoint_model"], engine["host"]) == ("real", "127.0.0.1")
    assert not any(secret in text for secret in (KEY, echo.url, str(home), "api_answers"))
    assert re.search(r"store of paid answers .* has 6, \$0\.0\d*[1-9]", result.text)
    with pytest.raises(BudgetSpentError, match="a larger budget_usd goes on"):
        asked(ALL[:1], api=behind(echo, **paid | {"budget_usd": 0.0, "model": "other"}))
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(InputError, match="OPENAI_API_KEY is not set"):
        asked(ALL[:1], api=behind(echo, **paid))


@pytest.mark.parametrize(("kind", "reason"), [("chat", "kind: is 'chat'"), ("completions", "has no echo")])
def test_what_an_endpoint_cannot_do_is_left_out_with_the_reason(home: Path, kind: str, reason: str) -> None:
    ngram = {"source": "ngram", "path": "texts.txt", "order": 2}
    with serving(Echo(scores=False)) as served:
        result = asked(ALL, api=behind(served, kind=kind, model="m"), bigram=ngram)
    why = left_out(result)
    assert reason in why["spr"]
    assert reason in why["game"]
    assert "gain" in set(result.table.query("model == 'bigram'")["score"])
    assert not any(served.url in each for each in why.values())


def test_an_endpoint_that_is_down_ends_the_run(home: Path) -> None:
    with serving(Echo()) as served:
        gone = behind(served, max_attempts=2)
    with pytest.raises(InputError, match="no usable answer in 2 attempts"):
        asked(ALL[:1], api=gone)


@pytest.mark.subprocess
def test_a_killed_run_asks_nothing_again(home: Path) -> None:
    with serving(Echo(seconds=0.2)) as served:
        given = {"base_url": served.url, "model": "real"}
        ask = ["+exp=beside_people", "study.names=[spr.yaml,game.yaml]", "model=[api]", "+models.api.concurrency=2"]
        ask += [*(f"models.api.{name}={value}" for name, value in given.items()), "hydra.run.dir=out"]
        ask += ["experiment.n_replicates=20", "experiment.n_splits=2", "experiment.store=store"]
        with subprocess.Popen(command(*ask), cwd=home, env=environment(), stderr=subprocess.DEVNULL) as started:
            while started.poll() is None and served.n_requests < 5:
                time.sleep(0.02)
            started.send_signal(signal.SIGKILL)
        served.seconds = 0.0
        done = run(home, *ask)
        assert done.returncode == 0, done.stderr
        # those in flight at the kill were asked again
        assert served.n_requests - len(served.charged) <= 2
    assert re.search(r"documents under api: \d+ to do", done.stderr)
    assert (home / "out" / "cards" / "api.json").is_file()


def test_a_tuned_model_stands_beside_its_base(home: Path) -> None:
    """Two models of one server in one command, on the same texts and apart in the store."""
    with serving(Echo()) as served:
        models = [
            setting
            for name in ("base", "tuned")
            for setting in (f"+models.{name}.source=api", f"+models.{name}.base_url={served.url}")
        ]
        ask = ["+exp=beside_people", "study.names=[spr.yaml]", "model=[]", *models, "experiment.store=store"]
        ask += ["+models.base.model=base", "+models.tuned.model=tuned", "experiment.n_replicates=20"]
        result = run_experiment(*ask, "experiment.n_splits=2")
    value = result.table.set_index(["score", "model"])["value"]["gain"]
    assert {"base", "tuned"} <= {*value.index}
    assert value["base"] != value["tuned"]
