"""Reading times: slopes that are put in come out, what people know beside a model, and tables that do not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import t

from shannon_game import cloze_simulated, cloze_study, reading_times, text_study, tvd
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.reading_regions import region_means
from shannon_game.experiments.cloze.reading_times import PEOPLE
from shannon_game.experiments.cloze.reading_words import TextWords, Times, place_index

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


def test_slopes_that_are_put_in_come_out(study: xr.Dataset, tmp_path: Path) -> None:
    path = write(tmp_path / "times.csv", study, slope=12, before=5)
    result = reading_times(study, times=path, columns={"participant": "who"})
    table = result.table.set_index("player")
    people = table.loc[PEOPLE]
    assert abs(people["slope"] - 12) < 4 * people["slope_se"] < 4
    assert abs(people["spillover_1"] - 5) < 4 * people["spillover_1_se"] < 4
    assert people["n_readers"] == 12
    assert people["n_texts"] == N_TEXTS
    # words without one before them are left out
    assert people["n_words"] == N_TEXTS * (PER_TEXT - 1)
    # times were made of people's surprisal: a model that is like people says less of them, and nothing beside people's
    for model in ("same", "ranks"):
        assert table.loc[model, "gain_nats"] < people["gain_nats"]
        assert abs(table.loc[model, "beside_people"]) < 4 * table.loc[model, "beside_people_se"]
        assert abs(table.loc[model, "people_beside"] - 12) < 4 * table.loc[model, "people_beside_se"]
    items = result.tables["items"]
    np.testing.assert_allclose(items["surprisal_nats_people"], surprisal_of(study))
    assert (items["n_times"] == 12).all()


@pytest.mark.parametrize("interval", [0.5, 0.9])
def test_the_table_shows_the_intervals_that_the_figure_draws(
    study: xr.Dataset, tmp_path: Path, interval: float
) -> None:
    path = write(tmp_path / "times.csv", study, slope=12, before=5, n_readers=1)
    result = reading_times(study, times=path, interval=interval, spillover=2)
    shown, drawn = result.summary(), result.tables["slopes"].set_index(["player", "words_before"])
    for (player, n), row in drawn.iterrows():
        cell = shown.loc[result.table["player"] == player, f"spillover_{n}" if n else "slope"].item()
        found = [float(part.strip("[],")) for part in cell.split()]
        np.testing.assert_allclose(found, row[["slope", "lower", "upper"]], rtol=1e-4)


N_READERS, SLOPES = 24, (9.0, 4.0, -2.0)


def written_words(folder: Path, rng: np.random.Generator, n_texts: int = 30, n_words: int = 12) -> pd.DataFrame:
    """words.csv of two models, as +exp=surprisal writes it; the second knows the first's surprisal with noise."""
    text, number = np.repeat(np.arange(n_texts), n_words), np.tile(np.arange(1, n_words + 1), n_texts)
    nats = rng.gamma(2, 1.5, text.size)
    table = pd.DataFrame({"document": [f"s{each}" for each in text], "model": "exact", "word_num": number})
    table["word"] = ["w" * int(n) for n in rng.integers(1, 9, text.size)]
    table["surprisal_nats"] = nats
    noisy = table.assign(model="noisy", surprisal_nats=nats + rng.normal(0, 3, text.size))
    pd.concat([table, noisy]).to_csv(folder / "words.csv", index=False)
    return table


def read_by_people(words: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Times of readers with levels and slopes of their own, of words with levels, and two words of spillover."""
    nats, rows = words["surprisal_nats"].to_numpy(), []
    by_text = words.groupby("document")["surprisal_nats"]
    before = [by_text.shift(n).fillna(3.0).to_numpy() for n in (1, 2)]
    level = rng.normal(0, 15, len(words))
    for reader in range(N_READERS):
        slope = SLOPES[0] + rng.normal(0, 4)
        time = 300 + rng.normal(0, 40) + slope * nats + SLOPES[1] * before[0] + SLOPES[2] * before[1] + level
        time += 3 * words["word"].str.len().to_numpy() + rng.normal(0, 30, len(words))
        rows.append(words.assign(time=time, who=f"r{reader}").drop(columns=["surprisal_nats", "model"]))
    return pd.concat(rows).rename(columns={"document": "text_id"})


def texts_of(words: pd.DataFrame) -> xr.Dataset:
    texts = words.groupby("document", sort=False)["word"].agg(" ".join).reset_index()
    return text_study(texts, text_field="word", id_field="document")


def test_random_slopes_and_spillover_are_recovered(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    words = written_words(tmp_path, rng)
    read_by_people(words, rng).to_csv(tmp_path / "times.csv", index=False)
    given = {"surprisal": tmp_path, "times": tmp_path / "times.csv", "columns": {"participant": "who"}}
    result = reading_times(texts_of(words), **given, spillover=2, players=["exact"])
    slopes = result.tables["slopes"].set_index("words_before")
    assert (np.abs(slopes["slope"] - list(SLOPES)) < 3 * slopes["se"]).all()
    assert slopes.loc[1:, "se"].max() < 0.6
    row = result.table.iloc[0]
    for name, true in (("sd_slope", 4), ("sd_reader", 42), ("sd_word", 15), ("sd_residual", 30)):
        assert row[name] == pytest.approx(true, rel=0.4), name
    # the first two words of a text have no two words before them
    assert row["n_words"] == 30 * 10
    tables = {
        name: pd.read_csv(tmp_path / f"{file}.csv") for name, file in (("surprisal", "words"), ("times", "times"))
    }
    same = reading_times(texts_of(words), **{**given, **tables}, spillover=2, players=["exact"])
    pd.testing.assert_frame_equal(same.table, result.table)
    # the interval of a slope that varies between readers knows so: 4 / sqrt(24) at least
    assert slopes.loc[0, "se"] > 0.8


def test_gains_compare_two_models_on_the_same_times(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    words = written_words(tmp_path, rng)
    times = read_by_people(words, rng)
    means = times.groupby(["text_id", "word_num", "word"], as_index=False)["time"].mean()
    means.to_csv(tmp_path / "means.csv", index=False)
    result = reading_times(texts_of(words), surprisal=tmp_path / "words.csv", times=tmp_path / "means.csv", spillover=2)
    gains = result.tables["gains"].set_index(["player", "other"])
    better = gains.loc[("noisy", "exact")]
    assert better["upper"] < 0
    alone = [gains.loc[(name, "controls alone"), "gain_nats"] for name in ("noisy", "exact")]
    assert better["gain_nats"] == pytest.approx(alone[0] - alone[1], abs=1e-12)
    assert alone[1] > 0
    assert result.table["n_readers"].tolist() == [0, 0]
    by_name = reading_times(
        texts_of(words), surprisal=tmp_path / "words.csv", times=tmp_path / "means.csv", players=["noisy"], spillover=2
    )
    assert by_name.table["player"].tolist() == ["noisy"]


def test_times_of_other_words_and_outside_the_range_are_left_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    words = written_words(tmp_path, rng)
    times = read_by_people(words, rng)
    row = (times["text_id"] == "s3") & (times["word_num"] == 5)
    times.loc[row, "word"] = "another"
    times.iloc[[0, 1, -1], times.columns.get_loc("time")] = [20.0, 9000.0, np.nan]
    # a participant was exported twice, in part, and read a word again
    twice = pd.concat([times, times.iloc[-20:-10], times.iloc[[-5]].assign(time=450.25)])
    twice.to_csv(tmp_path / "times.csv", index=False, na_rep="NA")
    given = {"surprisal": tmp_path, "times": tmp_path / "times.csv", "fastest": 100, "slowest": 3000}
    result = reading_times(texts_of(words), **given, columns={"participant": "who", "word": "word"})
    said = " ".join(result.warnings)
    assert f"{N_READERS} times are of a word that is another one" in said
    assert "2 times are outside fastest and slowest" in said
    assert "copies of others (exported twice?), left out: 10" in said
    assert "further times of a reader of the same word, all kept: 1" in said
    assert result.tables["items"]["n_times"].sum() == len(times) - N_READERS - 2 - 1 + 1
    items = result.tables["items"].set_index(["text_id", "word_num"])
    assert items.loc[("s3", 5), "n_times"] == 0
    # without numbers a word is found where its text has it once
    found = reading_times(texts_of(words), **given, columns={"word": "word", "word_num": None}, spillover=0)
    once = ~words.duplicated(["document", "word"], keep=False)
    counted = found.tables["items"]["n_times"].to_numpy() > 0
    assert not (counted & ~once.to_numpy()).any()
    assert counted.sum() > 0.8 * once.sum()


def test_single_sentence_norms_need_settings_alone() -> None:
    rng = np.random.default_rng(7)
    rows, times = [], []
    for item in range(60):
        n_right = int(rng.integers(1, 39))
        place = {"sentence": f"frame {item}", "stem": f"Nobody knew the {item}", "last": "dog" + "s" * (item % 5)}
        rows += [{**place, "said": place["last"], "n": n_right}, {**place, "said": "cat", "n": 40 - n_right}]
        nats = -np.log((n_right + 0.5) / 41)
        times += [
            {"frame": place["sentence"], "rt": 300 + 20 * nats + rng.normal(0, 5), "who": f"p{p}"} for p in range(6)
        ]
    names = {"context_id": "sentence", "context": "stem", "target": "last", "response": "said", "count": "n"}
    study = cloze_study(pd.DataFrame(rows), columns=names)
    times += [{"frame": f"other {n}", "rt": 300.0, "who": "p1"} for n in range(4)]
    columns = {"context_id": "frame", "time": "rt", "participant": "who"}
    result = reading_times(study, times=pd.DataFrame(times), columns=columns, spillover=0)
    assert "(it has no other 0, other 1, other 2 and 1 more)" in result.warnings[0]
    assert result.tables["items"]["item"].tolist() == tvd(study).tables["items"]["item"].tolist()
    found = result.table.iloc[0]
    assert abs(found["slope"] - 20) < 4 * found["slope_se"] < 8
    assert found["n_texts"] == found["n_words"] == 60
    means = reading_times(study, times=pd.DataFrame(times), columns={**columns, "participant": None}, spillover=0)
    assert means.warnings[1].startswith("60 words have several times")
    for names in ({"time": "rt"}, {"time": "rt", "text_id": "frame"}):
        with pytest.raises(InputError, match="context_id': 'NAME'"):
            reading_times(study, times=pd.DataFrame(times).assign(word_num=7), columns=names)


@pytest.mark.parametrize(
    ("table", "settings", "message"),
    [
        (None, {}, "is needed: times=.*, with text_id, word_num, time"),
        ({"text_id": ["1"], "word_num": [2], "ms": [200]}, {}, "columns={'time': 'NAME'}"),
        ({"text_id": ["x"], "word_num": [2], "time": [200]}, {}, "has no time of a word of the study, such as text 1"),
        ({"text_id": ["1"], "word_num": [2], "time": [-3]}, {}, "time: is '-3' in line 2, should be above 0"),
        ({"text_id": ["1"], "word_num": [3], "time": [200]}, {}, "has 1 times of words with a surprisal of people"),
        ({"text_id": ["1"], "time": [2]}, {"columns": {"word_num": None}}, "is None, and so is columns.word"),
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
    given = {"times": path, "spillover": 0}
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


def test_a_baseline_model_is_a_control_of_all_others(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    words = written_words(tmp_path, rng)
    read_by_people(words, rng).to_csv(tmp_path / "times.csv", index=False)
    given = {"surprisal": tmp_path, "times": tmp_path / "times.csv", "columns": {"participant": "who"}}
    table = reading_times(texts_of(words), **given, baseline=["exact"]).table
    # noise says nothing beside what the times were made of
    assert table["player"].tolist() == ["noisy"]
    assert abs(table["slope"][0]) < 4 * table["slope_se"][0] < 2
    alone = reading_times(texts_of(words), **given, players=["noisy"]).table
    assert alone["slope"][0] > 5 * alone["slope_se"][0]
    assert table["gain_nats"][0] < 0.5 * alone["gain_nats"][0]
    with pytest.raises(InputError, match="model 'unigram'"):
        reading_times(texts_of(words), **given, baseline=["unigram"])


@pytest.mark.parametrize("interval", [0.5, 0.9])
def test_means_of_regions_without_readers_have_the_interval_that_is_asked_for(interval: float) -> None:
    """Of one value per sentence it is Student's interval of a mean."""
    values = np.array([300.0, 310.0, 350.0, 320.0])
    words = TextWords(pd.Series("dog", place_index(np.arange(4), np.ones(4))), pd.DataFrame({"m": [1.0, 2, 3, 6]}))
    rows = pd.DataFrame({"time": values, "at": range(4), "condition": "odd", "region": "object"})
    (row,) = region_means(words, Times(rows, pd.DataFrame(), {}), interval).to_dict("records")
    low, high = t.interval(interval, 3, values.mean(), values.std(ddof=1) / 2)
    assert (row["lower_ms"], row["mean_ms"], row["upper_ms"]) == pytest.approx((low, 320, high))
    assert (row["n_readers"], row["n_sentences"], row["surprisal_nats_m"]) == (0, 4, 3)
