"""Loaders of ranking studies, and the thesis's numbers from the stored rankings."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.estimators.rankings.study import conditioned_on_other_text, score_study
from shannon_game.experiments.harness.job import load_study
from shannon_game.experiments.papers.ranks_published import as_printed, read_published
from shannon_game.experiments.studies.rankings.rank_perplexity import rank_perplexity
from shannon_game.experiments.studies.rankings.rank_perplexity_workbooks import ARCHIVES
from shannon_game.experiments.studies.rankings.table import ranking_study, ranking_table, write_ranking_table
from tests.experiments.command import config
from tests.experiments.studies.rankings import tiny_ranks
from tests.oracles.rank_perplexity import perplexity
from tests.oracles.rank_perplexity import scores as plain_scores
from tests.oracles.rank_perplexity_published import make_published

SCORES = ("linear", "reciprocal", "exponential_01", "exponential_03")


def scores_of(study: xr.Dataset) -> pd.DataFrame:
    scores = score_study(study)
    return pd.DataFrame(
        {
            **{name: study[name].to_numpy() for name in ("part", "text", "context_length", "window", "model")},
            "linear": scores.linear,
            "reciprocal": scores.reciprocal,
            "exponential_01": scores.exponential[0],
            "exponential_03": scores.exponential[1],
            "average": scores.average,
            "logprob": scores.logprob_nats,
        }
    )


def windows_of(study: xr.Dataset) -> pd.DataFrame:
    table = scores_of(study).groupby(["part", "text", "context_length", "window", "model"]).mean()
    return table.assign(perplexity=np.exp(-table["logprob"]))


# --------------------------------------------------------------------------------------------- published data


@pytest.fixture(scope="module")
def published_study(rank_perplexity_root: Path) -> xr.Dataset:
    return rank_perplexity(root=str(rank_perplexity_root))


def test_every_stored_row_score(published_study: xr.Dataset) -> None:
    """3,120 rows, from the rankings alone."""
    table = scores_of(published_study)
    assert len(table) == 3120
    for name in SCORES:
        np.testing.assert_allclose(table[name], published_study[f"stored_{name}"], rtol=0, atol=1e-12)
    stored = published_study["stored_perplexity"].to_numpy()
    keys = ["text", "context_length", "window", "model"]
    ours = np.exp(-table.groupby(keys)["logprob"].transform("mean"))
    np.testing.assert_allclose(ours, stored, rtol=1e-12)


def test_cells_of_the_thesis(published_study: xr.Dataset) -> None:
    """Tables 1 to 4: all 208 cells; appendices A and B: all but the four of the misprint, two by rounding halves up.

    The 160 single scores of the repeats agree, too.
    """
    ours = (
        windows_of(published_study)
        .reset_index()
        .melt(["part", "text", "context_length", "window", "model"], var_name="quantity", value_name="ours")
    )
    printed = read_published().dropna(subset="context_length")
    both = printed.merge(ours, on=["text", "context_length", "window", "model", "quantity"], validate="many_to_one")
    assert len(both) == len(printed) == 208 + 384 + 160
    agrees = as_printed(both["ours"], both["decimals"]) == both["printed"]
    assert agrees[both["place"].str.startswith("tables")].sum() == 208
    wrong = both[~agrees]
    assert set(wrong["place"] + ", " + wrong["context_length"].astype(str) + ", " + wrong["quantity"]) == {
        "appendix A, 1024, reciprocal"
    }
    assert agrees.sum() == 208 + 380 + 160
    assert agrees[both["place"] == "repeats, stored averages"].sum() == 160
    assert wrong.set_index("model")["ours"].round(4).to_dict() == {
        "gpt-3.5-turbo": 0.4163,
        "gpt-4": 0.6083,
        "gpt-4-turbo": 0.5612,
        "gpt-4o": 0.4501,
    }
    assert (np.round(both["ours"], 2) != both["printed"])[agrees & both["place"].str.startswith("app")].sum() == 2


def test_means_and_spreads_of_the_thesis(published_study: xr.Dataset) -> None:
    table = windows_of(published_study)
    mean = table.loc["main", "perplexity"].groupby("model").mean()
    spread = {
        (which, name): rows.groupby("model")[name].std(ddof=1).mean()
        for which, rows in (
            ("repeats", table.loc["repeats"]),
            ("repeats and main run", table.xs(128, level="context_length")),
        )
        for name in ("average", "perplexity")
    }
    printed = read_published().set_index(["place", "quantity", "model"])["printed"]
    for model, value in mean.items():
        assert round(value, 2) == printed["mean", "mean_perplexity", model]
    for (which, name), value in spread.items():
        assert as_printed(value, 3 if name == "average" else 2) == printed[which, f"sd_{name}", ""]


def test_the_table_of_printed_values_is_what_the_workbooks_give(rank_perplexity_root: Path, tmp_path: Path) -> None:
    make_published(rank_perplexity_root, tmp_path / "again.csv")
    again = pd.read_csv(tmp_path / "again.csv", keep_default_na=False, na_values={"context_length": [""]})
    found = read_published()[list(again)]
    pd.testing.assert_frame_equal(found, again, check_dtype=False)


def test_facts_of_the_data(published_study: xr.Dataset) -> None:
    main = published_study.isel(token=np.flatnonzero(published_study["part"] == "main"))
    assert main.sizes["token"] == 1920
    assert conditioned_on_other_text(main).sum() == 117
    stripped = [len({str(token).strip() for token in row}) for row in published_study["ranked_token"].to_numpy()]
    assert sum(length < 20 for length in stripped) == 1494
    lower = score_study(main).average.mean() - score_study(main, match="exact").average.mean()
    assert lower == pytest.approx(0.179, abs=5e-4)
    assert not any("archives that are not" in note["text"] for note in notes(published_study))


def test_parts(rank_perplexity_root: Path) -> None:
    assert rank_perplexity(root=rank_perplexity_root, part="repeats").sizes["token"] == 1200


# ---------------------------------------------------------------------------------------------------- loader


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def tiny_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_ranks.write(tmp_path_factory.mktemp("ranks"))


def test_tiny_copy(tiny_root: Path) -> None:
    study = rank_perplexity(root=str(tiny_root))
    assert study.sizes["token"] == (2 * 4 + 2 * 2) * 4 * tiny_ranks.N_TOKENS
    table = scores_of(study)
    for row, (reference, ranked) in enumerate(
        zip(study["reference_token"].to_numpy(), study["ranked_token"].to_numpy(), strict=True)
    ):
        for name, value in plain_scores(reference, ranked).items():
            assert table[name][row] == pytest.approx(value, abs=1e-15)
    keys = ["text", "context_length", "window", "model"]
    for _, rows in table.groupby(keys):
        at = rows.index.to_numpy()
        logprobs = study["ranked_logprob"].to_numpy()[at]
        expected = perplexity(study["reference_token"].to_numpy()[at], study["ranked_token"].to_numpy()[at], logprobs)
        assert np.exp(-rows["logprob"].mean()) == pytest.approx(expected, rel=1e-12)
    assert "\n" in study["reference_token"].to_numpy()
    assert any("not the published ones" in note["text"] and note["count"] == 4 for note in notes(study))


def test_missing_archive(tmp_path: Path, tiny_root: Path) -> None:
    for archive in ARCHIVES[:2]:
        (tmp_path / archive.name).write_bytes((tiny_root / archive.name).read_bytes())
    assert set(rank_perplexity(root=tmp_path, part="main")["part"].to_numpy()) == {"main"}
    with pytest.raises(InputError, match=r"has no '128 5 reps n=30 text 1.zip', '128 5 reps n=30 text 2.zip'"):
        rank_perplexity(root=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[0].pop(), "gpt-4 64.xlsx: has the columns"),
        (lambda rows: rows[1].__setitem__(0, 3.0), "Reference token: is 3.0 in row 2, should be text"),
        (lambda rows: rows[2].__setitem__(4, "high"), "Linear Score: is 'high' in row 3, should be a number"),
        (lambda rows: rows[2].__setitem__(2, "['a', 'b'"), "Token ranking: is .* in row 3, should be a list"),
        (lambda rows: rows[2].__setitem__(2, "__import__('os').getcwd()"), "Token ranking: is .*should be a list"),
        (lambda rows: rows[2].__setitem__(2, "(" * 5000), "Token ranking: is .*should be a list"),
        (lambda rows: rows[2].__setitem__(2, "['a', 1]"), "Token ranking: is .*each element a text"),
        (lambda rows: rows[2].__setitem__(3, "[-1.0, None]"), "Token logprobs: is .*each element a number"),
        (lambda rows: rows[2].__setitem__(3, "[-1.0]"), "row 3 ranks 8 tokens and has 1 log-probabilities"),
        (lambda rows: rows[2].__setitem__(3, repr([0.5] * 8)), "ranked_logprob: is 0.5"),
        (lambda rows: b"PK not a workbook", "gpt-4 64.xlsx: is not a readable workbook"),
    ],
)
def test_malformed_workbooks(tmp_path: Path, change, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rank_perplexity(root=tiny_ranks.write(tmp_path / "root", tiny_ranks.broken(change)))


@pytest.mark.parametrize(
    "name", ["Saved Data reftext gpt-5 64.xlsx", "Notes.xlsx", "Saved Data reftext2 gpt-4 64.xlsx"]
)
def test_foreign_workbooks(tmp_path: Path, name: str) -> None:
    found = tiny_ranks.broken(lambda rows: None)
    found["n = 30 reftext1.zip"][name] = tiny_ranks.sheet(1)
    with pytest.raises(
        InputError, match=r"unknown model 'gpt-5'|has a name that is not|is not of the main run of text 1"
    ):
        rank_perplexity(root=tiny_ranks.write(tmp_path / "root", found))


def test_dangerous_archives(tmp_path: Path) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"\0" * (17 * 2**20))
    with pytest.raises(InputError, match="would unpack to 17825792 bytes"):
        rank_perplexity(root=tiny_ranks.write(tmp_path / "bomb", tiny_ranks.broken(lambda rows: bomb.getvalue())))
    root = tiny_ranks.write(tmp_path / "outside")
    with zipfile.ZipFile(root / ARCHIVES[0].name, "a") as archive:
        archive.writestr("../Saved Data reftext gpt-4 32.xlsx", b"")
    with pytest.raises(InputError, match=r"leads out of the archive with '\.\.'"):
        rank_perplexity(root=root)
    (root / ARCHIVES[0].name).write_bytes(b"nothing")
    with pytest.raises(InputError, match="is not a readable zip archive"):
        rank_perplexity(root=root)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rot": "x"}, "unknown setting 'rot'"),
        ({"name": "lm_game"}, "unknown setting 'name'"),
        ({"part": "some"}, "part: is 'some', should be one of all, main, repeats"),
        ({"root": 3}, "root: is 3"),
        ({"url": "ftp://x"}, "url: is 'ftp://x'"),
        ({"commit": ""}, "commit: is ''"),
    ],
)
def test_wrong_settings(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rank_perplexity(**settings)


def test_a_download_with_another_hash_is_refused(tmp_path: Path, tiny_root: Path) -> None:
    with serving(tiny_root) as url, pytest.raises(InputError, match=r"could not be downloaded.*hash"):
        rank_perplexity(cache_dir=str(tmp_path), url=url + "/{file}")
    assert not list((tmp_path / "rank_perplexity").glob("*.zip"))


def test_download_of_the_published_files(tmp_path: Path, rank_perplexity_root: Path) -> None:
    with serving(rank_perplexity_root) as url:
        settings = {"cache_dir": str(tmp_path), "url": url + "/{file}", "part": "repeats"}
        assert rank_perplexity(**settings).sizes["token"] == 1200
    assert rank_perplexity(**settings).sizes["token"] == 1200


# ----------------------------------------------------------------------------------------------------- table


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz", "table.parquet"])
def test_a_table_comes_back_as_it_was(tmp_path: Path, tiny_root: Path, name: str) -> None:
    study = rank_perplexity(root=str(tiny_root))
    ids = np.arange(study.sizes["token"] * 8).reshape(-1, 8)
    study = study.assign(
        reference_id=("token", ids[:, 0]),
        ranked_id=(("token", "rank"), ids),
        reference_logprob=("token", np.linspace(-9, -1, study.sizes["token"])),
        reference_rank=("token", np.arange(study.sizes["token"]) + 1.5),
    )
    study["ranked_token"][3, 5:] = None
    study["ranked_logprob"][3, 5:] = np.nan
    study["ranked_id"][3, 5:] = -1
    write_ranking_table(study, tmp_path / name)
    back = ranking_table(path=tmp_path / name)
    order = sorted(
        range(study.sizes["token"]),
        key=lambda row: tuple(
            study[key].to_numpy()[row] for key in ("model", "text", "context_length", "window", "position")
        ),
    )
    for variable in back.data_vars:
        want = study[variable].to_numpy()[order]
        got = back[variable].to_numpy()
        if variable == "ranked_token":
            want, got = (np.where([[isinstance(x, str) for x in row] for row in v], v, "") for v in (want, got))
        np.testing.assert_array_equal(got, want, err_msg=str(variable))
    assert set(back.data_vars) >= {"generated_token", "reference_id", "ranked_id", "reference_logprob"}


ROWS = {
    "model": ["m"] * 3,
    "text": ["t"] * 3,
    "context_length": [8] * 3,
    "window": ["1"] * 3,
    "position": [0, 0, 1],
    "reference_token": [" NA", " NA", "null"],
    "rank": [1, 2, 1],
    "token": ["NA", "", "\r\n"],
    "logprob_nats": [-0.5, -1.5, -0.1],
}


def test_odd_tokens_in_csv(tmp_path: Path) -> None:
    pd.DataFrame({**ROWS, "mine": 1}).to_csv(tmp_path / "t.csv", index=False)
    study = ranking_table(path=tmp_path / "t.csv")
    assert study["ranked_token"].to_numpy()[0].tolist() == ["NA", ""]
    assert study["ranked_token"].to_numpy()[1, 0] == "\r\n"
    assert study["reference_token"].to_numpy().tolist() == [" NA", "null"]
    assert "mine" in json.loads(study.attrs["notes"])[0]["text"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": [1, 3, 1]}, "rank: is 3 in .* where 2 should follow.*position 0"),
        ({"rank": [1, 1, 1]}, "rank: is 1 in .* where 2 should follow"),
        ({"rank": [1, 2.5, 1]}, "rank: is '2.5' in line 3, should be a whole number"),
        (
            {"reference_token": [" NA", "other", "null"]},
            "reference_token: is 'other' in .*, but ' NA' in another row of the same reference token",
        ),
        ({"logprob_nats": [-0.5, "low", -0.1]}, "logprob_nats: is 'low' in line 3"),
        ({"logprob_nats": [-1.5, -0.5, -0.1]}, "ranked_logprob: is -0.5"),
        ({"window": None}, "window: is missing; the table has model, text"),
        (
            {"logprob_nats": [-0.1, -0.2, -0.1]},
            r"logprob_nats: the probabilities add up to 1\.72 for one reference token",
        ),
        ({"logprob_nats": [1e9, -0.2, -0.1]}, r"is '1000000000\.0' in line 2, should be ln p, at most 0"),
        ({"token": ["a", "a", "b"]}, "token: is 'a' again in line 3 for one reference token .*give token_id and"),
        (
            {"token_id": [1, 1, 3], "reference_id": [1, 1, 2]},
            "token_id: is '1' again in line 3 for one reference token",
        ),
        ({"token_id": [1, 2, 3]}, "token_id: reference_id and token_id go together"),
    ],
)
def test_malformed_tables(tmp_path: Path, change: dict, message: str) -> None:
    columns = {name: values for name, values in {**ROWS, **change}.items() if values is not None}
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match=message):
        ranking_table(path=str(tmp_path / "t.csv"))


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        ranking_table(path=str(tmp_path / "no.csv"))
    (tmp_path / "t.xlsx").write_bytes(b"x")
    with pytest.raises(InputError, match="is a workbook; save its sheet as CSV"):
        ranking_table(path=str(tmp_path / "t.xlsx"))
    (tmp_path / "t.parquet").write_bytes(b"x")
    with pytest.raises(InputError, match="is no parquet file that can be read"):
        ranking_table(path=str(tmp_path / "t.parquet"))
    (tmp_path / "t.csv").write_text(",".join(ROWS) + "\n")
    with pytest.raises(InputError, match="holds no ranked token"):
        ranking_table(path=str(tmp_path / "t.csv"))
    with pytest.raises(InputError, match="unknown setting 'root'"):
        ranking_table(root="x")
    with pytest.raises(InputError, match="path: has no value yet"):
        ranking_table()


def test_a_data_frame_is_the_study_of_its_file(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS).sample(frac=1, random_state=0)
    pd.DataFrame(frame).to_csv(tmp_path / "t.csv", index=False)
    xr.testing.assert_identical(
        ranking_study(frame).drop_attrs(),
        load_study(config("study=ranking_table", f"study.path={tmp_path / 't.csv'}").study).drop_attrs(),
    )
    numbered = ranking_study(frame.assign(text=7, window=[1.0, 1.0, 1.0]), name="mine")
    assert (numbered["text"].to_numpy().tolist(), numbered["window"].to_numpy().tolist()) == (["7"] * 2, ["1"] * 2)
    assert numbered.attrs["name"] == "mine"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"token": ["NA", None, "x"]}, "ranks, token: is '' in row 2, should be text"),
        ({"rank": [1, np.nan, 1]}, "ranks, rank: is '' in row 2, should be"),
        ({"window": None}, "ranks, window: is missing; the table has model, text, context_length"),
    ],
)
def test_bad_data_frames(change: dict, message: str) -> None:
    columns = {name: values for name, values in {**ROWS, **change}.items() if values is not None}
    with pytest.raises(InputError, match=message):
        ranking_study(pd.DataFrame(columns))
    with pytest.raises(
        InputError, match=r"ranks: is a dict, should be a pandas\.DataFrame with one row a ranked token"
    ):
        ranking_study(columns)
