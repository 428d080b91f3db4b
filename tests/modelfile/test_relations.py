"""Relations in model files: forged ones are refused, and files of earlier versions have none."""

import time

import numpy as np
import pytest

from rgld import RGLD, ModelFileError, load
from rgld._model.relations import Levels
from rgld._modelfile.layout import arrays_of

from ..files.house.cases import FOLDER
from ..fit.relation_tables import related
from .model_files import SMALL, joined, set_parameter, split

SETTINGS = {**SMALL, "relations": True, "calibration_fraction": 0.2, "random_state": 0}


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("relations") / "m.rgld"
    RGLD(**SETTINGS).fit(related()).save(path)
    return path.read_bytes()


def forged(content, name, value, at=0):
    header, data = split(content)
    entry = header[f"relations.{name}"]
    dtype = {"F64": "<f8", "I64": "<i8", "I32": "<i4"}[entry["dtype"]]
    start, stop = entry["data_offsets"]
    array = np.frombuffer(data[start:stop], dtype).copy()
    array[at] = value
    return joined(header, data[:start] + array.tobytes() + data[stop:])


FORGED = [
    ("numbers.target", 99),
    ("numbers.target", -1),
    ("numbers.target", 6),  # a category
    ("numbers.partner", 99),
    ("numbers.partner_code", 5),  # of a number that has no levels
    ("numbers.when", 99),
    ("numbers.form", 3),
    ("numbers.weight", np.nan),
    ("numbers.weight", 1e200),
    ("numbers.constant", np.inf),
    ("numbers.limit", 0.0),
    ("numbers.limit", 1e-199),  # below the distance that 99 % of the rows keep
    ("numbers.decade", 0.0),
    ("numbers.strength", 1e9),
    ("numbers.n_broken", 10**6),
    ("numbers.n_rows", 10**6),
    ("orders.low", 7),
    ("orders.low", 0),  # a number, beside a date
    ("orders.high", 99),
    ("pairs.first_code", 2),
    ("pairs.second", 2),
    ("pairs.usual_code", 7),
    ("determined.n_values", 2**20),
    ("determined.by_code", 99),
    ("determined.by_code", 5),  # not increasing
    ("determined.expected_code", 4),
    ("determined.column", 99),
    ("evidence.of_rows", 19.0),  # not sorted
    ("evidence.of_rows", np.nan),
    ("held_out.n_broken", 10**6),  # more than were held out
    ("held_out.n_broken", -1),
]


@pytest.mark.parametrize(("name", "value"), FORGED)
def test_forged_relations_are_refused(content, tmp_path, name, value):
    path = tmp_path / "forged.rgld"
    path.write_bytes(forged(content, name, value))
    with pytest.raises(ModelFileError) as error:
        load(path)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


def test_a_file_without_its_relations_is_refused(content, tmp_path):
    header, data = split(content)
    for forged_header in (
        set_parameter(header, "n_relation_rows", 0),
        {name: entry for name, entry in header.items() if name != "relations.numbers.target"},
        {name: entry for name, entry in header.items() if name != "relations.orders.high"},
    ):
        (tmp_path / "m.rgld").write_bytes(joined(forged_header, data))
        with pytest.raises(ModelFileError):
            load(tmp_path / "m.rgld")


def test_levels_of_many_columns_take_no_time():
    """A forged file can give each of its columns levels: the time may not grow with columns times levels."""
    column = np.repeat(np.arange(1, 400_000, 2, dtype=np.int32), 2)
    levels = Levels(column, np.arange(len(column), dtype=float))
    started = time.process_time()
    assert levels.by_column.keys() == set(range(1, 400_000, 2))
    assert time.process_time() - started < 5.0
    np.testing.assert_array_equal(levels.by_column[5], [4.0, 5.0])
    assert Levels(column[:0], np.empty(0)).by_column == {}


def test_files_of_earlier_versions_have_no_relations():
    detector = load(FOLDER / "plus.rgld")
    assert detector.relations is False and detector.relations_ == () and detector.model_.relations is None


def test_the_file_says_all_again(content, tmp_path):
    (tmp_path / "m.rgld").write_bytes(content)
    detector = load(tmp_path / "m.rgld")
    detector.save(tmp_path / "again.rgld")
    assert (tmp_path / "again.rgld").read_bytes() == content
    fitted = RGLD(**SETTINGS).fit(related())
    for name, array in arrays_of(fitted.model_).items():
        np.testing.assert_array_equal(arrays_of(detector.model_)[name], array, err_msg=name)
