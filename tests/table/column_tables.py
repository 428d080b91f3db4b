"""Columns for the tests of how tables are read: read, inferred, encoded."""

import datetime as dt
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from rgld._table.columns import RawColumn
from rgld._table.encoding import encode_columns
from rgld._table.infer import infer_encoding
from rgld._table.schema import read_training_table

NOON = dt.datetime(2024, 3, 4, 12, 30, 15, tzinfo=dt.UTC).timestamp()


MIDNIGHT = dt.datetime(2024, 3, 4, tzinfo=dt.UTC).timestamp()


def raws(values):
    frame = (
        values
        if isinstance(values, (pl.DataFrame, pd.DataFrame, pa.Table))
        else pl.DataFrame({"c": values}, strict=False)
    )
    return read_training_table(frame)[1].columns


def learned(values, asked=None, name="c"):
    """Return the encoding of a column, and of one beside it that is used in any case."""
    (column,) = raws(values)
    column = replace(column, name=name)
    beside = RawColumn("beside", "number", np.linspace(0.0, 1.0, len(column)) ** 2)
    return infer_encoding([column, beside], {name: asked} if asked else None)


def reading(values, asked=None, name="c"):
    return learned(values, asked, name).columns[0]


def encoded(values, new=None, asked=None):
    """Return what a column becomes, shape (n, parts), without the column beside it."""
    encoding = learned(values, asked)
    (column,) = raws(values if new is None else new)
    beside = RawColumn("beside", "number", np.zeros(len(column)))
    return encode_columns(encoding, [column, beside])[:, :-1]


FLOATS = np.random.default_rng(0).normal(size=30).round(3)


def objects(cells):
    return pd.DataFrame({"c": pd.Series(cells, dtype=object)})


def days(n, step=1, hour=0):
    return [dt.datetime(2020, 1, 6, hour) + dt.timedelta(days=step * i) for i in range(n)]  # from a Monday on
