"""Every game in a real browser, from consent to completion code, as people play it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select

from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.surveys import right_answers
from shannon_game.experiments.collect.tables import Answer, Assignment, Question, Session
from tests.experiments.collect.browser.people import SIZES, Person, Site

pytestmark = [pytest.mark.slow, pytest.mark.subprocess]


def answers(site: Site) -> list[tuple[Answer, Assignment, Question]]:
    """What is stored, in its order; answers that the game gave for the person are left out."""
    query = select(Answer, Assignment, Question).select_from(Answer).join(Assignment).join(Question)
    with site.database.read() as transaction:
        rows = transaction.execute(query.where(Answer.automatic.is_(False)).order_by(Assignment.order))
        return [tuple(row) for row in rows]  # type: ignore[misc]


@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("game", GAMES)
def test_from_consent_to_completion_code(
    site: Callable[..., Site], person: Callable[..., Person], game: str, width: int
) -> None:
    here = site()
    player = person(here, game, width)
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


@pytest.mark.parametrize("width", SIZES)
def test_a_visit_by_mouse(site: Callable[..., Site], person: Callable[..., Person], width: int) -> None:
    here = site(training_rounds=0, attention_share=0, n_questions=2)
    player = person(here, "comparison", width)
    page = player.page
    page.goto(here.address)
    page.click("form:has(input[value=comparison]) button")
    page.click("button[value=yes]")
    page.click("label:has(input[name=q-first_language][value='0'])")
    page.click("main button")
    for name, value in right_answers("comparison").items():
        page.click(f"label:has(input[name={name}][value='{value}'])")
    page.click("main form button")
    for _ in range(2):
        page.click("label.box-30")
        assert page.locator(".live").inner_text() == "Your answer: A 30%, B 70%"
        page.click("form.play .actions button")
        page.click("a.next")
    page.click("label:has(input[name=q-knew_text]) >> nth=1")
    page.click("main button")
    page.wait_for_url("**/thanks")
    assert [row[0].value["percent_a"] for row in answers(here)] == [30, 30]
    assert all(row[0].client_ms is not None for row in answers(here))


def test_what_is_not_bet_lies_on_anything_else(site: Callable[..., Site], person: Callable[..., Person]) -> None:
    here = site(training_rounds=0, attention_share=0)
    player = person(here, "bets")
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
    player = person(here, "comparison")
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
    player = person(here, "comparison", 390)
    player.to_play()
    page = player.page
    # a slider that nobody has moved is no answer, and shows none
    assert page.get_attribute("#report", "aria-valuetext") == page.locator(".live").inner_text()
    assert "untouched" in str(page.get_attribute("#report", "class"))
    page.keyboard.press("Enter")
    assert "Please move the slider first" in page.locator(".live").inner_text()
    for keys, said in (
        (["ArrowLeft"] * 25, "A is much more likely: 92%, about 9 in 10"),
        (["Home"], "A is practically certain: 99.99%, about 9,999 in 10,000"),
        (["0"], "A and B are equally likely"),
        (["End", "ArrowLeft"], "B is practically certain: 99.99%, about 4,999 in 5,000"),
    ):
        for key in keys:
            page.keyboard.press(key)
        assert page.locator(".live").inner_text() == page.get_attribute("#report", "aria-valuetext") == said
    with page.expect_navigation():
        page.keyboard.press("Enter")
    [(answer, _, _)] = answers(here)
    assert answer.value["box_a"] == 1


@pytest.mark.parametrize("width", SIZES)
def test_sides_stay_together_from_right_to_left(
    site: Callable[..., Site], person: Callable[..., Person], tmp_path: Path, right_to_left: str, width: int
) -> None:
    """A is above its end of the scale, and its key and button move there."""
    consent = tmp_path / "consent.md"
    consent.write_text("הסכמה", encoding="utf-8")
    settings = {"training_rounds": 0, "attention_share": 0, "game": ("comparison",), "languages": (right_to_left,)}
    player = person(site(scale="slider", consent=consent, **settings), "comparison", width)
    player.to_play()
    page = player.page

    def middle(selector: str) -> float:
        box = page.locator(selector).bounding_box()
        assert box is not None
        return box["x"] + box["width"] / 2

    pairs = (".side-a", ".side-b"), (".ends span >> nth=0", ".ends span >> nth=1"), ("[data-by='-1']", "[data-by='1']")
    assert all(middle(a) < middle(b) for a, b in pairs)
    page.keyboard.press("ArrowLeft")
    assert page.locator("#report").input_value() == "-1"
    player.press("form.play .actions button")
    assert middle(".side-a") < middle(".side-b")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_without_a_script_a_number_is_typed_and_nothing_is_no_answer(
    site: Callable[..., Site], person: Callable[..., Person]
) -> None:
    here = site(training_rounds=0, attention_share=0, scale="slider", game=("comparison",))
    player = person(here, "comparison", java_script_enabled=False)
    page = player.page
    page.goto(here.address)
    for button in ("form[action='/start'] button", "button[value=yes]"):
        page.click(button)
    page.check("input[name=q-first_language][value='0']")
    page.click("form.survey button")
    for name, value in right_answers("comparison").items():
        page.check(f"input[name={name}][value='{value}']")
    page.click("form.survey button")
    assert player.is_at("/play")
    assert not page.locator("#report").is_visible()
    page.click("form.play .actions button")
    # the browser asks for what is missing; one that does not gets the same from the server
    assert page.locator("#percent:invalid").count() == 1
    sent = {
        name: page.locator(f"input[name={name}]").get_attribute("value") or "" for name in ("csrf", "order", "step")
    }
    for typed in ({}, {"percent": ""}, {"percent": "101"}, {"percent": "half"}):
        assert player.context.request.post(f"{here.address}/play", form=sent | typed).status == 422
    page.fill("#percent", "99,5")
    page.click("form.play .actions button")
    assert player.is_at("/feedback")
    [(stored, _, _)] = answers(here)
    # 187 places from 1 : 9,999 to 9,999 : 1
    assert stored.value["box_a"] == 93 + round(93 * math.log(199) / math.log(9_999))


def test_what_is_typed_survives_a_lost_connection_and_arrives_once(
    site: Callable[..., Site], person: Callable[..., Person]
) -> None:
    here = site(training_rounds=0, attention_share=0, game=("cloze",))
    player = person(here, "cloze")
    player.to_play()
    page, word, button = player.page, player.page.locator("#word"), player.page.locator("form.play .actions button")
    # between typing and sending
    page.keyboard.type("river")
    # another tab for a while
    for is_hidden in ("true", "false"):
        page.evaluate(f"Object.defineProperty(document, 'hidden', {{ get: () => {is_hidden}, configurable: true }})")
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    player.context.set_offline(True)
    button.click()
    page.locator("form.play .problem").wait_for()
    assert (word.input_value(), answers(here)) == ("river", [])
    player.context.set_offline(False)
    page.locator("form.play .problem").wait_for(state="detached")
    player.press("form.play .actions button")
    # at sending: the browser shows a page of its own, and the person comes back
    page.keyboard.type("garden")
    page.route("**/play", lambda route: route.abort("connectionreset"))
    button.click()
    page.wait_for_url("chrome-error://**")
    page.unroute("**/play")
    page.goto(f"{here.address}/play")
    assert word.input_value() == "garden"
    # after it: the answer is stored, and its acknowledgement lost
    page.route("**/play", lambda route: (route.fetch(), route.abort("connectionreset")))
    button.click()
    page.wait_for_url("chrome-error://**")
    page.unroute("**/play")
    page.goto(f"{here.address}/play")
    assert word.input_value() == ""
    stored = answers(here)
    assert [row[0].value["word"] for row in stored] == ["river", "garden"]
    assert all(row[0].client_ms > 0 and 0 < row[0].frame_us < 10**6 for row in stored)
    assert [(row[0].n_hidden, row[0].hidden_ms < row[0].client_ms) for row in stored] == [(1, True), (0, True)]
    assert stored[1][0].hidden_ms == 0
    # an unfinished answer goes with the visit
    page.keyboard.type("secret")
    page.goto(f"{here.address}/withdraw")
    player.press("main form button")
    assert page.evaluate("JSON.stringify(Object.entries(sessionStorage))") == "[]"
    # the browser's own, on what was cut
    assert all("Failed to load resource" in each for each in player.complaints)
    player.complaints.clear()
