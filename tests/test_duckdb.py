"""DuckDB: functions of SQL that give the detector's own scores, to the bit, and refuse what does not fit."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("duckdb", reason="DuckDB is not installed")
pytest.importorskip("pyarrow", reason="PyArrow is not installed")

import duckdb
from sklearn.exceptions import NotFittedError

import rgld.duckdb
from rgld import RGLD, ParameterError

ROWS = 5000
"""More than DuckDB hands over at once (2048)."""
FEATURES = 'amount, city, "when", paid, kind'


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as connection:
        connection.execute(
            f"""CREATE TABLE payments AS SELECT i AS id, exp(hash(i) % 1000 / 300.0) AS amount,
                nullif(['Rome', 'Oslo', 'Bonn', 'none'][1 + i % 4], 'none') AS city,
                TIMESTAMP '2024-01-01' + INTERVAL (i) MINUTE AS "when", hash(i) % 3 = 0 AS paid,
                (i % 5)::UTINYINT AS kind
            FROM range({ROWS}) t(i)"""
        )
        yield connection


@pytest.fixture(scope="module")
def detector(connection):
    fitted = RGLD(n_global_views=6, n_local_views=3, random_state=0).fit(
        connection.sql(f"SELECT {FEATURES} FROM payments")
    )
    rgld.duckdb.register(connection, fitted, "score")
    return fitted


def scored(connection, arguments, table="payments", order="ORDER BY id"):
    return connection.execute(f"SELECT score({arguments}) AS s FROM {table} {order}").fetchnumpy()["s"]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param("payments", id="the row"),
        pytest.param(FEATURES, id="the columns"),
        pytest.param("""{'paid': paid, 'kind': kind, 'when': "when", 'city': city, 'amount': amount}""", id="a struct"),
    ],
)
def test_scores_have_the_bits_of_the_detector(connection, detector, arguments):
    expected = detector.anomaly_score(connection.sql(f"SELECT {FEATURES} FROM payments ORDER BY id"))
    np.testing.assert_array_equal(scored(connection, arguments), expected)


def test_the_most_anomalous_rows_come_with_reasons(connection, detector):
    top = connection.execute(
        """SELECT id, s, score_reasons(top) AS why
        FROM (SELECT *, score(payments) AS s FROM payments ORDER BY s DESC, id LIMIT 3) top ORDER BY s DESC, id"""
    ).fetchall()
    rows = connection.sql(f"SELECT {FEATURES} FROM payments ORDER BY score(payments) DESC, id LIMIT 3")
    explanation = detector.explain(rows)
    assert [row[2] for row in top] == [explanation.reasons(i) for i in range(3)]
    assert all(row[2] for row in top), "a row at the top has a reason"
    assert [row[1] for row in top] == explanation.anomaly_score.tolist()


FITTING = {
    "amount": ["3::TINYINT", "3::UBIGINT", "3::HUGEINT", "3.25::FLOAT", "3.25::DECIMAL(9, 2)", "true", "NULL"],
    "city": ["'Rome'", "'Rome'::ENUM('Rome', 'Oslo')", "'Atlantis'", "7", "NULL", "''"],
    "when": [
        "DATE '2024-01-02'",
        "TIMESTAMP_S '2024-01-02 03:04:05'",
        "TIMESTAMP_MS '2024-01-02 03:04:05'",
        "TIMESTAMP_NS '2024-01-02 03:04:05'",
        "TIMESTAMPTZ '2024-01-02 03:04:05+02'",
        "NULL::TIMESTAMP",
    ],
    "paid": ["true", "1", "NULL"],
}
ROW = {"amount": "1.0", "city": "'Rome'", "when": "TIMESTAMP '2024-01-01'", "paid": "true", "kind": "1"}


@pytest.mark.parametrize(("column", "value"), [(name, value) for name, values in FITTING.items() for value in values])
def test_every_type_that_fits_is_read_as_the_detector_reads_it(connection, detector, column, value):
    row = {**ROW, column: value}
    columns = ", ".join(f'{value} AS "{name}"' for name, value in row.items())
    expected = detector.anomaly_score(connection.sql(f"SELECT {columns}"))
    by_columns = connection.execute(f"SELECT score({', '.join(row.values())})").fetchall()
    by_row = connection.execute(f"SELECT score(t) FROM (SELECT {columns}) t").fetchall()
    assert by_columns == by_row == [(expected[0],)]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("amount", "'3'", "Column 'amount' has the type string, expected numbers"),
        ("amount", "DATE '2024-01-01'", "Column 'amount' has the type date32"),
        ("amount", "'inf'::DOUBLE", "Column 'amount' holds infinity"),
        ("amount", "[1.0]", "Column 'amount' has the type list"),
        ("amount", "{'x': 1.0}", "Column 'amount' has the type struct"),
        ("amount", "INTERVAL 3 DAY", "Column 'amount' has the type month_day_nano_interval"),
        ("city", "'x'::BLOB", "Column 'city' has the type binary"),
        ("city", "MAP {'a': 1}", "Column 'city' has the type map"),
        ("when", "'2024-01-01'", "Column 'when' has the type string, expected DATE or TIMESTAMP"),
        ("when", "1704067200", "Column 'when' has the type int32"),
        ("when", "'infinity'::TIMESTAMP", "Column 'when' holds infinity"),
        ("when", "'-infinity'::DATE", "Column 'when' holds infinity"),
        ("paid", "'yes'", "Column 'paid' has the type string, expected BOOLEAN"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_column(connection, detector, column, value, message):
    row = {**ROW, column: value}
    columns = ", ".join(f'{value} AS "{name}"' for name, value in row.items())
    for query in (f"SELECT score({', '.join(row.values())})", f"SELECT score_reasons(t) FROM (SELECT {columns}) t"):
        with pytest.raises(duckdb.InvalidInputException) as caught:
            connection.execute(query).fetchall()
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("amount", r"the 5 columns that the model was fitted on \(amount, city, when, paid, kind\).*got 1 argument\."),
        ('amount, city, "when", paid, kind, id', "got 6 arguments"),
        ("{'amount': 1, 'City': city}", "The row has no column 'city', which the model needs: it has amount, City"),
        ('city, amount, "when", paid, kind', "Column 'amount' has the type string.*check the order"),
    ],
)
def test_wrong_columns_are_refused(connection, detector, arguments, message):
    with pytest.raises(duckdb.InvalidInputException, match=message):
        scored(connection, arguments)


def test_a_row_that_is_null_has_no_score(connection, detector):
    row = "CASE WHEN id > 0 THEN p END"
    query = f"SELECT score({row}), score_reasons({row}) FROM payments p WHERE id IN (0, 2500) ORDER BY id"
    missing, there = connection.execute(query).fetchall()
    expected = detector.explain(connection.sql(f"SELECT {FEATURES} FROM payments WHERE id = 2500"))
    assert missing == (None, None)
    assert there == (expected.anomaly_score[0], expected.reasons(0))
    nothing = "SELECT score(CASE WHEN id < 0 THEN p END) FROM payments p WHERE id < 3"
    assert connection.execute(nothing).fetchall() == [(None,)] * 3


def test_a_row_of_missing_values_has_the_score_of_such_a_row(connection, detector):
    outer = "FROM range(1) r LEFT JOIN payments p ON p.id = -1"  # DuckDB's row is one of NULLs then, not NULL itself
    expected = detector.anomaly_score(connection.sql(f"SELECT {FEATURES} {outer}"))[0]
    assert connection.execute(f"SELECT score(p) {outer}").fetchall() == [(expected,)]


def test_no_rows_and_constants(connection, detector):
    assert scored(connection, "payments", "payments WHERE id < 0").shape == (0,)
    constant = connection.sql(f"SELECT DISTINCT score({', '.join(ROW.values())}) FROM payments").fetchall()
    assert len(constant) == 1


def test_a_column_that_the_model_dropped_may_be_missing(connection):
    table = connection.sql(f"SELECT 'same' AS note, {FEATURES} FROM payments")
    fitted = RGLD(n_global_views=2, n_local_views=1, random_state=0).fit(table)
    assert fitted.columns_[0].kind == "dropped"
    with connection.cursor() as cursor:
        rgld.duckdb.register(cursor, fitted, "dropping")
        found = cursor.execute("SELECT dropping(payments) AS s FROM payments").fetchnumpy()["s"]
    np.testing.assert_array_equal(found, fitted.anomaly_score(table))


def test_a_model_without_names_takes_columns_in_order(connection):
    X = np.column_stack([np.sin(np.arange(300.0)), np.arange(300) % 7])
    X[5, 0] = np.nan
    fitted = RGLD(n_global_views=2, n_local_views=1, random_state=0).fit(X)
    rgld.duckdb.register(connection, fitted, "plain")
    connection.register("numbers", {"a": X[:, 0], "b": X[:, 1].astype(np.int16)})
    rows = "(SELECT nullif(a, 'nan') AS a, b FROM numbers)"
    found = connection.execute(f"SELECT plain(a, b) AS s FROM {rows}").fetchnumpy()["s"]
    np.testing.assert_array_equal(found, fitted.anomaly_score(X))
    assert connection.execute(
        "SELECT plain(true, 1) = plain(1, 1), plain(1.5::DECIMAL(3, 1), 1) = plain(1.5::DOUBLE, 1)"
    ).fetchall() == [(True, True)]
    with pytest.raises(duckdb.InvalidInputException, match="fitted without column names: pass its 2 columns"):
        connection.execute(f"SELECT plain(t) FROM {rows} t").fetchall()


def test_registering_again_replaces(connection, detector):
    rgld.duckdb.register(connection, detector, "again")
    other = RGLD(n_global_views=2, n_local_views=1, random_state=1).fit(connection.sql("SELECT amount FROM payments"))
    rgld.duckdb.register(connection, other, "again")
    expected = other.anomaly_score(connection.sql("SELECT amount FROM payments WHERE id = 7"))[0]
    assert connection.execute("SELECT again(amount) FROM payments WHERE id = 7").fetchall() == [(expected,)]


def test_a_connection_may_be_wrapped(connection, detector):
    class Cursor:  # as dbt-duckdb gives its Python models
        def __getattr__(self, name):
            return getattr(connection, name)

    rgld.duckdb.register(Cursor(), detector, "wrapped")
    assert connection.execute("SELECT bool_and(wrapped(p) = score(p)) FROM payments p").fetchall() == [(True,)]


def test_what_cannot_be_registered(connection, detector):
    with pytest.raises(ParameterError, match="Expected a DuckDB connection, got str"):
        rgld.duckdb.register("file.db", detector, "score")
    with pytest.raises(ParameterError, match="Expected an RGLD detector, got str"):
        rgld.duckdb.register(connection, "model.rgld", "score")
    with pytest.raises(NotFittedError):
        rgld.duckdb.register(connection, RGLD(), "score")
    for name in ("", "a b", "x; DROP TABLE payments", 3):
        with pytest.raises(ParameterError, match="must be a word"):
            rgld.duckdb.register(connection, detector, name)


def test_without_duckdb_one_sentence_says_what_to_install():
    code = "import sys; sys.modules['duckdb'] = None\ntry: import rgld.duckdb\nexcept ImportError as e: print(e)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "rgld.duckdb needs DuckDB and PyArrow: pip install 'rgld[duckdb]'."
