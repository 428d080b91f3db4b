"""Names: what the name of a column says about its values.

In: a column's name. Out: whether it says that the values are codes, or moments in time. A name is only a hint: `infer`
also looks at the values before it follows one.
"""

import re

CODE_WORDS = frozenset(
    {"id", "uid", "uuid", "guid", "key", "pid", "code", "zip", "zipcode", "postal", "postcode", "postalcode", "plz"}
    | {"ssn", "npi", "ean", "upc", "gtin", "isbn", "sku", "iban", "vin", "imei", "phone", "telephone", "fax"}
    | {"drg", "icd", "cpt", "ndc", "naics", "sic", "fips", "type", "sex", "gender"}
)
"""A name that ends in one of these words says code, whatever the size of the numbers."""
NUMBER_WORDS = frozenset({"no", "nr", "num", "number", "nummer"})
"""A name that ends in one of these words says code if the numbers are long: an invoice number, but also a number of
children."""
TIME_WORDS = frozenset({"time", "timestamp", "date", "datetime", "ts", "epoch", "when", "created", "updated", "at"})
"""A name with one of these as its last word, or with time, date or timestamp as any word, says moment in time."""
YEAR_WORDS = frozenset({"year", "years", "yr", "yyyy", "jahr"})
"""A name with one of these words says year, as Yr Sold and model_year do, unless it is a number of years."""
MONTH_WORDS = frozenset({"month", "period", "yyyymm", "yearmonth", "ym"})
"""A name with one of these words, or one that says year or time, may hold months as digits, such as 202406."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W_A-Za-z]+")
_IN_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")


def words_of(name: str) -> list[str]:
    """Return the words and digits of a name in lower case: customer and id for CustomerID and customer_id. What stands
    in brackets is left out, as in 'S4 (NO2)': it is a unit or a remark."""
    return [word.lower() for word in _WORD.findall(_IN_BRACKETS.sub(" ", name))]


def says_code(name: str) -> bool:
    """Return whether a name ends in a word for codes, as user_id and Zip Code do, or begins with id, as id_user."""
    words = words_of(name)
    return bool(words) and (words[-1] in CODE_WORDS or words[0] == "id")


def says_number_of_a_thing(name: str) -> bool:
    """Return whether a name ends in a word for numbers that may be codes, as InvoiceNo and policy_number do."""
    words = words_of(name)
    return len(words) > 1 and words[-1] in NUMBER_WORDS


def says_time(name: str) -> bool:
    """Return whether a name says moment in time, as created_at, Timestamp and Time Stamp do."""
    words = words_of(name)
    return bool(words) and (words[-1] in TIME_WORDS or bool({"time", "date", "timestamp"} & set(words)))


def says_year(name: str) -> bool:
    """Return whether a name says year."""
    return bool(YEAR_WORDS & set(words_of(name)))


def says_month(name: str) -> bool:
    """Return whether numbers of six digits under a name may be months of a year."""
    return says_time(name) or bool((YEAR_WORDS | MONTH_WORDS) & set(words_of(name)))
