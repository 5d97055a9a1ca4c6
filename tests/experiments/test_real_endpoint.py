"""A real, if random, model behind an HTTP server of plain transformers: what comes through it is what it says here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from shannon_game.experiments import surprisal
from tests.experiments.command import TINY, prepared
from tests.experiments.tiny_language_models import named
from tests.inference.api.fake_server import serving

pytest.importorskip("torch")

from tests.inference.api.model_server import ModelEndpoint
from tests.inference.lm import tiny_models

pytestmark = pytest.mark.torch

SMALL = (*TINY, "study.n_items=4", "study.n_candidates=4", "experiment.pairs_per_item=2", "experiment.max_tokens=3")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model ``e`` that takes a whole prompt, and whose tokens end within a character as little as any."""
    folder = tmp_path_factory.mktemp("endpoint")
    tiny_models.save(folder / "e", "llama", tiny_models.byte_level(), seed=4)
    path = folder / "e" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"max_position_embeddings": 4096}))
    return folder


@pytest.fixture(scope="module")
def endpoint(root: Path) -> Iterator[ModelEndpoint]:
    model = tiny_models.load(root / "e", bos=tiny_models.END)
    with pytest.MonkeyPatch.context() as patch, serving(ModelEndpoint(model)) as served:
        patch.setenv("NO_PROXY", "*")
        yield served  # type: ignore[misc]


def through(endpoint: ModelEndpoint, *more: str) -> list[str]:
    """Overrides of the model behind the server, which needs no key and costs nothing."""
    given = {"base_url": endpoint.url, "model": "real", "usd_per_million_input": 0, "usd_per_million_output": 0}
    added = {"key_env": "''", "backoff_s": 0, "concurrency": 1}
    return [
        "model=[api]",
        *(f"models.api.{name}={value}" for name, value in (given | {"budget_usd": 0}).items()),
        *(f"+models.api.{name}={value}" for name, value in added.items()),
        *more,
    ]


def test_it_plays_the_comparison_game_as_it_does_here(root: Path, endpoint: ModelEndpoint, tmp_path: Path) -> None:
    """All tokens are listed, so that the probabilities of A and B are exact; greedy answers are the same texts."""
    n_tokens = len(tiny_models.byte_level())
    given = through(endpoint, f"+models.api.top_logprobs={n_tokens}", *named(root, "e", bos=tiny_models.END))
    stores = [f"experiment.{name}={tmp_path / name}" for name in ("store", "api_store")]
    result = prepared("+exp=text_players", *SMALL, *given, *stores, "experiment.belief=false").run()
    asked = result.tables["answers"].query("not automatic").set_index(["player", "way", "item", "draw", "target_side"])
    options = asked["probability_a"].unstack("player").xs("options")
    assert len(options) >= 4
    np.testing.assert_allclose(options["api"], options["e"], rtol=0, atol=1e-5)
    assert options["e"].std() > 1e-3
    answers = asked["answer"].unstack("player").xs("verbalised")
    assert answers["e"].str.len().min() > 0
    # here an answer ends with its line
    assert all(there.startswith(here) for here, there in zip(answers["e"], answers["api"], strict=True))


TEXTS = ("The old clock — struck nine.", "「你好」 said the naïve baker 🍞", "the the the", "é", "zebra")


@pytest.mark.parametrize("way", ["echo", "prompt_logprobs"])
@pytest.mark.parametrize("bos", ["ours", "the server's own", ""])
def test_texts_have_the_surprisal_of_the_engine(
    root: Path, endpoint: ModelEndpoint, tmp_path: Path, way: str, bos: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns that need the whole distribution are missing; the other ones are the same."""
    monkeypatch.setattr(ModelEndpoint, "start", tiny_models.END if bos == "the server's own" else "")
    its = {"base_url": endpoint.url, "model": "real", "key_env": "", "backoff_s": 0.0, "text_scores": way}
    its |= {"bos": tiny_models.END if bos == "ours" else ""}
    here = {"source": "folder", "path": str(root / "e"), "device": "cpu", "bos": tiny_models.END if bos else "none"}
    # the same calls have other answers now
    endpoint.answers.clear()
    before = endpoint.n_requests
    models = {"there": {"source": "api", **its}, "here": here}
    stores = {"store": tmp_path / "store", "api_store": tmp_path / "answers.db"}
    result = surprisal(TEXTS, models=models, **stores)
    assert endpoint.n_requests == before + len(TEXTS)
    for name, key in (("tokens", "token_num"), ("words", "word_num")):
        table = result.tables[name]
        there, own = (
            table[table["model"] == model].set_index(["document", key]).sort_index() for model in ("there", "here")
        )
        assert there.index.equals(own.index)
        same = ["surprisal_nats", "rank"] if name == "tokens" else ["sum_bits"]
        if way == "echo":
            assert there["rank"].isna().all()
            same = same[:1]
        np.testing.assert_allclose(there[same].astype(float), own[same].astype(float), rtol=0, atol=5e-6)
        assert there["entropy_nats"].isna().all()
    words = result.tables["words"].query("model == 'there'")
    # where a script writes no space, no token ends a word, and the sum is all
    known = words["surprisal_bits"].notna()
    assert words.loc[known, "word"].tolist() == (["「你好」"] if bos else [])
    np.testing.assert_allclose(words.loc[known, "surprisal_bits"], words.loc[known, "sum_bits"])
    totals = result.table.set_index("model")
    same = ["n_tokens", "loss_nats", "bits_per_byte", "bits_per_character", "bits_per_word"]
    np.testing.assert_allclose(
        totals.loc["there", same].astype(float), totals.loc["here", same].astype(float), atol=1e-5
    )
    again = surprisal(TEXTS, models=models, **stores)
    assert endpoint.n_requests == before + len(TEXTS)
    assert again.tables["tokens"].equals(result.tables["tokens"])
