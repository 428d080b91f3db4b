"""Tables in: the same scores whoever read the file, in any pieces; rare values are rare; gaps, ids, odd frames."""

import datetime as dt
import doctest
import functools
import time
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest

import rgld
from rgld import RGLD
from rgld._table.schema import read_training_table

SMALL = {"n_global_views": 6, "n_local_views": 5, "n_references": 40, "n_bandwidth_pairs": 200, "random_state": 0}
PRESETS = {"paper": RGLD, "fast": RGLD.fast, "plus": RGLD.plus}


def orders(n, seed=0):
    """A table as people have it: numbers, prices, categories, dates, gaps, an id."""
    rng = np.random.default_rng(seed)
    shops = np.array([f"shop {i}" for i in range(30)])
    when = np.datetime64("2023-01-01T00:00:00") + rng.integers(0, 900 * 86_400, n).astype("m8[s]")
    table = {
        "order_id": [f"{seed}-{i:06d}" for i in rng.permutation(n)],
        "amount": rng.lognormal(3, 1, n).round(2),
        "count": rng.integers(1, 9, n),
        "discount": np.where(rng.random(n) < 0.2, None, rng.uniform(0, 1, n).round(3)),
        "rating": np.where(rng.random(n) < 0.1, None, rng.integers(1, 6, n)),
        "express": rng.random(n) < 0.3,
        "gift": np.where(rng.random(n) < 0.1, None, rng.random(n) < 0.5),
        "country": rng.choice(["NO", "IT", "PE", "NA "], n, p=[0.5, 0.3, 0.15, 0.05]),
        "shop": np.where(rng.random(n) < 0.05, None, shops[np.minimum(rng.geometric(0.15, n) - 1, 29)]),
        "when": when.astype("M8[us]").astype(object),
        "day": when.astype("M8[D]").astype(object),
        "empty": [None] * n,
        "currency": ["NOK"] * n,
    }
    types = {"discount": pl.Float64, "rating": pl.Int64, "gift": pl.Boolean, "shop": pl.String, "empty": pl.String}
    columns = {name: list(values) for name, values in table.items()}
    return pl.DataFrame(columns, schema_overrides=types)


def as_csv(frame, path):
    frame.write_csv(path / f"{len(frame)}.csv", datetime_format="%Y-%m-%d %H:%M:%S")
    return path / f"{len(frame)}.csv"


def as_parquet(frame, path):
    frame.write_parquet(path / f"{len(frame)}.parquet")
    return path / f"{len(frame)}.parquet"


def as_feather(frame, path):
    pyarrow.feather.write_feather(frame.to_arrow(), path / f"{len(frame)}.feather")
    return path / f"{len(frame)}.feather"


def as_duckdb(query):
    duckdb = pytest.importorskip("duckdb")
    return duckdb.sql(query)


SOURCES = {
    "polars": lambda f, p: f,
    "polars categories": lambda f, p: f.with_columns(pl.col("country", "shop").cast(pl.Categorical)),
    "pandas": lambda f, p: f.to_pandas(),
    "pandas of objects": lambda f, p: pd.DataFrame({c: pd.Series(f[c].to_list(), dtype=object) for c in f.columns}),
    "pandas nullable": lambda f, p: f.to_pandas().convert_dtypes(),
    "pandas on Arrow": lambda f, p: f.to_pandas(use_pyarrow_extension_array=True),
    "pandas categories": lambda f, p: f.to_pandas().astype({"country": "category", "shop": "category"}),
    "Arrow": lambda f, p: f.to_arrow(),
    "Arrow in pieces": lambda f, p: pa.concat_tables([f[:7].to_arrow(), f[7:].to_arrow()]),
    "CSV by polars": lambda f, p: pl.read_csv(as_csv(f, p), infer_schema_length=None),
    "CSV by polars, dates parsed": lambda f, p: pl.read_csv(
        as_csv(f, p), infer_schema_length=None, try_parse_dates=True
    ),
    "CSV by polars, all as text": lambda f, p: pl.read_csv(as_csv(f, p), infer_schema=False),
    "CSV by pandas": lambda f, p: pd.read_csv(as_csv(f, p)),
    "CSV by pandas, dates parsed": lambda f, p: pd.read_csv(as_csv(f, p), parse_dates=["when", "day"]),
    "CSV by pandas, all as text": lambda f, p: pd.read_csv(as_csv(f, p), dtype=str, keep_default_na=False),
    "Parquet by polars": lambda f, p: pl.read_parquet(as_parquet(f, p)),
    "Parquet by pandas": lambda f, p: pd.read_parquet(as_parquet(f, p)),
    "Feather by Arrow": lambda f, p: pyarrow.feather.read_table(as_feather(f, p)),
    "Parquet by DuckDB": lambda f, p: as_duckdb(f"select * from read_parquet('{as_parquet(f, p)}')"),
    "CSV by DuckDB": lambda f, p: as_duckdb(f"select * from read_csv('{as_csv(f, p)}')"),
}


@functools.cache
def fitted(preset="paper", n=400):
    detector = PRESETS[preset](random_state=0).fit(orders(n))
    return detector, detector.anomaly_score(orders(100, 1))


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES.keys())
@pytest.mark.parametrize("preset", ["paper", "plus"])
def test_the_same_scores_from_any_source(make, preset, tmp_path):
    """To the bit: fitted on one source and scoring another, and fitted on the other."""
    detector, scores = fitted(preset)
    new = make(orders(100, 1), tmp_path)
    np.testing.assert_array_equal(detector.anomaly_score(new), scores)
    again = PRESETS[preset](random_state=0).fit(make(orders(400), tmp_path))
    assert [column.kind for column in again.columns_] == [column.kind for column in detector.columns_]
    assert [column.values for column in again.columns_] == [column.values for column in detector.columns_]
    np.testing.assert_array_equal(again.anomaly_score(new), scores)


def test_how_the_columns_were_read():
    detector, _ = fitted()
    kinds = {column.name: column.kind for column in detector.columns_}
    assert kinds == {
        "order_id": "dropped",
        "amount": "number",
        "count": "number",
        "discount": "number",
        "rating": "number",
        "express": "boolean",
        "gift": "boolean",
        "country": "category",
        "shop": "category",
        "when": "time",
        "day": "time",
        "empty": "dropped",
        "currency": "dropped",
    }
    notes = {column.name: column.note for column in detector.columns_ if column.kind == "dropped"}
    assert notes["order_id"].startswith("it is an id or free text")
    assert notes["empty"] == "all its values are missing"
    assert notes["currency"] == "it is constant"


@pytest.mark.parametrize("preset", ["paper", "plus"])
def test_scores_are_frozen(preset, tmp_path):
    """Rows alone, in pieces, in another order, and in files of which each reads as it likes."""
    detector, scores = fitted(preset)
    new = orders(100, 1)
    order = np.random.default_rng(0).permutation(100)
    np.testing.assert_array_equal(detector.anomaly_score(new[order]), scores[order])
    for step in (1, 7, 64):
        for frame in (new, new.to_pandas(), new.to_arrow()):
            parts = [detector.anomaly_score(frame[i : i + step]) for i in range(0, 100, step)]
            np.testing.assert_array_equal(np.concatenate(parts), scores)
    for i in range(0, 100, 9):
        path = as_csv(new[i : i + 1], tmp_path)
        row = pl.read_csv(path, infer_schema_length=None)
        assert detector.anomaly_score(row)[0] == scores[i]
        assert detector.anomaly_score(pd.read_csv(path))[0] == scores[i]


MESSY = {
    "amount": ["1,200", "$3", "4.5", "unknown", "7", "12 %", "NA", "9", "8", "5", "6", "1"] * 5,
    "state": ["True", "False", "unknown", "1", "2.0", "02", "", "x", "y", "z", "w", "v"] * 5,
    "small": ["True", "False", "unknown", "1", "2.0", "02"] * 10,
    "when": ["2024-01-03", "2024-02-01 10:00", "soon", *[f"2024-01-{d:02d}" for d in range(10, 27)]] * 3,
    "clock": ["08:30", "9:15:10", "later", *[f"{h:02d}:00" for h in range(3, 20)]] * 3,
}


def test_a_messy_row_scores_alone_as_among_others():
    """A text that cannot be read is a gap, and no error, in a table of one row too; so is a chunk of one kind."""
    table = pl.DataFrame(MESSY)
    detector = RGLD(**SMALL).fit(table)
    assert [column.kind for column in detector.columns_] == ["number", "category", "category", "time", "duration"]
    scores = detector.anomaly_score(table)
    alone = [detector.anomaly_score(table[i : i + 1])[0] for i in range(len(table))]
    np.testing.assert_array_equal(alone, scores)
    pandas = table.to_pandas()
    np.testing.assert_array_equal([detector.anomaly_score(pandas[i : i + 1])[0] for i in range(len(table))], scores)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("n_values", [2, 5, 40])
def test_a_rare_value_is_rare(preset, n_values):
    """The same rows with a common value, one seen in 4 of 2000 rows, one never seen: ever higher scores.

    Two and five values have a part each, forty are known by their rarity.
    """
    rng = np.random.default_rng(0)
    numbers = {f"x{j}": rng.normal(size=2000) for j in range(4)}
    common = np.array([f"v{i}" for i in range(n_values - 1)])
    values = np.where(np.arange(2000) < 4, "rare", rng.choice(common, 2000))
    detector = PRESETS[preset](random_state=0).fit(pl.DataFrame({**numbers, "city": values}))
    assert len(detector.columns_[-1].values) == n_values
    rows = {name: rng.normal(size=200) for name in numbers}
    usual, rare, unseen = (
        detector.anomaly_score(pl.DataFrame(rows).with_columns(city=pl.lit(value))) for value in ("v0", "rare", "never")
    )
    assert np.mean(rare > usual) > 0.95 and np.mean(unseen > usual) > 0.95
    assert np.median(rare) > np.median(usual) + 0.05 and np.median(unseen) > np.median(usual) + 0.05


@pytest.mark.parametrize("preset", PRESETS)
def test_a_rare_gap_is_rare(preset):
    rng = np.random.default_rng(0)
    table = {f"x{j}": rng.normal(size=2000) for j in range(4)}
    table["x0"][:6] = np.nan
    detector = PRESETS[preset](random_state=0).fit(pl.DataFrame(table))
    rows = {name: rng.normal(size=200) for name in table}
    usual = detector.anomaly_score(pl.DataFrame(rows))
    gone = detector.anomaly_score(pl.DataFrame({**rows, "x0": [None] * 200}))
    assert np.mean(gone > usual) > 0.9
    never = detector.anomaly_score(pl.DataFrame({**rows, "x1": [None] * 200}))
    assert np.all((never > 0) & (never < 1)), "a gap not seen in training is filled"


def test_a_gap_never_seen_in_training_is_the_median():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(301, 3))
    detector = RGLD(**SMALL).fit(X)
    new = rng.normal(size=(50, 3))
    filled, gaps = new.copy(), new.copy()
    filled[:, 1], gaps[:, 1] = np.median(X[:, 1]), np.nan
    np.testing.assert_array_equal(detector.anomaly_score(gaps), detector.anomaly_score(filled))


def test_arrays_with_gaps_score_as_frames_with_gaps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 2] = np.nan
    frame = pl.DataFrame(X, schema=list("abcd"))
    one, other = RGLD(**SMALL).fit(X), RGLD(**SMALL).fit(frame)
    assert [column.kind for column in one.columns_] == ["number", "number", "dropped", "number"]
    assert one.columns_[2].note == "all its values are missing" and one.n_features_in_ == 4
    np.testing.assert_array_equal(one.anomaly_score(X), other.anomaly_score(frame))
    numbered = pd.DataFrame(X).astype({0: "Float64", 3: "Float64"})
    np.testing.assert_array_equal(one.anomaly_score(numbered), one.anomaly_score(X))


def test_an_array_for_a_detector_of_a_mixed_table():
    """Values are taken by position; what an array cannot hold is an error."""
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"a": rng.normal(size=90), "code": rng.integers(0, 4, 90), "flag": rng.random(90) < 0.5})
    detector = RGLD(**SMALL, columns={"code": "category"}).fit(table)
    matrix = np.column_stack([table[name].to_numpy().astype(float) for name in table.columns])
    matrix[0, 1], matrix[1, 0] = 9.0, np.nan
    expected = detector.anomaly_score(pl.DataFrame(matrix, schema=table.columns, nan_to_null=True))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(detector.anomaly_score(matrix), expected)
    detector = RGLD(**SMALL).fit(pl.DataFrame({"d": [dt.date(2024, 1, 1 + i % 9) for i in range(30)]}))
    with (
        pytest.warns(UserWarning, match="does not have valid feature names"),
        pytest.raises(rgld.TableError, match="Column 'd' holds numbers, expected times"),
    ):
        detector.anomaly_score(np.ones((3, 1)))


def test_a_category_that_the_user_asked_for():
    table = orders(300).with_columns(code=pl.Series(np.random.default_rng(2).integers(100, 104, 300)))
    detector = RGLD(**SMALL, columns={"code": "category", "amount": "drop", "order_id": "category"}).fit(table)
    kinds = {column.name: column.kind for column in detector.columns_}
    assert (kinds["code"], kinds["amount"], kinds["order_id"]) == ("category", "dropped", "category")
    scores = detector.anomaly_score(table)
    np.testing.assert_array_equal(detector.anomaly_score(table.with_columns(pl.col("code").cast(pl.Float64))), scores)
    np.testing.assert_array_equal(detector.anomaly_score(table.with_columns(pl.col("code").cast(pl.String))), scores)
    np.testing.assert_array_equal(detector.anomaly_score(table.with_columns(amount=pl.lit("anything"))), scores)


def test_dropped_columns_have_no_say():
    detector, scores = fitted()
    new = orders(100, 1).with_columns(order_id=pl.lit(7), currency=pl.lit(None), empty=pl.lit("not empty any more"))
    np.testing.assert_array_equal(detector.anomaly_score(new), scores)
    np.testing.assert_array_equal(detector.explain(new).anomaly_score, scores)
    with pytest.raises(ValueError, match="feature names"):
        detector.anomaly_score(new.drop("order_id"))


def test_a_column_that_cannot_be_read_is_dropped():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"a": rng.normal(size=60), "tags": [["x", "y"]] * 60})
    with pytest.raises(rgld.TableError, match=r"Column 'tags' holds List.*cannot be read as 'number': 'drop' it"):
        RGLD(**SMALL, columns={"tags": "number"}).fit(table)
    for fraction, asked in ((0.0, None), (0.5, None), (0.5, {"tags": "drop"})):
        detector = RGLD(**SMALL, columns=asked, calibration_fraction=fraction).fit(table)
        assert detector.columns_[1].kind == "dropped"
        assert asked or detector.columns_[1].note == "it holds List(String), not numbers, text or dates"
        scores = detector.anomaly_score(table)
        explanation = detector.explain(table)
        np.testing.assert_array_equal(explanation.anomaly_score, scores)
        assert np.all(explanation.contributions[:, 1] == 0)
    objects = pd.DataFrame({"a": table["a"].to_list(), "tags": pd.Series([{"x": 1}] * 60, dtype=object)})
    np.testing.assert_array_equal(detector.explain(objects).anomaly_score, scores)
    with pytest.raises(rgld.TableError, match="There is no column 'tag'"):
        RGLD(**SMALL, columns={"tag": "drop"}).fit(table.drop("tags"))


def test_a_column_that_cannot_be_read_is_no_trouble_to_the_report(tmp_path):
    from rgld.report._page import write_report

    table = pl.DataFrame({"a": np.random.default_rng(0).normal(size=60), "tags": [["x", "y"]] * 60})
    detector = RGLD(**SMALL, columns={"tags": "drop"}).fit(table)
    write_report(detector, table, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 1000


def test_columns_read_as_something_else_when_scoring():
    """A chunk of a file may show a column from another side: all numbers, all gaps, all texts."""
    detector, _ = fitted()
    base = orders(20, 1)
    changes = {
        "shop": [5, None],
        "country": [1.5, True],
        "amount": ["12.5", "1e3", "many"],
        "rating": [True, None],
        "express": ["true", "FALSE", 1, "perhaps"],
        "when": ["2024-05-01", "2024-05-01T10:00:00Z", "never"],
        "currency": [1, None, dt.date(2024, 1, 1)],
    }
    for name, values in changes.items():
        for value in values:
            unreadable = value in ("many", "perhaps", "never")
            warned = pytest.warns(rgld.TableWarning, match="20 values cannot be read") if unreadable else nullcontext()
            with warned:
                scores = detector.anomaly_score(base.with_columns(pl.lit(value).alias(name)))
            assert np.all((scores > 0) & (scores < 1))
    for name in base.columns:
        scores = detector.anomaly_score(base.with_columns(pl.lit(None).alias(name)))
        assert np.all((scores > 0) & (scores < 1))
    everything = base.select(pl.lit(None).alias(name) for name in base.columns)
    scores = detector.anomaly_score(pl.concat([everything] * 3))
    assert np.all(scores == scores[0])


def test_hostile_texts_are_texts():
    """Long, strange and repeated texts are values like any others."""
    odd = [
        "x" * 100_000,
        "<script>alert(1)</script>",
        "=1+1",
        "\x00",
        "\ud800",
        "\U000e0001",
        "'; drop table",
        "\u00e9",
        "e\u0301",
    ]
    table = pd.DataFrame({"a": np.random.default_rng(0).normal(size=90), "odd": pd.Series(odd * 10, dtype=object)})
    detector = RGLD(**SMALL).fit(table)
    assert len(detector.columns_[1].values) == 9
    scores = detector.anomaly_score(table)
    np.testing.assert_array_equal(detector.anomaly_score(table[80:]), scores[80:])
    rare = pd.DataFrame({"a": np.zeros(300), "odd": pd.Series([*odd, *["usual"] * 291], dtype=object)})
    rare["a"] = np.random.default_rng(0).normal(size=300)
    explanation = RGLD.plus(random_state=0).fit(rare).explain(rare[:9])
    for i in range(9):
        said = [reason for reason in explanation.reasons(i) if reason.startswith("odd '")]
        assert len(said) == 1 and said[0].endswith("' seen once in 300 rows")
        assert said[0].isprintable() and len(said[0]) < 100


def test_hostile_texts_survive_a_file(tmp_path):
    odd = ["x" * 100_000, "\x00", "\ud800", "\U000e0001" * 300, "é", '"\\', "\u2028"]
    table = pd.DataFrame({"a": np.arange(70) % 7, "odd": pd.Series(odd * 10, dtype=object)})
    numbers = [str(i) for i in range(0, 200, 3)]
    table["mostly numbers"] = pd.Series([*numbers, "\U000e0001" * 300, "\U000e0001", "\x07" * 99], dtype=object)
    detector = RGLD(**SMALL).fit(table)
    detector.save(tmp_path / "m.rgld")
    np.testing.assert_array_equal(rgld.load(tmp_path / "m.rgld").anomaly_score(table), detector.anomaly_score(table))


def test_a_hundred_thousand_values(tmp_path):
    """A category of so many values is known by the rarity of the most frequent; the model stays small."""
    rng = np.random.default_rng(0)
    codes = np.concatenate((np.arange(100_000), rng.integers(0, 100, 100_000)))
    table = pl.DataFrame({"a": rng.normal(size=200_000), "user": [f"user {code}" for code in codes]})
    detector = RGLD(**SMALL).fit(table)
    column = detector.columns_[1]
    assert column.kind == "category" and len(column.values) == 1000 and column.rest == 1.0
    detector.save(tmp_path / "m.rgld")
    assert (tmp_path / "m.rgld").stat().st_size < 2**20
    rows = pl.DataFrame({"a": [0.0] * 3, "user": ["user 5", "user 99999", "user x"]})
    _, once, never = detector.anomaly_score(rows)
    assert once == never, "half of the rows have such a value: it is not rare"


def test_numbers_of_any_type_are_numbers():
    values = np.random.default_rng(0).integers(0, 100, 60)
    expected = (
        RGLD(**SMALL)
        .fit(pl.DataFrame({"a": values, "b": values[::-1] ** 2}))
        .anomaly_score(pl.DataFrame({"a": values, "b": values[::-1] ** 2}))
    )
    frames = [pl.DataFrame({"a": values, "b": values[::-1] ** 2}).cast(kind) for kind in (
        pl.Int16, pl.Int32, pl.UInt64, pl.Int128, pl.Float32, pl.Float64, pl.Decimal(12, 2), pl.String
    )]  # fmt: skip
    frames += [pd.DataFrame({"a": values, "b": values[::-1] ** 2}).astype(kind) for kind in (
        "Int64", "Float64", "int64[pyarrow]", "double[pyarrow]", "object", "str", pd.SparseDtype("float64"),
        pd.ArrowDtype(pa.decimal128(25, 2)),
    )]  # fmt: skip
    frames.append(pa.table({"a": pa.array(values).cast(pa.float16()), "b": pa.array(values[::-1] ** 2)}))
    for frame in frames:
        np.testing.assert_array_equal(RGLD(**SMALL).fit(frame).anomaly_score(frame), expected)


def test_decimals_are_the_numbers_they_are_written_as():
    texts = [f"{x:.3f}" for x in np.random.default_rng(0).normal(0, 1e6, 500)]
    expected = np.array([float(text) for text in texts])
    series = pl.Series("a", texts).cast(pl.Decimal(20, 3))
    for frame in (series.to_frame(), series.to_frame().to_arrow(), series.to_frame().to_pandas()):
        (column,) = read_training_table(frame)[1].columns
        np.testing.assert_array_equal(column.values, expected)


def test_odd_tables_of_numbers_in_frames():
    """What arrays may hold, frames may hold: the largest numbers, denormal spreads, two rows."""
    huge = np.finfo(float).max
    for values in ([huge, -huge, huge, 1.0], [5e-324, 0.0, 1e300, 1.0], [1.0, 2.0]):
        table = pl.DataFrame({"a": values, "b": values[::-1]})
        scores = RGLD(**SMALL).fit(table).anomaly_score(table)
        assert np.all((scores > 0) & (scores < 1))


@pytest.mark.parametrize("number", [10**400, -(10**400), Fraction(10**400)], ids=["large", "small", "fraction"])
@pytest.mark.parametrize("make", [lambda rows: np.array(rows, dtype=object), list], ids=["array", "list"])
def test_a_number_beyond_all_floats_in_an_array(make, number):
    """It was an OverflowError without a place."""
    table = make([[1, 2.5], [3, number], [5, 6]])
    with pytest.raises(rgld.TableError, match=r"Column 1 holds a number beyond 1.8e\+308 in row 1, expected numbers"):
        RGLD(**SMALL).fit(table)
    with pytest.raises(rgld.TableError, match="Column 1 holds a number beyond"):
        RGLD(**SMALL).fit(np.zeros((9, 2)) + np.arange(9)[:, None]).anomaly_score(table)


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="no longer floats here")
@pytest.mark.parametrize("dtype", [np.longdouble, object])
def test_a_float_beyond_float64_in_an_array(dtype):
    """It was a warning of NumPy as well."""
    table = np.arange(18.0).reshape(9, 2).astype(np.longdouble)
    table[4, 1] = np.longdouble("1e400")
    with pytest.raises(rgld.TableError, match="infinity"):
        RGLD(**SMALL).fit(table.astype(dtype))


def wide(n):
    """15 numbers, 3 categories, a date, an id of text."""
    rng = np.random.default_rng(0)
    table = {f"x{j}": rng.normal(size=n) for j in range(15)}
    table |= {f"c{k}": np.array([f"value {i}" for i in range(k)])[rng.integers(0, k, n)] for k in (4, 30, 500)}
    table["when"] = (1.6e15 + rng.uniform(0, 9e13, n)).astype("M8[us]")
    table["id"] = [f"row {i}" for i in range(n)]
    return pl.DataFrame(table)


def seconds_to_encode(n):
    """Return the processor time that reading, learning and encoding take, the least of three."""
    table = wide(n)
    taken = []
    for _ in range(3):
        start = time.process_time()
        read = read_training_table(table)[1]
        read.encode(read.infer_encoding(None))
        taken.append(time.process_time() - start)
    return min(taken)


def test_reading_and_encoding_are_fast():
    """A tenth of a million rows in a fifth of what a million may take: a loop over cells would take longer."""
    assert seconds_to_encode(100_000) < 0.6


PAGE = Path(__file__).parents[2] / "docs" / "tables.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the tests run outside the repository")
def test_the_example_of_the_page():
    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 10 and result.failed == 0


if __name__ == "__main__":
    print(f"1,000,000 x 20: {seconds_to_encode(1_000_000):.2f} s")
