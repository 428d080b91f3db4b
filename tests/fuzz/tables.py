"""Tables in memory: frames and arrays of any cells, through fit, score, explain, save and report.

An input is a text that says how to make a table, so that a finding can be read and kept:

    frame = "pandas"
    columns = [("a", [1, 2.5, None, 7]), ("b", [nan, 0, -1, inf])]
    new = [("a", ["x"]), ("b", [10**400])]

The detector is fitted on the columns, and scores them and the new ones.
"""

import traceback
import warnings
import zlib
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from rgld import RGLD, RGLDError, load
from rgld.report import write_report

from ..modelfile.model_files import SMALL
from .targets import MAX_TABLE_MESSAGE_LENGTH, Target, require_sentence

VOCABULARY = {
    "nan": float("nan"),
    "inf": float("inf"),
    "date": date,
    "datetime": datetime,
    "time": time,
    "timedelta": timedelta,
    "utc": UTC,
    "Decimal": Decimal,
    "Fraction": Fraction,
    "np": np,
    "pd": pd,
}
"""What a text may name."""

CELLS = {
    "small numbers": ["0", "1", "2", "3", "-1", "0.5", "1.5", "-0.0"],
    "numbers": ["1e300", "-1e300", "5e-324", "1.7976931348623157e308", "3e38", "1e-12", "123456.789", "nan", "None"],
    "infinities": ["inf", "-inf", "1.0"],
    "large integers": ["2**53", "2**53 + 1", "10**16", "10**16 + 2", "2**63", "2**64", "-(2**63)", "10**30", "7"],
    "huge integers": ["10**400", "-(10**400)", "10**309", "3"],
    "bools": ["True", "False", "None"],
    "numbers in words": ["'1'", "'2,5'", "'1e400'", "'-inf'", "'nan'", "' 7 '", "'1_000'", "''", "'٣'"],
    "strings": ["'a'", "'b'", "'Oslo'", "''", "'\\x00'", "'\\ud800'", "'\\u202e'", "'x' * 300", "'\\n'", "None"],
    "dates": ["date(2024, 1, 1)", "date(1, 1, 1)", "date(9999, 12, 31)", "datetime(2024, 2, 29, 12)", "None"],
    "zoned times": ["datetime(2024, 1, 1, tzinfo=utc)", "datetime(9999, 12, 31, tzinfo=utc)", "pd.NaT"],
    "spans": ["timedelta(0)", "timedelta(days=-999_999)", "timedelta.max", "time(23, 59)", "None"],
    "texts of times": ["'2024-01-01'", "'2024-13-01'", "'01/02/2024'", "'0001-01-01'", "'24:00'", "'P1D'"],
    "exact numbers": ["Decimal('1.10')", "Decimal('NaN')", "Decimal('1e999')", "Decimal('sNaN')", "Fraction(1, 3)"],
    "NumPy's own": ["np.float32(1.5)", "np.int8(-1)", "np.datetime64('NaT')", "np.bool_(True)", "pd.NA"],
    "no cells": ["[1]", "{}", "b'x'", "1j", "object()", "(1, 2)", "np.array([1])"],
}  # fmt: skip
NAMES = ["a", "b", "c", "id", "", " ", "a\nb", "\ud800", "x" * 100, "column 0", "0", "<b>", "=1+1"]
FRAMES = ("pandas", "polars", "arrow", "array", "object array", "rows", "pandas of objects", "pandas of strings")


class Tables(Target):
    """Tables of any cells: scores in (0, 1), or an error in a sentence."""

    name = "tables"

    def make(self, rng):
        if rng.random() < 0.3:
            return self._changed(rng, self.pick(rng).decode()).encode()
        names = [rng.choice(NAMES) if rng.random() < 0.3 else f"c{j}" for j in range(rng.choice([0, 1, 1, 2, 3, 6]))]
        kinds = [_kinds(rng) for _ in names]
        columns = _columns(rng, names, kinds, rng.choice([0, 1, 2, 2, 3, 5, 8, 20]))
        if rng.random() < 0.5:
            kinds = [_kinds(rng) if rng.random() < 0.3 else own for own in kinds]
        new = _columns(rng, names, kinds, rng.choice([1, 2, 4]))
        return f"frame = {rng.choice(FRAMES)!r}\ncolumns = {columns}\nnew = {new}\n".encode()

    def _changed(self, rng, text):
        """Return a text of the corpus with another kind of frame, or other cells in place of one."""
        if rng.random() < 0.3:
            return f"frame = {rng.choice(FRAMES)!r}\n" + text.partition("\n")[2]
        cell = rng.choice(rng.choice(list(CELLS.values())))
        return text.replace(rng.choice(["None", "1", '"Oslo"', "True"]), cell)

    def check(self, content, folder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)  # of NumPy: a number overflowed
            try:
                made = {}
                exec(content.decode(), dict(VOCABULARY), made)
                table = _framed(made["frame"], made["columns"])
                new = _framed(made["frame"], made.get("new", made["columns"]))
            except (Exception, pl.exceptions.PanicException):
                return "no table"  # what Python or the frame library refuses itself
            return self._tried(table, new, zlib.crc32(content), folder)

    def _tried(self, table, new, number, folder):
        """Fit and use a detector; the number decides which, and in which way."""
        detector = _detector(number)
        try:
            if number % 3 == 0:
                detector.partial_fit(table).partial_fit(new)
            elif number % 3 == 1:
                detector.fit_batches([table, new])
            else:
                detector.fit(table)
            scores = _used(detector, table)
        except (ValueError, TypeError) as error:
            _require_words(error)
            return "refused"
        detector.save(folder / "model.rgld")
        np.testing.assert_array_equal(load(folder / "model.rgld").anomaly_score(table), scores)
        if number % 4 == 0:
            write_report(detector, table, folder / "page.html")
        try:
            _used(detector, new)
        except (ValueError, TypeError) as error:
            _require_words(error)
            return "scored, new rows refused"
        return "scored"


def _used(detector, table):
    """Score and explain rows."""
    scores = detector.anomaly_score(table)
    assert np.all((scores > 0) & (scores < 1)), f"scores not in (0, 1): {scores}"
    explanation = detector.explain(table)
    assert np.all(np.isfinite(explanation.contributions))
    assert all(isinstance(reason, str) for i in range(len(scores)) for reason in explanation.reasons(i))
    return scores


def _require_words(error):
    """Check that an error is one of ours, or in the words of scikit-learn; pass on any other."""
    if isinstance(error, RGLDError) or str(error).startswith("Column "):
        require_sentence(error, MAX_TABLE_MESSAGE_LENGTH)
    elif "sklearn" not in traceback.extract_tb(error.__traceback__)[-1].filename:
        raise error


def _kinds(rng):
    return rng.sample(list(CELLS), rng.choice([1, 1, 1, 2, 3]))


def _columns(rng, names, kinds, n_rows):
    """Return columns as text, each with cells of one kind or of several."""
    cells = [[rng.choice(CELLS[rng.choice(own)]) for _ in range(n_rows)] for own in kinds]
    return "[" + ", ".join(f"({name!a}, [{', '.join(own)}])" for name, own in zip(names, cells, strict=True)) + "]"


def _detector(number):
    settings = (
        {},
        {"preprocessing": ("standard", "quantile", "arcsinh"), "aggregation": "standard"},
        {"preprocessing": "robust", "n_global_views": 0},
        {"calibration_fraction": 0.3, "projection": "orthogonal", "n_local_views": 0},
    )
    return RGLD(**{**SMALL, **settings[number // 12 % len(settings)]}, random_state=0)


def _framed(kind, columns):
    """Return a table of the cells, in a container."""
    names, cells = [name for name, _ in columns], [list(values) for _, values in columns]
    if kind == "polars":
        return pl.DataFrame([pl.Series(name, values, strict=False) for name, values in columns])
    if kind == "arrow":
        # NumPy's scalars among others end the process in Arrow itself (26.0).
        plain = [[cell.item() if isinstance(cell, np.generic) else cell for cell in values] for values in cells]
        return pa.table([pa.array(values) for values in plain], names=names)
    if kind in ("pandas", "pandas of objects", "pandas of strings"):
        dtype = {"pandas": None, "pandas of objects": object, "pandas of strings": "str"}[kind]
        frame = pd.concat([pd.Series(values, dtype=dtype) for values in cells], axis=1)
        frame.columns = names
        return frame
    rows = list(map(list, zip(*cells, strict=True)))
    if kind == "rows":
        return rows
    return np.array(rows, dtype=object if kind == "object array" else None)
