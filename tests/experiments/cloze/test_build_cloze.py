"""A cloze study with live models in it: by hand, against exact distances, resumed, read by other experiments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from shannon_game import cloze_file, tvd
from shannon_game.estimators.cloze import study_words, word_rules
from shannon_game.estimators.cloze.study import entry_positions
from shannon_game.estimators.cloze.words import FAILED
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.build_cloze import experiment as module
from shannon_game.experiments.cloze.build_cloze.players import BuiltContexts, BuiltWord, exact_player, take_contexts
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.studies.cloze.simulated import cloze_simulated
from shannon_game.inference.lm.language_model import encode
from shannon_game.inference.lm.words import word_log_probs
from tests.experiments.cloze.test_tvd_exact import TABLE
from tests.experiments.cloze.test_tvd_exact import overrides as overrides_of
from tests.experiments.command import run_experiment
from tests.experiments.tiny_language_models import cached_loading
from tests.inference.lm import tiny_models

pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def root(root: Path) -> Path:
    (root / "answers.csv").write_text(TABLE, encoding="utf-8")
    return root


@pytest.fixture(scope="module", autouse=True)
def loaded_once():
    with cached_loading("shannon_game.inference.lm.causal"):
        yield


def overrides(root: Path, store: Path, *more: str, models: tuple[str, ...] = ("a",)) -> list[str]:
    return overrides_of(root, store, *more, models=models, exp="build_cloze")


DECODED = (
    *("experiment.temperatures=[0.5]", "experiment.nucleus=[0.8]", "experiment.top_k=[3]"),
    *("experiment.greedy=true", "experiment.n_samples=150"),
)
PLAYERS = [f"{model}{end}" for model in ("a", "d") for end in ("", "-exact", "-t0.5", "-k3", "-p0.8", "-greedy")]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def found(root: Path, store: Path) -> ExperimentResult:
    return run_experiment(*overrides(root, store, *DECODED, models=("a", "d")))


@pytest.fixture(scope="module")
def built(found: ExperimentResult, tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    return cloze_file(path=found.writers["study.nc"](tmp_path_factory.mktemp("outputs") / "study.nc"))


def test_the_study_holds_people_and_all_players(found: ExperimentResult, built: xr.Dataset) -> None:
    assert built["model"].to_numpy().tolist() == PLAYERS == found.table["player"].tolist()
    assert built.sizes["item"] == 8
    assert built["response_count"].sum() == 46
    for name in PLAYERS:
        entries = entry_positions(built, name)
        assert len(entries) == 8
        counts = built["sample_count"].to_numpy()[np.isin(built["sample_entry"], entries)]
        wanted = 100_000 if name.endswith("-exact") else 150
        assert abs(counts.sum() / 8 - wanted) <= (30 if name.endswith("-exact") else 0)


def test_log_probabilities_and_counts_by_hand(root: Path, built: xr.Dataset) -> None:
    model = tiny_models.load(root / "a", bos=tiny_models.END)
    context = encode(model, ["The old clock in"])
    wanted = ["the", "The", "THE", "a", "A"]
    logprob = word_log_probs(model, context, [wanted])["logprob"].to_numpy()
    texts = built["word_text"].to_numpy()[built["sample_word"].to_numpy()]
    for name in ("a", "a-exact"):
        mine = built["sample_entry"].to_numpy() == entry_positions(built, name)[1]
        for word, value in zip(wanted, logprob, strict=True):
            rows = np.flatnonzero(mine & (texts == word))
            np.testing.assert_allclose(built["sample_logprob"].to_numpy()[rows], value, atol=1e-5)
            assert len(rows)
            if name == "a-exact":
                (row,) = rows
                assert int(built["sample_count"][row]) == pytest.approx(np.exp(value) * 100_000, abs=1)


def test_the_exact_players_distance_is_that_of_tvd_exact(root: Path, store: Path, built: xr.Dataset) -> None:
    exact = run_experiment(*overrides_of(root, store, models=("a", "d")))
    table = tvd(built, players=["a", "a-exact", "d-exact"], n_splits=2).tables["items"]
    for name in ("a", "d"):
        # 100,000 draws: each of a few hundred words is off by half a draw at most
        np.testing.assert_allclose(
            table[f"tvd_{name}-exact"], exact.dataset["tvd"].sel(player=name).to_numpy(), atol=0.002
        )
    # 150 samples: the standard error of a distance is under .041
    np.testing.assert_allclose(table["tvd_a"], table["tvd_a-exact"], atol=0.17)


def test_numbers_do_not_depend_on_batches_order_or_what_else_is_asked(
    root: Path, built: xr.Dataset, tmp_path: Path
) -> None:
    for number, more in enumerate((["experiment.items_per_batch=1"], ["experiment.n_contexts=5"])):
        job = run_experiment(
            *overrides(root, tmp_path / str(number), "experiment.n_samples=150", "experiment.nucleus=[0.8]", *more)
        )
        path = job.writers["study.nc"](tmp_path / f"{number}.nc")
        other = cloze_file(path=path)
        kept = np.flatnonzero(np.isin(built["item"], other["item"]))
        both = (take_contexts(built, kept), other)
        for name in ("a", "a-exact", "a-p0.8"):
            first, second = (_rows(one, name) for one in both)
            assert first == second


def _rows(study: xr.Dataset, name: str) -> list[tuple[int, str, int, float]]:
    entries = entry_positions(study, name)
    rows = np.flatnonzero(np.isin(study["sample_entry"], entries))
    item = study["entry_item"].to_numpy()[study["sample_entry"].to_numpy()[rows]]
    text = study["word_text"].to_numpy()[study["sample_word"].to_numpy()[rows]]
    count, logprob = (study[column].to_numpy()[rows] for column in ("sample_count", "sample_logprob"))
    return sorted(
        zip(item.tolist(), text.tolist(), count.tolist(), np.nan_to_num(logprob, nan=1).tolist(), strict=True)
    )


def test_a_killed_run_goes_on_and_shards_add_up(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = overrides(root, tmp_path, "experiment.n_samples=50", "experiment.items_per_batch=2")
    draw, calls = module.live_words.draw_words, []

    def killed(*given, **named):
        draw(*given, **named)
        calls.append(1)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module.live_words, "draw_words", killed)
        with pytest.raises(KeyboardInterrupt):
            run_experiment(*few)
    whole = run_experiment(*few)
    # eight contexts were drawn before it was killed; their words were not scored yet
    assert "8 results were computed, 8 were in the store" in whole.text
    parts = [run_experiment(*few, f"experiment.shard={i}/2") for i in range(2)]
    assert sum(int(part.table["n_contexts"].iloc[0]) for part in parts) == 8
    for part in parts:
        assert "0 results were computed" in part.text
        assert not part.files
        assert "no study was written" in part.warnings[-1]


def test_models_of_the_study_stay_or_go(root: Path, tmp_path: Path) -> None:
    study = cloze_simulated(n_items=4, families=["mixture"])
    texts = [f"The old clock {word}" for word in ("in", "and", "on", "the")]
    study = study.assign(context=("item", np.array(texts, dtype=object)))
    given = {"models": {"live": model_settings(root)}, "store": tmp_path, "n_samples": 20, "exact": False}
    built = written(module.build_cloze(study, **given), tmp_path)
    assert built["model"].to_numpy().tolist() == ["mixture", "live"]
    old, new = (study_words(one, human=RULES, model=RULES, corpus=RULES) for one in (study, built))
    np.testing.assert_array_equal(old.models["mixture"].counts.count, new.models["mixture"].counts.count)
    alone = written(module.build_cloze(study, **given, keep_models=False), tmp_path)
    assert alone["model"].to_numpy().tolist() == ["live"]
    clash = {**given, "models": {"mixture": model_settings(root)}}
    with pytest.raises(InputError, match="'mixture' is a model of the study too; name the live one differently"):
        module.build_cloze(study, **clash)


RULES = word_rules("none")


def model_settings(root: Path) -> dict[str, str]:
    return {"source": "folder", "path": str(root / "a"), "device": "cpu", "bos": tiny_models.END}


def written(result: ExperimentResult, folder: Path) -> xr.Dataset:
    return cloze_file(path=result.writers["study.nc"](folder / "study.nc"))


def test_what_is_not_listed_is_spread_over_draws_of_other_words() -> None:
    drawn = {
        "word": [[FAILED, "cat", "dog", "eel", "fox"], [FAILED, "cat"]],
        "n_first": [np.array([1, 3, 0, 1, 0]), np.array([0, 4])],
        "n_second": [np.array([2, 1, 2, 0, 1]), np.array([0, 4])],
    }
    contexts = BuiltContexts(["x", "y"], [["cat", "hen"], ["cat", "hen"]], ["", "eel"])
    known = [{"cat": 0.5, "dog": 0.1, "eel": 0.1, "hen": 0.1}, {"cat": 0.7, "eel": 0.1, "hen": 0.1}]
    scored = [{word: float(np.log(p)) for word, p in some.items()} for some in known]
    player, listed = exact_player("m-exact", "m", drawn, contexts, scored, n_draws=1000)
    np.testing.assert_allclose(listed, [0.7, 0.9])
    # dog, twice, and fox stand for the .3 that is left; nothing does in the second context
    assert [(row.word, row.count) for row in player.rows[0]] == [
        ("cat", 500), ("hen", 100), ("eel", 100), ("dog", 200), ("fox", 100),
    ]  # fmt: skip
    assert [(row.word, row.count) for row in player.rows[1]] == [("cat", 778), ("hen", 111), ("eel", 111)]
    assert player.rows[0][3] == BuiltWord("dog", "samples", 200, scored[0]["dog"])
