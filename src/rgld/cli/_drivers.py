"""Drivers: how DuckDB, SQLite and PostgreSQL are talked to.

In: SQL. Out: rows in batches of frames, with the same types in every batch, and tables written in one transaction.
Reading changes nothing: the connection is read-only. The same SQL gives the same rows in the same order every time, as
long as the connection is open and the SQL itself is not random: a fit needs that.
"""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from rgld.exceptions import ParameterError

NEEDED = "{what} needs the 'sql' extra: pip install 'rgld[sql]'."
POSTGRESQL_TYPES = (
    *("int2", "int4", "int8", "float4", "float8", "bool", "text", "varchar", "bpchar", "name"),
    *("date", "timestamp", "timestamptz", "time", "bytea"),
)
"""Types that arrive as what they are. Of the others, numbers become floats and the rest becomes text."""
POSTGRESQL_NUMBERS = {
    "numeric": "{column}::float8",
    "money": "{column}::numeric::float8",
    "interval": "EXTRACT(EPOCH FROM {column})::float8",
    "oid": "{column}::int8",
}
DUCKDB_SETTINGS: dict[str, Any] = {"threads": 1, "enable_external_access": False}
"""One thread, because several give the rows of some queries in another order every time. No files and no network but
the database: a view of a stranger's database could read any file of yours."""
SQLITE_TYPES: dict[frozenset[str], tuple[Any, str]] = {
    frozenset(): (pl.String, "{column}"),
    frozenset({"integer"}): (pl.Int64, "{column}"),
    frozenset({"real"}): (pl.Float64, "{column}"),
    frozenset({"integer", "real"}): (pl.Float64, "CAST({column} AS REAL)"),
    frozenset({"text"}): (pl.String, "{column}"),
    frozenset({"blob"}): (pl.Binary, "{column}"),
}
"""What a column becomes, by the types of its values: SQLite has types for values, not for columns."""


def sql_name(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


class Driver(ABC):
    """A connection to a database."""

    @abstractmethod
    def connect(self, *, read_only: bool) -> None:
        """Connect. Nothing can be written if `read_only`, and every query sees the same rows."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection. What was not committed is undone."""

    @abstractmethod
    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return all rows of a short result."""

    @abstractmethod
    def columns(self, source: str) -> list[tuple[str, str]]:
        """Return the columns of a table or query: each name, and the SQL that reads it."""

    @abstractmethod
    def batches(self, sql: str, n_rows: int) -> Iterator[pl.DataFrame]:
        """Yield the rows of a query, about `n_rows` at a time."""

    @abstractmethod
    def tables(self) -> list[str]:
        """Return the names of the tables and views."""

    @abstractmethod
    def found(self, name: str) -> set[Any]:
        """Return the tables and views that this name may mean, each by something that no other has; none if there is
        none."""

    @abstractmethod
    def write(self, frame: pl.DataFrame, name: str, *, replace: bool) -> None:
        """Create a table with these rows, in one transaction."""


def is_duckdb_file(path: Path) -> bool:
    """Return whether a file is a database of DuckDB, by its first bytes."""
    with open(path, "rb") as file:
        return file.read(12)[8:] == b"DUCK"


class DuckDB(Driver):
    """A file of DuckDB."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def connect(self, *, read_only: bool) -> None:
        """Open the file."""
        try:
            import duckdb
            import pyarrow  # noqa: F401  rows arrive as Arrow
        except ImportError as error:
            raise ParameterError(NEEDED.format(what="duckdb://")) from error
        self.connection: Any = duckdb.connect(str(self.path), read_only=read_only, config=DUCKDB_SETTINGS)

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return all rows of a short result."""
        found: list[tuple[Any, ...]] = self.connection.execute(sql).fetchall()
        return found

    def columns(self, source: str) -> list[tuple[str, str]]:
        """Return the columns: each name, and the SQL that reads it."""
        return [
            (row[0], _from_duckdb(sql_name(row[0]), row[1])) for row in self.rows(f"DESCRIBE SELECT * FROM {source}")
        ]

    def batches(self, sql: str, n_rows: int) -> Iterator[pl.DataFrame]:
        """Yield the rows of a query."""
        relation = self.connection.sql(sql)
        # The second is its name before DuckDB 1.4.
        reader = (getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader)(n_rows)
        try:
            for batch in reader:
                yield _from_arrow(batch)
        finally:
            reader.close()

    def tables(self) -> list[str]:
        """Return the names of the tables and views."""
        return [row[0] for row in self.rows("SELECT table_name FROM information_schema.tables ORDER BY table_name")]

    def found(self, name: str) -> set[Any]:
        """Return the tables and views that a name may mean. Case does not count; SCHEMA may also be the database's."""
        schema, _, table = name.lower().rpartition(".")
        rows = self.rows("SELECT table_catalog, table_schema, table_name FROM information_schema.tables")
        return {
            row
            for row in rows
            if row[2].lower() == table
            and (row[1].lower() == schema or (row[1] == "main" and schema in ("", row[0].lower())))
        }

    def write(self, frame: pl.DataFrame, name: str, *, replace: bool) -> None:
        """Create a table with these rows, in one transaction."""
        self.connection.register("rgld_results", frame.to_arrow())
        self.connection.execute("BEGIN")
        if replace:
            self.connection.execute(f"DROP TABLE IF EXISTS {_quoted_table(name)}")
        self.connection.execute(f"CREATE TABLE {_quoted_table(name)} AS SELECT * FROM rgld_results")
        self.connection.execute("COMMIT")


def _from_duckdb(column: str, kind: str) -> str:
    """Return the SQL that reads a column of DuckDB: what frames do not have is read as seconds or text."""
    if kind == "INTERVAL":
        return f"epoch({column})"
    is_text = kind in ("BIT", "BIGNUM", "TIME WITH TIME ZONE") or kind.startswith(("MAP(", "UNION("))
    return f"CAST({column} AS VARCHAR)" if is_text else column


class SQLite(Driver):
    """A file of SQLite, read by Python's own module."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._types: dict[str, Any] = {}

    def connect(self, *, read_only: bool) -> None:
        """Open the file, and begin a transaction."""
        address = f"file:{quote(str(self.path))}?mode={'ro' if read_only else 'rw'}"
        self.connection = sqlite3.connect(address, uri=True, isolation_level=None)
        self.connection.text_factory = lambda content: content.decode("utf-8", "replace")
        self.connection.execute("PRAGMA trusted_schema = OFF")  # views may call harmless functions only
        self.connection.execute("BEGIN" if read_only else "BEGIN IMMEDIATE")

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return all rows of a short result."""
        return self.connection.execute(sql).fetchall()

    def columns(self, source: str) -> list[tuple[str, str]]:
        """Return the columns: each name, and the SQL that reads it. One pass looks at the types of all values."""
        names = [item[0] for item in self.connection.execute(f"SELECT * FROM {source} LIMIT 0").description]
        listed = ", ".join(f"group_concat(DISTINCT typeof({sql_name(name)}))" for name in names)
        ((*kinds,),) = self.rows(f"SELECT {listed} FROM {source}")
        found = []
        for name, text in zip(names, kinds, strict=True):
            kinds_of_values = frozenset((text or "").split(",")) - {"null", ""}
            kind, expression = SQLITE_TYPES.get(kinds_of_values, (pl.String, "CAST({column} AS TEXT)"))
            self._types[name] = kind
            found.append((name, expression.format(column=sql_name(name))))
        return found

    def batches(self, sql: str, n_rows: int) -> Iterator[pl.DataFrame]:
        """Yield the rows of a query."""
        cursor = self.connection.execute(sql)
        names = [item[0] for item in cursor.description]
        while rows := cursor.fetchmany(n_rows):
            columns = zip(names, zip(*rows, strict=True), strict=True)
            yield pl.DataFrame([pl.Series(name, values, self._types[name]) for name, values in columns])

    def tables(self) -> list[str]:
        """Return the names of the tables and views."""
        sql = (
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        return [row[0] for row in self.rows(sql)]

    def found(self, name: str) -> set[Any]:
        """Return the table or view of a name. Case does not count, and there is one schema."""
        table = name.lower().rpartition(".")[2]
        return {one for one in self.tables() if one.lower() == table}

    def write(self, frame: pl.DataFrame, name: str, *, replace: bool) -> None:
        """Create a table with these rows, in one transaction."""
        if replace:
            self.connection.execute(f"DROP TABLE IF EXISTS {_quoted_table(name)}")
        kinds = [_sqlite_type(kind) for kind in frame.dtypes]
        columns = ", ".join(f"{sql_name(column)} {kind}" for column, kind in zip(frame.columns, kinds, strict=True))
        self.connection.execute(f"CREATE TABLE {_quoted_table(name)} ({columns})")
        text = [column for column, kind in zip(frame.columns, kinds, strict=True) if kind == "TEXT"]
        places = ", ".join("?" * frame.width)
        rows = frame.with_columns(pl.col(text).cast(pl.String)).iter_rows()
        self.connection.executemany(f"INSERT INTO {_quoted_table(name)} VALUES ({places})", rows)
        self.connection.execute("COMMIT")


def _sqlite_type(kind: pl.DataType) -> str:
    if kind.is_integer() or kind == pl.Boolean:
        return "INTEGER"
    return "REAL" if kind.is_float() else "TEXT"


class PostgreSQL(Driver):
    """A PostgreSQL server, over ADBC: rows arrive as COPY sends them, and no more than a batch is in memory."""

    def __init__(self, address: str) -> None:
        self.address = address

    def connect(self, *, read_only: bool) -> None:
        """Connect, and begin a transaction."""
        try:
            from adbc_driver_postgresql import dbapi
        except ImportError as error:
            raise ParameterError(NEEDED.format(what="postgresql://")) from error
        self.connection: Any = dbapi.connect(self.address)
        if read_only:
            self._execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            # Scans begin at the first row, and one process reads: rows then come in the same order every time.
            self._execute("SET LOCAL synchronize_seqscans = off")
            self._execute("SET LOCAL max_parallel_workers_per_gather = 0")

    def _execute(self, sql: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return all rows of a short result."""
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            found: list[tuple[Any, ...]] = cursor.fetchall()
        return found

    def columns(self, source: str) -> list[tuple[str, str]]:
        """Return the columns: each name, and the SQL that reads it."""
        with self.connection.cursor() as cursor:
            schema = cursor.adbc_execute_schema(f"SELECT * FROM {source}")
        return [(field.name, _from_postgresql(field)) for field in schema]

    def batches(self, sql: str, n_rows: int) -> Iterator[pl.DataFrame]:
        """Yield the rows of a query. The driver decides how many at a time: about 16 MB."""
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            for batch in cursor.fetch_record_batch():
                yield _from_arrow(batch)

    def tables(self) -> list[str]:
        """Return the names of the tables and views, those outside the search path with their schemas."""
        sql = """SELECT CASE WHEN pg_table_is_visible(c.oid) THEN '' ELSE nspname || '.' END || relname
            FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
            WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND nspname !~ '^(pg_|information_schema$)' ORDER BY 1"""
        return [row[0] for row in self.rows(sql)]

    def found(self, name: str) -> set[Any]:
        """Return the table or view of a name, as the search path finds it."""
        text = _quoted_table(name).replace("'", "''")
        return {row[0] for row in self.rows(f"SELECT to_regclass('{text}')::text")} - {None}

    def write(self, frame: pl.DataFrame, name: str, *, replace: bool) -> None:
        """Create a table with these rows, in one transaction."""
        schema, _, table = name.rpartition(".")
        if replace:
            self._execute(f"DROP TABLE IF EXISTS {_quoted_table(name)}")
        with self.connection.cursor() as cursor:
            cursor.adbc_ingest(table, frame.to_arrow(), mode="create", db_schema_name=schema or None)
        self.connection.commit()


def _from_postgresql(field: Any) -> str:
    """Return the SQL that reads a column of PostgreSQL."""
    column = sql_name(field.name)
    kind = (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
    if kind in POSTGRESQL_TYPES or kind.startswith("_"):  # an array stays one: it is refused by name
        return column
    return POSTGRESQL_NUMBERS.get(kind, "{column}::text").format(column=column)


def _from_arrow(batch: Any) -> pl.DataFrame:
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame), "a record batch is a table"
    return frame


def _quoted_table(name: str) -> str:
    return ".".join(map(sql_name, name.split(".")))
