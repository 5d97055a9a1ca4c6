"""The explorer in a browser: quick, from disk, without a network, for everybody."""

from __future__ import annotations

import shutil

import pytest

from shannon_game import cloze_simulated, explore

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
