"""Tables and figures of the study, made of its lines."""

import os

import numpy as np
import pytest

pytest.importorskip("pyod", reason="the study needs the extra 'bench'")
pytest.importorskip("pandas", reason="the study needs the extra 'bench'")

import pandas as pd
from matplotlib.figure import Figure

from rgld.bench import figures, tables
from rgld.bench.study import Study


def test_the_papers_main_table_and_tests_follow_from_its_figures():
    """Our conventions (wins, ranks, coverage, Wilcoxon) are the paper's: its main table follows from its others."""
    published = tables.paper_results()
    methods, names = list(dict.fromkeys(published["method"])), list(dict.fromkeys(published["dataset"]))
    values = {m: tables.wide(published, m).reindex(index=names, columns=methods) for m in tables.MEASURES}
    is_missing = values["auroc"].isna()
    found = tables.Cells(values, is_missing, is_missing * 0)
    ours, theirs = tables.main_table(found), tables.paper_main().set_index("method")
    for column, tolerance in (("auroc", 0.006), ("auprc", 0.006), ("rank", 0.011), ("time", 0.006)):
        np.testing.assert_allclose(ours.loc[theirs.index, column], theirs[column], atol=tolerance)
    for column in ("auroc_wins", "auprc_wins"):
        np.testing.assert_array_equal(ours.loc[theirs.index, column], theirs[column])
    assert ours.loc["DAGMM", "datasets"] == 40
    p_values = tables.head_to_head(found, "RGLD", "ADERH")["p_value"]
    np.testing.assert_allclose(p_values, [0.162, 0.228, 2.39e-9], rtol=0.005)


def line_of(dataset, detector, seed, auroc, error=None):
    measured = (
        {} if error else {"auroc": auroc, "auprc": auroc / 2, "fit_seconds": 1.0, "score_seconds": 0.5, "n_infinite": 0}
    )
    return {"protocol": "paper", "dataset": dataset, "detector": detector, "seed": seed, "error": error, **measured}


def test_wide_takes_the_mean_over_states_then_seeds():
    frame = tables.frame_of(
        [
            line_of("glass", "RGLD(random_state=0)", 1, 10.0),
            line_of("glass", "RGLD(random_state=1)", 1, 20.0),
            line_of("glass", "RGLD(random_state=0)", 2, 40.0),
            line_of("glass", "HBOS", 1, 50.0, error="failed"),
        ]
    )
    assert tables.wide(frame, "auroc").at["glass", "RGLD"] == pytest.approx((15 + 40) / 2)
    assert "HBOS" not in tables.wide(frame, "auroc")


def test_paper_figures_stand_in_where_told_and_are_marked():
    frame = tables.frame_of(
        [line_of("glass", "RGLD", 1, 80.0), line_of("glass", "DIF", 1, 60.0), line_of("wine", "RGLD", 1, 70.0)]
    )
    found = tables.cells(frame, ["RGLD", "DIF"], ["glass", "wine"], fill_from_paper=["DIF"])
    assert found.values["auroc"].at["glass", "DIF"] == 60.0
    published = tables.paper_results().set_index(["dataset", "method"])["auroc"]
    assert found.values["auroc"].at["wine", "DIF"] == published["wine", "DIF"]
    assert found.from_paper["DIF"].tolist() == [False, True]
    assert tables.main_table(found).loc["DIF", "from_paper"] == 1


def test_the_main_table_says_over_how_many_split_seeds_a_mean_is():
    found = [line_of(name, "RGLD", seed, 80.0) for name in ("glass", "wine") for seed in (1, 2, 3)]
    found += [line_of("glass", "RGLD(random_state=1)", 1, 80.0), line_of("glass", "KNN", 2, 70.0)]
    found += [line_of("glass", "COF", 1, 60.0), line_of("glass", "COF", 2, 0.0, error="failed")]
    found += [line_of("wine", "COF", seed, 60.0) for seed in (1, 2, 3)]
    frame = tables.frame_of(found)
    cells = tables.cells(frame, ["RGLD", "COF", "KNN", "DIF"], ["glass", "wine"], fill_from_paper=["DIF"])
    assert tables.main_table(cells)["seeds"].to_dict() == {"RGLD": "3", "COF": "1 to 3", "KNN": "1", "DIF": "-"}


def test_ties_count_as_wins_for_each():
    table = pd.DataFrame({"a": [1.0, 3.0], "b": [1.0, 2.0], "c": [0.0, np.nan]})
    assert tables.wins(table).to_dict() == {"a": 2, "b": 1, "c": 0}
    assert tables.average_rank(table).to_dict() == {"a": 1.25, "b": 1.75, "c": 3.0}


def test_effect_size_is_one_where_one_side_always_wins():
    a = pd.Series([1.0, 2.0, 3.0, 4.0, 5.0])
    result = tables.paired_test("auroc", a + 1, a)
    assert (result.effect, result.better, result.worse) == (1.0, 5, 0)
    assert tables.paired_test("seconds", a + 1, a).effect == -1.0


def test_seconds_are_processor_time_of_the_first_split_seed():
    """Lines of the same split seed were taken in one run; wall time depends on what else the machine does."""
    timed = [
        {**line_of("glass", "HBOS", seed, 80.0 + seed), "cpu_seconds": seconds}
        for seed, seconds in ((2, 9.0), (1, 0.2))
    ]
    study = Study(timed)
    assert study.cells.values["seconds"].at["glass", "HBOS"] == 0.2, "not 1.5, which is wall time"
    assert study.cells.values["auroc"].at["glass", "HBOS"] == 81.5, "accuracy is the mean of all seeds"
    assert Study([line_of("glass", "HBOS", 1, 80.0)]).cells.values["seconds"].at["glass", "HBOS"] == 1.5


def test_markdown():
    text = tables.markdown(pd.DataFrame({"x": [1.234, np.nan], "n": [3, 4]}, index=["a", "b"]), 2, "name")
    assert text.splitlines() == ["| name | x | n |", "|---|---|---|", "| a | 1.23 | 3 |", "| b | N/A | 4 |"]


def test_tables_by_dataset_have_the_papers_figures_beside_ours():
    study = Study([line_of("glass", "HBOS", 1, 80.0), line_of("glass", "MCD", 1, 70.0)])
    table = tables.beside_paper(study.cells, "auroc")
    published = tables.wide(tables.paper_results(), "auroc").at["glass", "HBOS"]
    assert table.at["glass", "HBOS"] == 80.0
    assert table.at["glass", "HBOS (paper)"] == published
    assert "MCD (paper)" not in table, "the paper does not have it"


def test_figures_are_the_same_files_for_the_same_lines(tmp_path):
    methods, sets = ("RGLD", "HBOS", "ADERH", "IForest"), ("glass", "wine", "WBC", "Pima", "yeast", "thyroid")
    found = [line_of(d, m, s, 60.0 + i + s) for i, m in enumerate(methods) for d in sets for s in (1, 2)]
    main = tables.main_table(Study(found).cells)
    for name in ("one", "two"):
        figures.save(figures.pareto(main), tmp_path / name)
        figures.save(
            figures.critical_difference(Study(found).cells.values["auroc"][list(methods)], "AUROC"),
            tmp_path / f"cd-{name}",
        )
    for first, second in (("one", "two"), ("cd-one", "cd-two")):
        assert (tmp_path / f"{first}.svg").read_bytes() == (tmp_path / f"{second}.svg").read_bytes()
        assert (tmp_path / f"{first}.png").stat().st_size > 10_000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_figure_does_not_wait_for_a_pipe(tmp_path, kind):
    os.mkfifo(tmp_path / f"figure.{kind}")
    with pytest.raises(OSError, match="got a device, a pipe or a socket"):
        figures.save(Figure(), tmp_path / "figure")


def test_headings_can_be_wrapped():
    assert tables.markdown(pd.DataFrame({"mean_difference": [1.0]}, index=["a"])).startswith("|  | mean difference |")


def test_a_small_p_value_is_not_zero():
    shown = tables.significant(pd.Series([2.394e-9, 0.0164978, 1.0, np.nan]))
    assert shown.tolist()[:3] == ["2.4e-09", "0.016", "1"]
    assert np.isnan(shown.iloc[3])
