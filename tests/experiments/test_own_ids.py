"""What people call their items and participants is what every result calls them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game import (
    cloze_simulated,
    cloze_study,
    comparison_file,
    comparison_study,
    human_loss,
    models,
    perplexity,
    tvd,
)
from shannon_game.estimators.cloze import cloze_items
from shannon_game.estimators.comparison import (
    ParticipantPopulation,
    SimulationSettings,
    estimate_perplexity,
    rounding_scheme,
    simulate_comparison_study,
    validate_comparison_study,
)
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_labels
from shannon_game.experiments.comparison.recovery.studies import answered_by_people
from shannon_game.experiments.studies.comparison.file import save_comparison_study
from shannon_game.experiments.studies.comparison.table_write import write_comparison_tables
from shannon_game.inference.posterior.arviz_adapter import group
from shannon_game.models.cloze.ard_columns import columns_of
from tests.experiments.studies.comparison.test_table import tables

N_ASKED = 12
NAMED = [f"q{number}" for number in range(N_ASKED)]


@pytest.fixture(scope="module")
def numbered() -> xr.Dataset:
    # q10 stands before q2 in the order of strings
    sizes = {"n_reference_items": 15, "n_participants": 4, "n_candidates": 5, "vocab_size": 80}
    return simulate_comparison_study(SimulationSettings(n_items=N_ASKED, **sizes))


@pytest.fixture(scope="module")
def own(numbered: xr.Dataset) -> xr.Dataset:
    pairs, answers = tables(numbered)
    return comparison_study(answers, pairs, generator="lm-medium")


def test_a_study_without_names_keeps_its_numbers(numbered: xr.Dataset) -> None:
    assert item_labels(numbered).tolist() == list(range(15))
    assert estimate_perplexity(numbered).gap.item.tolist() == list(range(N_ASKED))


def test_point_estimates_name_the_items(numbered: xr.Dataset, own: xr.Dataset) -> None:
    ours, theirs = (estimate_perplexity(study, "human") for study in (own, numbered))
    assert ours.gap.item.tolist() == NAMED
    np.testing.assert_allclose(ours.gap.item_gap_nats, theirs.gap.item_gap_nats)
    assert ours.gap.summary()["item"].tolist() == NAMED
    dataset = perplexity(own, players=["human", "lm-weak"]).dataset
    assert dataset["item"].to_numpy().tolist() == NAMED
    np.testing.assert_allclose(dataset["item_gap_nats"].to_numpy()[0], theirs.gap.item_gap_nats)


def test_models_name_items_and_participants(numbered: xr.Dataset, own: xr.Dataset) -> None:
    data = models.participant_data(own)
    assert data.item.tolist() == models.participant_data(own, player="lm-weak").item.tolist() == NAMED
    model = models.participant_model(data, k0=1.0)
    assert list(model.coords["participant"]) == sorted(set(own["participant"].to_numpy()))
    # a population that answers the same pairs finds their log-probabilities by the names
    told = {"k0": 0.8, "population": ParticipantPopulation(), "grid": rounding_scheme("interface")}
    reports = [
        answered_by_people(study, "lm-weak", rng=np.random.default_rng(0), **told)["report"]
        for study in (own, numbered)
    ]
    np.testing.assert_array_equal(*reports)


def test_a_file_keeps_the_names(own: xr.Dataset, tmp_path: Path) -> None:
    saved = comparison_file(path=save_comparison_study(own, tmp_path / "study.nc"))
    assert item_labels(saved).tolist() == item_labels(own).tolist()
    # files of earlier versions
    before = save_comparison_study(own.rename(item_id="item_name"), tmp_path / "before.nc")
    assert item_labels(comparison_file(path=before)).tolist() == item_labels(own).tolist()
    nameless = save_comparison_study(own.drop_vars("item_id"), tmp_path / "nameless.nc")
    assert item_labels(comparison_file(path=nameless)).tolist() == list(range(own.sizes["item"]))


def test_tables_that_are_written_have_the_names(own: xr.Dataset, tmp_path: Path) -> None:
    write_comparison_tables(own, tmp_path / "pairs.csv", tmp_path / "answers.csv")
    pairs, answers = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("pairs", "answers"))
    again = comparison_study(answers, pairs, generator="lm-medium")
    assert again["item_id"].to_numpy().tolist() == own["item_id"].to_numpy().tolist()
    assert again["response_item"].to_numpy().tolist() == own["response_item"].to_numpy().tolist()


@pytest.mark.parametrize("bad", ["", "q1"])
def test_a_name_is_filled_and_there_once(own: xr.Dataset, bad: str) -> None:
    names = own["item_id"].to_numpy().copy()
    names[0] = bad
    with pytest.raises(InputError, match="item_id"):
        validate_comparison_study(own.assign(item_id=("item", names)))


def cloze(columns: dict[str, str]) -> xr.Dataset:
    rows = [
        (text, context, word, f"p{who}", said)
        for text in ("T1", "T2")
        for context, word in (("S10", 4), ("S2", 9))
        for who, said in enumerate(("dog", "dog", "cat", "emu"))
    ]
    table = pd.DataFrame(rows, columns=["text", "sentence", "word", "who", "said"])
    table["unique"] = table["text"] + table["sentence"]
    return cloze_study(table, columns={"response": "said", **columns})


@pytest.mark.parametrize(
    ("columns", "labels"),
    [
        ({"context_id": "unique"}, ["T1S10", "T1S2", "T2S10", "T2S2"]),
        ({"context_id": "unique", "text_id": "text"}, ["T1S10", "T1S2", "T2S10", "T2S2"]),
        # ids that start anew in each text say the text
        ({"context_id": "sentence", "text_id": "text"}, ["S10:T1", "S2:T1", "S10:T2", "S2:T2"]),
        ({"context": "unique"}, [0, 1, 2, 3]),
        ({"text_id": "text", "word_num": "word"}, [0, 1, 2, 3]),
    ],
    ids=["id", "id and text", "id in text", "context", "place"],
)
def test_contexts_keep_their_ids(columns: dict[str, str], labels: list[object]) -> None:
    study = cloze(columns)
    assert item_labels(study).tolist() == labels
    dataset = tvd(study, bayes={"n_contexts": None}).dataset
    assert dataset["item"].to_numpy().tolist() == labels


def test_a_table_of_the_items_joins_the_owners_table() -> None:
    norms = pd.DataFrame({"id": ["T1S10", "T1S2", "T2S10", "T2S2"], "frequency": [3.0, 1.0, 4.0, 2.0]})
    tables = tvd(cloze({"context_id": "unique", "participant": "who"}), bayes={"n_contexts": None}).tables
    joined = norms.merge(tables["items"], left_on="id", right_on="item", validate="one_to_one")
    assert joined["modal_answer"].tolist() == ["dog"] * 4
    assert tables["participants"]["participant"].tolist() == ["p0", "p1", "p2", "p3"]


def test_the_distances_of_a_context_are_those_of_the_experiment() -> None:
    study = cloze_simulated(n_items=6, items_per_text=2, n_answers=12, vocab_size=40, n_samples=30)
    result = tvd(study, bayes={"n_contexts": None})
    assert set(result.tables) == {"items"}
    pd.testing.assert_frame_equal(result.tables["items"], cloze_items(study), check_like=True)
    of = result.dataset.sel(player="mixture")
    np.testing.assert_array_equal(result.tables["items"]["tvd_mixture"], of["tvd"])


def test_items_and_participants_of_a_comparison(own: xr.Dataset) -> None:
    result = perplexity(own, players=["human", "lm-weak"])
    items = result.tables["items"].set_index("item")
    np.testing.assert_array_equal(items.loc[NAMED, "gap_nats_human"], result.dataset["item_gap_nats"][0])
    assert "gap_nats_lm-strong" not in items
    assert result.tables["participants"]["participant"].tolist() == list(dict.fromkeys(own["participant"].to_numpy()))
    silent = perplexity(own.isel(response=[]), players=["lm-weak"])
    assert list(silent.tables) == ["items"]


def test_the_regression_names_the_contexts() -> None:
    study = cloze({"context_id": "unique", "text_id": "text"})
    target, position = np.array([0.1, 0.2]), np.array([1, 3])
    rows = columns_of(study, target, {}, ("word_num",), position, ["lm", "lm"])
    assert rows.item.tolist() == ["T1S2", "T2S2"]
    rows = columns_of(study.drop_vars("item_id"), target, {}, ("word_num",), position, ["lm", "lm"])
    assert rows.item.tolist() == ["T1:2", "T2:2"]


@pytest.mark.slow
@pytest.mark.mcmc
def test_posteriors_name_items_contexts_and_participants(own: xr.Dataset) -> None:
    short = {"draws": 30, "tune": 30, "chains": 2, "cores": 1}
    study = cloze({"context_id": "unique"})
    drawn = cloze_study(
        pd.DataFrame({"id": study["item_id"].to_numpy(), "said": ["dog", "cat", "emu", "yak"], "by": "lm"}).pipe(
            lambda model: pd.concat([model.assign(by=""), model.assign(by=""), model])
        ),
        columns={"context_id": "id", "response": "said", "model": "by"},
    )
    bayes = {"n_contexts": 3, "more_draws": 1}
    result = tvd(drawn, bayes=bayes, sampler=short, allow_unconverged=True)
    named = group(result.posteriors["lm"], "posterior")["context"].to_numpy()
    assert len(named) == 3
    assert set(named) < set(study["item_id"].to_numpy())
    people = human_loss(own, players="human", sensitivity=False, sampler={"draws": 40}, allow_unconverged=True)
    assert people.dataset["item"].to_numpy().tolist() == NAMED
    named = group(people.posterior, "posterior")["participant"].to_numpy().astype(str)
    assert set(named) <= set(own["participant"].to_numpy())
