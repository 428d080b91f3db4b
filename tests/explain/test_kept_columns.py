"""The columns of the kept rows, against what each method says in one line."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgld import RGLD
from rgld._explain.kept_columns import KeptColumn, kept_columns
from rgld._table.encoding import Column

NUMBER, GAPPY = Column("x", "number"), Column("x", "number", gap_share=0.2)
numbers = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=60)


def column_of(values, missing=()):
    """Return a column of numbers; the encoded value of a missing cell is 0."""
    is_missing = np.isin(np.arange(len(values)), list(missing))
    parts = np.column_stack((np.where(is_missing, 0.0, values), is_missing))
    return KeptColumn(GAPPY, parts) if len(missing) else KeptColumn(NUMBER, parts[:, :1])


@given(numbers, st.integers(-5, 5).map(float), st.sets(st.integers(0, 59)))
@settings(max_examples=200)
def test_fractions_of_numbers(values, number, missing):
    kept = column_of(values, {place for place in missing if place < len(values)})
    present = np.array([value for place, value in enumerate(values) if place not in missing])
    assert sorted(kept.present) == sorted(present)
    if kept.has_values:
        same = [value == number for value in present]
        assert kept.fraction(kept.number_of(np.array([number, 0.0])[: 1 + bool(kept.column.has_gaps)])) == sum(
            same
        ) / len(values)
    else:
        tails = [np.mean(present >= number), np.mean(present <= number)] if len(present) else [1.0]
        assert kept.fraction(number) == pytest.approx(min(1.0, 2 * min(tails)))
    assert kept.fraction(float("nan")) == pytest.approx(1.0 - len(present) / len(values))


@given(st.lists(st.floats(-9, 9), min_size=3, max_size=60, unique=True), st.floats(-10, 10), st.integers(1, 20))
def test_rows_near_a_number_are_as_many_below_as_above(values, number, n_rows):
    near = column_of(values).rows_near(number, n_rows)
    if len(values) < 2 * n_rows:
        assert len(near) == 0
        return
    assert len(near) == n_rows
    ordered = sorted(values)
    first = ordered.index(values[near[0]])
    assert [values[row] for row in near] == ordered[first : first + n_rows], "neighbours by rank"
    below = sum(value < number for value in ordered)
    assert abs((first + n_rows / 2) - below) <= 1 or first in (0, len(ordered) - n_rows)


def test_rows_with_the_same_value():
    rng = np.random.default_rng(0)
    cities = rng.choice(["Bern", "Zug", None], 300)
    frame = pd.DataFrame({"city": cities, "vip": rng.random(300) < 0.3, "x": rng.normal(size=300)})
    model = RGLD(random_state=0, n_references=300).fit(frame).model_
    kept = kept_columns(model)
    assert kept is kept_columns(model)
    matrix = model.kept_rows.rows
    for j in (0, 1):
        for encoded in matrix[:20]:
            number = kept.number_of(j, encoded)
            part = slice(model.encoding.starts[j], model.encoding.starts[j + 1])
            same = np.flatnonzero((matrix[:, part] == encoded[part]).all(axis=1))
            assert list(kept[j].rows_near(number, 30)) == list(same)
            assert kept[j].fraction(number) == len(same) / len(matrix)
    never = np.full(matrix.shape[1], 7.0)
    assert kept.number_of(0, never) == -1.0 and len(kept[0].rows_near(-1.0, 30)) == 0


def test_the_usual_range_has_values_of_the_column():
    kept = column_of(np.arange(101.0), missing={0})
    assert kept.usual == (3.0, 98.0) and kept.span == (1.0, 100.0)
    assert kept.usual_among(np.arange(11)) == (1.0, 10.0)
    assert np.isnan(column_of([1.0, 2.0], missing={0, 1}).usual).all()
