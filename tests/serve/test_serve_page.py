"""The page at `/` in a real browser: a file or rows in, ranked rows with reasons out; nothing of a table runs."""

import shutil

import polars as pl
import pytest

from rgld import RGLD

from .conftest import trips
from .servers import running

sync_api = pytest.importorskip("playwright.sync_api", reason="the page is tested with playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="the page is tested in Chromium, which is not here")
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """Return a function that opens the page; whatever it complains about, or asks of another server, fails the test."""
    contexts, complaints = [], []

    def open_page(server, *, expected=(), **settings):
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        own = f"http://127.0.0.1:{server.port}/"

        def heard(message):
            if not any(word in message.text for word in expected):
                complaints.append(message.text)

        page.on("console", heard)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on(
            "request",
            lambda request: None if request.url.startswith((own, "data:", "blob:")) else complaints.append(request.url),
        )
        page.goto(own)
        page.wait_for_selector("#columns tr, #problem:not([hidden])", state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def file(tmp_path):
    table = trips(200, 1)
    fares = table["fare"].to_list()
    fares[7] = 900.0
    table.with_columns(pl.Series("fare", fares)).write_csv(tmp_path / "trips.csv")
    return tmp_path / "trips.csv"


def test_a_file_is_ranked_with_reasons(opened, server, file):
    page = opened(server)
    assert "fitted on 1,200 rows, 5 columns" in page.inner_text("#about")
    page.set_input_files("#file", file)
    page.wait_for_selector("#found:not([hidden])")
    assert page.inner_text("#found-title") == "The first 20 of 200 rows"
    planted = page.locator("#body tr", has_text="fare 900 is far above usual")
    assert planted.locator("td").nth(1).inner_text() == "7"
    assert page.locator("#body tr").count() == 20
    assert page.inner_text("#drift") == "Still like the training table."
    assert all(text.strip() for text in page.locator("#body .why").all_inner_texts())  # no row without a reason


def test_dropped_file_and_what_changed(opened, server):
    page = opened(server)
    text = trips(300, 2).with_columns(pl.col("fare") * 100).write_csv()
    page.evaluate(
        """text => {
          const data = new DataTransfer();
          data.items.add(new File([text], "cents.csv", { type: "text/csv" }));
          document.dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true }));
        }""",
        text,
    )
    page.wait_for_selector("#drift.changed")
    assert "100 times as high: another unit?" in page.inner_text("#drift")
    assert page.inner_text("#name") == "cents.csv"


def test_pasted_rows_by_keyboard(opened, server):
    page = opened(server)
    page.focus("#rows")
    page.keyboard.insert_text(trips(3, 3).write_csv())
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#found:not([hidden])")
    assert page.inner_text("#found-title") == "3 rows"
    assert page.evaluate("document.activeElement.id") == "found"


def test_problems_are_told(opened, server):
    page = opened(server, expected=("422",))
    page.click("#go")
    assert "Drop a CSV file, or paste rows" in page.inner_text("#problem")
    page.fill("#rows", "fare,tip\n1,2")
    page.click("#go")
    page.get_by_text("lacks the column").wait_for()
    assert page.locator("#found").is_hidden()


def test_cells_are_never_markup(opened, tmp_path):
    rows = [HOSTILE, *["a", "b"] * 100]
    table = pl.DataFrame({HOSTILE: rows, "x": range(3, 204)})
    RGLD.fast(random_state=0, columns={HOSTILE: "category", "x": "number"}).fit(table).save(tmp_path / "m.rgld")
    with running("--model", tmp_path / "m.rgld") as server:
        page = opened(server)
        page.fill("#rows", table.write_csv())
        page.click("#go")
        page.wait_for_selector("#found:not([hidden])")
        assert page.locator("#body img, #body script, #columns img").count() == 0
        assert "<img src=x" in page.inner_text("#body")


def test_the_report_opens(opened, server, file):
    page = opened(server)
    page.set_input_files("#file", file)
    page.wait_for_selector("#found:not([hidden])")
    with page.context.expect_page() as begun:
        page.click("#report")
    report = begun.value
    report.wait_for_selector("#body tr")
    assert "Still like the training table" in report.inner_text("#drift")


def test_a_token_is_asked_for(opened, model):
    with running("--model", model, environment={"RGLD_TOKEN": "a-token-of-some-length"}) as server:
        page = opened(server, expected=("401",))
        assert "Authorization: Bearer" in page.inner_text("#problem")
        page.fill("#token", "a-token-of-some-length")
        page.press("#token", "Tab")
        page.wait_for_selector("#columns tr", state="attached")
        assert page.locator("#problem").is_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_page_does_not_scroll_sideways(opened, server, file, scheme):
    page = opened(server, viewport={"width": 400, "height": 800}, color_scheme=scheme)
    page.set_input_files("#file", file)
    page.wait_for_selector("#found:not([hidden])")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    ink, paper = page.evaluate(
        "['color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name].match(/\\d+/g).map(Number))"
    )
    assert (sum(ink) < sum(paper)) == (scheme == "light")
