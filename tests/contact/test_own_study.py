"""Sentences of one's own, as experimenters have them: from a table and a question in plain words to collected norms."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import yaml

from shannon_game import simulated, tvd
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.__main__ import main
from shannon_game.experiments.collect.checklist import study_findings
from shannon_game.experiments.collect.collection import open_collection
from shannon_game.experiments.collect.database import open_database
from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.preview_pages import preview_key
from shannon_game.experiments.collect.server import app, app_of
from shannon_game.experiments.collect.settings import CollectSettings, RecruiterSettings
from shannon_game.experiments.planning.own_study import read_question, study_command
from shannon_game.experiments.studies.collected.loader import collected_study
from tests.contact.test_data_dictionary import check_export
from tests.experiments.collect.players import Player
from tests.experiments.command import run_experiment

WORDS = ("bread", "milk", "door", "river", "garden", "bird")


def bracketed(path: Path) -> None:
    rows = [f"s{at},The man in house {at} looked for the [{word}] again." for at, word in enumerate(WORDS)]
    path.write_text("item,sentence\n" + "\n".join(rows) + "\n", encoding="utf-8")


def gaps_without_words(path: Path) -> None:
    rows = [f"The man in house {at} looked for the ____." for at in range(len(WORDS))]
    path.write_text("Satz\n" + "\n".join(rows) + "\n", encoding="cp1252")


def column_of_regions(path: Path) -> None:
    rows = [f"{at};The man in house {at} looked for the {word} again.;{word}" for at, word in enumerate(WORDS)]
    path.write_text("id;text;region\n" + "\n".join(rows) + "\n", encoding="utf-8-sig")


def contexts_in_excel(path: Path) -> None:
    pytest.importorskip("openpyxl")
    contexts = [f"The man in house {at} looked for the" for at in range(len(WORDS))]
    pd.DataFrame({"context": contexts, "target": WORDS}).to_excel(path, index=False)


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (bracketed, "s.csv"),
        (gaps_without_words, "s.csv"),
        (column_of_regions, "s.csv"),
        (contexts_in_excel, "s.xlsx"),
    ],
)
def test_each_context_gets_the_answers_that_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path(name))
    assert study_command([name, "cloze norms of 6 sentences by 4 people"]) == 0
    settings = CollectSettings(plan=Path("my_study/plan.yaml"), before=None, after=None)
    study, database = settings.study_of(collect_demo()), open_database(settings.url)
    made = app(settings, study, database)
    for word in ("bread", "milk", "bread", "bread"):
        player = Player(made, "cloze")
        player.begin()
        assert "[[names]]" in player.page.text  # the consent text that is still to be filled in
        player.post("/consent", agree="yes")
        player.post("/instructions", **{"rule-0": "2", "rule-1": "1"})
        player.play_all(word)
        assert player.page.url.path == "/thanks"
    database.close()
    found = collected_study(game="cloze")
    assert str(found["context"].to_numpy()[0]).endswith("looked for the")
    items = tvd(found).tables["items"]
    assert items["n_answers"].tolist() == [4] * 6
    assert items["modal_answer"].tolist() == ["bread"] * 6


def test_a_moved_folder_is_served_and_what_a_repository_gets_names_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bracketed(Path("s.csv"))
    study_command(["s.csv", "cloze norms by 4 people"])
    server = Path("my_study").rename(tmp_path / "server")
    settings = CollectSettings(plan=server / "plan.yaml", recruiter=RecruiterSettings(completion_code="C0DE"))
    database = open_database(settings.url)
    player = Player(app(settings, settings.study_of(collect_demo()), database), "cloze")
    player.to_play("?PROLIFIC_PID=pid-of-ann")
    player.play_all("bread")
    player.post("/after", **{"q-knew_text": "0", "q-comments": "I am Ann Smith"})
    assert player.page.url.path == "/thanks"
    database.close()
    assert main(["bundle", "--folder", "osf"]) == 0
    check_export(Path("osf"))
    said = {path.name: path.read_text(encoding="utf-8") for path in Path("osf").glob("[!.]*")}
    assert said.keys() >= {"README.md", "plan.yaml", "consent.en.md", "answers_cloze.csv", "surveys.csv"}
    whole = "".join(said.values())
    assert [name in whole for name in ("bread", "knew_text", "pid-of-ann", "Ann Smith", "C0DE")] == [True] * 2 + [
        False
    ] * 3
    (version,) = set(pd.read_csv("osf/answers_cloze.csv")["consent_version"])
    assert version in said["README.md"]


@pytest.mark.parametrize("name", ["before", "consent"])
def test_texts_in_a_plan_where_a_file_is_named_are_one_line(tmp_path: Path, name: str) -> None:
    text = "We store your answers. " * 20
    given = {"before": [{"name": f"q{at}", "kind": "line", "text": text} for at in range(3)], "consent": text}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump({name: given[name]}), encoding="utf-8")
    with pytest.raises(InputError, match=f"^{name}: ") as error:
        CollectSettings(plan=tmp_path / "plan.yaml")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("write", [bracketed, gaps_without_words])
def test_a_plan_is_rehearsed_as_it_stands_without_a_language_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None]
) -> None:
    """As many simulated people as the plan has, and norms by the command of its README, in the order of the table."""
    monkeypatch.chdir(tmp_path)
    write(Path("s.csv"))
    # attention checks are understood in the pages' language
    study_command(["s.csv", "cloze norms by 5 people", "--language", "fr"])
    said = Path("my_study/README.md").read_text(encoding="utf-8")
    rehearsal, norms = re.findall(r"`shannon-game (collect .*simulated|tvd .*cloze)`", said)
    table = run_experiment("+exp=collect", *rehearsal.split()[1:]).table
    assert table[["belief", "n_players", "n_answers"]].to_numpy().tolist() == [["invented", 5, 30]]
    items = run_experiment("+exp=tvd", *norms.split()[1:], "study.url=sqlite:///collect_rehearsal.sqlite").tables[
        "items"
    ]
    assert items["n_answers"].tolist() == [5] * 6
    assert [int(context.split()[4]) for context in items["context"]] == [*range(6)]


def test_a_plan_of_comparisons_that_does_not_fit_says_which_would(tmp_path: Path) -> None:
    study = simulated(n_items=24, n_reference_items=24, n_candidates=2, vocab_size=20, seed=1)
    blocks = [{"game": "cloze", "n_questions": 8}, {"game": "comparison", "n_questions": 16}]
    database = open_database(f"sqlite:///{tmp_path / 'c.sqlite'}")
    with pytest.raises(InputError, match=r"or ask \d+ of cloze and \d+ of comparison, of \d+ people") as refused:
        app(CollectSettings(blocks=blocks, n_sessions=30), study, database)
    words, comparisons, people = map(int, re.findall(r"(\d+) (?:of c|people)", str(refused.value))[-3:])
    assert words * people >= 8 * 30
    assert comparisons * people >= 16 * 30
    for block, number in zip(blocks, (words, comparisons), strict=True):
        block["n_questions"] = number
    app(CollectSettings(blocks=blocks, n_sessions=people), study, database)
    database.close()


def test_what_a_plan_computes_and_what_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bracketed(Path("s.csv"))
    study_command(["s.csv", "cloze norms with 40 answers, 3.5 minutes"])
    plan = yaml.safe_load(Path("my_study/plan.yaml").read_text())
    (block,) = plan["blocks"]
    assert plan["n_sessions"] * block["n_questions"] >= 40 * 6
    assert block["n_questions"] * 10 / 60 <= 0.5
    with pytest.raises(InputError, match=r"80 answers in each of 6 contexts.* 80 people, or 60 answers"):
        study_command(["s.csv", "cloze norms, 80 answers by 60 people"])
    with pytest.raises(InputError, match=r"the nearest are 1\.46 nats on them, or 52 contexts"):
        study_command(["s.csv", "loss, interval of 0.5 nats"])
    with pytest.raises(InputError, match="has 5, of which it does not say"):
        read_question("cloze norms with 5 things")
    with pytest.raises(InputError, match="has 'sixty' in letters"):
        read_question("cloze norms by sixty people")
    with pytest.raises(InputError, match="asks for 25 contexts, and the table has 6"):
        study_command(["s.csv", "cloze norms of 25 sentences"])


def test_the_preview_shows_every_page_of_every_list_and_stores_nothing(tmp_path: Path) -> None:
    lists = {"A": ("moby_dick.txt",), "B": ("alice.txt",)}
    blocks = [{"game": game, "n_questions": 1} for game in ("cloze", "comparison")]
    settings = CollectSettings(blocks=blocks, lists=lists, scale="slider", n_sessions=1)
    database = open_database(f"sqlite:///{tmp_path / 'c.sqlite'}")
    collection = open_collection(settings, collect_demo(), database)
    client = Player(app_of(collection), "cloze").client
    address = f"/preview?key={preview_key(collection)}"
    assert client.get("/preview").status_code == client.get("/preview?key=wrong").status_code == 404
    number = int(re.search(r"page 1 of (\d+)", client.get(address).text)[1])  # type: ignore[index]
    pages = [client.get(f"{address}&at={at}") for at in range(0, number, 5)]
    assert {page.status_code for page in pages} == {200}
    assert all('name="csrf" value=""' in page.text for page in pages if 'name="csrf"' in page.text)
    said = "".join(page.text for page in pages)
    assert all(text in said for text in (": A, ", ": B, ", "training", "before"))
    assert client.post("/play", data={"order": "0", "csrf": ""}).status_code == 403
    with database.engine.connect() as connection:
        for table in ("session", "player", "assignment"):
            assert connection.exec_driver_sql(f"select count(*) from {table}").scalar() == 0
    database.close()


def test_the_checklist_finds_what_is_missing_before_the_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHANNON_COLLECT_PASSWORD", raising=False)
    bracketed(Path("s.csv"))
    study_command(["s.csv", "cloze norms by 12 people"])
    problems = {found.name for found in study_findings(Path("my_study/plan.yaml")) if found.problem}
    assert problems >= {"consent, en", "recruiter.return_url", "https", "experimenter's page", "retention", "pilot"}
    assert not problems & {"questions", "pay", "attention checks"}
