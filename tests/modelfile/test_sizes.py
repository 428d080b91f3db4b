"""The sizes in a header: each at its bound, and one beyond it."""

import pytest

from rgld import ModelFileError
from rgld._modelfile.sizes import parse_sizes

SIZES = {
    "n_columns": 10,
    "n_rows": 100,
    "n_ranked_rows": 50,
    "n_features": 3,
    "projection_dim": 2,
    "n_global_views": 2,
    "n_random_features": 3,
    "n_bandwidths": 1,
    "n_local_views": 2,
    "n_references": 6,
    "n_neighbors": 2,
    "n_sample_rows": 12,
    "n_sample_views": 2,
    "n_calibration": 0,
    "n_leverage_views": 0,
    "leverage_dim": 0,
    "n_cosines": 0,
    "n_relation_rows": 0,
}
LEVERAGE = {"n_global_views": 0, "n_random_features": 0, "n_bandwidths": 0, "n_leverage_views": 2, "leverage_dim": 4}
AT_BOUNDS = [
    ({"n_rows": 2**40}, {"n_rows": 2**40 + 1}),
    ({"n_rows": 50}, {"n_rows": 49}),
    ({"n_ranked_rows": 100}, {"n_ranked_rows": 101}),
    ({"n_ranked_rows": 12}, {"n_ranked_rows": 11}),
    ({"n_ranked_rows": 6, "n_sample_rows": 6}, {"n_ranked_rows": 5, "n_sample_rows": 5}),
    ({"n_columns": 2**20}, {"n_columns": 2**20 + 1}),
    ({"n_features": 10}, {"n_features": 11}),
    ({"n_features": 1}, {"n_features": 0}),
    ({"projection_dim": 1024}, {"projection_dim": 1025}),
    ({"projection_dim": 1}, {"projection_dim": 0}),
    ({"n_neighbors": 5}, {"n_neighbors": 6}),
    ({"n_neighbors": 1}, {"n_neighbors": 0}),
    ({"n_sample_views": 1}, {"n_sample_views": 0}),
    ({"n_sample_views": 2}, {"n_sample_views": 3}),
    ({"n_sample_rows": 2}, {"n_sample_rows": 1}),
    ({"n_sample_rows": 0, "n_sample_views": 0}, {"n_sample_rows": 0}),
    ({"n_random_features": 1}, {"n_random_features": 0}),
    ({"n_bandwidths": 2}, {"n_bandwidths": 0}),
    ({"n_calibration": 50_000}, {"n_calibration": 50_001}),
    ({"n_relation_rows": 100}, {"n_relation_rows": 101}),
    ({**LEVERAGE, "n_cosines": 5}, {**LEVERAGE, "n_cosines": 0}),
    ({**LEVERAGE, "n_cosines": 5, "leverage_dim": 10}, {**LEVERAGE, "n_cosines": 5, "leverage_dim": 11}),
    ({**LEVERAGE, "n_cosines": 5}, {**LEVERAGE, "n_cosines": 5, "leverage_dim": 0}),
    ({**LEVERAGE, "n_cosines": 5}, {"n_leverage_views": 2, "leverage_dim": 4, "n_cosines": 5}),  # not both kinds
    (
        {**LEVERAGE, "n_columns": 20, "n_cosines": 5, "leverage_dim": 16},
        {**LEVERAGE, "n_columns": 20, "n_cosines": 5, "leverage_dim": 17},
    ),
    (
        {"n_global_views": 0, "n_random_features": 0, "n_bandwidths": 0},
        {"n_global_views": 0, "n_random_features": 0},
    ),
]


@pytest.mark.parametrize(("possible", "impossible"), AT_BOUNDS, ids=str)
def test_sizes_at_their_bounds(possible, impossible):
    assert parse_sizes({**SIZES, **possible})._asdict() == {**SIZES, **possible}
    with pytest.raises(ModelFileError, match="sizes that no fitted model has"):
        parse_sizes({**SIZES, **impossible})


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("value", [-1, 1.0, True, "3", None, 2**62])
def test_what_is_no_size(name, value):
    with pytest.raises(ModelFileError, match="sizes that no fitted model has"):
        parse_sizes({**SIZES, name: value})


def test_sizes_that_are_missing_or_unknown():
    for content in ({}, [], None, {**SIZES, "n_more": 1}, {k: v for k, v in SIZES.items() if k != "n_rows"}):
        with pytest.raises(ModelFileError, match="does not give the sizes"):
            parse_sizes(content)
