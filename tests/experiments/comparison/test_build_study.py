"""Building a comparison study: against one forward pass a context, from the store, in shards, by strings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.experiments.documents.contexts import Cut, cut_contexts
from shannon_game.experiments.harness.outputs import write_outputs
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.studies.comparison.file import comparison_file
from shannon_game.experiments.studies.comparison.lm_game import lm_game
from shannon_game.inference.lm.language_model import LanguageModel, encode, token_strings
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.lm.translation import shares_tokenizer, translate
from tests.experiments.command import config, prepared, run_experiment
from tests.experiments.tiny_language_models import cached_loading, named
from tests.inference.lm import tiny_models
from tests.same import assert_same_study

pytestmark = pytest.mark.torch

pytest.importorskip("torch")


@pytest.fixture(autouse=True, scope="module")
def _loaded_once() -> Iterator[None]:
    with cached_loading("shannon_game.experiments.comparison.build_study.experiment"):
        yield


def overrides(root: Path, store: Path, *names: str) -> list[str]:
    return [
        "+exp=build_study",
        "study=texts",
        f"study.path={root / 'texts'}",
        "generator=study",
        "generator.name=a",
        *named(root, *(names or ("a", "b"))),
        f"experiment.store={store}",
        "experiment.n_contexts=12",
        "experiment.max_context_tokens=30",
        "experiment.n_candidates=9",
        "experiment.items_per_batch=5",
        "output.dpi=40",
    ]


def build(*settings: str) -> ExperimentResult:
    return run_experiment(*settings)


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> ExperimentResult:
    return build(*overrides(root, tmp_path_factory.mktemp("store")), "experiment.reference=true")


def written(result: ExperimentResult, folder: Path) -> xr.Dataset:
    """The study as its file has it."""
    result.writers["study.nc"](folder / "study.nc")
    return comparison_file(path=folder / "study.nc")


def one_by_one(model: LanguageModel, contexts: list[list[int]]) -> np.ndarray:
    """Log-probabilities of the next token, one plain forward pass a context."""
    import torch

    rows = []
    with torch.inference_mode():
        for context in contexts:
            tokens = torch.tensor([[model.bos_id, *context]])
            rows.append(torch.log_softmax(model.module(tokens).logits[0, -1].double(), dim=-1).numpy())
    return np.array(rows)


def contexts_of(study: xr.Dataset, model: LanguageModel) -> list[list[int]]:
    return encode(model, study["context"].to_numpy().tolist())


def test_every_number_against_one_pass_a_context(root: Path, built: ExperimentResult, tmp_path: Path) -> None:
    study = written(built, tmp_path)
    models = {name: tiny_models.load(root / name, bos=tiny_models.END) for name in ("a", "b")}
    texts = {path.relative_to(root / "texts").as_posix(): path.read_text() for path in root.glob("texts/*/*.txt")}
    generator = models["a"]
    whole = {name: texts[name] for name in study["document"].to_numpy()}
    tokens = {name: encode(generator, [text])[0] for name, text in whole.items()}
    contexts = [
        tokens[name][:position]
        for name, position in zip(study["document"].to_numpy(), study["target_position"].to_numpy(), strict=True)
    ]
    for i, (context, name) in enumerate(zip(contexts, study["document"].to_numpy(), strict=True)):
        assert 1 <= len(context) <= 30
        shown = study["context"].to_numpy()[i]
        assert whole[name].startswith(shown + study["target_token"].to_numpy()[i])
        assert study["target_id"].to_numpy()[i] == tokens[name][len(context)]
    exact = {name: one_by_one(model, contexts) for name, model in models.items()}
    rows = np.arange(len(contexts))
    for name, logprob in exact.items():
        its = study.sel(model=name)
        np.testing.assert_allclose(its["target_logprob"], logprob[rows, study["target_id"]], atol=1e-4)
        candidates = np.take_along_axis(logprob, study["candidate_id"].to_numpy(), axis=1)
        np.testing.assert_allclose(its["candidate_logprob"], candidates, atol=1e-4)
        np.testing.assert_allclose(its["entropy_nats"], -(np.exp(logprob) * logprob).sum(axis=1), atol=1e-4)
        kl = (np.exp(logprob) * (logprob - exact["a"])).sum(axis=1)
        np.testing.assert_allclose(its["kl_nats"], kl, atol=1e-4)
    np.testing.assert_allclose(study["reference_logprob"], exact["a"], atol=1e-4)
    strings = token_strings(generator, study["candidate_id"].to_numpy().ravel().tolist())
    assert study["candidate_token"].to_numpy().ravel().tolist() == strings
    assert study.attrs["generator"] == "a"


def test_candidates_are_independent_draws_from_the_generator(root: Path, tmp_path: Path) -> None:
    result = build(
        *overrides(root, tmp_path, "a"), "experiment.n_contexts=1", "experiment.n_candidates=20000",
        "experiment.max_context_tokens=3", "experiment.reference=true",
    )  # fmt: skip
    probability = np.exp(result.dataset["reference_logprob"].to_numpy()[0].astype(float))
    counts = np.bincount(result.dataset["candidate_id"].to_numpy()[0], minlength=len(probability))
    common = probability * 20_000 > 5
    expected = np.append(probability[common], probability[~common].sum()) * 20_000
    found = np.append(counts[common], counts[~common].sum())
    statistic = ((found - expected) ** 2 / expected).sum()
    # 5 standard deviations of a chi-square with this many degrees of freedom
    degrees = len(found) - 1
    assert abs(statistic - degrees) < 5 * np.sqrt(2 * degrees)


def test_a_second_run_computes_nothing(root: Path, tmp_path: Path) -> None:
    first = build(*overrides(root, tmp_path))
    # 12 contexts: candidates, log-probabilities and divergences of b
    assert "36 results were computed, 0 were in the store" in first.text
    second = build(*overrides(root, tmp_path))
    assert "0 results were computed, 36 were in the store" in second.text
    pd.testing.assert_frame_equal(first.table, second.table)
    assert_same_study(second.dataset, first.dataset)
    # more contexts: only the new ones
    third = build(*overrides(root, tmp_path), "experiment.n_contexts=14")
    assert "6 results were computed, 36 were in the store" in third.text
    other = build(*overrides(root, tmp_path), "seed=1")
    assert not np.array_equal(other.dataset["candidate_id"], first.dataset["candidate_id"])


def test_shards_add_up_to_one_run(root: Path, tmp_path: Path, built: ExperimentResult) -> None:
    settings = [*overrides(root, tmp_path), "experiment.reference=true"]
    n_items = 0
    for shard in ("0/2", "1/2"):
        part = build(*settings, f"experiment.shard={shard}")
        assert not part.files
        assert f"shard {shard} alone" in part.warnings[0]
        n_items += part.dataset.sizes["item"]
    assert n_items == 12
    whole = build(*settings)
    assert "0 results were computed, 48 were in the store" in whole.text
    assert set(whole.files) == {"study.nc", "lm_game"}
    # in another batch a draw next to an edge of the distribution may fall on its other side
    assert (whole.dataset["candidate_id"] != built.dataset["candidate_id"]).sum() <= 2
    assert whole.dataset["document"].to_numpy().tolist() == built.dataset["document"].to_numpy().tolist()
    for name in ("target_logprob", "entropy_nats", "kl_nats", "reference_logprob"):
        np.testing.assert_allclose(whole.dataset[name], built.dataset[name], atol=1e-4)


def test_the_files_are_studies_that_experiments_take(built: ExperimentResult, root: Path, tmp_path: Path) -> None:
    cfg = config(*overrides(root, tmp_path / "store"))
    documents = prepared(*overrides(root, tmp_path / "store")).study
    out = tmp_path / "out"
    out.mkdir()
    write_outputs(out, cfg, documents, built)
    file = comparison_file(path=out / "study.nc")
    assert "\x00" in file["token"].to_numpy().tolist()
    with xr.open_dataset(out / "results.nc", engine="h5netcdf") as results:
        assert results["document"].to_numpy().tolist() == file["document"].to_numpy().tolist()
        np.testing.assert_array_equal(results["candidate_logprob"], file["candidate_logprob"])
    game = lm_game(root=out / "lm_game", sets={"built": (0, 11)}, reference=(0, 11), answers=False)
    np.testing.assert_array_equal(game["candidate_logprob"], built.dataset["candidate_logprob"])
    assert game["candidate_token"].to_numpy().tolist() == file["candidate_token"].to_numpy().tolist()
    settings = ["study=comparison_file", f"study.path={out / 'study.nc'}", "rounding=none"]
    played = run_experiment("+exp=perplexity", *settings)
    columns = ["gap_nats", "true_loss_nats", "perplexity", "error_nats"]
    pd.testing.assert_frame_equal(played.table[columns], built.table[columns])
    assert played.figures["perplexity"]
    sizes = run_experiment("+exp=perplexity", "vary=sample_size", *settings, "n=[1,4]", "experiment.n_repeats=5")
    assert sizes.table["kl_is_exact"].all()
    fewer = run_experiment("+exp=perplexity", *settings, "n=4")
    assert set(fewer.table["n_responses"]) == {48}


# ------------------------------------------------------------------------------------- other tokenizers


def test_a_model_with_other_numbers_for_the_same_tokens_is_asked_by_string(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'c' has another tokenizer .* is special, or part of a character; leave the"):
        build(*overrides(root, tmp_path, "a", "c"))
    # draws of an untrained model are bytes of characters for the most part
    result = build(*overrides(root, tmp_path, "a", "c"), "experiment.n_candidates=2", "experiment.inexact=drop")
    assert 2 <= result.dataset.sizes["item"] < 12
    said = {entry["text"]: entry["count"] for entry in notes(written(result, tmp_path))}
    dropped = said["contexts left out because c cannot be asked about all their tokens exactly"]
    assert dropped == 12 - result.dataset.sizes["item"]
    model = tiny_models.load(root / "c", bos=tiny_models.END)
    generator = tiny_models.load(root / "a", bos=tiny_models.END)
    assert not shares_tokenizer(model, generator)
    study = written(result, tmp_path)
    exact = one_by_one(model, contexts_of(study, model))
    pieces = model.tokenizer.get_vocab()
    theirs = generator.tokenizer.convert_ids_to_tokens
    for i in range(study.sizes["item"]):
        own = [
            pieces[piece]
            for piece in theirs([int(study["target_id"][i]), *study["candidate_id"].to_numpy()[i].tolist()])
        ]
        np.testing.assert_allclose(study["target_logprob"].sel(model="c")[i], exact[i, own[0]], atol=1e-4)
        np.testing.assert_allclose(study["candidate_logprob"].sel(model="c")[i], exact[i, own[1:]], atol=1e-4)
    assert result.table["asked_by"].tolist() == ["token id", "token string"]
    # a divergence over tokens is not defined across tokenizers
    assert "kl_nats" not in study


def test_what_is_not_exact_is_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"model: 'd' has another tokenizer .* cannot be asked of it exactly, such as"):
        build(*overrides(root, tmp_path, "a", "d"))
    with pytest.raises(InputError, match="'d' has another tokenizer"):
        build(*overrides(root, tmp_path, "a", "d"), "experiment.inexact=drop")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["experiment.n_contexts=9999"], "n_contexts: is 9999, but the 8 documents have only"),
        (["experiment.shard=2/2"], "shard: is 2/2, should be i/n"),
        (["generator.name=e"], "unknown generator 'e'; choose one of: a, b"),
        (["+models.b.name=a"], "'a' is the name of two models"),
    ],
)
def test_wrong_settings(settings: list[str], message: str, root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        build(*overrides(root, tmp_path), *settings)


# ---------------------------------------------------------------------------------------------- the cuts

DOCUMENTS = [list(range(100 * d, 100 * d + 20)) for d in range(5)]


def cut(n: int, *, start: str = "document", shortest: int = 1, longest: int = 8, seed: int = 0) -> list[Cut]:
    rng = np.random.default_rng(seed)
    return cut_contexts(DOCUMENTS, n=n, shortest=shortest, longest=longest, start=start, rng=rng)[0]


@pytest.mark.parametrize("start", ["document", "anywhere"])
def test_cuts_are_what_they_say(start: str) -> None:
    cuts = cut(23, start=start)
    assert len({(c.document, c.position) for c in cuts}) == 23
    for c in cuts:
        tokens = DOCUMENTS[c.document]
        begin = 0 if start == "document" else max(0, c.position - 8)
        assert list(c.context) == tokens[begin : c.position]
        assert 1 <= len(c.context) <= 8
        assert c.target == tokens[c.position]
    # one of each document before any gets a second
    for first in range(0, 20, 5):
        assert len({c.document for c in cuts[first : first + 5]}) == 5


def test_every_place_is_as_likely() -> None:
    positions = np.array([c.position for seed in range(400) for c in cut(5, seed=seed)])
    counts = np.bincount(positions, minlength=9)[1:]
    # 2,000 draws from 8 places: mean 250, sd 14.8
    assert np.abs(counts - 250).max() < 5 * 14.8


def test_translation_by_hand() -> None:
    """Two vocabularies that share some tokens: what stands elsewhere, or is no token of the other, is not exact."""
    pieces = ["a", "b", "c", "Ġ"]
    first = tiny_models.by_hand([*pieces, "ab", "Ġa"], [("a", "b"), ("Ġ", "a")])
    second = tiny_models.by_hand(["Ġ", "c", "b", "a", "ab", "bc"], [("b", "c"), ("a", "b")])
    one, two = _Stub(first, "one"), _Stub(second, "two")
    vocab, other = first.get_vocab(), second.get_vocab()
    contexts = [[vocab["c"]], [vocab["b"]], [vocab["c"]], [vocab["a"]], [0]]
    tokens = [[vocab["a"], vocab["ab"]], [vocab["a"], vocab["c"]], [vocab["Ġa"]] * 2, [vocab["c"], vocab["a"]], [1, 2]]
    found = translate(two, one, contexts, tokens)  # type: ignore[arg-type]
    assert found.contexts[0] == [other["c"]]
    assert found.tokens[0].tolist() == [other["a"], other["ab"]]
    assert found.problems[0] == ""
    # "b" and then "c" is one token of the second model
    assert "two cuts its text with 'c' elsewhere" in found.problems[1]
    assert found.problems[2] == "' a' is no token of two"
    assert found.problems[3] == ""
    assert "holds a special token" in found.problems[4]
    assert found.exact.tolist() == [True, False, False, True, False]


class _Stub:
    """As much of a model as its vocabulary needs."""

    def __init__(self, tokenizer: object, name: str) -> None:
        self.tokenizer = tokenizer
        self.name = name
        self.settings = ModelSettings(name=name, source="folder", path=name)
        self.vocab_size = len(tokenizer)  # type: ignore[arg-type]
        self.special_ids = frozenset(tokenizer.all_special_ids)  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return id(self)


def test_contexts_before_marked_words_are_those_of_the_writer(root: Path, tmp_path: Path) -> None:
    """The text before each word without its last space, which is the token's; a whole token is asked for."""
    text = next(iter(sorted((root / "texts").rglob("*.txt")))).read_text(encoding="utf-8")
    words = " ".join(text.split()[:12]).split()
    rows = [" ".join(words[:n]) + " [" + words[n] + "]" for n in (4, 8)]
    starts = [row.index("[") for row in rows]
    plain = [row.replace("[", "").replace("]", "") for row in rows]
    table = pd.DataFrame({"text": plain, "start": starts, "stop": [len(each) for each in plain]})
    table.to_csv(tmp_path / "s.csv", index=False)
    given = [each for each in overrides(root, tmp_path / "store") if not each.startswith(("study.path", "model"))]
    own = [each for each in overrides(root, tmp_path / "store") if each.startswith("model")]
    more = [f"study.path={tmp_path / 's.csv'}", "study.regions=[start,stop]", "experiment.start=regions"]
    study = written(build(*given, *own, *more), tmp_path)
    contexts = [str(each).strip() for each in study["context"].to_numpy()]
    assert contexts == [each[:start].strip() for each, start in zip(plain, starts, strict=True)]
    for each, start, target in zip(plain, starts, study["target_token"].to_numpy(), strict=True):
        assert each[start - 1 :].startswith(str(target))
