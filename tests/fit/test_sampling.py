"""The size of the sample, and which rows can still be in it."""

import numpy as np
import pytest

from rgld._fit.sampling import MAX_SAMPLE_CELLS, MAX_SAMPLE_ROWS, MIN_SAMPLE_ROWS, sample_part, sample_size
from rgld._table.table import MatrixTable


@pytest.mark.parametrize(
    ("n_columns", "n_references", "size"),
    [
        (1, 400, MAX_SAMPLE_ROWS),
        (128, 400, MAX_SAMPLE_ROWS),
        (200, 400, MAX_SAMPLE_CELLS // 200),
        (256, 400, MIN_SAMPLE_ROWS),
        (100_000, 400, MIN_SAMPLE_ROWS),
        (4, 50_000, 50_000),
    ],
)
def test_wide_tables_have_smaller_samples_but_never_fewer_rows_than_references(n_columns, n_references, size):
    assert sample_size(n_columns, n_references) == size


def test_rows_beyond_the_limit_of_a_sample_do_not_change_it():
    table = MatrixTable(np.arange(1000.0)[:, None])
    short = sample_part(table.take(np.arange(20)), 0, 7, 50)
    assert short.key_limit == np.inf, "a sample that is not full takes any row"
    first = sample_part(table.take(np.arange(600)), 0, 7, 50)
    rest = table.take(np.arange(600, 1000))
    limited = sample_part(rest, 600, 7, 50, key_limit=first.key_limit)
    every = sample_part(rest, 600, 7, 50)
    assert 0 < len(limited.indices) < len(every.indices)
    assert np.array_equal(first.merge(limited).indices, first.merge(every).indices)
    assert np.all(first.keys < first.key_limit)
