"""A plan that ``+exp=design`` wrote for a study of few contexts is one that ``+exp=collect`` takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from shannon_game import design
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.collection import open_collection
from shannon_game.experiments.collect.database import open_database
from shannon_game.experiments.collect.games.registry import chosen_contexts
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.harness.report import report
from shannon_game.experiments.planning import experiment as planner
from shannon_game.experiments.studies.comparison.file import comparison_file, save_comparison_study
from shannon_game.experiments.studies.comparison.simulated import simulated
from tests.experiments.command import config, prepared

TINY: dict[str, Any] = {
    "draws": 4,
    "answers": 5,
    "comparisons": 8,
    "scales": "slider",
    "n_screen": 2,
    "n_replicates": 2,
    "width_nats": 6.0,
    "assumed": {"n_beliefs": 2},
}
N_ITEMS = 40
LONG = {"least_people": 2, "session_minutes": 90}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study in which every third token goes on with a word."""
    study = simulated(n_items=N_ITEMS, n_reference_items=N_ITEMS, n_candidates=4, vocab_size=60, store_reference=True)
    goes_on = dict.fromkeys(study["token"].to_numpy().tolist()[::3])
    renamed = np.vectorize(lambda token: token.strip() if token in goes_on else token, otypes=[object])
    names = [name for name in ("token", "target_token", "candidate_token") if name in study.variables]
    study = study.assign({name: (study[name].dims, renamed(study[name].to_numpy())) for name in names})
    return save_comparison_study(study, tmp_path_factory.mktemp("served") / "study.nc")


def askable(path: Path) -> int:
    tokens = comparison_file(path=path)["target_token"].to_numpy()
    return sum(token.startswith(" ") for token in tokens.tolist())


def test_what_design_writes_collect_takes(served: Path, tmp_path: Path) -> None:
    study, n_contexts = comparison_file(path=served), askable(served) - 6
    assert 8 < n_contexts < N_ITEMS - 6
    planned = design(study, games="bridge", contexts=n_contexts, costs=LONG, **TINY)
    planned.writers["plan_bridge.yaml"](tmp_path / "plan.yaml")
    settings = CollectSettings(plan=tmp_path / "plan.yaml")
    assert settings.served == served
    # sessions of 90 minutes would have asked more than there is
    assert planned.table["n_people"].item() > TINY["answers"] + TINY["comparisons"]
    database = open_database("sqlite://")
    deck = open_collection(settings, chosen_contexts(settings.study_of(study), settings), database).deck
    database.close()
    assert {card.game for card in deck.cards.values()} == {"cloze", "comparison"}


def test_more_contexts_than_can_be_asked_are_refused_before_anything_is_simulated(
    served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "draw_worlds", None)
    study, n = comparison_file(path=served), askable(served)
    problem = f"contexts: is {n + 1}, and {n} contexts of the study can be asked in cloze"
    with pytest.raises(InputError, match=problem):
        design(study, games="bridge", contexts=[8, n + 1], **TINY)


def test_the_default_sizes_that_fit_are_planned(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = comparison_file(path=served)
    with pytest.raises(InputError, match="contexts: is 60, and"):
        design(study, games="bridge", **TINY)
    # comparisons ask at every item, cloze where a word begins
    points = planner.design_points(planner.DesignSettings(games=("comparison", "cloze"), contexts=(8, N_ITEMS - 3)))
    left, warnings = planner.served_study(study, 1.0).askable(points, given=False)
    assert {(point.game, point.n_contexts) for point in left} == {
        *(("comparison", 8), ("comparison", N_ITEMS - 3), ("cloze", 8))
    }
    assert [text.partition(", and")[0] for text in warnings] == [
        f"designs left out: 3, the first as contexts is {N_ITEMS - 3}"
    ]


def test_a_game_that_cannot_ask_a_study_is_left_out_of_its_plans(served: Path) -> None:
    # top1 takes tokens of its vocabulary alone, and those of a simulation are none
    study = comparison_file(path=served)
    planned = design(study, games=("bets", "accuracy"), bets=2, guesses=2, contexts=8, costs=LONG, **TINY)
    assert planned.table["game"].unique().tolist() == ["bets"]
    assert any(
        re.match(r"designs left out: 1, the first as .*vocabulary: has no token", text) for text in planned.warnings
    )
    with pytest.raises(InputError, match="vocabulary: has no token"):
        design(study, games="accuracy", guesses=2, contexts=8, **TINY)


def test_the_report_is_of_the_study_that_the_plan_names(served: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(yaml.safe_dump({"served": str(served), "blocks": [{"game": "comparison", "n_questions": 4}]}))
    overrides = ("+exp=collect", f"experiment.plan={plan}", "experiment.players=simulated", "experiment.n_players=2")
    job = prepared(*overrides, f"experiment.database=sqlite:///{tmp_path / 'c.sqlite'}")
    own = comparison_file(path=served)
    assert job.study.attrs == own.attrs
    text = report(config(*overrides), job.study, job.run(), "", settings=job.settings, overrides=overrides, timings={})
    assert text.startswith(f"# collect: {own.attrs['name']}\n")
    assert f"data SHA-256 `{own.attrs['data_sha256']}`" in text
    assert "collect_demo" not in text.partition("<details>")[0]
