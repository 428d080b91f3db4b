"""Formats: a body as a table, and answers as bytes.

In: bytes from strangers, of a known media type. Out: a `Table` of the columns that a model needs, or a `RequestError`
that names the column. How cells are read is up to the model: a string may be a number, a date or a value, as in `rgld
score`.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._table.columns import RawColumn
from .._table.objects import read_objects
from .._table.schema import Schema
from .._table.table import ColumnTable, MatrixTable, Table
from .arrow import count_rows
from .limits import Limits
from .problems import RequestError

if TYPE_CHECKING:
    from .models import Served

JSON, CSV, ARROW = "application/json", "text/csv", "application/vnd.apache.arrow.stream"
PLAIN = {str, int, float, bool, type(None)}
"""Types of the cells of JSON rows."""
MAX_FIELD_LENGTH = 10_000
"""Characters of a cell of a CSV body, bytes of one of an Arrow stream."""
CSV_DELIMITERS = ",;\t|"
MAX_MARKS_PER_CELL = 2
"""Commas and opening brackets of a JSON body for each cell that is allowed: twice as many, since text holds some."""


def media_type(header: str) -> str:
    """Return the media type of a body, without its parameters."""
    return header.partition(";")[0].strip().lower()


def read_table(body: bytes, kind: str, served: "Served", limits: Limits) -> Table:
    """Return the rows of a body, with the columns of the model."""
    readers = {JSON: _read_json, CSV: _read_csv, ARROW: _read_arrow}
    if kind not in readers:
        raise RequestError(
            415, f"Expected the Content-Type {JSON}, {CSV} or {ARROW}, got {kind[:60]!r}: name the format of the body."
        )
    return readers[kind](body, served, limits)


def check_size(n_rows: int, n_columns: int, limits: Limits) -> None:
    """Raise if a table has no row, or more rows, columns or cells than allowed."""
    if not n_rows:
        raise RequestError(422, "Expected at least one row, got none.")
    for name, found, most in (
        ("rows", n_rows, limits.rows),
        ("columns", n_columns, limits.columns),
        ("cells", n_rows * n_columns, limits.cells),
    ):
        if found > most:
            raise RequestError(
                413, f"Expected at most {most:,} {name}, got {found:,}: send the rows in several requests."
            )


def _read_json(body: bytes, served: "Served", limits: Limits) -> Table:
    # Every value but the first of its list or object has a comma before it: what is counted here bounds what is made.
    if sum(map(body.count, (b",", b"[", b"{"))) > MAX_MARKS_PER_CELL * (limits.cells + limits.rows):
        raise RequestError(
            413, f"Expected at most {limits.cells:,} cells, got more: send the rows in several requests."
        )
    try:
        content = json.loads(body, parse_constant=_refuse_constant)
    except RecursionError:
        raise RequestError(400, "Expected rows of plain values, got JSON that is nested too deep.") from None
    except UnicodeDecodeError:
        raise RequestError(400, "Expected JSON in UTF-8, got other bytes.") from None
    except ValueError as error:
        place = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise RequestError(400, f"Expected JSON, got something that cannot be read{place}: check the body.") from None
    rows = content.get("rows") if isinstance(content, dict) else content
    if not isinstance(rows, list):
        raise RequestError(
            422, 'Expected a list of rows, or {"rows": [...]}, got something else: put the rows into a list.'
        )
    width = max((len(row) for row in rows[:1] if isinstance(row, (dict, list))), default=0)
    check_size(len(rows), max(width, len(served.columns)), limits)
    if all(type(row) is dict for row in rows) and served.has_names:
        return _table_of_objects(rows, served)
    if all(type(row) is list for row in rows):
        return _table_of_lists(rows, served)
    expected = "objects, such as {'column': value}" if served.has_names else "lists of numbers"
    raise RequestError(422, f"Expected all rows to be {expected}, got something else among them.")


def _refuse_constant(name: str) -> None:
    raise RequestError(400, f"Expected JSON, got {name}, which JSON does not have: send null for a missing value.")


def _table_of_objects(rows: Sequence[Mapping[str, Any]], served: "Served") -> Table:
    columns = []
    for name, is_used in served.columns:
        if not is_used:
            columns.append(unused_column(name, len(rows)))
            continue
        try:
            values = [row[name] for row in rows]
        except KeyError:
            row = next(i for i, row in enumerate(rows) if name not in row)
            raise RequestError(
                422, f"Row {row} lacks the column {name!r}: send it, with null if its value is missing.", column=name
            ) from None
        columns.append(column_of(name, values))
    return ColumnTable(tuple(columns))


def _table_of_lists(rows: Sequence[Sequence[Any]], served: "Served") -> Table:
    """Return rows given as lists, in the order of the model's columns."""
    n_columns = len(served.columns)
    wrong = next((i for i, row in enumerate(rows) if len(row) != n_columns), None)
    if wrong is not None:
        raise RequestError(
            422, f"Row {wrong} has {len(rows[wrong])} values, expected {n_columns}, one for each column of the model."
        )
    by_column = zip(served.columns, zip(*rows, strict=True), strict=True)
    if served.has_names:
        return ColumnTable(
            tuple(
                column_of(name, list(values)) if is_used else unused_column(name, len(rows))
                for (name, is_used), values in by_column
            )
        )
    matrix = np.empty((len(rows), n_columns))
    for j, ((name, _), values) in enumerate(by_column):
        raw = column_of(name, list(values))
        if raw.is_string or (raw.kind != "number" and not raw.missing.all()):
            raise RequestError(
                422, f"{name.capitalize()} holds something else than numbers: send numbers or null.", column=name
            )
        matrix[:, j] = raw.values
    return MatrixTable(matrix)


def unused_column(name: str, n: int) -> RawColumn:
    """Return a column that the model does not use; its values need not be sent."""
    return RawColumn(name, "number", np.broadcast_to(np.nan, n))


def column_of(name: str, values: list[Any]) -> RawColumn:
    """Return a column of JSON values."""
    if not PLAIN.issuperset(map(type, values)):
        odd = next(i for i, value in enumerate(values) if type(value) not in PLAIN)
        what = "a list" if isinstance(values[odd], list) else "an object"
        raise RequestError(
            422,
            f"Column {name!r} holds {what} in row {odd}, expected a number, text, true, false or null.",
            column=name,
        )
    return read_objects(name, values)


def _read_csv(body: bytes, served: "Served", limits: Limits) -> Table:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError(400, "Expected CSV in UTF-8, got other bytes: convert the file first.") from None
    if "\0" in text:
        raise RequestError(400, "Expected CSV, got binary data: name its format in Content-Type.")
    first = text.partition("\n")[0]
    delimiter = max(CSV_DELIMITERS, key=first.count)
    if first.count(delimiter) >= limits.columns:  # before a list is made of them
        check_size(1, first.count(delimiter) + 1, limits)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    names: list[str] = []
    rows: list[list[str]] = []
    try:
        for row in reader:
            if not row:
                continue
            if max(map(len, row)) > MAX_FIELD_LENGTH:
                raise RequestError(
                    413, f"Line {reader.line_num} has a cell of more than {MAX_FIELD_LENGTH:,} characters: cut it."
                )
            if not names:
                names = row
                continue
            if len(row) != len(names):
                raise RequestError(
                    422, f"Line {reader.line_num} has {len(row)} fields, expected {len(names)} as in the first line."
                )
            rows.append(row)
            if len(rows) > limits.rows:
                check_size(len(rows), len(names), limits)
    except csv.Error:
        raise RequestError(400, f"Line {reader.line_num} cannot be read as CSV: check its quotation marks.") from None
    check_size(len(rows), max(len(names), len(served.columns)), limits)
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise RequestError(422, f"Expected different column names, got {repeated[:60]!r} more than once: rename one.")
    places = {name: place for place, name in enumerate(names)}
    if not served.has_names:
        return _table_of_lists([[_number(cell) for cell in row] for row in rows], served)
    columns = []
    for name, is_used in served.columns:
        if not is_used:
            columns.append(unused_column(name, len(rows)))
            continue
        if name not in places:
            raise RequestError(422, f"The table lacks the column {name!r}: send all columns of the model.", column=name)
        place = places[name]
        columns.append(read_objects(name, [row[place] for row in rows]))
    return ColumnTable(tuple(columns))


def _number(cell: str) -> float | str | None:
    try:
        return float(cell) if cell.strip() else None
    except ValueError:
        return cell


def _read_arrow(body: bytes, served: "Served", limits: Limits) -> Table:
    import polars as pl

    check_size(count_rows(body), len(served.columns), limits)
    try:
        frame = pl.read_ipc_stream(io.BytesIO(body))
    except (Exception, pl.exceptions.PanicException):
        raise RequestError(
            400, "Expected an Arrow stream, got something that cannot be read as one: write it again."
        ) from None
    check_size(len(frame), max(frame.width, len(served.columns)), limits)
    for column in frame.select(pl.col(pl.String, pl.Binary)):
        lengths = column.str.len_bytes() if column.dtype == pl.String else column.bin.size()
        if (lengths.max() or 0) > MAX_FIELD_LENGTH:  # type: ignore[operator]
            # Many rows may share the bytes of one long string, and each would be gone through.
            raise RequestError(
                413,
                f"Column {column.name!r} has a cell of more than {MAX_FIELD_LENGTH:,} bytes: cut it.",
                column=column.name,
            )
    if not served.has_names:
        if frame.width != len(served.columns):
            raise RequestError(422, f"Expected {len(served.columns)} columns, got {frame.width}.")
        return Schema(frame.width, None).read(frame.cast(pl.Float64, strict=False).to_numpy())
    missing = next((name for name, is_used in served.columns if is_used and name not in frame.columns), None)
    if missing is not None:
        raise RequestError(
            422, f"The table lacks the column {missing!r}: send all columns of the model.", column=missing
        )
    # A column that the model does not use may be left out.
    frame = frame.select(
        pl.col(name) if name in frame.columns else pl.lit(None).alias(name) for name, _ in served.columns
    )
    unused = [name for name, is_used in served.columns if not is_used]
    return Schema(frame.width, tuple(frame.columns)).read(frame, unused=unused)


def arrow_bytes(columns: Mapping[str, Any]) -> bytes:
    """Return columns as an Arrow stream."""
    import polars as pl

    out = io.BytesIO()
    pl.DataFrame(columns).write_ipc_stream(out)
    return out.getvalue()


def json_bytes(content: Any) -> bytes:
    """Return JSON. Floats have all their digits: they read back as the same bits."""
    return json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
