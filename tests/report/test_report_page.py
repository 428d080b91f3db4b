"""The report's page in a real browser: it opens from a file, works by mouse and keyboard, and executes nothing of a
table."""

import re
import shutil

import numpy as np
import polars as pl
import pytest

from rgld import RGLD
from rgld.report import write_report

from .report_tables import HOSTILE, hostile, hostile_ids, payments

sync_api = pytest.importorskip("playwright.sync_api", reason="the page is tested with playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="the page is tested in Chromium, which is not here")


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    table = payments()
    path = tmp_path_factory.mktemp("report") / "report.html"
    detector = RGLD.plus(random_state=0, calibration_fraction=0.3).fit(payments(seed=1))
    write_report(
        detector,
        table,
        path,
        source="payments.csv",
        ids=table["payment_id"].to_list(),
        id_name="payment_id",
        p_values=detector.p_values(table),
        command="rgld report payments.csv --id payment_id --seed 0 -o report.html",
    )
    return path


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    table = hostile()
    detector = RGLD.plus(random_state=0).fit(table)
    write_report(
        detector, table, path, source=HOSTILE[1], ids=hostile_ids(), id_name=HOSTILE[2], command=f"rgld {HOSTILE[0]}"
    )
    return path


@pytest.fixture
def opened(browser):
    """Return a function that opens a report; whatever the page complains about or asks for makes the test fail."""
    contexts, complaints = [], []

    def open_page(path, **settings):
        context = browser.new_context(**{"viewport": {"width": 1360, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: complaints.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def ranks(page):
    return [int(text) for text in page.locator("#body tr:not([hidden]) td:first-child").all_inner_texts()]


def chosen(page):
    return page.locator("#body tr[aria-selected=true] td.id").inner_text()


def test_opens_and_shows_all_parts(opened, report):
    page = opened(report)
    assert page.title() == "Anomalies in payments.csv"
    assert page.locator("#sentences p").count() == 3
    assert page.locator("figure svg[role=img][aria-label]").count() == 4
    assert page.locator("#score-chart rect.anomaly").count() > 0
    assert page.locator("#scatter-chart circle.row").count() == page.locator("#body tr").count() > 50
    assert page.locator("#map-chart circle.ordinary").count() > 1000
    assert page.locator("#columns tbody tr").count() == 10
    assert "rgld report payments.csv --id payment_id --seed 0" in page.locator("#again").inner_text()
    assert chosen(page) == "P100049"
    assert page.locator("#detail h3").inner_text() == "payment_id P100049"


def test_a_number_and_its_percent_sign_stay_on_one_line(opened, report):
    page = opened(report)
    shown = page.locator("#body, #findings, figure").all_text_contents()
    assert any("\u00a0%" in text for text in shown)
    assert not any(re.search(r"\d %", text) for text in shown)


def test_sorts(opened, report):
    page = opened(report)
    n = page.locator("#body tr").count()
    assert ranks(page) == list(range(1, n + 1))
    head = page.get_by_role("columnheader", name="Rank")
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert ranks(page) == list(range(n, 0, -1))
    assert head.get_attribute("aria-sort") == "descending"
    page.get_by_role("columnheader", name="payment_id").get_by_role("button").press("Enter")
    ids = page.locator("#body td.id").all_inner_texts()
    assert ids == sorted(ids) and head.get_attribute("aria-sort") == "none"


def test_filters(opened, report):
    page = opened(report)
    n = page.locator("#body tr").count()
    page.locator("#find").fill("AMOUNT 9,940")
    assert ranks(page) == [1]
    assert page.locator("#count").inner_text() == f"1 of {n} rows shown."
    page.locator("#find").fill("nowhere to be found")
    assert ranks(page) == [] and page.get_by_text("No row matches.").is_visible()
    page.get_by_role("button", name="Show all rows").click()
    assert len(ranks(page)) == n
    option = page.locator("#strongest option").nth(1)
    name, count = re.fullmatch(r"(.*) \((\d+)\)", option.inner_text()).groups()
    page.get_by_role("combobox", name="Strongest column").select_option(index=1)
    assert len(ranks(page)) == int(count)
    assert set(page.locator("#body tr:not([hidden]) .tag").all_inner_texts()) == {name}


def test_findings_lead_to_their_rows(opened, report):
    page = opened(report)
    finding = page.locator("#findings li", has=page.get_by_role("button", name="show all")).first
    size = int(finding.locator(".size b").inner_text())
    finding.get_by_role("button", name="show all").click()
    assert len(ranks(page)) == size > 3
    assert chosen(page) == finding.locator(".which button").first.inner_text()
    page.locator("#finding").select_option(index=0)
    other = page.locator("#findings li:not([hidden]) .which bdi").nth(-1)
    other.click()
    assert chosen(page) == other.inner_text()
    page.locator("#more-findings").click()
    assert page.locator("#findings li[hidden]").count() == 0


def test_chooses_by_mouse(opened, report):
    page = opened(report)
    line = page.locator("#body tr").nth(3)
    line.click()
    assert line.get_attribute("aria-selected") == "true" and page.locator("tr[aria-selected=true]").count() == 1
    assert page.locator("#detail h3").inner_text().endswith(line.locator("td.id").inner_text())
    reasons = page.locator("#detail ol li").all_inner_texts()
    assert "; ".join(reasons) == line.locator("td.reasons").inner_text()
    bar = page.locator(".parts button").nth(2)
    bar.click()
    assert bar.get_attribute("aria-pressed") == "true"
    assert bar.locator(".name").inner_text() in page.locator("#detail figcaption").inner_text()


def test_chooses_from_a_chart(opened, report):
    page = opened(report)
    page.locator("#map-chart circle.row").first.dispatch_event("click")  # drawn first: the last of the table
    assert page.locator("#body tr[aria-selected=true] td").first.inner_text() == str(page.locator("#body tr").count())


def test_chooses_by_keyboard(opened, report):
    page = opened(report)
    page.locator("#strongest").focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('#body') !== null"):
            break
    assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.locator("#body tr[aria-selected=true] td").first.inner_text() == "3"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert "payment_id" in page.locator("#chosen").inner_text()
    page.keyboard.press("End")
    assert page.locator("#body tr[aria-selected=true] td").first.inner_text() == str(page.locator("#body tr").count())
    page.keyboard.press("Home")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator(".parts button").nth(1).get_attribute("aria-pressed") == "true"


def test_light_and_dark(opened, report):
    background = "getComputedStyle(document.body).backgroundColor"
    light, dark = (opened(report, color_scheme=scheme) for scheme in ("light", "dark"))
    assert light.evaluate(background) != dark.evaluate(background)
    before = dark.evaluate(background)
    dark.get_by_role("button", name="Light colours").click()
    assert dark.evaluate(background) == light.evaluate(background) != before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(opened, report, scheme):
    """WCAG 2 asks for 4.5 to 1 for text of this size."""
    page = opened(report, color_scheme=scheme)
    pairs = page.evaluate(
        """() => ["#sentences p", ".muted", ".eyebrow", "#facts dt", "th", "#body td", "#detail .line", ".tag", "pre"]
          .map((selector) => {
            const element = document.querySelector(selector);
            let behind = element;
            while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
            return [selector, getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
          })"""
    )
    for selector, ink, paper in pairs:
        lighter, darker = sorted((_luminance(ink), _luminance(paper)), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, selector


def _luminance(color):
    channels = np.array([int(part) for part in re.findall(r"\d+", color)[:3]]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("width", [360, 768, 1360])
def test_nothing_sticks_out_sideways(opened, report, hostile_report, width):
    for path in (report, hostile_report):
        page = opened(path, viewport={"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_labels_do_not_overlap(opened, report):
    page = opened(report)
    overlaps = page.evaluate(
        """() => [...document.querySelectorAll("svg")].flatMap((picture) => {
            const boxes = [...picture.querySelectorAll("text")]
              .map((text) => [text.textContent, text.getBoundingClientRect()]);
            return boxes.flatMap(([a, p], i) => boxes.slice(i + 1)
              .filter(([, q]) => p.left < q.right && q.left < p.right && p.top + 2 < q.bottom && q.top + 2 < p.bottom)
              .map(([b]) => `${a} / ${b}`));
          })"""
    )
    assert overlaps == []


def test_prints_in_light_colours_on_few_pages(opened, report, tmp_path):
    page = opened(report, color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('.card')).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("#find").is_visible()
    pdf = page.pdf(format="A4")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 7


def test_hostile_table_stays_text(opened, hostile_report):
    page = opened(hostile_report)
    n = page.locator("#body tr").count()
    shown = page.evaluate(
        """() => [...document.querySelectorAll("#body tr")].map((line) => {
            line.click();
            const bars = [...document.querySelectorAll(".parts button")];
            bars.forEach((bar) => bar.click());
            return bars.length;
          })"""
    )
    assert len(shown) == n and min(shown) == 10
    page.locator("#find").fill("<script>")
    assert 0 < len(ranks(page)) < n
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, iframe, object, embed, link, form").count() == 0
    assert page.locator("script").count() == 2
    assert HOSTILE[1] in page.locator("h1").inner_text()
    assert HOSTILE[0] in page.locator("#again pre").first.inner_text()
    assert HOSTILE[2] in page.locator("#heads").inner_text()


def test_policy_stops_what_would_get_through(browser, report, tmp_path):
    """Were a value ever to become markup, it could neither run nor load anything: here is a page where one did."""
    broken = tmp_path / "broken.html"
    markup = "<main><script>window.hacked = 1</script><img src='x.png' onerror='window.hacked = 2'>"
    broken.write_text(report.read_text("utf-8").replace("<main>", markup), "utf-8")
    page = browser.new_page()
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(broken.as_uri())
    assert page.locator("#sentences p").count() == 3
    assert page.evaluate("window.hacked") is None
    assert len(refused) >= 2 and all("Content Security Policy" in text for text in refused)
    page.close()


def test_what_changed_is_drawn_first(opened, tmp_path):
    """Two distributions for each column that has changed: a histogram of numbers, bars of a category."""
    detector = RGLD.plus(random_state=0, calibration_fraction=0.3).fit(payments(seed=1))
    number, category = (
        next(column.name for column in detector.columns_ if column.kind == kind) for kind in ("number", "category")
    )
    table = payments().with_columns(pl.col(number) * 100, pl.lit(HOSTILE[0]).alias(category))
    found = detector.check(table)
    path = tmp_path / "report.html"
    write_report(detector, table, path, check=found)
    page = opened(path, viewport={"width": 400, "height": 800})
    assert page.inner_text("#drift-title") == "Not like the training table"
    assert page.locator("#drift").bounding_box()["y"] < page.locator("#found").bounding_box()["y"]
    assert "another unit?" in page.inner_text("#drift-words")
    assert page.locator("#drift-charts figure").count() == len(found.drifted_columns) >= 2
    assert page.locator("#drift-charts path.outline").count() >= 1
    assert page.locator("#drift-charts rect.anomaly").count() >= 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_without_a_check_nothing_is_said_of_changes(opened, report):
    assert opened(report).locator("#drift").is_hidden()
