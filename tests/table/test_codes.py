"""Codes are not quantities, and quantities are not codes. The rules are in docs/tables.md."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rgld import RGLD
from rgld._table.names import says_code, says_number_of_a_thing, words_of

from .column_tables import reading

RNG = np.random.default_rng(0)  # for the tables below; a test draws from the fixture `rng`
N = 400
CODES = {
    "CustomerID": RNG.integers(12_000, 12_080, N),
    "Pid": RNG.integers(24_000, 30_000, N // 4).repeat(4),
    "policy_number": RNG.integers(100_000, 100_090, N),
    "InvoiceNo": RNG.integers(536_000, 536_090, N),
    "insured_zip": RNG.integers(430_000, 430_050, N),
    "Provider Zip Code": RNG.integers(35_000, 35_050, N),
    "ORIGIN_AIRPORT_ID": RNG.choice([10397, 11433, 13487], N),
    "DRG": RNG.choice([280, 281, 808, 897], N),
    "payment_type": RNG.integers(1, 5, N),
    "sex": RNG.integers(1, 3, N),
    "id_user": RNG.integers(0, 50, N),
}
QUANTITIES = {
    "age": RNG.integers(18, 90, N),
    "year": RNG.integers(1990, 2024, N),
    "Year Built": RNG.integers(1900, 2010, N),
    "rating": RNG.integers(1, 6, N),
    "price": RNG.integers(10_000, 99_999, N),
    "number_of_vehicles_involved": RNG.integers(1, 5, N),
    "Number of Records": RNG.integers(100, 5000, N),
    "num_children": RNG.integers(0, 6, N),
    "children_number": RNG.integers(0, 6, N),
    "PT08.S4(NO2)": RNG.integers(500, 2000, N),
    "NO2": RNG.integers(20, 300, N),
    "NO": RNG.integers(100, 300, N),
    "paid": RNG.integers(0, 500, N),
    "humid": RNG.integers(20, 100, N),
    "count": RNG.integers(0, 1000, N),
    "keystrokes": RNG.integers(100, 900, N),
    "Total Discharges": RNG.integers(11, 300, N),
    "zip_size": RNG.integers(1000, 9000, N),
}


@pytest.mark.parametrize("name", CODES)
def test_whole_numbers_under_the_name_of_a_code_are_categories(name, rng):
    column = reading(CODES[name], name=name)
    assert column.kind == "category" and column.note == "a code, by its name: 'number' reads it as a quantity"
    assert reading(CODES[name], "number", name=name).kind == "number", "the user overrules it"
    assert reading(CODES[name] + 0.5, name=name).kind == "number", "codes are whole numbers"
    with_gaps = np.where(rng.random(N) < 0.1, np.nan, CODES[name])
    assert reading(with_gaps, name=name).kind == "category", "pandas makes floats of integers with gaps"


@pytest.mark.parametrize("name", QUANTITIES)
def test_other_whole_numbers_are_quantities(name):
    assert reading(QUANTITIES[name], name=name).kind == "number"


def test_hardly_any_code_twice_is_an_id(rng):
    zips = np.append(rng.choice(10**5, 99, replace=False) + 10**5, 10**5)
    column = reading(np.append(zips[:-2], zips[:2]), name="insured_zip")
    assert column.kind == "dropped" and column.note.startswith("it is an id (a code, by its name): ")
    assert column.note.endswith("values in 100 rows")


def test_few_rows_do_not_show_codes():
    assert reading([3, 4, 3, 4, 5, 5], name="user_id").kind == "number"


@pytest.mark.parametrize(
    ("strings", "kind"),
    [
        (["01101", "02134", "10001"], "category"),
        (["020", "060", "120"], "category"),
        (["01", "02", "12"], "number"),
        (["00", "07", "23"], "number"),
        (["0905", "1830", "2359"], "number"),
        (["0.5", "0.25", "1.5"], "number"),
        (["007.5", "010.0", "100.5"], "number"),
    ],
)
def test_digits_with_leading_zeros(strings, kind):
    assert reading(strings * 20, name="x").kind == kind


def test_zeros_and_ones_are_truth_values(rng):
    assert reading(rng.integers(0, 2, 50)).kind == "boolean"
    assert reading([0.0, 1.0, None] * 20).kind == "boolean"
    assert reading(["0", "1"] * 20).kind == "boolean"
    for others in ([1, 2], [0, 1, 2], [0, 0.5, 1], [-1, 1]):
        assert reading(others * 20).kind == "number"
    assert reading([0, 1] * 20, "number").kind == "number"


def test_truth_values_score_as_the_numbers_and_read_as_words(rng):
    frame = pd.DataFrame({"x": rng.normal(size=300), "senior": (rng.random(300) < 0.03).astype(int)})
    asked = RGLD(random_state=0, columns={"senior": "number"}).fit(frame)
    detector = RGLD(random_state=0).fit(frame)
    np.testing.assert_array_equal(detector.anomaly_score(frame), asked.anomaly_score(frame))
    odd = pd.DataFrame({"x": [0.0, 0.0], "senior": [1, 7]})
    reasons = [detector.explain(odd).reasons(row)[0] for row in range(2)]
    assert reasons[0].startswith("senior is true")
    assert reasons[1].startswith("senior is 7 (under"), "a number that is neither"


def test_numbers_that_each_belong_to_one_text_are_codes(rng):
    places = rng.integers(0, 6, N)
    texts = np.array(["heart failure", "anaemia", "stroke", "asthma", "burns", "sepsis"])[places]
    far = np.array([280, 308, 61, 897, 450, 812])[places]
    months = np.array([1, 2, 3, 4, 5, 6])[places]
    kinds = {column.name: column for column in learned_frame(text=texts, group=far, month=months, x=rng.normal(size=N))}
    assert kinds["group"].kind == "category"
    assert kinds["group"].note == "a code: each value belongs to one text of 'text': 'number' reads it as a quantity"
    assert kinds["month"].kind == "number", "numbers without gaps have an order"
    far[0] = far[places != places[0]][0]
    assert learned_frame(text=texts, group=far)[1].kind == "number", "one number, two texts"


def learned_frame(**columns):
    return RGLD(random_state=0, n_global_views=2, n_local_views=2).fit(pl.DataFrame(columns)).columns_


def test_arrays_have_no_names_and_no_codes(rng):
    X = np.column_stack([rng.integers(0, 2, N), rng.integers(10**5, 10**5 + 30, N)]).astype(float)
    for table in (X, pd.DataFrame(X), X.tolist()):
        columns = RGLD(random_state=0, n_global_views=2, n_local_views=2).fit(table).columns_
        assert [column.kind for column in columns] == ["number", "number"]
        assert all(column.gap_value is None for column in columns)


def test_words_of_names():
    assert words_of("CustomerID") == ["customer", "id"] and words_of("ORIGIN_AIRPORT_ID")[-1] == "id"
    assert words_of("Weight (kg)") == ["weight"] and words_of("NO2") == ["no", "2"]
    assert not says_code("paid") and says_code("Zip Code") and not says_code("code lines")
    assert says_number_of_a_thing("Kunden-Nr") and not says_number_of_a_thing("number")


def test_codes_in_batches_are_read_as_in_memory(rng):
    frame = pd.DataFrame({"x": rng.normal(size=900), "shop_id": rng.integers(100, 130, 900)})
    settings = {"random_state": 0, "n_global_views": 2, "n_local_views": 2}
    whole = RGLD(**settings).fit(frame)
    parts = RGLD(**settings).fit_batches(lambda: iter([frame[:500], frame[500:]]))
    assert whole.columns_ == parts.columns_ and whole.columns_[1].kind == "category"
    np.testing.assert_array_equal(whole.anomaly_score(frame), parts.anomaly_score(frame))


def test_a_code_is_found_again_however_it_is_typed(rng):
    frame = pl.DataFrame({"x": rng.normal(size=N), "zip": rng.choice(["01101", "02134", "10001"], N)})
    detector = RGLD(random_state=0, n_global_views=2, n_local_views=2).fit(frame)
    as_numbers = frame.with_columns(pl.col("zip").cast(pl.Int64))
    np.testing.assert_array_equal(detector.anomaly_score(frame), detector.anomaly_score(as_numbers))
