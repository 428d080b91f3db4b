"""Databases: a table or a query of DuckDB, SQLite or PostgreSQL, read as a file is read.

In: an address such as `postgresql://ann@host/shop`, with `--table` or `--query`. Out: a `DatabaseTable`, or a new table
with results (`--out table:NAME`). Rows stream in batches. All passes of a fit see the same rows. A password is never
shown: whatever is printed goes through `masked`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import polars as pl

from rgld.exceptions import ParameterError, RGLDError, TableError

from ._addresses import OUT_TABLE, is_database, masked
from ._drivers import Driver, DuckDB, PostgreSQL, SQLite, is_duckdb_file, sql_name
from ._files import BASE_BYTES, BYTES_PER_NUMBER, FIT_BYTES_PER_NUMBER, FIT_BYTES_PER_STRING, TableFile, batch_rows
from ._guard import while_reading
from ._memory import require_memory
from ._options import Reading

MAX_LISTED_TABLES = 8


@dataclass(frozen=True)
class Address:
    """The address of a database."""

    text: str

    @property
    def shown(self) -> str:
        """The address without a password."""
        return masked(self.text)

    def driver(self) -> Driver:
        """Return what talks to the database; it is not connected yet."""
        kind, rest = self.text.split("://", 1)
        kind = kind.split("+")[0].lower()
        if kind.startswith("postgres"):
            return PostgreSQL("postgresql://" + rest)
        if not rest.startswith("/") or len(rest) == 1:
            raise ParameterError(f"{self.shown}: expected {kind}:///FILE, or {kind}:////FOLDER/FILE from the root.")
        path = Path(unquote(rest[1:]))
        if not path.is_file():
            from_root = Path(unquote(rest))
            hint = f"; write {kind}:///{from_root} if it is there" if from_root.is_file() else ": check the path"
            raise TableError(f"There is no file {path}{hint}.")
        if kind == "sqlite":
            return SQLite(path)
        if not is_duckdb_file(path):  # DuckDB would open other files as something else
            raise TableError(f"{path} is not a DuckDB database: check the path.")
        return DuckDB(path)

    def in_words(self, error: BaseException) -> str:
        """Return what a database says about an error, in one line without a password."""
        text = str(error)
        for secret in self._secrets():
            text = text.replace(secret, "***")
        lines = [line.strip() for line in masked(text).splitlines() if line.strip()] or [type(error).__name__]
        return re.sub(r"^.*?(?:ERROR|FATAL|PANIC|Failed to connect):\s+", "", lines[0]).rstrip(".:!")[:200]

    def _secrets(self) -> list[str]:
        """Return the whole address and its passwords, as they are written and as they are meant."""
        try:
            parts = urlsplit(self.text)
            written = [parts.password or "", *re.findall(r"password=([^&]*)", parts.query)]
        except ValueError:  # it is no address at all
            written = []
        return sorted({self.text, *written, *map(unquote, written)} - {""}, key=len, reverse=True)


@contextmanager
def speaking(address: Address, what: str) -> Iterator[None]:
    """Turn errors of a database into one sentence."""
    try:
        yield
    except (RGLDError, MemoryError, ImportError):
        raise
    except Exception as error:
        # The error itself may show a password: it is not chained.
        raise TableError(f"{address.shown} cannot {what}: {address.in_words(error)}.") from None


@dataclass(frozen=True, kw_only=True)
class DatabaseTable(TableFile):
    """A table or a query of a database."""

    address: Address
    database: Driver
    source: str
    """What stands after FROM."""
    name: str

    @property
    def title(self) -> str:
        """A short name."""
        return self.name

    def read(self) -> pl.DataFrame:
        """Return the whole table."""
        require_memory(BYTES_PER_NUMBER * self._n_rows * len(self.columns()), self.allowed, self.shown)
        return pl.concat(self.batches(None, {}))

    def batches(
        self, names: Sequence[str] | None, numbers: Mapping[str, Any], *, may_be_empty: bool = False
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows, a bounded number at a time, of the named columns or of all. The types are the database's."""
        wanted = self._expressions if names is None else {name: self._expressions[name] for name in names}
        columns = ", ".join(f"{expression} AS {sql_name(name)}" for name, expression in wanted.items())
        rows = 0
        frames = self.database.batches(f"SELECT {columns} FROM {self.source}", batch_rows(len(wanted)))
        while True:
            with while_reading(self.shown), speaking(self.address, "be read"):
                frame = next(frames, None)
            if frame is None:
                break
            rows += len(frame)
            if len(frame):
                _check_times(frame, self.shown)
                yield frame
        if not rows and not may_be_empty:
            raise TableError(f"{self.shown} has no rows: expected at least one.")

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        return list(self._expressions)

    def fit_bytes(self) -> int:
        """Return about how much memory a fit on the whole table takes."""
        head = next(self.database.batches(f"SELECT * FROM {self._listed} LIMIT 1", 1), pl.DataFrame())
        kinds = head.dtypes or [pl.String()] * len(self.columns())
        row = sum(FIT_BYTES_PER_NUMBER if kind.is_numeric() else FIT_BYTES_PER_STRING for kind in kinds)
        return BASE_BYTES + row * self._n_rows

    @property
    def _listed(self) -> str:
        columns = ", ".join(f"{expression} AS {sql_name(name)}" for name, expression in self._expressions.items())
        return f"(SELECT {columns} FROM {self.source}) AS listed"

    @cached_property
    def _n_rows(self) -> int:
        with speaking(self.address, "be read"):
            return int(self.database.rows(f"SELECT count(*) FROM {self.source}")[0][0])

    @cached_property
    def _expressions(self) -> dict[str, str]:
        """For each column the SQL that reads it."""
        with speaking(self.address, "be read"):
            found = self.database.columns(self.source)
        names = [name for name, _ in found]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise TableError(f"{self.shown} has two columns named {repeated[0]!r}: name one of them anew in --query.")
        return dict(found)


def _check_times(frame: pl.DataFrame, shown: str) -> None:
    """Raise if a time is infinite: databases have such times, as the largest and smallest integers."""
    for column in frame:
        if column.dtype in (pl.Date, pl.Datetime) and column.null_count() < len(column):
            integers = column.to_physical()
            limit = 2 ** (30 if column.dtype == pl.Date else 62)  # half of the largest: some drivers overflow
            if max(integers.max(), -integers.min()) >= limit:  # type: ignore[type-var,operator]
                raise TableError(
                    f"{shown}: column {column.name!r} holds an infinite time, expected times: replace it in --query."
                )


@contextmanager
def open_database(path: str, reading: Reading, allowed: int) -> Iterator[DatabaseTable]:
    """Yield a table or a query of a database. The connection is closed afterwards."""
    address = Address(path)
    if reading.query is not None and reading.from_table is not None:
        raise ParameterError("--query and --table do not go together: pass one of them.")
    database = address.driver()
    with speaking(address, "be opened"):
        database.connect(read_only=True)
    try:
        if reading.query is not None:
            # A newline, because the query may end in a comment.
            source, name = f"({reading.query.strip().rstrip(';')}\n) AS query", "query"
        elif reading.from_table is not None:
            source, name = quoted_table(reading.from_table), reading.from_table
        else:
            with speaking(address, "be read"):
                raise ParameterError(f"{address.shown} is a database: {_choice(database.tables())}.")
        shown = f"{name} of {address.shown}"
        yield DatabaseTable(
            Path(name), shown, "database", allowed, address=address, database=database, source=source, name=name
        )
    finally:
        database.close()


def _choice(tables: Sequence[str]) -> str:
    if not tables:
        return "it has no tables yet"
    more = ", ..." if len(tables) > MAX_LISTED_TABLES else ""
    return f"name a table with --table ({', '.join(tables[:MAX_LISTED_TABLES])}{more}), or pass a --query"


def quoted_table(name: str) -> str:
    """Return the SQL for a table: NAME, or SCHEMA.NAME."""
    parts = name.split(".")
    if not all(parts) or len(parts) > 2:
        raise ParameterError(f"Expected the name of a table, or SCHEMA.NAME, got {name!r}.")
    return ".".join(map(sql_name, parts))


def check_new_table(out: str, source: str | None, from_table: str | None, *, force: bool) -> None:
    """Raise if results cannot go to the new table that `--out` names, before any work is done."""
    name = out.removeprefix(OUT_TABLE)
    if source is None or not is_database(source):
        raise ParameterError(f"--out {out} is a new table of the database that is read, but no database is read here.")
    quoted_table(name)
    address = Address(source)
    database = address.driver()
    with speaking(address, "be opened"):
        database.connect(read_only=True)
        try:
            found = database.found(name)
            is_read = from_table is not None and bool(found & database.found(from_table))
        finally:
            database.close()
    if is_read:
        raise ParameterError(f"--out {out} is the table that is read: name another one.")
    if found and not force:
        raise ParameterError(f"--out {out} exists already: name another table, or pass --force to replace it.")


def write_new_table(frame: pl.DataFrame, out: str, source: str, *, force: bool) -> None:
    """Write a frame to a new table, in one transaction. With `force`, it replaces a table of this name."""
    address = Address(source)
    database = address.driver()
    with speaking(address, f"be written to ({out})"):
        database.connect(read_only=False)
        try:
            database.write(frame, out.removeprefix(OUT_TABLE), replace=force)
        finally:
            database.close()
