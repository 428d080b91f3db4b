"""`max_training_rows`: the views learn from some rows of a longer table."""

import numpy as np
import pytest

import rgld
from rgld import RGLD
from rgld._fit.sampling import viewed_rows
from rgld._params import Parameters
from rgld.exceptions import ParameterError

from .part_tables import small_samples as small_samples

KEPT = 300


@pytest.fixture
def rows(rng) -> np.ndarray:
    X = rng.standard_t(4, size=(1500, 5))
    X[:, 3] = np.round(X[:, 3])
    return X


@pytest.mark.parametrize("preset", [RGLD, RGLD.plus, RGLD.novelty])
def test_the_views_are_those_of_a_fit_on_the_drawn_rows(rows, preset):
    """But for the scaling, which is that of all rows. Here all rows have the distribution of the drawn ones."""
    drawn = viewed_rows(len(rows), Parameters.of(preset(max_training_rows=KEPT)), 3)
    assert len(drawn) == KEPT and np.all(np.diff(drawn) > 0)
    table = np.empty_like(rows)
    table[drawn] = rows[:KEPT]
    table[np.setdiff1d(np.arange(len(rows)), drawn)] = np.tile(rows[:KEPT], (4, 1))
    some, alone, every = (
        preset(max_training_rows=most, relations=False, random_state=3).fit(own).anomaly_score(rows)
        for most, own in ((KEPT, table), (None, table[drawn]), (None, table))
    )
    assert np.abs(some - alone).max() < 0.01 < np.abs(some - every).max()


def test_columns_are_scaled_by_all_rows(rng):
    """The end of a column is known, though the drawn rows miss it."""
    X = rng.normal(size=(1500, 2))
    X[8, 0] = 9.0
    detector = RGLD.plus(max_training_rows=KEPT, random_state=0, relations=False).fit(X)
    assert 8 not in viewed_rows(1500, Parameters.of(detector), 0)
    assert detector.model_.scaling.quantiles[0, -1] == 9.0


def test_a_flag_that_the_drawn_rows_miss_is_as_far_as_it_is_rare(rng):
    """Its spread comes from all rows, not from the drawn ones, among which it is constant."""
    X = np.column_stack((rng.normal(size=1500), np.zeros(1500)))
    parameters = Parameters.of(RGLD.plus(max_training_rows=KEPT))
    missed = np.setdiff1d(np.arange(1500), viewed_rows(1500, parameters, 0))[:6]
    X[missed, 1] = 1.0
    scaling = RGLD.plus(max_training_rows=KEPT, random_state=0, relations=False).fit(X).model_.scaling
    column = scaling.kinds.index("arcsinh-standard") * 2 + 1
    flag = np.arcsinh(X[:, 1] / scaling.scale[column])
    assert scaling.unit[column] == pytest.approx(flag.std()) and flag.max() / flag.std() > 15.0


def test_a_table_that_is_not_longer_is_learned_whole(rows):
    detector = RGLD.plus(max_training_rows=len(rows), random_state=0).fit(rows)
    assert np.array_equal(
        detector.anomaly_score(rows), RGLD.plus(max_training_rows=None, random_state=0).fit(rows).anomaly_score(rows)
    )


def test_every_row_has_the_same_chance(rows):
    parameters = Parameters.of(RGLD.plus(max_training_rows=KEPT))
    counts = np.bincount(np.concatenate([viewed_rows(len(rows), parameters, seed) for seed in range(400)]))
    # Each count is binomial(400, 0.2): mean 80, standard deviation 8. Six deviations: probability 3e-6 for 1,500 rows.
    assert len(counts) == len(rows) and counts.min() > 32 and counts.max() < 128


@pytest.mark.parametrize("calibration_fraction", [0.0, 0.2])
def test_thresholds_and_scores_are_of_all_training_rows(rows, calibration_fraction):
    detector = RGLD.plus(
        max_training_rows=KEPT, contamination=0.1, calibration_fraction=calibration_fraction, random_state=0
    )
    labels = detector.fit_predict(rows)
    assert np.array_equal(labels, detector.predict(rows))
    if calibration_fraction == 0.0:
        assert (labels == -1).sum() == len(rows) // 10
    assert (labels == -1).mean() == pytest.approx(0.1, abs=0.01)


@pytest.mark.usefixtures("small_samples")  # of 2,000 rows
def test_in_passes_the_same_rows_teach_the_same_views(rows):
    table = np.concatenate([rows, rows + 0.1, rows - 0.1])
    parts = [table[:1000], table[1000:1100], table[1100:]]
    settings = {"max_training_rows": KEPT, "random_state": 1}
    in_memory = RGLD.plus(**settings).fit(table)
    n_passes = []
    in_passes = RGLD.plus(**settings).fit_batches(parts, on_rows=lambda number, n: n_passes.append(number))
    # Quantiles of columns are counted in passes, and sorted in memory.
    assert np.abs(in_memory.anomaly_score(table) - in_passes.anomaly_score(table)).max() < 0.01
    assert set(n_passes) == {1, 2}, "after the statistics of columns, the sample has all the rows that are needed"


def test_the_parameter_is_checked_and_saved(rows, tmp_path):
    with pytest.raises(ParameterError, match="max_training_rows must be None or an integer of at least 2, got 1"):
        RGLD(max_training_rows=1).fit(rows)
    detector = RGLD.plus(max_training_rows=KEPT, random_state=0).fit(rows)
    detector.save(tmp_path / "model.rgld")
    loaded = rgld.load(tmp_path / "model.rgld")
    assert loaded.max_training_rows == KEPT
    assert np.array_equal(loaded.anomaly_score(rows), detector.anomaly_score(rows))
