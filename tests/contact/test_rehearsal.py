"""Players who are no people: killed and started again, and beside a study of people.

Ways an outsider meets it: the default command beside a live study; the study's database by name; that database with the
wish to use it; a kill; the same command with other players.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import select

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.database import open_database
from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.export import visits
from shannon_game.experiments.collect.server import app
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.tables import Answer, Study
from tests.experiments.collect.players import Player
from tests.experiments.command import environment, run_experiment

TINY = (
    *("+exp=collect", "study=simulated", "study.n_items=40", "study.n_reference_items=40", "study.n_candidates=4"),
    *("study.vocab_size=80", "experiment.n_questions=12", "experiment.training_rounds=1", "experiment.n_players=6"),
    *("experiment.game=[comparison]", "experiment.players=simulated"),
)


def answers(path: Path) -> int:
    """Answers in a file that another process writes."""
    if not path.is_file():
        return 0
    database = open_database(f"sqlite:///{path}")
    with database.read() as transaction:
        found = len(transaction.scalars(select(Answer.id)).all())
    database.close()
    return found


@pytest.mark.subprocess
def test_a_killed_rehearsal_goes_on_by_the_same_command(tmp_path: Path) -> None:
    path = tmp_path / "collect_rehearsal.sqlite"
    command = [sys.executable, "-m", "experiments.run", *TINY, f"hydra.run.dir={tmp_path / 'out'}"]
    # a link of one's own says nothing of who comes
    command += ["experiment.recruiter.platform=other"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    ) as process:
        since = time.monotonic()
        while answers(path) < 12 and process.poll() is None and time.monotonic() - since < 300:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    n_before = answers(path)
    assert n_before >= 12
    again = [*TINY, "experiment.recruiter.platform=other", f"experiment.database=sqlite:///{path}"]
    for _ in range(2):
        assert run_experiment(*again).table["n_answers"].tolist() == [6 * 12]
    database = open_database(f"sqlite:///{path}")
    with database.read() as transaction:
        found = visits(transaction, 1)
        assert [(row[0].state, row.n_answers) for row in found] == [("done", 12)] * 6
    database.close()


def test_a_rehearsal_writes_into_no_database_of_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = CollectSettings(game=("cloze",), n_questions=3, training_rounds=0, attention_share=0)
    assert settings.url == "sqlite:///collect.sqlite"
    database = open_database(settings.url)
    player = Player(app(settings, collect_demo(), database), "cloze")
    player.to_play()
    player.answer("the")
    before = answers(tmp_path / "collect.sqlite")
    run_experiment(*TINY)
    assert answers(tmp_path / "collect_rehearsal.sqlite") >= 6 * 12
    with pytest.raises(InputError, match=r"experiment\.database: holds 'collect_demo', a study of people; leave "):
        run_experiment(*TINY, "experiment.database=sqlite:///collect.sqlite")
    assert answers(tmp_path / "collect.sqlite") == before
    run_experiment(*TINY, "experiment.database=sqlite:///collect.sqlite", "experiment.beside_people=true")
    with database.read() as transaction:
        assert transaction.scalars(select(Study.name)).all() == ["collect_demo", "simulated, simulated players"]
    player.get("/play")
    assert player.answer("the").url.path in ("/play", "/after")
    database.close()
