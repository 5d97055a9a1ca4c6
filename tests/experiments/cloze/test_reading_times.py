"""Reading times: slopes that are put in come out, what people know beside a model, and tables that do not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game import cloze_simulated, cloze_study, reading_times
from shannon_game.estimators.cloze import WordCounts, target_surprisal
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.reading_times import PEOPLE
from tests.experiments.command import prepared

N_TEXTS, PER_TEXT = 40, 12
SIMULATED = {"n_items": N_TEXTS * PER_TEXT, "items_per_text": PER_TEXT, "families": ["same", "ranks"]}


@pytest.fixture(scope="module")
def study() -> xr.Dataset:
    """Words that come are drawn from the answers: surprisal then varies as in texts."""
    found = cloze_simulated(**SIMULATED)
    rng = np.random.default_rng(0)
    words, target = found["word_text"].to_numpy(), []
    for item in found["item"].to_numpy():
        rows = np.flatnonzero(found["response_item"].to_numpy() == item)
        share = found["response_count"].to_numpy()[rows].astype(float)
        target.append(words[found["response_word"].to_numpy()[rng.choice(rows, p=share / share.sum())]])
    return found.assign(target_word=("item", np.array(target, dtype=object)))


def surprisal_of(study: xr.Dataset) -> np.ndarray:
    """People's, slowly."""
    found = []
    for item, target in zip(study["item"].to_numpy(), study["target_word"].to_numpy(), strict=True):
        rows = study["response_item"].to_numpy() == item
        count = study["response_count"].to_numpy()[rows]
        said = study["word_text"].to_numpy()[study["response_word"].to_numpy()[rows]]
        found.append(-np.log((count[said == target].sum() + 0.5) / (count.sum() + 1)))
    return np.array(found)


def write(path: Path, study: xr.Dataset, slope: float, before: float, n_readers: int = 12, **columns: object) -> Path:
    """Times of readers with levels of their own: 200 ms, and the slopes."""
    rng = np.random.default_rng(1)
    surprisal = surprisal_of(study)
    text, number = study["text_id"].to_numpy(), study["word_num"].to_numpy()
    last = np.where(np.append("", text[:-1]) == text, np.append(0, surprisal[:-1]), 2.0)
    rows = []
    for reader in range(n_readers):
        level = rng.normal(200, 20)
        time = level + slope * surprisal + before * last + rng.normal(0, 15, size=len(surprisal))
        rows.append(pd.DataFrame({"text_id": text, "word_num": number, "time": time, "who": f"r{reader}", **columns}))
    pd.concat(rows).to_csv(path, index=False)
    return path


def test_surprisal_is_of_the_share_of_the_answers() -> None:
    counts = WordCounts(np.array([0, 0, 1]), np.array([3, 5, 3]), np.array([3, 1, 2]), 3)
    found = target_surprisal(counts, np.array([3, 9, -1]))
    np.testing.assert_allclose(found[:2], -np.log([3.5 / 5, 0.5 / 3]))
    assert np.isnan(found[2])
    with pytest.raises(InputError, match="target: has shape"):
        target_surprisal(counts, np.array([3]))


def test_slopes_that_are_put_in_come_out(study: xr.Dataset, tmp_path: Path) -> None:
    path = write(tmp_path / "times.csv", study, slope=12, before=5)
    result = reading_times(study, times=path, columns={"participant": "who"})
    table = result.table.set_index("player")
    people = table.loc[PEOPLE]
    assert abs(people["slope"] - 12) < 4 * people["slope_se"] < 4
    assert abs(people["spillover"] - 5) < 4 * people["spillover_se"] < 4
    assert people["n_readers"] == 12
    assert people["n_texts"] == N_TEXTS
    # words without one before them are left out
    assert people["n_words"] == N_TEXTS * (PER_TEXT - 1)
    # times were made of people's surprisal: a model that is like people says less of them, and nothing beside people's
    for model in ("same", "ranks"):
        assert table.loc[model, "loglik_gain_nats"] < people["loglik_gain_nats"]
        assert abs(table.loc[model, "beside_people"]) < 4 * table.loc[model, "beside_people_se"]
        assert abs(table.loc[model, "people_beside"] - 12) < 4 * table.loc[model, "people_beside_se"]
    items = result.tables["items"]
    np.testing.assert_allclose(items["surprisal_nats_people"], surprisal_of(study))
    assert (items["n_times"] == 12).all()


def test_times_without_a_slope_have_none(study: xr.Dataset, tmp_path: Path) -> None:
    path = write(tmp_path / "times.csv", study, slope=0, before=0)
    table = reading_times(study, times=path, spillover=False, players=[]).table
    assert table["player"].tolist() == [PEOPLE]
    assert abs(table["slope"][0]) < 4 * table["slope_se"][0]
    assert table["n_words"][0] == N_TEXTS * PER_TEXT
    assert np.isnan(table["spillover"][0])


def test_what_a_run_writes_and_leaves_out(tmp_path: Path) -> None:
    arguments = ("study=cloze_simulated", "study.n_items=60", "study.items_per_text=6", "study.families=[ranks]")
    study = prepared("+exp=reading_times", *arguments).study
    path = write(tmp_path / "times.csv", study, 10, 0, n_readers=2, log_frequency=1.5)
    table = pd.read_csv(path)
    table.loc[0, "time"] = np.nan
    table.loc[1, "time"] = 0
    more = pd.DataFrame({"text_id": ["nowhere"], "word_num": [3], "time": [200.0], "who": ["r0"], "log_frequency": [2]})
    pd.concat([table, more]).to_csv(path, index=False)
    settings = (
        *("+exp=reading_times", *arguments, f"experiment.times={path}", "experiment.controls=[log_frequency]"),
        *("experiment.scale=log", "experiment.columns.participant=who", "output.dpi=40"),
    )
    job = prepared(*settings)
    result = job.run()
    said = " ".join(result.warnings)
    assert "1 times are of words that are no contexts" in said
    assert "2 rows have no time or zero" in said


def test_the_exact_probability_of_the_word_comes_before_samples(tmp_path: Path) -> None:
    rows = []
    for number in range(1, 9):
        place = {"text_id": f"t{number % 4}", "word_num": number, "context": f"a {number}", "target": "big"}
        rows += [{**place, "response": "big", "count": number, "model": None}]
        rows += [{**place, "response": "small", "count": 9, "model": None}]
        rows += [{**place, "response": "big", "count": 9 - number, "model": "m"}]
        rows += [{**place, "response": "small", "count": number, "model": "m"}]
    study = cloze_study(pd.DataFrame(rows))
    path = tmp_path / "times.csv"
    pd.DataFrame(
        {"text_id": study["text_id"], "word_num": study["word_num"], "time": np.arange(8) ** 2 + 200.0}
    ).to_csv(path, index=False)
    given = {"times": path, "spillover": False}
    before = reading_times(study, **given).tables["items"]["surprisal_nats_m"]
    np.testing.assert_allclose(before, -np.log((9 - np.arange(1, 9) + 0.5) / 10))
    logprob = np.full(study.sizes["sample"] + 1, np.nan)
    logprob[-1] = -0.25
    entry = int(np.flatnonzero(study["entry_item"].to_numpy() == study["item"].to_numpy()[2])[0])
    grown = {
        "sample_entry": np.append(study["sample_entry"], entry),
        "sample_word": np.append(study["sample_word"], study["sample_word"][0]),
        "sample_source": np.append(study["sample_source"], 1),
        "sample_count": np.append(study["sample_count"], 0),
        "sample_logprob": logprob,
    }
    exact = study.drop_dims(["sample", "source"]).assign_coords(source=["samples", "corpus"])
    exact = exact.assign({name: ("sample", values) for name, values in grown.items()})
    after = reading_times(exact, **given).tables["items"]["surprisal_nats_m"]
    assert after[2] == 0.25
    np.testing.assert_allclose(after.drop(2), before.drop(2))


@pytest.mark.parametrize(
    ("table", "settings", "message"),
    [
        (None, {}, "experiment.times: is needed: a table with text_id, word_num and time"),
        ({"text_id": ["1"], "word_num": [2], "ms": [200]}, {}, "experiment.columns.time=NAME"),
        (
            {"text_id": ["x"], "word_num": [2], "time": [200]},
            {},
            "has no time of a context of the study, such as text 1",
        ),
        ({"text_id": ["1"], "word_num": [2], "time": [-3]}, {}, "time: is -3 in line 2, should be above 0"),
        ({"text_id": ["1"], "word_num": ["two"], "time": [1]}, {}, "word_num: is 'two'"),
        ({"text_id": ["1"], "word_num": [3], "time": [200]}, {}, "has 1 times of words with a surprisal of people"),
        ({"text_id": ["1"], "word_num": [3], "time": [2]}, {"controls": ["f"]}, "f"),
    ],
)
def test_tables_that_do_not_fit(
    study: xr.Dataset, tmp_path: Path, table: dict[str, list[object]] | None, settings: dict[str, object], message: str
) -> None:
    path = tmp_path / "times.csv"
    if table is not None:
        pd.DataFrame(table).to_csv(path, index=False)
    with pytest.raises(InputError, match=message):
        reading_times(study, times=None if table is None else path, **settings)
