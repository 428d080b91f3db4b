"""Few rows are read cell by cell: as in a long table, to the bit. Rows may also be dictionaries."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rgld import RGLD, TableError, load
from rgld._table import rows as rows_module
from rgld._table.rows import MAX_FEW_ROWS, cells_of_dicts, cells_of_few_rows

N = 60
RNG = np.random.default_rng(0)
START = datetime(1969, 12, 20, 23, 59, 59, 999_999)
MOMENTS = [None if i % 11 == 3 else START + timedelta(hours=7 * i, microseconds=i) for i in range(N)]
WORDS = [None if i % 13 == 5 else "abc"[i % 3] for i in range(N)]
COLUMNS = {
    "float": RNG.normal(size=N),
    "gaps": [None if i % 9 == 0 else float(i) for i in range(N)],
    "integer": RNG.integers(-5, 99, N),
    "long": [2**60 + i // 20 for i in range(N)],
    "bool": [i % 5 == 0 for i in range(N)],
    "word": WORDS,
    "clock": [f"{i % 24:02d}:30" for i in range(N)],
    "money": [f"${i},000.50" for i in range(1, N + 1)],
    "moment": MOMENTS,
}
POLARS = {
    "float32": pl.Series(RNG.normal(size=N), dtype=pl.Float32),
    "uint64": pl.Series([2**63 + i // 9 for i in range(N)], dtype=pl.UInt64),
    "day": [date(2024, 1, 1) + timedelta(days=i) for i in range(N)],
    "utc": pl.Series([None if m is None else m.replace(tzinfo=UTC) for m in MOMENTS]),
    "nanoseconds": pl.Series([-1_000_000_007 * i for i in range(N)]).cast(pl.Datetime("ns")),
    "span": [timedelta(microseconds=-(i**4)) for i in range(N)],
    "kind": pl.Series(WORDS, dtype=pl.Categorical),
    "time": [time(i % 24, i) for i in range(N)],
    "price": pl.Series([Decimal(i) / 8 for i in range(N)], dtype=pl.Decimal(12, 3)),
}
PANDAS = {
    "nullable": pd.array([None if i % 7 == 0 else 2**55 + i // 20 for i in range(N)], dtype="Int64"),
    "boolean": pd.array([None if i % 7 == 0 else i % 2 == 0 for i in range(N)], dtype="boolean"),
    "string": pd.array(WORDS, dtype="string"),
    "category": pd.Categorical([i % 3 for i in range(N)]),
    "nanoseconds": pd.to_datetime([-1_000_000_007 * i for i in range(N)], unit="ns"),
    "zone": pd.to_datetime(MOMENTS, utc=True).tz_convert("Europe/Berlin"),
    "span": pd.to_timedelta([-1_001 * i for i in range(N)], unit="ns"),
    "mixed": [1 if i % 3 else "x" for i in range(N)],
    "dates": [date(2024, 1, 1) + timedelta(days=i) for i in range(N)],
    "arrow": pd.array(WORDS, dtype="string[pyarrow]"),
}
TABLES = {
    "polars": pl.DataFrame({**COLUMNS, **POLARS}),
    "pandas": pd.DataFrame({**COLUMNS, **PANDAS}),
}


def part(table, rows):
    return table.iloc[rows] if isinstance(table, pd.DataFrame) else table[rows]


@pytest.mark.parametrize("kind", TABLES)
def test_a_cell_reads_the_same_alone_and_in_a_long_table(kind):
    """Column by column, so that the fast way is taken for every type that has one."""
    table = TABLES[kind]
    fast = 0
    for name in table.columns:
        column = table[[name]]
        reading = {name: "category"} if name in ("long", "uint64", "nullable") else None  # as floats, all are equal
        detector = RGLD.fast(random_state=0, columns=reading).fit(column)
        expected = detector.anomaly_score(column)
        fast += cells_of_few_rows(part(column, [0])) is not None
        for rows in ([0], [1], [5], list(range(MAX_FEW_ROWS))):
            np.testing.assert_array_equal(detector.anomaly_score(part(column, rows)), expected[rows], name)
            few, long = detector.explain(part(column, rows)), detector.explain(column)
            assert [few.reasons(i) for i in range(len(rows))] == [long.reasons(i) for i in rows]
    assert fast >= 12


def test_a_loaded_model_scores_a_row_of_any_kind_alike(tmp_path):
    table = pl.DataFrame(COLUMNS)
    RGLD.plus(random_state=0).fit(table).save(tmp_path / "m.rgld")
    detector = load(tmp_path / "m.rgld")
    expected = detector.anomaly_score(table)
    for i in (0, 5, 59):
        for row in (table[i], table[i].to_pandas(), table[i].to_dicts(), table[i].to_arrow()):
            assert detector.anomaly_score(row)[0] == expected[i]
    np.testing.assert_array_equal(detector.anomaly_score(table.to_dicts()), expected)


def test_typed_columns_of_another_kind_stay_an_error(rng):
    table = pl.DataFrame({"a": rng.normal(size=50), "b": rng.normal(size=50)})
    detector = RGLD.fast(random_state=0).fit(table)
    row = pl.DataFrame({"a": [1.0], "b": [datetime(2024, 1, 1)]})
    assert cells_of_few_rows(row) is not None
    for wrong in (row, row.to_pandas()):
        with pytest.raises(TableError, match="Column 'b' holds times, expected numbers as in the training table"):
            detector.anomaly_score(wrong)


def test_what_only_the_frame_library_can_read_is_left_to_it():
    frames = [
        pl.DataFrame({"a": [[1, 2]]}),
        pl.DataFrame({"a": pl.Series([3_000_000], dtype=pl.Int32).cast(pl.Date)}),  # a year that Python does not know
        pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]),
        pd.DataFrame({"a": pd.Categorical([3])}),
        pl.DataFrame({"a": range(MAX_FEW_ROWS + 1)}),
        np.zeros((1, 2)),
    ]
    assert [cells_of_few_rows(frame) for frame in frames] == [None] * len(frames)


# Dictionaries.


def test_a_table_of_dictionaries():
    table = pl.DataFrame(COLUMNS)
    by_rows = RGLD.fast(random_state=0).fit(table.to_dicts())
    assert by_rows.feature_names_in_.tolist() == table.columns
    np.testing.assert_array_equal(
        by_rows.anomaly_score(table.to_dicts()), RGLD.fast(random_state=0).fit(table).anomaly_score(table)
    )
    assert by_rows.explain(table.to_dicts()[:2]).columns == tuple(table.columns)


def test_dictionaries_are_matched_by_name(rng):
    table = pl.DataFrame({"a": rng.normal(size=50), "b": rng.choice(["x", "y"], 50)})
    detector = RGLD.fast(random_state=0).fit(table)
    expected = detector.anomaly_score(pl.DataFrame({"a": [9.0, None], "b": ["z", "x"]}))
    np.testing.assert_array_equal(detector.anomaly_score([{"b": "z", "a": 9.0}, {"b": "x"}]), expected)
    stream = RGLD.fast(random_state=0).partial_fit(table.to_dicts()[:30]).partial_fit(table.to_dicts()[30:])
    np.testing.assert_array_equal(stream.anomaly_score(table), detector.anomaly_score(table))


WRONG = {
    "another key": ([{"a": 1.0, "amuont": 2.0}], "have the key 'amuont', which is no column of the training table"),
    "a key that is no string": ([{1: 2.0}], "got the key 1"),
    "no keys": ([{}], "got no keys"),
    "not only dictionaries": ([{"a": 1.0}, [2.0]], "got list in row 1"),
    "a list in a cell": ([{"a": [1.0], "b": 2.0}], "Column 'a' holds list"),
}


@pytest.mark.parametrize(("rows", "words"), WRONG.values(), ids=WRONG)
def test_wrong_dictionaries_are_one_sentence(rows, words, rng):
    detector = RGLD.fast(random_state=0).fit(pl.DataFrame({"a": rng.normal(size=50), "b": rng.normal(size=50)}))
    with pytest.raises(TableError, match=words) as caught:
        detector.anomaly_score(rows)
    assert "\n" not in str(caught.value)


def test_too_few_dictionaries_to_fit():
    with pytest.raises(TableError, match="at least 2 rows and a column, got 1 x 1"):
        RGLD().fit([{"a": 1.0}])


def test_other_lists_are_no_dictionaries():
    assert cells_of_dicts([[1.0]]) is None and cells_of_dicts([]) is None and cells_of_dicts({"a": 1}) is None
    assert rows_module.MAX_FEW_ROWS >= 1
