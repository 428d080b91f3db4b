"""Bad input: each case has an outcome, finite scores or one sentence that names the column or parameter."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import rgld
from rgld import RGLD

SMALL = {"n_global_views": 4, "n_local_views": 3, "n_references": 30, "n_bandwidth_pairs": 200, "random_state": 0}
NORMAL = np.random.default_rng(0).normal(size=(40, 3))


def with_value(value, dtype=float):
    X = NORMAL.astype(dtype)
    X[7, 1] = value
    return X


BAD_TABLES = {
    "no value at all": (
        np.full((5, 2), np.nan),
        r"No column of the table can be used \('column 0': all its values are missing; 'c",
    ),
    "no value at all in pandas": (
        pd.DataFrame({"a": [np.nan] * 5}),
        r"No column .* \('a': all its values are missing\)",
    ),
    "no value at all in polars": (pl.DataFrame({"a": [None] * 5}), r"No column .* \('a': all its values are missing\)"),
    "missing words alone": (
        pl.DataFrame({"a": ["NA", " ", "", "null"]}),
        r"No column .* \('a': all its values are missing\)",
    ),
    "constants alone": (pl.DataFrame({c: [1, 1] for c in "abcde"}), r"'a': it is constant; .*; and 2 more\): at least"),
    "ids alone": (
        pl.DataFrame({"u": [f"u{i}" for i in range(9)]}),
        r"No column .* id or free text: 9 values in 9 rows",
    ),
    "two infinities": (
        np.where(NORMAL > 1.5, np.inf, NORMAL),
        r"Column \d holds infinity \(inf\) in row \d+ and \d+ more",
    ),
    "infinity beside gaps": (
        np.column_stack((NORMAL[:, 0], [-np.inf, np.inf] * 10 + [np.nan] * 20)),
        r"Column 1 holds infinity \(inf\) in row 0 and 19 more",
    ),
    "infinity": (with_value(np.inf), r"Column 1 holds infinity \(inf\) in row 7"),
    "minus infinity": (with_value(-np.inf), r"Column 1 holds infinity \(inf\) in row 7"),
    "float32 infinity": (with_value(np.inf, np.float32), r"Column 1 holds infinity \(inf\) in row 7"),
    "infinity in pandas": (pd.DataFrame({"a": [1.0, np.inf, None]}), r"Column 'a' holds infinity \(inf\) in row 1,"),
    "infinity in polars": (pl.DataFrame({"a": [1.0, -np.inf, None]}), r"Column 'a' holds infinity \(inf\) in row 1,"),
    "infinity in Arrow": (pa.table({"a": [1.0, np.inf, None]}), r"Column 'a' holds infinity \(inf\) in row 1,"),
    "infinity alone": (pl.DataFrame({"a": [np.inf, np.inf]}), r"Column 'a' holds infinity \(inf\) in row 0 and 1 more"),
    "infinity as text": (pl.DataFrame({"a": ["1", "-inf", "3"]}), r"Column 'a' holds infinity \(inf\) in row 1,"),
    "a text beyond all numbers": (pl.DataFrame({"a": ["1", "2", "1e999"]}), r"Column 'a' holds infinity .* row 2,"),
    "no rows": (np.empty((0, 3)), r"0 sample\(s\).*minimum of 2 is required"),
    "no columns": (np.empty((5, 0)), r"0 feature\(s\).*minimum of 1 is required"),
    "one row": (NORMAL[:1], r"1 sample\(s\).*minimum of 2 is required"),
    "one dimension": (NORMAL[:, 0], r"Expected 2D array, got 1D array"),
    "three dimensions": (NORMAL[None], r"dim 3"),
    "a number": (3.0, r"Expected 2D array"),
    "None": (None, r"Expected 2D array, got scalar array|NoneType"),
    "text": (NORMAL.astype(str), r"Expected numbers, got an array of text"),
    "bytes": (NORMAL.astype("S"), r"Expected numbers, got an array of text"),
    "text in a list": ([["1", "2"], ["3", "4"]], r"Expected numbers, got an array of text"),
    "text in an object array": (with_value("x", object), r"Column 1 holds str in row 7 \('x'\), expected numbers"),
    "numeric text in an object array": (with_value("1.5", object), r"Column 1 holds str in row 7 \('1.5'\)"),
    "a date in an object array": (
        with_value(np.datetime64("2020-01-01"), object),
        r"Column 1 holds datetime64 in row 7",
    ),
    "a missing value in an object array": (with_value(pd.NA, object), r"Column 1 holds NAType in row 7"),
    "None in an object array": (with_value(None, object), r"Column 1 holds NoneType in row 7"),
    "NumPy strings": (NORMAL.astype(np.dtypes.StringDType()), r"Expected numbers, got an array of text"),
    "records": (np.zeros(5, dtype=[("a", float)]), r"Expected numbers, got an array of records"),
    "masked cells": (np.ma.masked_greater(NORMAL, 1.0), r"masked cells: fill or drop"),
    "a dictionary": ({"a": [1, 2]}, r"Expected a table with rows and columns, got dict"),
    "a generator": ((row for row in NORMAL), r"Expected a table with rows and columns, got generator"),
    "a lazy frame": (pl.LazyFrame({"a": [1.0, 2.0]}), r"lazy frame: collect it first"),
    "a polars series": (pl.Series([1.0, 2.0]), r"Expected 2D array"),
    "numbers as names, out of order": (pd.DataFrame(NORMAL, columns=[2, 1, 0]), r"Column names must be text"),
    "several levels of names": (
        pd.DataFrame(NORMAL, columns=pd.MultiIndex.from_product([["a"], [1, 2, 3]])),
        r"Column names must be text",
    ),
    "ragged list": ([[1.0, 2.0], [3.0]], r"inhomogeneous"),
    "dates": (np.array([["2020-01-01"], ["2020-01-02"]], dtype="M8[D]"), r"Expected numbers, got an array of dates"),
    "complex": (NORMAL + 1j, r"Complex data not supported"),
    "sparse": (sp.csr_matrix(NORMAL), r"Sparse data was passed"),
    "lists in polars": (pl.DataFrame({"a": [[1], [2, 3]]}), r"holds List\(Int64\).*numbers, text or dates"),
    "records in polars": (
        pl.DataFrame({"a": [{"b": 1}, {"b": 2}]}),
        r"holds Struct.*numbers, text or dates",
    ),
    "lists in pandas": (pd.DataFrame({"a": [[1], [2, 3]]}), r"holds list.*numbers, text or dates"),
    "tuples in pandas": (pd.DataFrame({"a": [(1,), "x"]}), r"holds tuple.*numbers, text or dates"),
    "bytes in pandas": (pd.DataFrame({"a": [b"1", b"2"]}), r"holds bytes.*numbers, text or dates"),
    "bytes in Arrow": (pa.table({"a": [b"1", b"2"]}), r"holds Binary.*numbers, text or dates"),
    "complex in pandas": (pd.DataFrame({"a": [1j, 2j]}), r"holds complex.*numbers, text or dates"),
    "texts under numbers": (pd.DataFrame([[1, "x"], [2, "y"]]), r"needs column names that are text"),
    "duplicate names in Arrow": (
        pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"]),
        r"Column names must be unique, got \['a'\] more than once",
    ),
    "no rows in polars": (
        pl.DataFrame({"a": pl.Series([], dtype=pl.Float64)}),
        r"at least 2 rows and a column, got 0 x 1",
    ),
    "no columns in polars": (pl.DataFrame(), r"at least 2 rows and a column, got 0 x 0"),
    "duplicate names": (pd.DataFrame(NORMAL, columns=["a", "b", "a"]), r"'a'"),
    "mixed names": (pd.DataFrame(NORMAL, columns=["a", 1, "b"]), r"string names"),
}


@pytest.mark.parametrize(("table", "message"), BAD_TABLES.values(), ids=BAD_TABLES.keys())
def test_bad_tables_are_refused_in_words(table, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        RGLD(**SMALL).fit(table)
    ours = isinstance(caught.value, rgld.TableError) or str(caught.value).startswith("Column")
    assert "\n" not in str(caught.value) or not ours


WORDS_WHEN_SCORING = {
    "no rows": r"0 sample\(s\).*minimum of 1 is required",
    "no rows in polars": r"at least 1 rows and a column, got 0 x 1",
    "no columns in polars": r"at least 1 rows and a column, got 0 x 0",
}
"""Where they are other words than when fitting."""


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in BAD_TABLES
        # One row, gaps, constants and ids can be scored.
        if not (n == "one row" or "alone" in n or n.startswith("no value at all")) or n == "infinity alone"
    ],
)
def test_bad_tables_are_refused_when_scoring(name):
    table, message = BAD_TABLES[name]
    make = {pd.DataFrame: pd.DataFrame, pl.DataFrame: pl.DataFrame, pa.Table: pa.table}.get(type(table))
    good = make({"a": NORMAL[:, 0]}) if make else NORMAL[:, :2] if name == "infinity beside gaps" else NORMAL
    detector = RGLD(**SMALL).fit(good)
    with pytest.raises((ValueError, TypeError), match=WORDS_WHEN_SCORING.get(name, message)):
        detector.anomaly_score(table)


def test_our_own_errors_are_one_sentence_of_one_family():
    for table, _ in (
        BAD_TABLES[name]
        for name in ("no value at all", "infinity", "text", "lists in polars", "bytes in pandas", "duplicate names")
    ):
        with pytest.raises(rgld.TableError) as caught:
            RGLD(**SMALL).fit(table)
        assert isinstance(caught.value, rgld.RGLDError) and isinstance(caught.value, ValueError)
        assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


@pytest.mark.parametrize("width", [1, 2, 4])
def test_wrong_number_of_columns_when_scoring(width):
    with pytest.raises(ValueError, match=f"X has {width} features, but RGLD is expecting 3 features"):
        RGLD(**SMALL).fit(NORMAL).predict(np.zeros((5, width)))


@pytest.mark.parametrize("names", [["b", "a", "c"], ["a", "b", "x"], ["a", "b"], ["a", "b", "c", "d"]])
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_wrong_column_names_or_order_when_scoring(names, frame):
    detector = RGLD(**SMALL).fit(frame({name: NORMAL[:, i] for i, name in enumerate("abc")}))
    with pytest.raises(ValueError, match=r"feature names|features"):
        detector.predict(frame({name: NORMAL[:, 0] for name in names}))


BAD_PARAMETERS = [
    ("n_global_views", -1),
    ("n_global_views", 2.5),
    ("n_local_views", True),
    ("n_local_views", "10"),
    ("n_random_features", 0),
    ("bandwidth_multipliers", ()),
    ("bandwidth_multipliers", (1.0, 0.0)),
    ("bandwidth_multipliers", (1.0, np.nan)),
    ("bandwidth_multipliers", (1e-30,)),
    ("bandwidth_multipliers", 1.0),
    ("bandwidth_multipliers", np.array(1.0)),
    ("contamination", 10**400),
    ("projection_dim", 30_000),
    ("n_bandwidth_pairs", 0),
    ("n_references", 1),
    ("n_neighbors", 0),
    ("n_neighbors", 30),
    ("n_neighbors", 31),
    ("feature_fraction", 0.0),
    ("feature_fraction", 1.5),
    ("feature_fraction", np.nan),
    ("min_features", 0),
    ("projection_dim", 0),
    ("projection_dim", "big"),
    ("preprocessing", "minmax"),
    ("preprocessing", None),
    ("preprocessing", ()),
    ("preprocessing", ("standard", "auto")),
    ("preprocessing", ("standard",) * 65),
    ("feature_fraction", (0.5, 0.0)),
    ("projection", "sparse"),
    ("aggregation", "mean"),
    ("local_weight", 1.0),
    ("columns", ["a"]),
    ("columns", {"a": "text"}),
    ("columns", {0: "number"}),
    ("columns", {"a": None}),
    ("calibration_fraction", -0.1),
    ("calibration_fraction", 0.95),
    ("calibration_fraction", None),
    ("contamination", 0.0),
    ("contamination", 0.6),
    ("contamination", "some"),
    ("random_state", -1),
    ("random_state", "seed"),
    ("n_jobs", 0),
    ("n_jobs", 1.5),
    ("n_jobs", 4097),
    ("n_jobs", -4097),
    ("projection_dim", 1025),
    ("local_weight", 0.0),
    ("bandwidth_multipliers", (1000.1,)),
]


@pytest.mark.parametrize(("name", "value"), BAD_PARAMETERS)
def test_bad_parameters_are_named_with_what_was_expected(name, value):
    detector = RGLD(**{**SMALL, name: value})  # never at construction
    with pytest.raises(rgld.ParameterError, match=rf"{name}.* must be .*{re.escape(repr(value)[:60])}") as caught:
        detector.fit(NORMAL)
    assert "\n" not in str(caught.value)


GOOD_PARAMETERS = [
    ("n_global_views", 1),
    ("n_local_views", 1),
    ("n_random_features", 1),
    ("bandwidth_multipliers", (0.001, 1000.0)),
    ("n_bandwidth_pairs", 1),
    ("n_neighbors", 1),
    ("n_neighbors", 29),
    ("feature_fraction", 1.0),
    ("feature_fraction", (1.0,) * 64),
    ("min_features", 1),
    ("projection_dim", 1),
    ("projection_dim", 1024),
    ("preprocessing", ("standard",) * 64),
    ("local_weight", 1e-9),
    ("calibration_fraction", 0),
    ("calibration_fraction", 0.9),
    ("contamination", 0.5),
    ("random_state", 0),
    ("n_jobs", 1),
    ("n_jobs", -1),
    ("n_jobs", 4096),
    ("n_jobs", -4096),
]


@pytest.mark.parametrize(("name", "value"), GOOD_PARAMETERS)
def test_parameters_at_their_bounds_are_taken(name, value):
    scores = RGLD(**{**SMALL, name: value}).fit(NORMAL).anomaly_score(NORMAL)
    assert np.all((scores > 0) & (scores < 1))


def test_two_references_have_one_neighbour():
    scores = RGLD(**{**SMALL, "n_references": 2, "n_neighbors": 1}).fit(NORMAL).anomaly_score(NORMAL)
    assert np.all((scores > 0) & (scores < 1))


def test_no_branch_at_all():
    with pytest.raises(rgld.ParameterError, match="n_global_views and n_local_views are both 0"):
        RGLD(n_global_views=0, n_local_views=0).fit(NORMAL)


def _huge(rng):
    return rng.normal(size=(60, 3)) * 1e300


def _mixed_magnitudes(rng):
    """Columns of denormal, small and huge values at once."""
    exponents = rng.choice([-320, -200, -10, 0, 10, 200, 300], size=(60, 4))
    return rng.normal(size=(60, 4)) * 10.0**exponents


ODD_TABLES = {
    "mixed magnitudes": _mixed_magnitudes,
    "a denormal spread with far values": lambda rng: np.where(
        rng.random((60, 3)) < 0.3, 1e10, rng.normal(size=(60, 3)) * 1e-320
    ),
    "two rows": lambda rng: rng.normal(size=(2, 3)),
    "three rows": lambda rng: rng.normal(size=(3, 3)),
    "fewer rows than neighbours": lambda rng: rng.normal(size=(9, 4)),
    "fewer rows than references": lambda rng: rng.normal(size=(25, 4)),
    "one column": lambda rng: rng.normal(size=(60, 1)),
    "two columns": lambda rng: rng.normal(size=(60, 2)),
    "more columns than rows": lambda rng: rng.normal(size=(20, 300)),
    "a constant column": lambda rng: np.column_stack((np.full(60, 7.0), rng.normal(size=60))),
    "a constant huge column": lambda rng: np.column_stack((np.full(60, 1e308), rng.normal(size=60))),
    "all columns constant": lambda rng: np.full((60, 3), 2.5),
    "all zeros": lambda rng: np.zeros((60, 3)),
    "mostly duplicates": lambda rng: np.repeat(rng.normal(size=(3, 3)), [50, 5, 5], axis=0),
    "one row unlike the rest": lambda rng: np.vstack((np.zeros((59, 3)), np.ones((1, 3)))),
    "huge": _huge,
    "as large as can be": lambda rng: np.where(rng.random((60, 3)) < 0.5, 1, -1) * np.finfo(float).max,
    "huge beside small": lambda rng: np.where(rng.random((60, 3)) < 0.1, 1e300, rng.normal(size=(60, 3))),
    "denormal": lambda rng: rng.normal(size=(60, 3)) * 1e-310,
    "denormal beside huge": lambda rng: np.where(rng.random((60, 3)) < 0.5, 1e300, 1e-310),
    "smallest denormal": lambda rng: rng.integers(0, 2, size=(60, 3)) * 5e-324,
    "far from the origin": lambda rng: rng.normal(size=(60, 3)) + 1e9,
    "tiny spread": lambda rng: 1.0 + rng.normal(size=(60, 3)) * 1e-15,
    "integers": lambda rng: rng.integers(-5, 5, size=(60, 3)),
    "large integers": lambda rng: rng.integers(-(2**62), 2**62, size=(60, 3)),
    "booleans": lambda rng: rng.random((60, 3)) < 0.5,
    "float16": lambda rng: rng.normal(size=(60, 3)).astype(np.float16),
    "float32 at its limit": lambda rng: (rng.normal(size=(60, 3)) * 1e37).astype(np.float32),
    "numbers in an object array": lambda rng: rng.normal(size=(60, 3)).astype(object),
    "a list of lists": lambda rng: rng.normal(size=(60, 3)).tolist(),
    "gaps": lambda rng: np.where(rng.random((60, 3)) < 0.3, np.nan, rng.normal(size=(60, 3))),
    "a column with one value": lambda rng: np.column_stack((np.arange(60.0), [1.0] + [np.nan] * 59)),
    "a column without a value": lambda rng: np.column_stack((np.arange(60.0), np.full(60, np.nan))),
    "one gap beside huge values": lambda rng: np.where(np.arange(180).reshape(60, 3) == 7, np.nan, 1.7e308),
    "rows without a value": lambda rng: np.vstack((np.full((9, 3), np.nan), rng.normal(size=(51, 3)))),
    "float32 gaps": lambda rng: np.where(rng.random((60, 3)) < 0.3, np.nan, 1e37).astype(np.float32),
    "bimodal with a wide gap": lambda rng: np.where(rng.random((60, 1)) < 0.5, -1e12, 1e12) + rng.normal(size=(60, 3)),
}


@pytest.mark.parametrize("make", ODD_TABLES.values(), ids=ODD_TABLES.keys())
@pytest.mark.parametrize("preprocessing", ["auto", "standard", "robust", "quantile", "arcsinh", "arcsinh-standard"])
def test_odd_tables_get_finite_scores_inside_the_unit_interval(make, preprocessing):
    table = make(np.random.default_rng(1))
    detector = RGLD(preprocessing=preprocessing, random_state=0).fit(table)
    new = np.asarray(table, dtype=float)
    for X in (table, new * 0.5, new[::-1], -3.0 * new.clip(-5e307, 5e307), np.full_like(new, 1e308)):
        for scores in (detector.anomaly_score(X), *detector.branch_scores(X)[:2]):  # no relations
            assert np.all((scores > 0) & (scores < 1))


@pytest.mark.parametrize("preprocessing", ["auto", "standard", "robust", "quantile", "arcsinh", "arcsinh-standard"])
def test_equal_rows_are_neither_normal_nor_anomalous(preprocessing):
    X = np.full((50, 3), 4.2)
    detector = RGLD(preprocessing=preprocessing, random_state=0).fit(X)
    np.testing.assert_array_equal(detector.anomaly_score(X), 0.5)
    assert np.all(detector.predict(X) == 1)


def test_a_row_unlike_equal_rows_stands_out():
    X = np.zeros((50, 3))
    X[13] = 1.0
    assert RGLD(random_state=0).fit(X).anomaly_score(X).argmax() == 13


def test_a_frame_with_numbered_columns_is_an_array():
    detector = RGLD(**SMALL).fit(pd.DataFrame(NORMAL))
    assert not hasattr(detector, "feature_names_in_")
    np.testing.assert_array_equal(detector.anomaly_score(pd.DataFrame(NORMAL)), detector.anomaly_score(NORMAL))
    with pytest.raises(rgld.TableError, match="Column names must be text"):
        detector.anomaly_score(pd.DataFrame(NORMAL)[[2, 1, 0]])


def test_a_failed_fit_leaves_the_detector_as_it_was():
    good = pd.DataFrame(NORMAL, columns=["a", "b", "c"])
    detector = RGLD(**SMALL).fit(good)
    scores = detector.anomaly_score(good)
    for bad in (good[["c", "b", "a"]].replace(good.iloc[0, 0], np.inf), pd.DataFrame({"x": ["u", "v"]})):
        with pytest.raises(rgld.TableError):
            detector.fit(bad)
        np.testing.assert_array_equal(detector.anomaly_score(good), scores)
    with pytest.raises(ValueError, match="feature names"):
        detector.predict(good[["c", "b", "a"]])


def test_extreme_new_rows_do_not_tie():
    X = np.random.default_rng(3).normal(size=(200, 4))
    local = RGLD(random_state=0).fit(X).branch_scores(np.outer(np.geomspace(10, 1e6, 30), np.ones(4))).local_score
    assert np.all(np.diff(local) > 0)


def test_scores_survive_a_change_of_units():
    """Scaling columns by powers of two changes nothing, to the bit."""
    X = np.random.default_rng(4).lognormal(size=(300, 5))
    units = 2.0 ** np.array([-30, 10, 0, 3, 100])
    for preprocessing in ("auto", "standard", "robust", "quantile"):
        one, other = (
            RGLD.fast(random_state=0, preprocessing=preprocessing).fit(Y).anomaly_score(Y) for Y in (X, X * units)
        )
        np.testing.assert_array_equal(one, other)
