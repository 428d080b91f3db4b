"""Relations in a model file: checks of what no single array shows.

In: the relations of a file whose arrays have the right types, shapes and ranges. Out: nothing, or a `ModelFileError`
for relations that no fit gives: of columns or values that the table does not have, or more than a fit keeps.
"""

from collections.abc import Sequence

import numpy as np

from .._arrays import Bools, Int32s
from .._model.relations import GIVEN, MAX_RELATIONS, MAX_SPANS, MISSING, NUMBER_KINDS, UNLISTED, Relations
from .._table.encoding import Column
from ..exceptions import ModelFileError


def check_relations(relations: Relations, columns: Sequence[Column], n_held_out: int) -> None:
    """Raise if the relations are not those of a table with these columns and so many held-out rows."""
    numbers, orders, pairs, determined = relations.numbers, relations.orders, relations.pairs, relations.determined
    curves = relations.curves
    counted = (numbers, curves, orders, pairs, determined)
    _require("n_rows", all(len(part.n_rows) <= MAX_RELATIONS for part in counted))
    for part in counted:
        _require("n_broken", np.all((part.n_broken <= part.n_rows) & (part.n_rows <= relations.n_rows)))
    _require("evidence.of_rows", len(relations.evidence.of_rows) <= relations.n_rows)
    counts = relations.held_out.n_broken
    _require("held_out.n_broken", len(counts) in (0, len(relations)) and np.all(counts <= n_held_out))

    is_number = np.array([column.kind in NUMBER_KINDS for column in columns])
    is_time = np.array([column.kind == "time" for column in columns])
    spans = relations.spans
    _require("spans", len(spans.begin) <= MAX_SPANS)
    _require_columns("spans.begin", spans.begin, is_time)
    _require_columns("spans.end", spans.end, is_time)
    is_related = np.append(is_number, np.ones(len(spans.begin), bool))
    levels = relations.levels
    _require_columns("levels.column", levels.column, is_number)
    steps = np.diff(levels.column)
    # Compared, not subtracted: a difference may overflow.
    increase = (steps > 0) | ((steps == 0) & (levels.number[1:] > levels.number[:-1]))
    _require("levels.number", np.all(increase))
    # A column of numbers without levels has one value: that a number is given.
    n_values = np.array([len(column.values) if column.kind not in NUMBER_KINDS else GIVEN + 1 for column in columns])
    n_values[levels.column] = 0
    np.add.at(n_values, levels.column, 1)

    def check_values(name: str, column: Int32s, code: Int32s) -> None:
        _require_columns(name, column, n_values > 0)
        _require(name, np.all((code >= MISSING) & (code < n_values[column])))

    is_term = numbers.partner >= 0
    is_value = is_term & (numbers.partner_code != UNLISTED)
    _require_columns("numbers.target", numbers.target, is_related)
    _require_columns("numbers.partner", numbers.partner[is_term & ~is_value], is_related)
    check_values("numbers.partner", numbers.partner[is_value], numbers.partner_code[is_value])
    is_conditional = numbers.when >= 0
    check_values("numbers.when", numbers.when[is_conditional], numbers.when_code[is_conditional])
    _require("numbers.limit", np.all(numbers.limit >= numbers.within))
    _require_columns("curves.target", curves.target, is_related)
    _require_columns("curves.partner", curves.partner, is_related)
    _require("curves.knot", np.all(curves.knot[:, 1:] > curves.knot[:, :-1]))
    _require_columns("orders.low", orders.low, is_number)
    _require_columns("orders.high", orders.high, is_number)
    kinds = np.array([column.kind for column in columns])
    _require("orders.high", np.array_equal(kinds[orders.low], kinds[orders.high]))
    check_values("pairs.first", pairs.first, pairs.first_code)
    check_values("pairs.second", pairs.second, pairs.second_code)
    usual = np.where(pairs.usual_code == UNLISTED, MISSING, pairs.usual_code)
    check_values("pairs.usual_code", pairs.second, usual)

    _require("determined.n_values", int(determined.n_values.sum()) == len(determined.by_code))
    check_values("determined.by_code", np.repeat(determined.by, determined.n_values), determined.by_code)
    check_values(
        "determined.expected_code", np.repeat(determined.column, determined.n_values), determined.expected_code
    )
    is_first = np.zeros(len(determined.by_code), bool)
    is_first[np.cumsum(determined.n_values)[:-1]] = True
    _require("determined.by_code", np.all(is_first[1:] | (np.diff(determined.by_code) > 0)))


def _require_columns(name: str, column: Int32s, is_possible: Bools) -> None:
    _require(name, np.all(column < len(is_possible)) and np.all(is_possible[column]))


def _require(name: str, holds: object) -> None:
    if not holds:
        raise ModelFileError(f"The model file's relations ({name}) are not those of its columns.")
