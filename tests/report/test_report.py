"""The report as data and as a file: what it says, its size, its escaping. In a browser: test_report_page.py."""

import json
import math
import re

import numpy as np
import polars as pl
import pytest

from rgld import RGLD
from rgld._explain.words import Value
from rgld._model.ranks import fit_cdf, normalized_rank
from rgld._table.encoding import Column
from rgld.exceptions import ParameterError, TableError
from rgld.report import _charts, _columns, _gather, report_data, write_report
from rgld.report._axes import bin_edges, linear_ticks, log_ticks, tail, time_ticks
from rgld.report._page import page
from rgld.report._text import visible

from .report_tables import HOSTILE, hostile, hostile_ids, payments

LARGEST_PAGE = 3_000_000


@pytest.fixture(scope="module")
def table():
    return payments()


@pytest.fixture(scope="module")
def detector(table):
    return RGLD.plus(random_state=0).fit(table)


@pytest.fixture(scope="module")
def data(detector, table):
    return report_data(detector, table, source="payments.csv", command="rgld report payments.csv -o report.html")


def data_of(content):
    """Return the data as a browser reads it: up to the first end of the script that carries it."""
    block = re.search(rb'<script type="application/json" id="data">(.*?)</script', content, re.DOTALL)
    return json.loads(block[1])


def test_three_sentences_say_how_many_which_and_why(data, detector, table):
    n_flagged = int((detector.predict(table) == -1).sum())
    first, second, third = data["summary"]
    assert first.startswith(f"{n_flagged:,} of 3,000 rows") and "payments.csv" in first
    assert second.startswith("The most unusual is row 7: ") and "amount 9,940 is far above usual" in second
    assert third.startswith(f"In the {n_flagged:,} highest rows, the evidence comes mostly from ")


def test_rows_are_the_highest_with_their_scores_and_reasons(data, detector, table):
    scores = detector.anomaly_score(table)
    order = np.argsort(-scores, kind="stable")[: len(data["rows"])]
    assert [row["id"] for row in data["rows"]] == [str(i) for i in order]
    assert [row["rank"] for row in data["rows"]] == list(range(1, len(order) + 1))
    assert [row["score"] for row in data["rows"]] == pytest.approx(scores[order], abs=1e-6)
    explained = detector.explain(table[order.tolist()])
    for i, row in enumerate(data["rows"]):
        assert row["reasons"] == (explained.reasons(i) or [explained.kind(i)])
        assert row["kind"] == explained.kind(i)
        shares = {cell["column"]: cell["share"] for cell in row["columns"]}
        assert shares == pytest.approx({j: explained.shares()[i, j] for j in shares}, abs=1e-4)


def test_values_are_shown_as_the_table_has_them(data, table):
    names = table.columns
    for row in data["rows"][:20]:
        cells = {names[cell["column"]]: cell["text"] for cell in row["columns"]}
        assert cells["merchant"] == table["merchant"][int(row["id"])]
        assert float(cells["amount"].replace(",", "")) == pytest.approx(table["amount"][int(row["id"])], rel=1e-3)


def test_distributions_mark_the_value(data, table):
    names = table.columns
    row = data["rows"][0]
    cells = {names[cell["column"]]: cell for cell in row["columns"]}
    amount = data["distributions"][names.index("amount")]
    assert amount["type"] == "histogram"
    assert cells["amount"]["at"] > amount["usual"][1]
    country = data["distributions"][names.index("country")]
    assert country["bars"][0] == ["DE", pytest.approx((table["country"] == "DE").mean())]
    merchant = data["distributions"][names.index("merchant")]
    rest = 1.0 - sum(share for _, share in merchant["bars"])
    assert len(merchant["bars"]) == 8 and merchant["bars"][0][0] == "shop 00"
    assert merchant["note"] == f"all 3,000 training rows; 32 other values in {100 * rest:.0f} % of them"
    place, share = cells["country"]["bar"]
    assert (country["bars"][place][0] if place >= 0 else "KY") == "KY"
    assert place >= 0 or share == pytest.approx(1 / 3000)


def test_columns_say_how_they_were_read(data):
    read = {entry["name"]: entry for entry in data["columns"]}
    assert read["payment_id"]["kind"] == "not used" and "id" in read["payment_id"]["how"]
    assert read["currency"]["how"] == "it is constant"
    assert read["weight_kg"]["how"] == "missing values filled with the median and marked"
    assert read["time"]["kind"] == "date or time"
    assert sum(entry["share"] for entry in read.values()) == pytest.approx(1.0, abs=0.01)


def test_every_row_is_in_the_score_chart_and_samples_are_said(data, detector, table):
    scores = data["scores"]
    assert sum(scores["counts"]) == 3000
    assert sum(scores["above"]) == data["n_flagged"] == int((detector.predict(table) == -1).sum())
    drawn = {name: len(points) for name, points in data["map"]["points"].items()}
    assert drawn["ordinary"] == _charts.MAX_ORDINARY
    assert data["drawn"].startswith("Drawn are ") and f"{_charts.MAX_ORDINARY:,} of " in data["drawn"]


def test_threshold_divides_the_score_chart(data):
    scores = data["scores"]
    edges = np.linspace(scores["low"], scores["high"], len(scores["counts"]) + 1)
    above = np.array(scores["above"])
    assert above[edges[1:] < scores["threshold"]].sum() == 0
    assert np.array_equal(
        above[edges[:-1] > scores["threshold"]], np.array(scores["counts"])[edges[:-1] > scores["threshold"]]
    )


def test_small_tables_are_drawn_whole():
    table = payments(300)
    data = report_data(RGLD.plus(random_state=0).fit(table), table)
    assert sum(len(points) for points in data["map"]["points"].values()) == 300
    assert data["drawn"] == "All 300 rows are drawn."
    assert len(data["rows"]) == _gather.MIN_TOP_ROWS


def test_two_branches_are_drawn_against_each_other(table):
    detector = RGLD(random_state=0).fit(table)
    data = report_data(detector, table)
    branches = detector.branch_scores(table)
    first = int(data["rows"][0]["id"])
    expected = tail(np.array([branches.global_score[first], branches.local_score[first]]))
    assert data["scatter"]["points"]["top"][0] == pytest.approx(expected, abs=1e-3)
    assert (data["scores"]["low"], data["scores"]["high"]) == (0.0, 1.0)


@pytest.mark.parametrize("parameters", [{"n_local_views": 0}, {"n_global_views": 0}], ids=["global", "local"])
def test_one_branch_says_that_there_is_one(table, parameters):
    data = report_data(RGLD(random_state=0, **parameters).fit(table), table)
    assert "This detector has one branch" in data["scatter"]["note"]
    assert sum(data["scores"]["counts"]) == 3000


def test_the_threshold_is_said_to_be_a_definition(detector, table):
    first = report_data(detector, table)["summary"][0]
    assert "score above the threshold of 0.95. In any table that the detector learns from, about 0.6 % to 5 %" in first
    from rgld import RGLD

    fixed = RGLD.fast(random_state=0, contamination=0.02, n_global_views=0).fit(table)
    assert "about 2 % do, even without anomalies." in report_data(fixed, table)["summary"][0]


def test_findings_are_rows_above_the_threshold_that_share_their_reasons(detector, table):
    data = report_data(detector, table)
    places = [place for group in data["groups"] for place in group["rows"]]
    assert sorted(places) == [place for place, row in enumerate(data["rows"]) if row["flagged"]]
    breaking = {row for relation in data["relations"] for row in relation["rows"]}
    order = [(group["rows"][0] not in breaking, group["rows"][0]) for group in data["groups"]]
    assert order == sorted(order) and not order[0][0]  # rows that break a relation first
    assert all(group["reasons"] for group in data["groups"])


def test_p_values_and_ids_are_shown(detector, table):
    p = np.linspace(1e-6, 1.0, 3000)
    data = report_data(detector, table, ids=table["payment_id"].to_list(), id_name="payment_id", p_values=p)
    assert data["rows"][0]["id"] == "P100049"
    assert data["rows"][0]["p"] == pytest.approx(p[7], rel=1e-3)
    assert ". At a false-discovery rate of 5 %, " in data["summary"][0]
    assert "payment_id P100049" in data["summary"][1]


def test_select_and_summary_agree(table):
    detector = RGLD.plus(random_state=0, calibration_fraction=0.3).fit(payments(seed=1))
    selected = int(detector.select(table, fdr=0.05).sum())
    data = report_data(detector, table, p_values=detector.p_values(table))
    assert data["facts"][-1]["value"] == f"{selected:,}"


@pytest.mark.parametrize("odd", [-0.01, 1.01, np.nan])
def test_p_values_are_from_0_to_1(detector, table, odd):
    p = np.full(3000, 0.5)
    p[7] = odd
    with pytest.raises(ParameterError, match="p_values must be numbers from 0 to 1"):
        report_data(detector, table, p_values=p)


@pytest.mark.parametrize("wrong", [{"ids": ["a"]}, {"p_values": [0.5, 0.5]}], ids=["ids", "p_values"])
def test_lengths_must_fit(detector, table, wrong):
    with pytest.raises(ParameterError, match="must have one entry for each of the 3,000 rows"):
        report_data(detector, table, **wrong)


def test_same_report_from_any_frame(detector, table, data):
    for other in (table.to_pandas(), table.to_arrow()):
        again = report_data(detector, other, source="payments.csv", command="rgld report payments.csv -o report.html")
        assert again == data


@pytest.mark.parametrize("n", [2, 3, 11])
@pytest.mark.parametrize("d", [1, 3])
def test_tiny_tables(n, d):
    X = np.random.default_rng(0).normal(size=(n, d))
    for detector in (RGLD(random_state=0), RGLD.plus(random_state=0)):
        assert len(page(report_data(detector.fit(X), X))) < LARGEST_PAGE


def test_odd_numbers():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        (rng.normal(size=300) * 1e300, rng.integers(0, 2, 300), np.full(300, 5.0), rng.normal(size=300))
    )
    X[::7, 3] = np.nan
    page(report_data(RGLD.plus(random_state=0).fit(X), X))  # no NaN, no infinity: JSON would refuse them


def test_rows_with_gaps_and_unseen_values(detector, table):
    new = table.head(60).with_columns(
        pl.lit(None, dtype=pl.Float64).alias("amount"),
        pl.lit("new shop").alias("merchant"),
        pl.lit(None, dtype=pl.Boolean).alias("returning"),
    )
    data = report_data(detector, new)
    cells = {table.columns[cell["column"]]: cell for cell in data["rows"][0]["columns"]}
    assert cells["amount"]["text"] == "" and "at" not in cells["amount"]
    assert cells["merchant"]["bar"] == (-1, 0.0)
    assert "bar" not in cells["returning"]


def test_values_beyond_the_bars_are_given_by_their_fraction():
    """Eight values have bars, with the indices 0 to 7; the ninth is one of the other values."""
    column = Column("shop", "category", values=tuple("abcdefghij"), counts=(20, 19, 18, 17, 16, 15, 14, 13, 12, 11))
    bars = {text: _columns.bar_of(column, Value(np.nan, text), 155) for text in "ahij"}
    assert bars == {"a": (0, 0.0), "h": (7, 0.0), "i": (-1, 12 / 155), "j": (-1, 11 / 155)}
    assert _columns.bar_of(column, Value(np.nan, "new"), 155) == (-1, 0.0)


def test_text_that_is_no_number_alone_among_the_top_rows():
    """A column of numbers in text form is read with the whole table, not row by row."""
    rng = np.random.default_rng(0)
    texts = [f"{value:.3f}" for value in rng.normal(size=500)]
    texts[3] = "unknown"
    table = pl.DataFrame({"a": texts, "b": rng.normal(size=500)})
    page(report_data(RGLD.plus(random_state=0).fit(table), table))


def test_wrong_table_is_refused(detector, table):
    with pytest.raises((TableError, ValueError)):
        report_data(detector, table.drop("amount"))


# The file


def test_written_file_holds_the_data(detector, table, data, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    write_report(detector, table, path, source="payments.csv", command="rgld report payments.csv -o report.html")
    assert data_of(path.read_bytes()) == json.loads(json.dumps(data))
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_failed_write_leaves_the_old_file(detector, table, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ParameterError):
        write_report(detector, table, path, ids=["a"])
    with pytest.raises(IsADirectoryError):
        write_report(detector, table, tmp_path)
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_nothing_outside_is_referred_to(data):
    content = page(data).decode()
    without_data = re.sub(r'(id="data">).*?(</script)', r"\1\2", content, flags=re.DOTALL)
    assert not re.search(
        r"(src|href)=[\"'](?!#)|@import|url\(|fetch\(|XMLHttpRequest|innerHTML|insertAdjacent|document\.write|eval\(",
        without_data,
    )
    assert re.findall(r"https?://[^\"']+", without_data) == ["http://www.w3.org/2000/svg"]  # a name, not an address
    assert "default-src 'none'" in content and "unsafe" not in content
    assert "@@" not in without_data


def test_hostile_values_stay_in_the_data():
    table = hostile()
    detector = RGLD.plus(random_state=0).fit(table)
    data = report_data(
        detector, table, source=HOSTILE[1], ids=hostile_ids(), id_name=HOSTILE[2], command=f"rgld report {HOSTILE[0]}"
    )
    content = page(data)
    assert data_of(content) == json.loads(json.dumps(data))
    block = content[content.index(b'id="data">') + 10 :]
    block = block[: block.index(b"</script")]
    assert not re.search(rb"[<>&\x00]", block) and "\u2028".encode() not in block
    assert content.count(b"<script") == 2
    assert len(content) < 500_000


def test_half_a_surrogate_pair_is_written(detector, table, tmp_path):
    write_report(detector, table, tmp_path / "r.html", source="\ud800.csv", ids=["x\udfff"] * 3000)
    data = data_of((tmp_path / "r.html").read_bytes())
    assert data["source"] == "?.csv" and data["rows"][0]["id"] == "x?"


@pytest.mark.parametrize("character", ["<", "😀"])
def test_no_table_makes_a_large_page(character):
    """Long hostile texts in many columns and names: the page keeps its size."""
    rng = np.random.default_rng(0)
    n, d = 400, 320
    columns = {}
    for j in range(d):
        values = [f"{i % 3}{character * 300}" for i in range(n)]
        values[j] = f"{j}{character * 300}"
        columns[f"{j}{character * 300}"] = values
    columns["x"] = rng.normal(size=n)
    table = pl.DataFrame(columns)
    data = report_data(RGLD.fast(random_state=0).fit(table), table, ids=[character * 500] * n)
    assert len(page(data)) < LARGEST_PAGE
    assert len(data["distributions"]) <= _columns.MAX_DISTRIBUTIONS


def test_wide_tables_list_the_first_columns():
    X = np.random.default_rng(0).normal(size=(120, 700))
    data = report_data(RGLD.fast(random_state=0).fit(X), X)
    assert data["n_columns"] == 700 and len(data["columns"]) == _columns.MAX_LISTED


# Parts


def test_unranked_inverts_the_rank():
    rng = np.random.default_rng(0)
    for n in (50, 20_000):
        cdf = fit_cdf(rng.normal(size=n))
        values = np.append(rng.normal(size=200), [cdf.values[-1] + 1.0, cdf.values[0] - 1.0])
        assert _charts.unranked(cdf, normalized_rank(cdf, values)) == pytest.approx(values, abs=1e-6)


def test_ticks_lie_at_round_values():
    assert linear_ticks(-0.3, 0.31) == [(pytest.approx(v), t) for v, t in ((-0.2, "-0.2"), (0.0, "0.0"), (0.2, "0.2"))]
    assert [label for _, label in linear_ticks(0, 4e6)] == ["0", "1M", "2M", "3M", "4M"]
    assert [label for _, label in log_ticks(-2.0, 1.0)] == ["0.01", "0.1", "1", "10"]
    year = [label for _, label in time_ticks(1.7040672e9, 1.7356896e9)]  # 2024
    assert year == ["Jan 2024", "Apr 2024", "Jul 2024", "Oct 2024", "Jan 2025"]
    assert [label for _, label in time_ticks(0.0, 86400.0)][:2] == ["1 Jan 00:00", "1 Jan 06:00"]


@pytest.mark.parametrize("low", [-1e300, -5.0, 0.0, 1e-9, 1e12])
@pytest.mark.parametrize("width", [1e-9, 1.0, 1e300])
def test_ticks_are_few_and_inside(low, width):
    high = low + width
    if high > low:
        ticks = linear_ticks(low, high)
        assert len(ticks) <= 12
        assert all(low - 1e-6 * width <= position <= high + 1e-6 * width for position, _ in ticks)


def test_whole_numbers_have_bins_of_their_own():
    values = np.repeat(np.arange(1.0, 7.0), [1, 2, 3, 4, 5, 6])
    histogram = _columns._histogram("number", values, np.array([9.0]))
    assert histogram["counts"][:6] == [1, 2, 3, 4, 5, 6]
    assert histogram["low"] == 0.5


def test_far_values_do_not_flatten_a_histogram():
    values = np.random.default_rng(0).normal(size=5000)
    histogram = _columns._histogram("number", values, np.array([1e9]))
    assert histogram["high"] < 10.0


def test_everything_is_visible_and_short():
    assert visible("a\nb\u202ec") == "a␊b�c"
    assert len(visible("y" * 500)) == 80


def close_numbers(start, unit, most, n=120):
    return start + unit * np.random.default_rng(0).integers(0, most, n)


EXTREME = {
    "close large whole numbers": close_numbers(1e16, 2.0, 3),
    "the largest with halves": close_numbers(2.0**51, 1.0, 30),
    "no whole number between": close_numbers(2.0**53, 2.0, 30),
    "close negative ones": close_numbers(-1e16, -2.0, 3),
    "neighbours of 1": close_numbers(1.0, np.spacing(1.0), 4),
    "few denormal numbers": close_numbers(0.0, 5e-324, 5),
    "many denormal numbers": close_numbers(0.0, 5e-324, 3000),
    "denormal numbers from 1e-310": close_numbers(1e-310, 5e-324, 60),
    "the largest of all": np.random.default_rng(0).choice([1.7e308, -1.7e308, 0.0], 120),
}


@pytest.mark.parametrize("values", EXTREME.values(), ids=EXTREME.keys())
@pytest.mark.parametrize("settings", [{}, {"n_local_views": 0}, {"n_global_views": 0}])
def test_columns_at_the_limits_of_floating_point(values, settings):
    table = pl.DataFrame({"a": values, "b": np.random.default_rng(1).normal(size=len(values))})
    data = report_data(RGLD(random_state=0, **settings).fit(table), table)
    page(data)
    for drawn in (*data["distributions"].values(), data["scores"]):
        assert drawn["low"] < drawn["high"] and sum(drawn["counts"]) == len(values)
        slack = 1e-6 * (drawn["high"] - drawn["low"])
        assert all(drawn["low"] - slack <= at <= drawn["high"] + slack for at, _ in drawn["ticks"])
        labels = [label for _, label in drawn["ticks"]]
        assert len(set(labels)) == len(labels)


def test_bins_where_floating_point_has_few_numbers():
    assert (bin_edges(1e16, 1e16 + 4, 48) - 1e16).tolist() == [-2.0, 0.0, 2.0, 4.0, 6.0]
    assert bin_edges(0.0, 1.0, 4).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    for low, units in [(1.0, 4), (1.0, 47), (1.0, 2000), (0.0, 5), (0.0, 2300), (-1e300, 300)]:
        high = low + units * math.ulp(low)
        edges = bin_edges(low, high, 48)
        assert edges[0] <= low and edges[-1] >= high
        assert np.all(np.diff(edges) > 0) and len(edges) <= 52
