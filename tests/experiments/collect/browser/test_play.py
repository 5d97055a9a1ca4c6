"""Every game in a real browser, from consent to completion code, as people play it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import select

from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.tables import Answer, Assignment, Question, Session
from tests.experiments.collect.browser.people import SIZES, How, Person, Site

pytestmark = [pytest.mark.slow, pytest.mark.subprocess]


def answers(site: Site) -> list[tuple[Answer, Assignment, Question]]:
    """What is stored, in its order; answers that the game gave for the person are left out."""
    query = select(Answer, Assignment, Question).select_from(Answer).join(Assignment).join(Question)
    with site.database.read() as transaction:
        rows = transaction.execute(query.where(Answer.automatic.is_(False)).order_by(Assignment.order))
        return [tuple(row) for row in rows]  # type: ignore[misc]


def stored_answers(site: Site) -> list[object]:
    """All answers, and all steps of those that go on."""
    with site.database.read() as transaction:
        steps = transaction.scalars(select(Assignment.steps).order_by(Assignment.id)).all()
        return [*transaction.scalars(select(Answer.value).order_by(Answer.id)), *steps]


@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("how", ["keyboard", "mouse"])
@pytest.mark.parametrize("game", GAMES)
def test_from_consent_to_completion_code(
    site: Callable[..., Site], person: Callable[..., Person], game: str, how: How, width: int
) -> None:
    here = site()
    player = person(here, game, how, width)
    player.to_play()
    seen: list[str] = []

    def look(one: Person) -> None:
        if one.is_at("/play"):
            seen.append(one.order())
            if len(seen) == 2:
                one.page.reload()
                assert one.order() == seen[-1]
        # nothing is to be scrolled sideways
        assert one.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

    player.play(look)
    player.after()
    assert player.is_at("/thanks")
    with here.database.read() as transaction:
        session = transaction.scalars(select(Session)).one()
        assert session.state == "done"
        assert player.page.locator(".code").inner_text() == session.completion_code
        assert session.screen == ("large" if width > 1000 else "small")
    stored = answers(here)
    assert [bool(row[1].training) for row in stored].count(True) == 1
    assert sum(not row[1].training and not row[2].attention for row in stored) == 3
    checks = [row[0].correct for row in stored if row[2].attention]
    assert checks
    assert all(checks)
    for answer, _, _ in stored:
        assert answer.client_ms is not None
        assert answer.server_ms is not None
        # the browser's clock starts later and stops earlier; a reload starts it again
        assert 0 <= answer.client_ms <= answer.server_ms + 50


@pytest.mark.parametrize("game", GAMES)
def test_without_javascript(site: Callable[..., Site], person: Callable[..., Person], game: str) -> None:
    here = site(languages=("de", "en"))
    player = person(here, game, java_script_enabled=False)
    player.to_play()
    player.play()
    player.after()
    assert player.is_at("/thanks")
    assert all(row[0].client_ms is None for row in answers(here))
    player.page.fill("#name", "Ada <b>")
    player.press("form:has(#name) button")
    assert player.is_at("/leaderboard")


@pytest.mark.parametrize("game", GAMES)
def test_two_tabs(site: Callable[..., Site], person: Callable[..., Person], game: str) -> None:
    """What the second tab answered stays; the first one is told so, and led to where the game is."""
    here = site(training_rounds=0, attention_share=0)
    player = person(here, game)
    player.to_play()
    first = player.page
    player.page = second = player.new_tab()
    second.goto(f"{here.address}/play")
    asked = player.asked()
    player.answer()
    if player.is_at("/feedback"):
        player.press("a.next")
    following, stored = player.asked(), stored_answers(here)
    player.page, player.how = first, "keyboard"
    assert player.asked() == asked != following
    player.answer()
    # 409: answered before
    assert len(player.complaints) == 1
    player.complaints.clear()
    player.press("a.button")
    assert player.asked() == following
    assert stored_answers(here) == stored


@pytest.mark.parametrize("game", GAMES)
def test_going_back_asks_no_question_again(site: Callable[..., Site], person: Callable[..., Person], game: str) -> None:
    here = site(training_rounds=0, attention_share=0, n_questions=2)
    player = person(here, game)
    player.to_play()
    order = player.order()
    player.answer()
    player.page.go_back()
    if player.order() == order:
        # the browser kept the page: the same answer is taken once
        player.answer()
    player.page.goto(f"{here.address}/play")
    player.play()
    assert player.is_at("/after")
    assert len({row[1].order for row in answers(here)}) == len(answers(here)) == 2


def test_the_field_says_at_every_key_whether_it_holds_a_token(
    site: Callable[..., Site], person: Callable[..., Person]
) -> None:
    player = person(site(training_rounds=0, attention_share=0), "top1", "keyboard")
    player.to_play()
    live = player.page.locator(".live")
    for key, text in ((" ", "“·” is a token"), ("t", "“·t” is a token"), ("qx", "“·tqx” is not a token")):
        player.page.keyboard.type(key)
        live.filter(has_text=text).wait_for()


def test_what_is_not_bet_lies_on_anything_else(site: Callable[..., Site], person: Callable[..., Person]) -> None:
    here = site(training_rounds=0, attention_share=0)
    player = person(here, "bets", "keyboard")
    player.to_play()
    other, live = player.page.locator("#chips_other"), player.page.locator(".live")
    assert other.input_value() == "100"
    for text in ("river", "130"):
        player.page.keyboard.type(text)
        player.page.keyboard.press("Tab")
    assert (other.input_value(), live.inner_text()) == ("0", "30 chips too many")
    player.page.fill("input[name=chips1]", "30")
    assert (other.input_value(), live.inner_text()) == ("70", "")
    player.press("form.play button")
    assert answers(here)[0][0].value["other_chips"] == 70


def test_keys_choose_boxes_and_the_page_says_what_was_chosen(
    site: Callable[..., Site], person: Callable[..., Person]
) -> None:
    here = site(training_rounds=0, attention_share=0)
    player = person(here, "comparison", "keyboard")
    player.to_play()
    page = player.page
    assert page.locator("input[name=report]:checked").count() == 0
    for keys, percent in (("7", 70), ("9", 90), ("9", 99), ("9", 90), ("0", 1), ("1", 10), ("1", 1), ("5", 50)):
        page.keyboard.press(keys)
        assert page.locator("input[name=report]:checked").get_attribute("value") == str(percent)
        assert page.locator(".live").inner_text() == f"Your answer: A {percent}%, B {100 - percent}%"
    page.keyboard.press("ArrowRight")
    assert page.locator("input[name=report]:checked").get_attribute("value") == "40"
    page.keyboard.press("ArrowLeft")
    player.press("form.play button")
    stored = answers(here)[0][0]
    assert stored.value["percent_a"] == 50
    assert stored.revisions == 9


def test_keys_move_the_slider_and_the_page_says_what_it_means(
    site: Callable[..., Site], person: Callable[..., Person]
) -> None:
    here = site(training_rounds=0, attention_share=0, scale="slider", game=("comparison",))
    player = person(here, "comparison", "keyboard", 390)
    player.to_play()
    page = player.page
    # a slider that nobody has moved is no answer
    page.keyboard.press("Enter")
    assert "Please move the slider first" in page.locator(".live").inner_text()
    for keys, said in (
        (["ArrowLeft"] * 25, "A is much more likely: 12 to 1 (92.2%)"),
        (["Home"], "A is practically certain: 10,000 to 1 (99.99%)"),
        (["0"], "A and B are equally likely"),
        (["End", "ArrowLeft"], "B is practically certain: 9,100 to 1 (99.99%)"),
    ):
        for key in keys:
            page.keyboard.press(key)
        assert page.locator(".live").inner_text() == page.get_attribute("#report", "aria-valuetext") == said
    with page.expect_navigation():
        page.keyboard.press("Enter")
    [(answer, _, _)] = answers(here)
    assert answer.value["box_a"] == 1


def test_a_key_that_is_held_answers_one_question(site: Callable[..., Site], person: Callable[..., Person]) -> None:
    here = site(training_rounds=0, attention_share=0)
    player = person(here, "comparison", "keyboard")
    player.to_play()
    player.page.keyboard.press("7")
    with player.page.expect_navigation():
        player.page.keyboard.down("Enter")
    for _ in range(5):
        # a key that is down already repeats
        player.page.keyboard.down("Enter")
    assert player.is_at("/feedback")
    player.page.keyboard.up("Enter")
    player.press("a.next")
    assert player.is_at("/play")


def test_a_slow_line_shows_that_an_answer_is_on_its_way(
    site: Callable[..., Site], person: Callable[..., Person]
) -> None:
    player = person(site(training_rounds=0, attention_share=0), "cloze")
    player.to_play()
    slow = {"offline": False, "latency": 2000, "downloadThroughput": -1, "uploadThroughput": -1}
    player.context.new_cdp_session(player.page).send("Network.emulateNetworkConditions", slow)
    player.page.evaluate("""() => {
        const button = document.querySelector("form.play button");
        const note = () => { sessionStorage.said = `${button.disabled} ${button.textContent}`; };
        new MutationObserver(note).observe(button, { attributes: true, childList: true });
    }""")
    player.answer()
    assert player.page.evaluate("sessionStorage.said") == "true Sending …"


def test_a_second_word_is_noticed_while_it_is_typed(site: Callable[..., Site], person: Callable[..., Person]) -> None:
    player = person(site(training_rounds=0, attention_share=0), "cloze", "keyboard")
    player.to_play()
    player.page.keyboard.type("two words")
    assert player.page.locator(".live").inner_text() == "Please type one word only."
    player.page.keyboard.press("Control+Backspace")
    assert player.page.locator(".live").inner_text() == ""
