"""Models that answer a comparison study in text: one whose belief is known, behind an endpoint; a tiny one here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game import comparison_file, perplexity
from shannon_game.estimators.comparison import HUMAN, estimate_gap, estimate_perplexity, round_reports
from shannon_game.experiments.comparison.text_players.pairs import TextPlayersSettings, asked_pairs
from shannon_game.inference.text.prompts import shown
from shannon_game.models import participant_data
from tests.experiments.command import TINY, behind_endpoint, prepared
from tests.experiments.tiny_language_models import named
from tests.inference.api.fake_server import serving
from tests.inference.api.talking_server import TalkingEndpoint

BELIEF = "lm-weak"
LEAN = 0.7
pytestmark = pytest.mark.usefixtures("api_key")
SMALL = (*TINY, "study.n_items=6", "study.n_candidates=8")
_ASKED = re.compile(r"Text: (.*)\n\nA: (.*)\nB: (.*)\n(.*)", re.DOTALL)


def overrides(url: str, folder: Path, *more: str) -> list[str]:
    stores = (f"experiment.api_store={folder / 'answers.db'}", f"experiment.store={folder / 'store'}")
    return ["+exp=text_players", *SMALL, *behind_endpoint(url), *stores, *more]


def believer(study: xr.Dataset, unreadable: str = "") -> Callable[[str, str], tuple[str, dict[str, float]]]:
    """Says what a model of the study believes, rounded in words and exactly by first tokens, and leans to A."""
    logprob: dict[tuple[str, str], float] = {}
    for item in range(study.sizes["item"]):
        context = str(study["context"].to_numpy()[item])
        of = study.sel(model=BELIEF)
        logprob[context, shown(str(study["target_token"].to_numpy()[item]))] = float(
            of["target_logprob"].to_numpy()[item]
        )
        for token, value in zip(
            study["candidate_token"].to_numpy()[item], of["candidate_logprob"].to_numpy()[item], strict=True
        ):
            logprob[context, shown(token)] = float(value)

    def says(system: str, user: str) -> tuple[str, dict[str, float]]:
        context, a, b, question = _ASKED.search(user).groups()
        log_odds = logprob[context, a] - logprob[context, b]
        if "probable" in question:
            percent = round(100 * float(round_reports([1 / (1 + np.exp(-log_odds))], "interface")[0]))
            return (unreadable if unreadable and a == shown(unreadable) else f"{percent}%"), {"x": 0.5}
        p = 1 / (1 + np.exp(-log_odds - LEAN))
        return "A", {"A": 0.9 * p, "B": 0.9 * (1 - p), "The": 0.05}

    return says


def played(folder: Path, *more: str, says=None, **server):
    study = prepared("+exp=perplexity", *SMALL).study
    with serving(TalkingEndpoint(says or believer(study), **server)) as endpoint:
        job = prepared(*overrides(endpoint.url, folder, *more))
        return job.study, job.run(), endpoint


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory, api_key: None):
    """Study, result and endpoint of a model that says what it believes, and the folder of the answers paid for."""
    folder = tmp_path_factory.mktemp("known")
    return (*played(folder), folder)


def gap_by_hand(study: xr.Dataset, reports: dict[tuple[int, int], float]) -> float:
    """Equation 5 on reports of pairs; of equal strings it is one half."""
    of = study.sel(model=study.attrs["generator"])
    terms = [
        float(of["target_logprob"][item] - of["candidate_logprob"][item, candidate])
        + np.log1p(-report)
        - np.log(report)
        for (item, candidate), report in reports.items()
    ]
    return estimate_gap(terms, [item for item, _ in reports]).gap_nats


def test_a_model_that_says_what_it_believes(known) -> None:
    study, result, _, _ = known
    pairs = asked_pairs(study, TextPlayersSettings())
    of = study.sel(model=BELIEF)
    belief = (
        of["target_logprob"].to_numpy()[pairs.position]
        - of["candidate_logprob"].to_numpy()[pairs.position, pairs.candidate]
    )
    belief[pairs.automatic] = 0
    table = result.table.set_index(["way", "rounding"])
    exact = 1 / (1 + np.exp(-belief))
    keys = list(zip(pairs.position.tolist(), pairs.candidate.tolist(), strict=True))
    for way, reports in (
        (("options", "none"), exact),
        (("options", "interface"), round_reports(exact, "interface")),
        # the two orders are two answers, which agree here
        (("verbalised", "none"), round_reports(exact, "interface")),
    ):
        assert table.loc[way, "gap_nats"] == pytest.approx(gap_by_hand(study, dict(zip(keys, reports, strict=True))))
    # it leans to A by first tokens alone, and the average over both orders is its belief
    assert table.loc[("options", "none"), "position_bias_nats"] == pytest.approx(LEAN)
    assert table.loc[("verbalised", "none"), "position_bias_nats"] == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(
        result.dataset["said_nats"].sel(text_player="api, options")[~pairs.automatic], belief[~pairs.automatic]
    )
    assert table.loc[("verbalised", "none"), "n_questions"] == 2 * (~pairs.automatic).sum()
    assert (table["n_unreadable"].dropna() == 0).all()
    assert np.isnan(table.loc[("options", "none"), "slope"])
    assert table.loc[("people", "none"), "perplexity"] == pytest.approx(estimate_perplexity(study, HUMAN).perplexity)
    assert set(table["standing"]) == {"too few"}
    half = dict.fromkeys(keys, 0.5)
    assert table.loc[("baseline", "none"), "gap_nats"] == pytest.approx(gap_by_hand(study, half))


def test_its_studies_are_read_and_asked_like_any_other(known, tmp_path: Path) -> None:
    _, result, _, _ = known
    result.writers["studies"](tmp_path / "studies")
    assert sorted(path.name for path in (tmp_path / "studies").iterdir()) == ["api_options.nc", "api_verbalised.nc"]
    for name, people in (("api_verbalised", ["api (target A)", "api (target B)"]), ("api_options", ["api"])):
        back = comparison_file(path=tmp_path / "studies" / f"{name}.nc")
        found = perplexity(back, players="human", rounding="none").table
        way = name.removeprefix("api_")
        rounding = "none" if way == "verbalised" else "interface"
        row = result.table.set_index(["way", "rounding"]).loc[(way, rounding)]
        assert found["perplexity"].tolist() == pytest.approx([row["perplexity"]])
        # human_loss takes reports on the game's values
        assert participant_data(back).participant.tolist() == people


def test_every_answer_is_in_a_table_and_none_is_paid_twice(known) -> None:
    _, first, endpoint, folder = known
    assert set(endpoint.charged.values()) == {1}
    _, again, silent = played(folder, f"models.api.base_url={endpoint.url}")
    assert silent.n_requests == 0
    pd.testing.assert_frame_equal(again.table, first.table)
    answers = first.tables["answers"]
    assert {"participant", "item", "draw", "report"} <= set(answers)
    verbalised = answers[answers["way"] == "verbalised"]
    assert verbalised[~verbalised["automatic"]]["answer"].str.fullmatch(r"\d+%").all()
    assert verbalised[verbalised["automatic"]]["report"].eq(0.5).all()
    row = verbalised[~verbalised["automatic"] & (verbalised["target_side"] == "B")].iloc[0]
    assert row["report"] == pytest.approx(1 - int(row["answer"].rstrip("%")) / 100)


def test_what_cannot_be_read_is_counted_listed_and_left_out(tmp_path: Path) -> None:
    study = prepared("+exp=perplexity", *SMALL).study
    pairs = asked_pairs(study, TextPlayersSettings())
    token = pairs.target[int(np.flatnonzero(~pairs.automatic)[0])]
    lost = [
        (a == token) + (b == token)
        for a, b, same in zip(pairs.target, pairs.other, pairs.automatic, strict=True)
        if not same
    ]
    _, result, _ = played(tmp_path, "experiment.ways=verbalised", says=believer(study, unreadable=token))
    table = result.table.set_index("way")
    assert table.loc["verbalised", "n_unreadable"] == sum(lost) > 0
    assert result.tables["unreadable"][["answer", "n"]].to_numpy().tolist() == [[token, sum(lost)]]
    answers = result.tables["answers"]
    assert answers["report"].isna().sum() == sum(lost)
    assert f"{sum(lost)} of" in result.warnings[0]
    result.writers["studies"](tmp_path / "studies")
    back = comparison_file(path=tmp_path / "studies" / "api_verbalised.nc")
    assert back.sizes["response"] == 2 * len(pairs.target) - sum(lost)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model that takes a whole prompt."""
    pytest.importorskip("torch")
    from tests.inference.lm import tiny_models

    folder = tmp_path_factory.mktemp("text")
    tiny_models.save(folder / "d", "llama", tiny_models.sentencepiece(), seed=4)
    path = folder / "d" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"max_position_embeddings": 4096}))
    return folder


@pytest.mark.torch
def test_a_model_that_runs_here(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A random one writes nothing readable; by its first tokens it says something, and what it believes is known."""
    from shannon_game.inference.lm import causal

    small = ("study.n_items=3", "experiment.pairs_per_item=1", "experiment.max_tokens=2")
    small = (*small, "experiment.ways=[verbalised,boxes,options]")
    given = ["+exp=text_players", *SMALL, *small, *named(tiny, "d"), f"experiment.store={tmp_path}"]
    result = prepared(*given).run()
    table = result.table.set_index(["way", "rounding"])
    assert table.loc[("verbalised", "none"), "n_unreadable"] == table.loc[("verbalised", "none"), "n_questions"] > 0
    assert np.isfinite(
        table.loc[("options", "none"), ["position_bias_nats", "slope", "agreement", "perplexity"]].tolist()
    ).all()
    assert np.isfinite(table.loc[("belief", "none"), "perplexity"])
    # the mean of the eleven values is between them, and hardly moves with a random model
    boxes = result.dataset["probability_a"].sel(text_player="d, boxes").to_numpy()
    assert ((boxes > 0.01) & (boxes < 0.99))[np.isfinite(boxes)].all()
    assert table.loc[("boxes", "none"), "n_unreadable"] == 0
    assert set(result.figures) == {"points", "said"}
    assert not mpl.rcParams["axes.grid"]
    # what is stored is not computed again
    for name in ("generate", "option_log_probs", "continuation_log_probs"):
        monkeypatch.setattr(causal, name, None)
    pd.testing.assert_frame_equal(prepared(*given).run().table, result.table)
