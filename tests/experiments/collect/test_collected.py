"""Simulated people through the pages, the loader, and the numbers that the simulator gives without either."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sqlalchemy import select

from shannon_game.estimators.comparison import estimate_perplexity
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation
from shannon_game.estimators.documents.guess_bounds import guess_bounds
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses import guess_ranks
from shannon_game.estimators.layout import item_labels, notes, response_positions
from shannon_game.experiments.collect.__main__ import main
from shannon_game.experiments.collect.collection import Collection, open_collection
from shannon_game.experiments.collect.database import open_database
from shannon_game.experiments.collect.games.cloze import same_word
from shannon_game.experiments.collect.players.crowd import Crowd, play_all
from shannon_game.experiments.collect.players.people import People, Person, simulated_people
from shannon_game.experiments.collect.players.world import continued, world_of
from shannon_game.experiments.collect.server import app_of
from shannon_game.experiments.collect.settings import CollectSettings, PaySettings
from shannon_game.experiments.collect.tables import Player, Session
from shannon_game.experiments.harness.csv_tables import read_guarded_csv
from shannon_game.experiments.studies.collected.loader import collected_study
from shannon_game.experiments.studies.comparison.file import save_comparison_study
from shannon_game.experiments.studies.comparison.lm_game import lm_game
from shannon_game.experiments.studies.comparison.simulated import simulated
from shannon_game.models.comparison.participant_data import participant_data
from tests.contact.test_data_dictionary import check_export
from tests.experiments.command import run_experiment

N_PLAYERS = 4
SEED = 5


@dataclass(frozen=True)
class Played:
    """One collection, played once for all tests."""

    url: str
    study: xr.Dataset
    people: People
    crowds: dict[str, Crowd]
    number: dict[str, int]
    """Pseudonym -> number of the simulated person."""
    folder: Path


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("collected")
    study = simulated(
        n_items=14,
        n_reference_items=14,
        n_candidates=5,
        n_participants=N_PLAYERS,
        vocab_size=120,
        seed=SEED,
        store_reference=True,
    )
    url = f"sqlite:///{folder / 'c.sqlite'}"
    vocabulary = folder / "vocabulary.jsonl"
    vocabulary.write_text("\n".join(map(json.dumps, [*study["token"].to_numpy().tolist(), " the"])))
    settings = CollectSettings(
        vocabulary=vocabulary,
        most_guesses=4,
        n_questions=8,
        training_rounds=2,
        attention_share=0.2,
        seed=SEED,
        pay=PaySettings(base=3.0, bonus_per_1000_points=2.0, most=1.0),
    )
    database = open_database(url)
    collection = open_collection(settings, study, database)
    people = simulated_people(world_of(study), ParticipantPopulation(), N_PLAYERS, SEED)
    crowds = {game: through_pages(collection, people, game) for game in settings.game}
    with database.read() as transaction:
        rows = transaction.execute(select(Player.pseudonym, Player.recruiter_id)).all()
    database.close()
    number = {pseudonym: int(str(recruiter_id).rsplit("-", 1)[1]) for pseudonym, recruiter_id in rows}
    return Played(url, study, people, crowds, number, folder)


def through_pages(collection: Collection, people: People, game: str) -> Crowd:
    players = [(f"{game}-{number}", Person(people, number)) for number in range(len(people.people.bias))]
    parameters = collection.settings.recruiter.parameters
    return play_all(players, game, application=app_of(collection), parameters=parameters)


def test_everybody_comes_to_the_completion_code(played: Played) -> None:
    for crowd in played.crowds.values():
        assert crowd.problems == ()
        assert crowd.n_sent.total() >= N_PLAYERS * (2 + 2 + 8) - 8


def test_reports_through_the_pages_are_the_simulators_to_the_last_digit(played: Played) -> None:
    study = collected_study(url=played.url)
    world, direct = played.people.world, []
    names = item_labels(study)[response_positions(study)]
    draws = study["response_candidate"].to_numpy().tolist()
    for pseudonym, name, draw in zip(study["participant"].to_numpy().tolist(), names.tolist(), draws, strict=True):
        item = world.name.index(name)
        same = world.candidate[item][draw] == world.target[item]
        direct.append(0.5 if same else played.people.report(played.number[pseudonym], item, draw))
    assert study.sizes["response"] >= N_PLAYERS * 8
    np.testing.assert_array_equal(study["report"].to_numpy(), direct)


def test_words_through_the_pages_are_those_of_the_simulator(played: Played) -> None:
    study = collected_study(url=played.url, game="cloze")
    world = played.people.world
    typed = study["word_text"].to_numpy()[study["response_word"].to_numpy()].tolist()
    items = study["item_id"].to_numpy()[study["response_item"].to_numpy()].tolist()
    who = study["participant"].to_numpy().tolist()
    direct = [
        continued(played.people.word(played.number[p], world.name.index(i))) for p, i in zip(who, items, strict=True)
    ]
    assert typed == direct
    assert study.attrs["kind"] == "cloze"
    assert set(study["session"].dims) == {"response"}


def rows_of(study: xr.Dataset) -> list[tuple[str, str]]:
    """Participant and item of every response of a guess study."""
    document = study["item_document"].to_numpy()[study["response_item"].to_numpy()]
    position = study["item_position"].to_numpy()[study["response_item"].to_numpy()]
    named = zip(study["participant"].to_numpy().tolist(), document.tolist(), position.tolist(), strict=True)
    return [(who, where) for who, where, _ in named]


def test_tokens_through_the_pages_are_those_of_the_simulator(played: Played) -> None:
    study = collected_study(url=played.url, game="top1")
    world = played.people.world
    direct = [played.people.token(played.number[who], world.name.index(item)) for who, item in rows_of(study)]
    assert study["guess"].to_numpy().tolist() == direct
    targets = [world.target[world.name.index(item)] for _, item in rows_of(study)]
    right = [guess == target for guess, target in zip(direct, targets, strict=True)]
    assert study["correct"].to_numpy().tolist() == right
    assert float(study["correct"].mean()) == np.mean(right)
    assert study.attrs["kind"] == "guess"


def test_ranks_through_the_pages_are_those_of_the_simulator(played: Played) -> None:
    study = collected_study(url=played.url, game="guess_until_right")
    # what the game asks for is no doubt about the data
    assert not [note for note in notes(study) if note["level"] == "warning"]
    [further] = [note for note in notes(study) if note["text"].startswith("further guesses at a place")]
    places = set(zip(study["participant"].to_numpy(), study["response_item"].to_numpy(), strict=True))
    assert further["count"] == study.sizes["response"] - len(places) > 0
    world, expected = played.people.world, {}
    for who, item in dict.fromkeys(rows_of(study)):
        at = world.name.index(item)
        guesses = played.people.guesses(played.number[who], at, 4)
        found = [same_word(guess, world.target[at]) for guess in guesses]
        expected[who, item] = found.index(True) + 1 if any(found) else np.inf
    ranks = guess_ranks(study)
    items = study["item_document"].to_numpy()[ranks.item].tolist()
    ours = dict(zip(zip(ranks.participant.tolist(), items, strict=True), ranks.rank.tolist(), strict=True))
    assert ours == expected
    assert np.isfinite(ranks.rank).any()
    direct = guess_bounds(
        list(expected.values()), item=[item for _, item in expected], participant=[who for who, _ in expected],
        n_tried=[min(rank, 4) for rank in expected.values()],
    )  # fmt: skip
    through = guess_bounds(ranks.rank, item=ranks.item, participant=ranks.participant, n_tried=ranks.n_tried)
    assert through.lower_nats == pytest.approx(direct.lower_nats, rel=1e-12)
    # of a question with several guesses the last row has the time
    assert np.isfinite(study["server_ms"].to_numpy()).sum() == len(expected)


def test_bets_through_the_pages_are_those_of_the_simulator(played: Played) -> None:
    study = collected_study(url=played.url, game="bets")
    world = played.people.world
    items = study["item_id"].to_numpy()[study["response_item"].to_numpy()].tolist()
    stakes = study["bet_stake"].to_numpy()
    for response, (who, item) in enumerate(zip(study["participant"].to_numpy().tolist(), items, strict=True)):
        chips, other = played.people.bets(played.number[who], world.name.index(item))
        mine = np.flatnonzero(study["bet_response"].to_numpy() == response)
        words = study["bet_word"].to_numpy()[mine].tolist()
        assert all(same_word(word, theirs) for word, theirs in zip(words, chips, strict=True))
        np.testing.assert_allclose(stakes[mine], np.array(list(chips.values())) / 100, rtol=1e-15)
        assert study["other_stake"].to_numpy()[response] == pytest.approx(other / 100, rel=1e-15)
        hits = [same_word(word, world.target[world.name.index(item)]) for word in chips]
        assert study["bet_hit"].to_numpy()[mine].tolist() == hits
    assert study["bet_hit"].to_numpy().any()
    assert study.attrs["kind"] == "bet"


def test_training_rounds_and_checks_are_left_out_and_counted(played: Played) -> None:
    counted = {note["text"]: note["count"] for note in notes(collected_study(url=played.url))}
    assert counted["answers of training rounds, left out"] >= 2 * N_PLAYERS
    assert counted["answers to attention checks, left out"] == 2 * N_PLAYERS


def test_free_answers_on_the_same_contexts_come_along(played: Played) -> None:
    path = save_comparison_study(played.study, played.folder / "served.nc")
    study = collected_study(url=played.url, served=path)
    # the participants whom the served study simulated are others than those who played
    assert "true_slope" in played.study
    assert "true_slope" not in study
    assert "human_target_logprob" in study
    cloze = collected_study(url=played.url, game="cloze")
    assert study.sizes["answer"] > 0
    shared = np.isin(cloze["item_id"].to_numpy()[cloze["response_item"].to_numpy()], study["item_id"].to_numpy()).sum()
    assert study.sizes["answer"] == shared
    # words come from the whole vocabulary: what is no candidate becomes one, with the generator's probability alone
    code, given = study["answer_candidate"].to_numpy(), study["candidate_source"].to_numpy() == "answer"
    assert given.any()
    assert (code >= -1).all()
    logprob = study["candidate_logprob"].to_numpy()[:, given]
    own = study["model"].to_numpy() == study.attrs["generator"]
    assert np.isfinite(logprob[own]).all()
    assert np.isnan(logprob[~own]).all()
    item, _ = np.nonzero(given)
    token = pd.Index(study["token"].to_numpy()).get_indexer(study["candidate_token"].to_numpy()[given])
    np.testing.assert_allclose(logprob[own][0], study["reference_logprob"].to_numpy()[item, token])
    # without the whole distribution such words stay what they are: some other token
    assert set(np.sign(collected_study(url=played.url)["answer_candidate"].to_numpy() + 1.5).tolist()) == {-1.0, 1.0}
    data = participant_data(study, "interface")
    assert data.n_answers.sum() > 0
    assert "answer" not in collected_study(url=played.url, free_answers=False).dims


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"fastest_ms": 1e9}, "holds no answer that counts"),
        ({"most_alike": 0.01}, "holds no answer that counts"),
        ({"pilot": True}, "holds no answer that counts"),
        ({"collection": "other"}, r"collection: is 'other'; there are 1 \(simulated, "),
        ({"url": "sqlite:///nowhere.sqlite"}, "there is no file 'nowhere.sqlite'"),
        ({"url": "nothing"}, "url: should be sqlite:///FILE"),
    ],
)
def test_rules_that_leave_everything_out(played: Played, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        collected_study(**{"url": played.url} | changes)


def test_an_excluded_participant_is_not_there(played: Played) -> None:
    whole = collected_study(url=played.url)
    name = whole["participant"].to_numpy()[0]
    study = collected_study(url=played.url, exclude_participants=(name,))
    assert set(study["participant"].to_numpy()) == set(whole["participant"].to_numpy()) - {name}
    counted = {note["text"]: note["count"] for note in notes(study)}
    assert counted["answers of excluded participants (exclude_participants), left out"] > 0


def test_a_database_without_answers_says_so(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'empty.sqlite'}"
    open_database(url).close()
    with pytest.raises(InputError, match="study collected, url: holds no answer yet"):
        collected_study(url=url)


def test_the_public_layout_reads_back_as_the_same_study(played: Played, tmp_path: Path) -> None:
    assert main(["public", "--url", played.url, "--folder", str(tmp_path)]) == 0
    ours = collected_study(url=played.url)
    last = ours.sizes["item"] - 1
    theirs = lm_game(
        root=tmp_path, sets={"answered": (0, last)}, reference=(0, last), participants="all", repeats="keep"
    )
    for name in ("context", "target_token", "candidate_token", "target_logprob", "candidate_logprob", "participant"):
        np.testing.assert_array_equal(theirs[name].to_numpy(), ours[name].to_numpy())
    for name in ("response_item", "response_candidate", "report", "automatic"):
        np.testing.assert_array_equal(theirs[name].to_numpy(), ours[name].to_numpy())
    assert estimate_perplexity(theirs, "human").perplexity == estimate_perplexity(ours, "human").perplexity


def test_tables_for_spreadsheets_hold_every_answer(played: Played, tmp_path: Path) -> None:
    assert main(["export", "--url", played.url, "--folder", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.glob("*.csv")} == {
        "answers_comparison.csv",
        *(f"answers_{game}.csv" for game in ("bets", "cloze", "guess_until_right", "top1")),
        "surveys.csv",
        "pay.csv",
        "data_dictionary.csv",
    }
    check_export(tmp_path)
    assert {path.stat().st_mode & 0o777 for path in (*tmp_path.glob("*.csv"), played.folder / "c.sqlite")} == {0o600}
    table = read_guarded_csv(tmp_path / "answers_comparison.csv")
    own = table[(table["training"] == "0") & (table["attention"] == "0")]
    study = collected_study(url=played.url)
    assert own["report"].astype(float).tolist() == study["report"].to_numpy().tolist()
    assert own["candidate"].tolist() == [
        study["candidate_token"].to_numpy()[i, j]
        for i, j in zip(response_positions(study), study["response_candidate"].to_numpy(), strict=True)
    ]
    assert not any(name in (tmp_path / "answers_comparison.csv").read_text() for name in ("comparison-0", "cloze-1"))
    pay = read_guarded_csv(tmp_path / "pay.csv")
    assert set(pay["recruiter_id"]) == {f"{game}-{number}" for game in played.crowds for number in range(N_PLAYERS)}
    assert (pay["base"].astype(float) == 3.0).all()
    earned = pay["score_points"].astype(float).clip(lower=0) * 2.0 / 1000
    np.testing.assert_allclose(pay["bonus"].astype(float), earned.clip(upper=1.0), atol=0.0051)
    points = own.groupby("participant")["score_points"].agg(lambda cells: cells.replace("", "0").astype(float).sum())
    paid = pay[pay["game"] == "comparison"].set_index("participant")["score_points"].astype(float)
    assert (paid - points).abs().max() < 0.06


def test_one_participant_is_deleted_and_the_others_stay(played: Played, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes((played.folder / "c.sqlite").read_bytes())
    url = f"sqlite:///{copy}"
    whole = collected_study(url=url)
    gone = str(whole["participant"].to_numpy()[0])
    assert main(["forget", "--url", url, gone]) == 0
    left = collected_study(url=url)
    kept = whole["participant"].to_numpy() != gone
    np.testing.assert_array_equal(left["report"].to_numpy(), whole["report"].to_numpy()[kept])
    assert main(["forget", "--url", url, gone]) == 2
    assert gone.encode() not in b"".join(row.encode() for row in left["participant"].to_numpy())
    database = open_database(url)
    with database.read() as transaction:
        assert transaction.scalars(select(Session).join(Player).where(Player.pseudonym == gone)).all() == []
    database.close()


@pytest.fixture
def no_database(tmp_path: Path) -> str:
    (tmp_path / "run.log").write_text("no database, but long enough to look like one\n" * 100)
    return f"sqlite:///{tmp_path / 'run.log'}"


def test_what_is_no_database_is_named(no_database: str) -> None:
    with pytest.raises(InputError, match=r"url.*no database that collect\(\) wrote"):
        collected_study(url=no_database)
    with pytest.raises(InputError, match=r"database: is .*no database that \+exp=collect wrote"):
        run_experiment("+exp=collect", f"experiment.database={no_database}")


def test_a_damaged_database_is_one_line_and_never_half_exported(
    played: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(played.url.removeprefix("sqlite:///"))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    good = Path(played.url.removeprefix("sqlite:///")).read_bytes()
    rng = random.Random(1)
    for number in range(8):
        bad, page = bytearray(good), 4096 * rng.randrange(1, len(good) // 4096)
        if number % 2:
            bad[page : page + 4096] = rng.randbytes(4096)
        else:
            del bad[page:]
        path = tmp_path / f"{number}.sqlite"
        path.write_bytes(bad)
        assert main(["export", "--url", f"sqlite:///{path}", "--folder", str(tmp_path / f"out{number}")]) == 2
        said = capsys.readouterr().err
        assert said.startswith("error: url: is")
        assert said.count("\n") == 1
        assert not (tmp_path / f"out{number}").exists()
