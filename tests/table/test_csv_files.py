"""Nine public CSV files, as a person would read their columns. They are not part of the repository.

`python -m tests.table.test_csv_files` writes the expectation anew: read it before you keep it.
"""

import json
import os
from pathlib import Path

import pytest

from rgld._table.schema import read_training_table

DATA = Path(os.environ.get("RGLD_DATA", Path(__file__).parents[3] / "shared" / "data" / "adbench")).parent / "csv"
"""Beside the folder of ADBench."""
EXPECTED = Path(__file__).parents[1] / "files" / "csv-columns.json"
FILES = ("airq", "ames", "bank", "claims", "flights", "medicare_cost", "openssh", "retail", "telco")


def columns_of(name):
    """Return how the command line reads each column of a file: its kind, and its note or hint."""
    from rgld.cli._files import open_table
    from rgld.cli._options import Reading

    with open_table(str(DATA / f"{name}.csv"), Reading()) as file:
        table = read_training_table(file.read())[1]
    columns = table.infer_encoding(None).columns
    return {column.name: [column.kind, column.hint or column.note] for column in columns}


@pytest.mark.skipif(not DATA.exists(), reason="the files are not here")
@pytest.mark.parametrize("name", FILES)
def test_every_column_is_read_as_a_person_would(name):
    pytest.importorskip("polars")
    found, expected = columns_of(name), json.loads(EXPECTED.read_text("utf-8"))[name]
    assert list(found) == list(expected)
    assert found == expected


if __name__ == "__main__":
    EXPECTED.write_text(json.dumps({name: columns_of(name) for name in FILES}, indent=1) + "\n", "utf-8")
