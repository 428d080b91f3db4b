"""Relations in the commands: printed, in JSON and in the output; on the page of the report."""

import csv
import json

import pytest

from rgld import RGLD
from rgld.report._gather import report_data

from ..fit.relation_tables import broken_rows, related
from .command import rgld


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("relations") / "rides.csv"
    related().write_csv(path)
    return path


def test_score_prints_relations_and_writes_the_broken_one(table, tmp_path):
    code, shown, error = rgld("score", table, "--seed", "0", "--out", tmp_path / "out.csv")
    assert code == 0, error
    assert "relations between columns" in shown and "total = fare + tip; " in shown
    lines = list(csv.DictReader((tmp_path / "out.csv").read_text("utf-8").splitlines()))
    said = {i for i, line in enumerate(lines) if line["broken_relation"]}
    assert set(broken_rows()) <= said and len(said) < 30
    assert "where fare and tip suggest" in lines[0]["broken_relation"]
    assert lines[0]["reasons"].startswith(lines[0]["broken_relation"])


def test_json_has_the_partners(table, tmp_path):
    code, shown, _ = rgld("explain", table, "--row", "2", "--seed", "0", "--json")
    (broken, *_) = json.loads(shown)[0]["broken_relations"]
    assert code == 0 and broken["column"] == "total" and sorted(broken["partners"]) == ["fare", "tip"]


def test_info_lists_them(table, tmp_path):
    assert rgld("fit", table, "--model", tmp_path / "m.rgld", "--preset", "plus")[0] == 0
    code, shown, _ = rgld("info", tmp_path / "m.rgld")
    assert code == 0 and "zone determines borough in all but" in shown and "fitted on 1,200 rows" in shown
    relations = json.loads(rgld("info", tmp_path / "m.rgld", "--json")[1])["relations"]
    assert {"words", "kind", "columns", "strength", "rows", "broken"} == set(relations[0])


def test_the_page_links_each_relation_to_its_rows():
    data = report_data(RGLD.plus(random_state=0).fit(related()), related())
    found = {relation["words"]: relation for relation in data["relations"]}
    places = found["zone determines borough in all but 2 of 1,500 rows"]["rows"]
    assert sorted(data["rows"][place]["id"] for place in places) == ["6", "7"]
    assert data["n_breaking"] >= 12 and data["n_relations"] == len(data["relations"])
