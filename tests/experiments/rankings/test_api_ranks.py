"""Texts in, a fake endpoint asked, a ranking table out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.outputs import write_outputs
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.studies.rankings.table import ranking_table
from tests.experiments.command import behind_endpoint, config, prepared
from tests.inference.api.fake_server import KEY, FakeEndpoint, never, ranking, serving

pytestmark = pytest.mark.usefixtures("api_key")
WORDS = [f" word{number}" for number in range(60)]


def overrides(url: str, folder: Path, *more: str) -> list[str]:
    settings = {
        "study.path": folder / "text.txt",
        "experiment.tokenizer": "study",
        "experiment.lengths": "[4,8]",
        "experiment.n_windows": 3,
        "experiment.n_tokens": 5,
        "experiment.store": folder / "answers.db",
    }
    return [
        "+exp=ranks",
        "study=texts",
        *behind_endpoint(url, kind="completions", top_logprobs=5),
        "experiment.posterior=false",
        *(f"{name}={value}" for name, value in settings.items()),
        *more,
    ]


def ranked(study: xr.Dataset, *given: str) -> ExperimentResult:
    """Ranks of tokens that a text file has not."""
    job = prepared(*given)
    return job.experiment(study, job.settings)


@pytest.fixture
def study(tmp_path: Path):
    (tmp_path / "text.txt").write_text("".join(WORDS))
    loaded = prepared(*overrides("http://localhost", tmp_path)).study
    return loaded.assign(
        token=("position", np.array(WORDS, dtype=object)), token_document=("position", np.zeros(60, dtype=np.int64))
    )


def test_the_table_it_writes_is_a_ranking_study(study, tmp_path: Path) -> None:
    with serving(FakeEndpoint(never)) as endpoint:
        given = overrides(endpoint.url, tmp_path)
        result = ranked(study, *given)
    assert sorted(set(result.tables["windows"]["context_length"])) == [4, 8]
    assert np.isfinite(result.table.drop(columns="model").to_numpy(dtype=float)).all()
    (tmp_path / "out").mkdir()
    write_outputs(tmp_path / "out", config(*given), study, result)
    back = ranking_table(path=tmp_path / "out" / "ranking.csv")
    assert back.sizes["token"] == 30
    row = 7
    start = int(back["window"].to_numpy()[row].removeprefix("token "))
    length, position = (int(back[name].to_numpy()[row]) for name in ("context_length", "position"))
    before = "".join(WORDS[start - length : start + position])
    assert back["ranked_token"].to_numpy()[row].tolist() == [token for token, _ in ranking(before, 5)]
    assert back["reference_token"].to_numpy()[row] == WORDS[start + position]
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes()


def test_an_estimate_asks_nothing(study, tmp_path: Path) -> None:
    with serving(FakeEndpoint(never)) as endpoint:
        result = ranked(study, *overrides(endpoint.url, tmp_path, "experiment.estimate_only=true"))
        assert endpoint.n_requests == 0
    assert result.table["n_calls_most"].tolist() == [30]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("experiment.n_windows=99", "but the texts have 10 places"),
        ("experiment.tokenizer=words", "should be study, tiktoken:ENCODING or file"),
        ("experiment.tokenizer=file:none.json", "gives no tokenizer|needs the package"),
        ("model=[api,smollm2]", "models: names api, smollm2; ranks takes one endpoint"),
    ],
)
def test_wrong_settings(study, tmp_path: Path, override: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ranked(study, *overrides("http://localhost", tmp_path, override))
