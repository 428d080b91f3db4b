"""What follows from the arrays of a model, worked out by hand."""

import numpy as np
import pytest

from rgld._model.model import SMALLEST_BANDWIDTH, GlobalBranch, LocalBranch
from rgld._model.views import Views

T, M_FEATURES, R, D, C = 2, 4, 3, 5, 7


def views():
    rng = np.random.default_rng(0)
    features = np.tile(np.arange(M_FEATURES, dtype=np.int32), (T, 1))
    return Views(features, rng.normal(size=(T, M_FEATURES, R)).astype(np.float32))


def global_branch():
    rng = np.random.default_rng(1)
    frequencies, phases = rng.normal(size=(T, D, R)), rng.random((T, D))
    learned = (np.array([2.0, 0.5]), np.ones(1), np.zeros((T, 1, D)), np.zeros((T, 1)), np.ones((T, 1)))
    return GlobalBranch(views(), frequencies.astype(np.float32), phases.astype(np.float32), *learned)


def local_branch(references):
    return LocalBranch(views(), np.asarray(references, np.float32), 3)


def test_numbers_that_kernels_hold_per_row():
    """Blocks of rows are as long as these let them be: see `blocks.rows_per_block`."""
    # Angles, features of one bandwidth and a temporary: T * D each. Features and their scaled values: T * m each.
    assert global_branch().floats_per_row == 3 * 10 + 2 * 8
    # Two arrays of C distances, the projected row and a temporary: T * r each, and again T * m twice.
    assert local_branch(np.zeros((T, R, C))).floats_per_row == 2 * 7 + 2 * 6 + 2 * 8


def test_directions_lead_from_features_to_angles():
    branch = global_branch()
    for t, bandwidth in enumerate((2.0, 0.5)):
        z = np.array([1.0, -2.0, 0.5, 3.0]) @ branch.views.projection[t].astype(float)
        expected = branch.frequencies[t].astype(float) @ z / bandwidth
        np.testing.assert_allclose(np.array([1.0, -2.0, 0.5, 3.0]) @ branch.directions[t], expected, rtol=1e-5)


def test_the_least_distances_that_logarithms_are_taken_of():
    references = np.zeros((T, R, C))
    references[0, 0] = [3.0, -3.0, 3.0, -3.0, 3.0, -3.0, 0.0]
    references[0, 1] = references[0, 0] * 4.0 / 3.0
    spread = 5.0 * np.sqrt(6.0 / 7.0)  # variances 9 and 16, times 6/7, of two of three dimensions
    smallest = local_branch(references).smallest_scores
    assert smallest[0] == pytest.approx(1e-4 * spread) and smallest[1] == pytest.approx(SMALLEST_BANDWIDTH)
    assert global_branch().smallest_scores.tolist() == [0.0, 0.0], "view scores of the global branch stay as they are"
