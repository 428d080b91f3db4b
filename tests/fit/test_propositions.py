"""The paper's propositions 1 to 3 as statistical tests on what the library draws: fixed seeds, stated bounds."""

import numpy as np
import pytest
from scipy.stats import chisquare, hypergeom, kstest

from rgld._fit.global_branch import draw_global
from rgld._fit.local_branch import draw_local
from rgld._fit.randomness import GLOBAL
from rgld._fit.views import ViewShape, draw_views
from rgld._kernels import elementary


def informative_counts(views, n_informative):
    return (views.features < n_informative).sum(axis=1)


def test_proposition_1_informative_columns_in_a_bag_are_hypergeometric():
    d, s, m = 50, 5, 15
    views = draw_views(0, GLOBAL, 20_000, ViewShape(d, (m,), 2))
    observed = np.bincount(informative_counts(views, s), minlength=s + 1)
    expected = hypergeom(d, s, m).pmf(np.arange(s + 1)) * 20_000
    assert chisquare(observed, expected).pvalue > 1e-3
    # A bag holds more than its share (two or more of five, the share being 1.5) as often as that law says.
    more = (informative_counts(views, s) > s * m / d).mean()
    assert more == pytest.approx(hypergeom(d, s, m).sf(1), abs=4 * 0.5 / np.sqrt(20_000))


def test_proposition_1_bags_with_more_than_their_share_have_the_larger_contrast():
    """Contrast: how far rows shifted along s of d columns lie from the rest in a view, in standard deviations."""
    d, s, m, shift = 50, 5, 15, 2.0
    rng = np.random.default_rng(0)
    normal, anomalous = rng.normal(size=(2, d, 4000))
    anomalous[:s] += shift
    views = draw_views(1, GLOBAL, 400, ViewShape(d, (m,), 12))

    def contrast(features):
        a, b = ((rows[features] ** 2).sum(axis=0) for rows in (normal, anomalous))
        return (b.mean() - a.mean()) / a.std()

    counts = informative_counts(views, s)
    contrasts = np.array([contrast(features) for features in views.features])
    whole_table = contrast(np.arange(d))
    # In closed form: a bag of m columns, h of them informative, has contrast h shift^2 / sqrt(2 m).
    np.testing.assert_allclose(contrasts, counts * shift**2 / np.sqrt(2 * m), atol=0.25)
    assert whole_table == pytest.approx(s * shift**2 / np.sqrt(2 * d), abs=0.25)
    # The same through the random projection: the projected squared norm keeps the order of the means over bags.
    z = [elementary.project(rows.astype(np.float32), views.features, views.projection) for rows in (normal, anomalous)]
    norms = [(part**2).sum(axis=1) for part in z]
    projected = (norms[1].mean(axis=1) - norms[0].mean(axis=1)) / norms[0].std(axis=1)
    by_count = [projected[counts == h].mean() for h in range(4)]
    assert np.all(np.diff(by_count) > 0)
    assert contrasts[counts >= 3].min() > whole_table, "three of five in 15 of 50 columns: twice the share"


def kernel_density(z, points, bandwidth):
    squared = ((points[:, :, None] - z[:, None, :]) ** 2).sum(axis=0)
    return np.exp(-squared / (2 * bandwidth**2)).mean(axis=1)


def test_proposition_2_random_feature_density_approaches_the_exact_one():
    """The error falls as D^-1/2 and stays below sqrt(8 log(2 / delta) / D) with probability 1 - delta."""
    rng = np.random.default_rng(0)
    r, n_views, bandwidth = 3, 200, 1.5
    z = rng.normal(size=(r, 300))
    points = z[:, :20]
    exact = kernel_density(z, points, bandwidth)
    sizes, errors = np.array([8, 32, 128, 512]), []
    for n_random_features in sizes:
        _, frequencies, phases = draw_global(0, n_views, ViewShape(r, (r,), r), n_random_features)
        angles = np.einsum("tdr,rn->tdn", frequencies, z / bandwidth).astype(np.float32)
        phi = elementary.random_features(angles, phases, 1.0)
        estimate = elementary.support(phi[:, :, :20], phi.mean(axis=2))
        errors.append(np.sqrt(((estimate - exact) ** 2).mean()))
        for delta in (0.2, 0.05):
            bound = np.sqrt(8 * np.log(2 / delta) / n_random_features)
            assert (np.abs(estimate - exact) > bound).mean() <= delta
        assert abs((estimate - exact).mean()) < 4 * errors[-1] / np.sqrt(n_views), "unbiased"
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.65 < slope < -0.4


def test_proposition_2_needs_phases_of_all_angles():
    _, _, phases = draw_global(0, 2000, ViewShape(3, (3,), 3), 10)
    assert kstest(phases.ravel() / (2 * np.pi), "uniform").pvalue > 1e-3


@pytest.mark.parametrize(("size", "mass"), [(20, 0.05), (100, 0.02), (400, 0.005)])
def test_proposition_3_references_rarely_miss_a_ball(size, mass):
    """A ball that holds a share q of the rows has no reference with probability at most exp(-|C| q)."""
    n_rows, n_views = 2000, 3000
    rows = draw_local(0, n_views, ViewShape(2, (2,), 2), np.arange(n_rows), size).rows
    missed = (rows >= mass * n_rows).all(axis=1).mean()
    exact = hypergeom(n_rows, int(mass * n_rows), size).pmf(0)
    noise = 4 * np.sqrt(exact * (1 - exact) / n_views)
    assert missed == pytest.approx(exact, abs=noise)
    assert exact < np.exp(-size * mass)
    assert missed < np.exp(-size * mass) + noise
