"""The explorer in a browser: quick, from disk, without a network, for everybody."""

from __future__ import annotations

import shutil

import pytest

from shannon_game import cloze_simulated, explore, perplexity, simulated

pytestmark = pytest.mark.slow
HOSTILE = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>"


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium is installed")
    with sync_api.sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])


@pytest.fixture
def opened(browser, request):
    """A function that opens a file, and what went wrong or was asked of a network meanwhile."""
    contexts = []

    def open_page(path, *, scheme="light", size=(1400, 900)):
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, offline=True)
        contexts.append(context)
        page = context.new_page()
        wrong = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(("file:", "data:", "blob:")) else wrong.append(asked.url),
        )
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", timeout=120_000)
        return page, wrong

    yield open_page
    for context in contexts:
        context.close()


def test_a_thousand_items_open_and_can_be_searched(opened, tmp_path):
    study = simulated(n_items=200, n_reference_items=1000)
    path = explore(study, perplexity(study), tmp_path / "explore.html")
    page, wrong = opened(path)
    assert wrong == []
    # at first those that people answered, from the lowest probability they gave the target; the first one is open
    assert page.locator("#count").inner_text() == "200 of 1000 items, here 1 to 50"
    assert page.locator("#list th[aria-sort=ascending]").inner_text().startswith("people: mean probability")
    assert page.locator("#item-name").inner_text() == f"Item {page.locator('#list tbody th').first.inner_text()}"
    assert page.locator("#search").bounding_box()["y"] < 900 / 2
    page.locator("#clear").press("Enter")
    assert page.locator("#count").inner_text() == "1000 items, here 1 to 50"
    # by the keyboard alone: search, sort, open
    page.locator("#search").focus()
    word = str(study["target_token"].to_numpy()[0]).strip()
    page.keyboard.type(word)
    page.wait_for_function("document.getElementById('count').innerText.includes(' of 1000')")
    page.locator("#clear").press("Enter")
    heading = page.locator("#list th[aria-sort]").nth(3)
    heading.locator("button").press("Enter")
    assert page.locator("#list th[aria-sort]").nth(3).get_attribute("aria-sort") == "descending"
    values = [float(text) for text in page.locator("#list tbody tr td:nth-child(4)").all_inner_texts()]
    assert values == sorted(values, reverse=True)
    second = page.locator("#list tbody tr").nth(1).locator("th button")
    name = second.inner_text()
    second.press("Enter")
    assert page.locator("#item-name").inner_text() == f"Item {name}"
    assert page.evaluate("document.activeElement.id") == "item"
    # a point of the overview opens its item
    page.locator("#chart").scroll_into_view_if_needed()
    item, x, y = page.evaluate(
        """() => {
            const chart = document.getElementById('chart');
            const [view, box] = [chart.view, chart.querySelector('canvas').getBoundingClientRect()];
            // the point farthest to the right, which no other covers
            const point = view.data('points').reduce((one, other) => (other.x > one.x ? other : one));
            const left = view.origin()[0] + view.padding().left;
            const top = view.origin()[1] + view.padding().top;
            return [point.item, box.x + left + view.scale('x')(point.x), box.y + top + view.scale('y')(point.y)];
        }"""
    )
    page.mouse.click(x, y)
    assert page.locator("#item-name").inner_text() == f"Item {item}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1400, 900), (390, 844)])
def test_everybody_can_use_it(opened, tmp_path, scheme, size):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    path = explore(cloze_simulated(), None, tmp_path / "explore.html")
    page, wrong = opened(path, scheme=scheme, size=size)
    assert wrong == []
    found = [one["id"] for one in axe.run(page).response["violations"] if one["impact"] in ("serious", "critical")]
    assert found == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]


def test_no_text_of_a_study_runs(opened, tmp_path):
    study = cloze_simulated()
    texts, words = study["context"].to_numpy().astype(object), study["word_text"].to_numpy().astype(object)
    texts[:] = [f"{HOSTILE} {text}" for text in texts]
    words[:] = [f"{HOSTILE}{word}" for word in words]
    study = study.assign(context=("item", texts), word_text=("word", words)).assign_attrs(name=HOSTILE)
    page, wrong = opened(explore(study, None, tmp_path / "explore.html"))
    page.locator("#list tbody tr").nth(2).click()
    assert page.evaluate("window.broken") is None
    assert wrong == []
    assert HOSTILE in page.locator("#context").inner_text()
