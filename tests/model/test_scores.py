"""The anomaly score from its parts: closed forms."""

from types import SimpleNamespace

import numpy as np
import pytest

from rgld._model.scores import BranchScores, anomaly_score


def score(global_score, local_score, relation_score=None, gap_score=None, broken_fraction=None, local_weight=0.25):
    parts = (global_score, local_score, relation_score, gap_score)
    relations = None if broken_fraction is None else SimpleNamespace(broken_fraction=broken_fraction)
    scores = BranchScores(*(None if part is None else np.array([part]) for part in parts))
    return anomaly_score(scores, SimpleNamespace(local_weight=local_weight, relations=relations))[0]


def test_the_weighted_mean_of_the_branches():
    assert score(0.4, 0.8) == pytest.approx(0.75 * 0.4 + 0.25 * 0.8)
    assert score(0.4, None) == 0.4 and score(None, 0.8) == 0.8


def test_a_new_gap_lifts_a_row_and_the_branches_keep_the_order():
    assert score(0.6, 0.6, gap_score=0.9) == pytest.approx(1.0 - (0.005 + 0.1) * (1.0 - 0.5 * 0.6))
    assert score(0.2, 0.2, gap_score=0.9) < score(0.6, 0.6, gap_score=0.9)
    assert score(0.6, 0.6, gap_score=0.0) == pytest.approx(0.6)
    assert score(0.999, 0.999, gap_score=0.5) == pytest.approx(0.999), "never lower than without"


@pytest.mark.parametrize(("broken_fraction", "before"), [(0.0, 0.004), (0.007, 0.0025), (0.02, 0.002)])
def test_a_broken_relation_lifts_a_row(broken_fraction, before):
    found = score(0.5, 0.5, relation_score=0.75, broken_fraction=broken_fraction)
    assert found == pytest.approx(1.0 - (before + 0.02 * 0.25))
    assert score(0.5, 0.5, relation_score=0.0, broken_fraction=broken_fraction) == 0.5
    assert score(0.9999, 0.9999, relation_score=0.75, broken_fraction=broken_fraction) == pytest.approx(0.9999)
