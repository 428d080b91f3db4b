"""New gaps: values that are missing in a column where no training value was missing."""

import numpy as np
import pandas as pd
import pytest

from rgld import RGLD
from rgld._table import gaps


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"shop": rng.choice(["Bern", "Genf", "Chur"], 300), "x": rng.normal(size=300)})


def test_values_that_mean_missing_are_new_gaps_and_values_never_seen_are_none(frame):
    detector = RGLD.fast(na_values={"shop": ["unknown"], "x": [-200]}, random_state=0).fit(frame)
    rows = frame[:5].copy()
    rows.loc[[0, 1], "shop"] = ["unknown", "Zug"]
    rows.loc[[2, 3], "x"] = [-200.0, 1e6]
    assert (detector.branch_scores(rows).gap_score > 0).tolist() == [True, False, True, False, False]


def test_many_rows_have_the_gaps_that_each_has_alone(frame):
    """Few rows are screened together; many are looked at column by column."""
    detector = RGLD.fast(random_state=0).fit(frame)
    rows = frame[: 3 * gaps.MAX_SCREENED_ROWS].copy()
    rows.loc[[1, 20], "shop"] = None
    rows.loc[[20, 40], "x"] = np.nan
    together = detector.branch_scores(rows).gap_score
    assert np.flatnonzero(together).tolist() == [1, 20, 40]
    alone = [detector.branch_scores(rows[i : i + 1]).gap_score[0] for i in range(len(rows))]
    assert together.tolist() == alone
