"""What the figures of the study say about themselves, and the limits of their axes."""

import numpy as np
import pytest

pytest.importorskip("pyod", reason="the study needs the extra 'bench'")
pytest.importorskip("pandas", reason="the study needs the extra 'bench'")

import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg

from rgld.bench import figures


def scores(k=5, n=40):
    """Return scores of k methods on n datasets: each method is better than the one before."""
    rng = np.random.default_rng(0)
    return pd.DataFrame({f"Method-{i}": 0.5 * i + rng.normal(size=n) for i in range(k)})


def test_the_plot_of_ranks_says_what_is_ranked_and_what_is_shown():
    (axes,) = figures.critical_difference(scores(), "AUPRC", "shown: the 5 of 9 methods").axes
    first, *others = axes.get_xlabel().splitlines()
    assert first.startswith("average rank by AUPRC over 40 datasets")
    assert others[-1] == "shown: the 5 of 9 methods"
    (axes,) = figures.critical_difference(scores(), "AUROC").axes
    assert "shown" not in axes.get_xlabel()


def test_ranks_are_beside_their_names_and_the_best_is_above():
    (axes,) = figures.critical_difference(scores(), "AUROC").axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [f"Method-{i}" for i in (4, 3, 2, 1, 0)]
    drawn = np.asarray(axes.collections[-1].get_offsets())
    expected = scores().rank(axis=1, ascending=False).mean()[names]
    np.testing.assert_allclose(drawn[:, 0], expected)
    assert [text.get_text() for text in axes.texts] == [f"{rank:.2f}" for rank in expected]
    top, bottom = (axes.transData.transform((0, place))[1] for place in (0, 4))
    assert top > bottom


@pytest.mark.parametrize("k", [3, 15])
def test_the_axis_of_ranks_ends_at_the_ranks_and_bars_are_left_of_them(k):
    figure = figures.critical_difference(scores(k), "AUROC")
    FigureCanvasAgg(figure).draw()
    (axes,) = figure.axes
    ranks = np.asarray(axes.collections[-1].get_offsets())[:, 0]
    bars = [line.get_xdata()[0] for line in axes.get_lines()]
    assert bars and max(bars) < ranks.min()
    assert axes.spines["bottom"].get_bounds() == (ranks.min(), ranks.max())
    assert ((axes.get_xticks() >= ranks.min()) & (axes.get_xticks() <= ranks.max())).all()
    for text in axes.texts:
        assert text.get_window_extent().x1 <= figure.bbox.x1


def test_methods_that_all_have_one_rank_are_drawn():
    equal = pd.DataFrame(np.eye(4)[np.arange(40) % 4], columns=list("abcd"))
    (axes,) = figures.critical_difference(equal, "AUROC").axes
    assert len(axes.texts) == 4 and len(axes.get_lines()) == 1


def test_the_plot_of_accuracy_and_time_explains_its_line_and_its_time():
    table = pd.DataFrame({"time": [1.0, 2.0, 3.0], "auroc": [70.0, 69.0, 80.0]}, index=["a", "b", "RGLD"])
    (axes,) = figures.pareto(table).axes
    handles, texts = axes.get_legend_handles_labels()
    assert texts == ["on this line: no other method is both faster and more accurate"]
    assert handles[0].get_color() == figures.ACCENT
    assert set(zip(*handles[0].get_data(), strict=True)) == {(1.0, 70.0), (3.0, 70.0), (3.0, 80.0)}
    assert "processor time of one thread" in axes.get_xlabel()
