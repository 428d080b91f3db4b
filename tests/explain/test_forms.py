"""Answers in the form people use: frames with their index, iteration, notebooks, plots, summaries."""

import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rgld import RGLD, TableError

N = 300


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "amount": rng.normal(50.0, 5.0, N).round(2),
            "shop": rng.choice(["Bern", "Genf", "Chur"], N),
            "items": rng.integers(1, 6, N),
        },
        index=[f"order {i}" for i in range(N)],
    )
    frame.iloc[7, 0], frame.iloc[8, 0] = 9_000.0, 8_000.0
    return frame


@pytest.fixture(scope="module")
def detector(table):
    return RGLD.plus(random_state=0).fit(table)


# Frames.


def test_scores_come_back_with_the_index(detector, table):
    scored = detector.with_scores(table)
    assert scored.index.tolist() == table.index.tolist() and scored.columns[:3].tolist() == table.columns.tolist()
    np.testing.assert_array_equal(scored["anomaly_score"], detector.anomaly_score(table))
    np.testing.assert_array_equal(scored["outlier"], detector.predict(table) == -1)
    assert "p_value" not in scored and "anomaly_score" not in table
    backwards = detector.with_scores(table.iloc[::-1])
    assert backwards.loc["order 7", "anomaly_score"] == scored.loc["order 7", "anomaly_score"]


def test_scores_come_back_as_columns_of_any_library(detector, table):
    expected = detector.anomaly_score(table)
    frame = pl.from_pandas(table)
    assert isinstance(detector.with_scores(frame), pl.DataFrame)
    assert detector.with_scores(frame)["anomaly_score"].to_list() == expected.tolist()
    assert detector.with_scores(frame.to_arrow())["anomaly_score"].to_pylist() == expected.tolist()
    rows = detector.with_scores(frame.to_dicts()[:9])
    assert rows[7] == {**frame.row(7, named=True), "anomaly_score": expected[7], "outlier": True}


def test_a_calibrated_detector_adds_p_values(table):
    detector = RGLD.fast(random_state=0, calibration_fraction=0.3).fit(table)
    np.testing.assert_array_equal(detector.with_scores(table)["p_value"], detector.p_values(table))


def test_columns_that_cannot_be_added_are_one_sentence(detector, table):
    again = detector.with_scores(table)[["amount", "shop", "items"]]
    assert again.equals(table)
    fitted = RGLD.fast(random_state=0).fit(table.assign(outlier=1.0 * np.arange(N) ** 2))
    with pytest.raises(TableError, match="already has a column 'outlier': rename or drop it"):
        fitted.with_scores(table.assign(outlier=0.0))
    with pytest.raises(TableError, match=r"Expected a data frame with column names, or a list of .*, got ndarray"):
        RGLD.fast(random_state=0).fit(np.eye(9)).with_scores(np.eye(9))


def test_an_explanation_as_a_frame(detector, table):
    explanation = detector.explain(table)
    frame = explanation.to_frame()
    assert isinstance(frame, pd.DataFrame) and frame.index.tolist() == table.index.tolist()
    assert frame.columns.tolist() == [
        *("anomaly_score", "global_score", "local_score", "kind", "reasons"),
        *("contribution of amount", "contribution of shop", "contribution of items"),
    ]
    assert frame.loc["order 7", "reasons"].startswith("amount 9,000 is far above usual")
    np.testing.assert_array_equal(frame["contribution of amount"], explanation.contributions[:, 0])
    assert isinstance(detector.explain(pl.from_pandas(table)).to_frame(), pl.DataFrame)
    assert len(detector.explain(pl.from_pandas(table).to_dicts()[:2]).to_frame()) == 2
    assert explanation.to_frame(1)["reasons"].str.count("; ").max() == 0


def test_iteration(detector, table):
    explanation = detector.explain(table.iloc[5:9])
    rows = list(explanation)
    assert [row.row for row in rows] == [0, 1, 2, 3] and len(explanation) == 4
    third = rows[2]
    assert third == explanation[2] == explanation[-2]
    assert third.reasons == explanation.reasons(2) and third.kind == explanation.kind(2)
    assert next(iter(third.contributions)) == "amount"
    assert sum(third.contributions.values()) == pytest.approx(explanation.contributions[2].sum())
    with pytest.raises(IndexError):
        explanation[4]


# Arrow, by name.


def test_record_batches_and_readers(detector, table):
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    expected = detector.anomaly_score(table)
    other_order = arrow.select(["items", "amount", "shop"])
    for given in (arrow, other_order):
        (batch,) = given.combine_chunks().to_batches()
        reader = pa.RecordBatchReader.from_batches(given.schema, given.to_batches(max_chunksize=70))
        np.testing.assert_array_equal(detector.anomaly_score(batch), expected)
        np.testing.assert_array_equal(detector.anomaly_score(reader), expected)
        assert detector.explain(given.to_reader()).reasons(7) == detector.explain(table).reasons(7)
    fitted = RGLD.plus(random_state=0).fit(arrow.to_reader())
    np.testing.assert_array_equal(fitted.anomaly_score(table), expected)
    assert detector.with_scores(arrow.to_reader()).column_names[-1] == "outlier"


def test_a_stream_of_readers(table):
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    detector = RGLD.fast(random_state=0).partial_fit(arrow[:200].to_reader())
    detector.partial_fit(arrow[200:].select(["shop", "items", "amount"]).to_reader())
    whole = RGLD.fast(random_state=0).fit(table)
    np.testing.assert_array_equal(detector.anomaly_score(table), whole.anomaly_score(table))


WRONG_COLUMNS = {
    "order": (lambda t: t[t.columns[::-1]], "The table has the columns of the training table in another order"),
    "extra": (lambda t: t.assign(x=1), "The table has the column 'x', which the training table has not"),
    "lacking": (lambda t: t[["amount"]], "The table lacks the columns 'items', 'shop', which the training table has"),
    "other": (
        lambda t: t.rename(columns={"shop": "store"}),
        "The table lacks the column 'shop', which the training table has, and has the column 'store', which it has not",
    ),
}


@pytest.mark.parametrize(("change", "words"), WRONG_COLUMNS.values(), ids=WRONG_COLUMNS)
def test_other_columns_are_one_sentence_with_the_cure(detector, table, change, words):
    wrong = change(table)
    for given in (wrong, wrong.iloc[:1], pl.from_pandas(wrong)):
        with pytest.raises(TableError) as caught:
            detector.anomaly_score(given)
        sentence, scikit_learn = str(caught.value).split("\n", 1)
        assert sentence.startswith(words) and sentence.endswith("pass table[detector.feature_names_in_].")
        assert scikit_learn.startswith("The feature names should match those that were passed during fit.")


def test_the_cure_cures(detector, table):
    expected = detector.anomaly_score(table)
    for name in ("order", "extra"):
        wrong = WRONG_COLUMNS[name][0](table)
        for given in (wrong, pl.from_pandas(wrong)):
            np.testing.assert_array_equal(detector.anomaly_score(given[detector.feature_names_in_]), expected)


# Summaries.


def test_a_summary_says_which_columns_make_rows_stand_out(detector, table):
    explanation = detector.explain(table)
    summary = explanation.summary([7, 8])
    assert summary.columns[0] == "amount" and summary.n_first.tolist() == [2, 0, 0] and summary.n_rows == 2
    np.testing.assert_allclose(summary.shares[0], explanation.shares()[[7, 8], 0].mean())
    assert summary.shares.sum() == pytest.approx(1.0)
    assert repr(summary).splitlines()[0] == "What makes 2 rows stand out, by column"
    assert summary.to_frame()["column"].tolist() == list(summary.columns)
    n_above = int((detector.predict(table) == -1).sum())
    assert explanation.summary().n_rows == n_above > 0
    ordinary = detector.explain(table[detector.predict(table) == 1])
    assert ordinary.summary().n_rows == len(ordinary), "no row is above the threshold: all are summed up"


def test_a_summary_of_rows_without_evidence(detector, table):
    explanation = detector.explain(table)
    plain = np.flatnonzero(~explanation.contributions.any(axis=1))
    summary = explanation.summary(plain[:1])
    assert summary.shares.tolist() == [0.0] * 3 * bool(len(plain)) or summary.n_rows == 0
    assert explanation.summary([]).n_rows == 0 and len(explanation.summary([])) == 3


# Notebooks.


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data):
        self.text.append(data)


def test_values_are_text_in_a_notebook(rng):
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>&amp;\"'"
    names = ["a", "b", "a"]
    frame = pd.DataFrame({evil: rng.choice(names, 200), "y": rng.normal(size=200)})
    frame.iloc[3, 0] = evil
    explanation = RGLD.plus(random_state=0).fit(frame).explain(frame)
    page = Tags()
    page.feed(explanation._repr_html_())
    assert {tag for tag, _ in page.tags} == {"p", "table", "tr", "th", "td", "br", "span"}
    assert {attribute for _, attributes in page.tags for attribute in attributes} <= {"style"}
    assert any("<script>alert(1)" in text for text in page.text)
    assert "Explanation of 200 rows, 2 columns; the 5 with the highest scores" in page.text


def test_one_row_in_a_notebook(detector, table):
    html = detector.explain(table.iloc[[7]])._repr_html_()
    assert "Explanation of 1 row, 3 columns</p>" in html and "amount 9,000 is far above usual" in html


# Plots.


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib", reason="plots need matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_a_waterfall_sums_to_the_mean_evidence(plt, detector, table):
    explanation = detector.explain(table)
    ax = explanation.plot(7)
    bars = ax.patches
    widths, starts = [bar.get_width() for bar in bars], [bar.get_x() for bar in bars]
    whole = explanation.contributions[7].sum()
    assert widths[-1] == pytest.approx(whole) and starts[-1] == 0.0
    np.testing.assert_allclose(starts[:-1], np.cumsum([0.0, *widths[:-2]]))
    assert sum(widths[:-1]) == pytest.approx(whole)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[0] == "amount\n= 9,000" and labels[-1] == "mean evidence"
    assert ax.get_title("left") == f"row 7: score {explanation.anomaly_score[7]:.4f}"


def test_many_columns_and_odd_names_in_a_waterfall(plt, rng):
    frame = pd.DataFrame(rng.normal(size=(200, 30)), columns=[f"$x^{j} \x07" for j in range(30)])
    frame.iloc[3] += 6.0
    ax = RGLD.plus(random_state=0).fit(frame).explain(frame).plot(3)
    ax.figure.canvas.draw()  # a formula that matplotlib cannot read would fail here
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[8] == "22 other columns" and len(labels) == 10 and r"\$x^" in labels[0]


def test_scores_and_threshold(plt, detector, table):
    _, ax = plt.subplots()
    assert detector.explain(table).plot(ax=ax) is ax
    n_above = int((detector.predict(table) == -1).sum())
    ordinary, above, line = ax.lines
    assert len(above.get_xdata()) == n_above and len(ordinary.get_xdata()) == N - n_above
    assert set(line.get_ydata()) == {0.95}
    assert ax.get_title("right") == f"threshold 0.95: {n_above} of {N} above"
    ax.figure.canvas.draw()


def test_matplotlib_is_imported_for_a_plot_only():
    code = (
        "import sys, numpy as np, rgld\n"
        "X = np.random.default_rng(0).normal(size=(50, 3))\n"
        "e = rgld.RGLD.fast(random_state=0).fit(X).explain(X)\n"
        "e.summary(), e.groups(), e._repr_html_(), list(e)\n"
        "assert 'matplotlib' not in sys.modules\n"
        "sys.modules['matplotlib.pyplot'] = None\n"
        "try:\n    e.plot()\nexcept ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "plot needs matplotlib, which is not installed: pip install matplotlib\n", done.stderr
