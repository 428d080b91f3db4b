"""Databases as tables: DuckDB, SQLite and a real PostgreSQL server, which is killed while it is read and written."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

pytest.importorskip("typer", reason="the command needs the extra 'cli'")
pytest.importorskip("duckdb", reason="DuckDB is not installed")
pytest.importorskip("adbc_driver_postgresql", reason="the PostgreSQL driver is not installed")

import duckdb
import pyarrow as pa
from adbc_driver_postgresql import dbapi

from rgld import TableError, load
from rgld.cli import _files, _large
from rgld.cli._addresses import is_database, masked
from rgld.cli._databases import write_new_table
from rgld.cli._files import open_table
from rgld.cli._options import Reading

from .command import COMMAND, installed_rgld, rgld
from .postgres import INITDB, PASSWORD, Server

pytestmark = pytest.mark.own_process
ROWS = 6000
KINDS = ("duckdb", "sqlite", "postgresql")


def payments():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "id": np.arange(ROWS),
            "amount": rng.lognormal(3, 1, ROWS).round(2),
            "city": rng.choice(["Bonn", "Rome", "Oslo"], ROWS),
            "paid": rng.random(ROWS) < 0.5,
        }
    )
    when = pl.datetime(2024, 1, 1) + pl.duration(minutes=pl.col("id"))
    return frame.with_columns(when.alias("when"), pl.when(pl.col("id") % 7 > 0).then("city").alias("city"))


@pytest.fixture(scope="module")
def server():
    if INITDB is None:
        pytest.skip("PostgreSQL is not installed")
    server = Server()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """The folder with the same table in files and databases, and the addresses of the databases by kind."""
    folder = tmp_path_factory.mktemp("databases")
    frame = payments()
    frame.write_parquet(folder / "payments.parquet")
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute(f"CREATE TABLE payments AS SELECT * FROM '{folder}/payments.parquet'")
    with sqlite3.connect(folder / "shop.db") as connection:
        connection.execute('CREATE TABLE payments (id INTEGER, amount REAL, city TEXT, paid BOOLEAN, "when" TEXT)')
        rows = frame.with_columns(pl.col("when").cast(pl.String)).rows()
        connection.executemany("INSERT INTO payments VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()
    (folder / "tables.csv").write_text("a,b\n1,2\n3,4\n")
    return SimpleNamespace(folder=folder, duckdb="duckdb:///shop.duckdb", sqlite="sqlite:///shop.db")


@pytest.fixture(scope="module")
def postgresql(server):
    with dbapi.connect(server.address) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("payments", payments().to_arrow(), mode="create")
        connection.commit()
    return server.address


@pytest.fixture
def address(request, places):
    return request.getfixturevalue("postgresql") if request.param == "postgresql" else getattr(places, request.param)


every = pytest.mark.parametrize("address", KINDS, indirect=True)


def reading(folder, address, **options):
    before = os.getcwd()
    os.chdir(folder)
    try:
        with open_table(address, Reading(**options)) as table:
            return table.read()
    finally:
        os.chdir(before)


@every
def test_a_table_of_a_database_gives_the_scores_of_a_file(places, address):
    folder = places.folder
    for table, model in (((address, "--table", "payments"), "database.rgld"), (("payments.parquet",), "file.rgld")):
        assert rgld("fit", *table, "--id", "id", "-m", model, "--force", folder=folder)[0] == 0
    code, out, err = rgld(
        *("score", address, "--query", "SELECT * FROM payments ORDER BY id; ", "--id", "id", "-m", "database.rgld"),
        *("--out", "scores.parquet", "--force"),
        folder=folder,
    )
    assert (code, err) == (0, ""), out
    found, rows = pl.read_parquet(folder / "scores.parquet"), payments().drop("id")
    if address.startswith("sqlite"):  # which has no booleans and no times
        rows = rows.with_columns(pl.col("paid").cast(pl.Int64), pl.col("when").cast(pl.String))
    else:
        np.testing.assert_array_equal(load(folder / "file.rgld").anomaly_score(rows), found["score"])
    np.testing.assert_array_equal(load(folder / "database.rgld").anomaly_score(rows), found["score"])
    assert found["id"].to_list() == list(range(ROWS))


@every
def test_a_large_table_is_read_in_batches_by_both_commands(places, address, monkeypatch):
    monkeypatch.setattr(_large, "MAX_IN_MEMORY", 0)
    monkeypatch.setattr(_files, "BATCH_CELLS", 1)  # the fewest rows: 1000
    sizes = []
    kept = _large._fit_batches

    def watched(files, *rest):
        sizes.extend(len(frame) for frame in files[0].batches(None, {}))
        return kept(files, *rest)

    monkeypatch.setattr(_large, "_fit_batches", watched)
    fit = ("fit", address, "--table", "payments", "--id", "id", "-m", "batches.rgld", "--force")
    assert rgld(*fit, folder=places.folder)[0] == 0
    assert sum(sizes) == ROWS and (len(sizes) > 1 or address.startswith("postgresql"))
    code, out, _ = rgld("score", address, "--table", "payments", "-m", "batches.rgld", "--json", folder=places.folder)
    assert code == 0 and f'"rows": {ROWS}' in out


@every
def test_other_commands_take_databases_too(places, address):
    small = (address, "--query", "SELECT * FROM payments WHERE id < 500 ORDER BY id", "--id", "id")
    code, out, err = rgld("report", *small, "-o", "page.html", "--force", folder=places.folder)
    assert (code, err) == (0, "") and "500 rows" in out
    assert "<title>" in (places.folder / "page.html").read_text()
    code, out, err = rgld("explain", *small, "--row", "42", folder=places.folder)
    assert (code, err) == (0, "") and out.startswith("id 42: score")
    # Without `when`, which only grows: rows in the order of their time are no random rows.
    check = "SELECT id, amount * {} AS amount, city FROM payments WHERE id < 500 ORDER BY id"
    usual = (address, "--query", check.format(1), "--id", "id", "-m", "checked.rgld")
    assert rgld("fit", *usual, "--force", folder=places.folder)[0] == 0
    code, out, err = rgld("check", *usual, folder=places.folder)
    assert (code, err) == (0, "") and out.startswith("fine: query of "), out
    strange = (address, "--query", check.format(50), "--id", "id", "-m", "checked.rgld")
    code, out, _ = rgld("check", *strange, folder=places.folder)
    assert code == 3 and out.startswith("DRIFT: query of "), out


@every
def test_results_become_a_new_table_in_one_transaction(places, address):
    score = ("score", address, "--table", "payments", "--id", "id", "--preset", "fast", "--seed", "3")
    code, out, err = rgld(*score, "--out", "table:scores", folder=places.folder)
    assert (code, err) == (0, "") and f"{ROWS:,} rows written to table:scores" in out
    rgld(*score, "--out", "scores.parquet", "--force", folder=places.folder)
    expected = pl.read_parquet(places.folder / "scores.parquet")
    found = reading(places.folder, address, query="SELECT * FROM scores ORDER BY id")
    assert found.columns == expected.columns and found.rows() == expected.rows()

    code, _, err = rgld(*score, "--out", "table:scores", folder=places.folder)
    assert (code, err) == (
        2,
        "rgld: --out table:scores exists already: name another table, or pass --force to replace it.\n",
    )
    other = ("score", address, "--query", "SELECT * FROM payments WHERE id < 50", "--out", "table:scores", "--force")
    assert rgld(*other, folder=places.folder)[0] == 0
    assert len(reading(places.folder, address, from_table="scores")) == 50


def rows_that_break():
    def batches():
        yield pa.record_batch({"id": [1, 2]})
        raise OSError("no more rows")

    return pa.RecordBatchReader.from_batches(pa.schema({"id": pa.int64()}), batches())


@every
def test_a_write_that_fails_leaves_the_old_table(places, address, monkeypatch):
    monkeypatch.chdir(places.folder)
    small = pl.DataFrame({"id": [1, 2], "x": ["a", "b"]})
    write_new_table(small, "table:old", address, force=True)
    # The old table is dropped when the new one fails, and comes back: SQLite cannot hold the number, PostgreSQL takes
    # the two long names for one, DuckDB reads rows that end in an error.
    numbers = pl.Series([1, 2**64 - 1], dtype=pl.UInt64)
    wrong = pl.DataFrame({"id": numbers, "x" * 70: ["a", "b"], "x" * 69 + "y": [1, 2]})
    if address.startswith("duckdb"):
        wrong = SimpleNamespace(to_arrow=rows_that_break)
    with pytest.raises(TableError, match=r"cannot be written to \(table:old\)"):
        write_new_table(wrong, "table:old", address, force=True)
    assert reading(places.folder, address, from_table="old").rows() == small.rows()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--table", "nope"), "cannot be read: .*nope"),
        (("--query", "SELECT nope FROM payments"), "cannot be read: .*nope"),
        (("--query", "DROP TABLE payments"), "cannot be read: .*syntax error"),
        (("--query", "SELECT 1 AS a) q; DROP TABLE payments; SELECT * FROM (SELECT 1"), "cannot be read: "),
        (("--query", "SELECT * FROM payments WHERE id < 0"), "has no rows: expected at least one"),
        (("--query", "SELECT 1", "--table", "payments"), "--query and --table do not go together"),
        (("--table", "a.b.c"), "Expected the name of a table, or SCHEMA.NAME, got 'a.b.c'"),
        ((), r"is a database: name a table with --table \(.*payments.*\), or pass a --query"),
        (("--table", "payments", "--id", "nope"), "--id nope: payments of .* has no such column; it has id, amount"),
        (("--table", "payments", "--out", "table:payments", "--force"), "is the table that is read"),
        (("--table", "payments", "--out", "table:"), "Expected the name of a table"),
        (("--table", "payments", "--out", "table:nowhere.x"), r"cannot be written to \(table:nowhere.x\): .*nowhere"),
    ],
)
@every
def test_mistakes_get_one_sentence(places, address, arguments, message):
    code, _, err = rgld("score", address, *arguments, folder=places.folder)
    assert code == 2 and err.count("\n") == 1
    assert re.search(message, err), err
    assert_no_password(err)
    assert len(reading(places.folder, address, from_table="payments")) == ROWS


SPELLINGS = {
    "duckdb": ("PAYMENTS", "main.payments", "Main.Payments", "shop.payments"),
    "sqlite": ("PAYMENTS", "main.payments", "MAIN.Payments"),
    "postgresql": ("public.payments",),
}


@every
def test_the_table_that_is_read_is_never_replaced_however_it_is_spelled(places, address):
    for other in SPELLINGS[address.split(":")[0]]:
        for read, written in (("payments", other), (other, "payments"), (other, other)):
            arguments = ("--table", read, "--out", f"table:{written}", "--force")
            code, _, err = rgld("score", address, *arguments, folder=places.folder)
            assert code == 2 and "is the table that is read" in err, (read, written)
        code, _, err = rgld("score", address, "--query", "SELECT 1", "--out", f"table:{other}", folder=places.folder)
        assert code == 2 and "exists already" in err
    assert len(reading(places.folder, address, from_table="payments")) == ROWS


def test_a_view_of_a_strangers_database_reads_no_other_file(tmp_path):
    (tmp_path / "own.csv").write_text("a,b\n" + "1,secret\n" * 20)
    with duckdb.connect(str(tmp_path / "stranger.db")) as connection:
        for function in ("read_csv", "read_text", "read_blob", "glob"):
            connection.execute(f"CREATE VIEW by_{function} AS SELECT * FROM {function}('{tmp_path}/own.csv')")
    for function in ("read_csv", "read_text", "read_blob", "glob"):
        code, out, err = rgld("score", f"duckdb:///{tmp_path}/stranger.db", "--table", f"by_{function}")
        assert code == 2 and "cannot be read: " in err and "secret" not in out + err, function


def assert_no_password(text):
    assert PASSWORD not in text and "pa%25ss" not in text and "w%20rd" not in text


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("duckdb:///nope.db", "There is no file nope.db: check the path."),
        ("sqlite:///nope.db", "There is no file nope.db: check the path."),
        ("duckdb://shop.db", "expected duckdb:///FILE, or duckdb:////FOLDER/FILE from the root."),
        ("duckdb:///tables.csv", "tables.csv is not a DuckDB database: check the path."),
        ("sqlite:///tables.csv", "file is not a database"),
        ("postgresql://ann:secret@127.0.0.1:1/shop", "postgresql://ann:***@127.0.0.1:1/shop cannot be opened: "),
        ("postgresql://ann:sec ret@127.0.0.1:1/shop", "postgresql://ann:***@127.0.0.1:1/shop cannot be opened: "),
        ("postgresql://ann:secret@[127.0.0.1/shop", "cannot be opened: "),
        ("postgresql://127.0.0.1:1/shop?user=ann&password=secret", "password=*** cannot be opened: "),
    ],
)
def test_a_database_that_cannot_be_opened(places, path, message):
    code, out, err = rgld("fit", path, "--table", "t", "-m", "x.rgld", folder=places.folder)
    assert code == 2 and err.count("\n") == 1 and message in err
    assert "secret" not in err + out and "sec ret" not in err + out


def test_a_path_from_the_root_is_suggested(places):
    code, _, err = rgld("score", f"sqlite://{places.folder}/shop.db", "--table", "payments")
    assert code == 2 and f"write sqlite:///{places.folder}/shop.db if it is there" in err
    code, _, err = rgld("score", f"sqlite:///{places.folder}/shop.db", "--table", "payments", "--quiet")
    assert (code, err) == (0, "")


def test_a_file_takes_no_query(places):
    code, _, err = rgld("score", "tables.csv", "--query", "SELECT 1", folder=places.folder)
    assert code == 2 and "--query is for databases such as duckdb:///shop.db, but tables.csv is a file" in err
    code, _, err = rgld("score", "tables.csv", "--out", "table:x", folder=places.folder)
    assert code == 2 and "no database is read here" in err
    code, _, err = rgld("score", "shop.db", folder=places.folder)
    assert code == 2 and "an SQLite database" in err and "sqlite:///FILE, with --table" in err


def test_which_paths_are_addresses():
    assert all(map(is_database, ["duckdb:///a", "SQLite:///a", "postgres://h/d", "postgresql+psycopg://h/d"]))
    assert not any(map(is_database, ["a.csv", "duckdb.db", "http://x/y", "-", "./duckdb:///a"]))


@pytest.mark.parametrize(
    "address",
    ["postgresql://ann:{}@h/d", "postgresql://ann:{}@h:5432/d?sslmode=require", "postgresql://h/d?password={}&user=a"],
)
@pytest.mark.parametrize("password", ["secret", "p@ss", "a:b", "s%20p", "x/y"])
def test_passwords_are_masked(address, password):
    assert password not in masked(f"Got unexpected argument ({address.format(password)})")


def test_the_parser_does_not_show_a_password():
    code, out, err = rgld("score", "one.csv", "postgresql://ann:secret@h/d")
    assert code == 2 and "secret" not in out + err and "ann" in err


def test_the_model_and_the_report_hold_no_password(places, postgresql):
    arguments = (postgresql, "--query", "SELECT * FROM payments LIMIT 300", "--force")
    code, out, err = rgld("fit", *arguments, "-m", "m.rgld", folder=places.folder)
    assert (code, err) == (0, "")
    assert_no_password(out)
    code, out, err = installed_rgld("report", *arguments, "-o", "page.html", folder=places.folder)
    assert (code, err) == (0, "")
    assert_no_password(out)
    assert "postgresql://ann:***@127.0.0.1" in (places.folder / "page.html").read_text()
    for name in ("m.rgld", "page.html"):
        assert_no_password((places.folder / name).read_bytes().decode("latin-1"))


DUCKDB_TYPES = {
    "1::TINYINT": pl.Int8,
    "1::HUGEINT": pl.Decimal(38, 0),
    "1.5::DECIMAL(9, 2)": pl.Decimal(9, 2),
    "1.5::FLOAT": pl.Float32,
    "true": pl.Boolean,
    "'x'": pl.String,
    "'x'::ENUM('x', 'y')": pl.Categorical,
    "DATE '2024-01-01'": pl.Date,
    "TIMESTAMP '2024-01-01'": pl.Datetime("us"),
    "TIME '10:00:00'": pl.Time,
    "INTERVAL 90 MINUTE": pl.Float64,
    "'{}'::JSON": pl.String,
    "uuid()": pl.String,
    "'101'::BIT": pl.String,
    "MAP {'a': 1}": pl.String,
}
POSTGRESQL_TYPES = {
    "1::smallint": pl.Int16,
    "1::bigint": pl.Int64,
    "1.5::numeric": pl.Float64,
    "1.5::money": pl.Float64,
    "1.5::real": pl.Float32,
    "true": pl.Boolean,
    "'x'::text": pl.String,
    "'x'::char(3)": pl.String,
    "date '2024-01-01'": pl.Date,
    "timestamp '2024-01-01'": pl.Datetime("us"),
    "timestamptz '2024-01-01'": pl.Datetime("us", "UTC"),
    "time '10:00'": pl.Time,
    "interval '90 minutes'": pl.Float64,
    "'{}'::jsonb": pl.String,
    "gen_random_uuid()": pl.String,
    "inet '10.0.0.1'": pl.String,
    "B'101'": pl.String,
    "int4range(1, 3)": pl.String,
}


@pytest.mark.parametrize(("value", "kind"), DUCKDB_TYPES.items())
def test_types_of_duckdb(places, value, kind):
    frame = reading(places.folder, places.duckdb, query=f"SELECT {value} AS x FROM range(3) UNION ALL SELECT NULL")
    assert frame.dtypes == [kind] and frame["x"].null_count() == 1 and len(frame) == 4
    if "INTERVAL" in value:
        assert frame["x"][0] == 5400.0


@pytest.mark.parametrize(("value", "kind"), POSTGRESQL_TYPES.items())
def test_types_of_postgresql(places, postgresql, value, kind):
    frame = reading(
        places.folder, postgresql, query=f"SELECT {value} AS x FROM generate_series(1, 3) UNION ALL SELECT NULL"
    )
    assert frame.dtypes == [kind] and frame["x"].null_count() == 1 and len(frame) == 4
    if "interval" in value:
        assert frame["x"][0] == 5400.0
    if "money" in value or "numeric" in value:
        assert frame["x"][0] == 1.5


@pytest.mark.parametrize(
    ("values", "kind", "read"),
    [
        ([1, None, 2**62], pl.Int64, [1, None, 2**62]),
        ([1, 2.5], pl.Float64, [1.0, 2.5]),
        ([None, None], pl.String, [None, None]),
        (["a", None], pl.String, ["a", None]),
        ([1, "a", 2.5], pl.String, ["1", "a", "2.5"]),
        ([b"\x01"], pl.Binary, [b"\x01"]),
        ([1, b"ab"], pl.String, ["1", "ab"]),
    ],
)
def test_types_of_sqlite_are_those_of_all_values(tmp_path, values, kind, read):
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
    connection.close()
    frame = reading(tmp_path, "sqlite:///x.db", from_table="t")
    assert frame.dtypes == [kind] and frame["x"].to_list() == read


def test_infinite_times_are_refused_by_name(places, postgresql):
    for address, sql in ((postgresql, "'infinity'::date"), (places.duckdb, "'-infinity'::timestamp")):
        code, _, err = rgld("score", address, "--query", f"SELECT 1 AS a, {sql} AS x", folder=places.folder)
        assert code == 2 and "column 'x' holds an infinite time, expected times: replace it in --query" in err


def test_two_columns_of_a_name_are_refused(places, postgresql):
    code, _, err = rgld("score", postgresql, "--query", "SELECT 1 AS a, 2 AS a")
    assert code == 2 and "has two columns named 'a': name one of them anew in --query" in err


def execute(address, sql):
    with dbapi.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        found = cursor.fetchall() if cursor.description else []
        connection.commit()
    return found


def test_a_query_cannot_write(places, postgresql):
    execute(
        postgresql,
        "CREATE OR REPLACE FUNCTION sly() RETURNS int LANGUAGE sql "
        "AS 'INSERT INTO payments SELECT * FROM payments; SELECT 1'",
    )
    code, _, err = rgld("score", postgresql, "--query", "SELECT id, sly() FROM payments")
    assert code == 2 and "cannot execute INSERT in a read-only transaction" in err
    assert execute(postgresql, "SELECT count(*) FROM payments") == [(ROWS,)]


def test_all_passes_see_the_same_rows(places, postgresql):
    with open_table(postgresql, Reading(query="SELECT * FROM payments")) as table:
        first = pl.concat(table.batches(None, {}))
        execute(postgresql, "INSERT INTO payments SELECT * FROM payments WHERE id = 0")
        try:
            assert pl.concat(table.batches(None, {})).equals(first)
        finally:
            execute(postgresql, "DELETE FROM payments WHERE id = 0")
            execute(postgresql, "INSERT INTO payments SELECT 0, 1.0, 'Bonn', true, timestamp '2024-01-01'")


def started(folder, *arguments):
    return subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        start_new_session=True,
    )


def wait_until(address, condition, seconds=60):
    """Wait until a session of the server is found that fulfils a condition."""
    sql = f"SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND {condition}"
    end = time.monotonic() + seconds
    while not (found := execute(address, sql)):
        assert time.monotonic() < end, f"no session with {condition}"
        time.sleep(0.05)
    return found[0][0]


ASLEEP = "wait_event = 'PgSleep'"


def test_a_server_that_dies_while_it_is_read(places, server, postgresql):
    query = "SELECT payments.*, length(pg_sleep(0.02)::text) AS nap FROM payments"
    process = started(places.folder, "score", postgresql, "--query", query, "--out", "dead.csv")
    wait_until(postgresql, ASLEEP)
    server.kill()
    try:
        out, err = process.communicate(timeout=60)
    finally:
        server.start()
    assert process.returncode == 2 and err.count(b"\n") == 1 and b"cannot be read: " in err, err
    assert_no_password((out + err).decode())
    assert not (places.folder / "dead.csv").exists()


@pytest.fixture
def slow_creation(postgresql):
    """Every CREATE TABLE sleeps before its transaction goes on."""
    execute(
        postgresql,
        "CREATE FUNCTION nap() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(3); END'",
    )
    execute(
        postgresql,
        "CREATE EVENT TRIGGER slow ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION nap()",
    )
    yield
    execute(postgresql, "DROP EVENT TRIGGER slow")
    execute(postgresql, "DROP FUNCTION nap()")


@pytest.mark.parametrize("dies", ["server", "command"])
def test_a_death_in_the_middle_of_a_write_leaves_no_table(places, server, postgresql, slow_creation, dies):
    out = ("--out", "table:half", "--preset", "fast")
    process = started(places.folder, "score", postgresql, "--table", "payments", *out)
    pid = wait_until(postgresql, ASLEEP)
    if dies == "server":
        server.kill()
        try:
            _, err = process.communicate(timeout=60)
        finally:
            server.start()
        assert process.returncode == 2 and err.count(b"\n") == 1 and b"cannot be written to (table:half): " in err, err
        assert_no_password(err.decode())
    else:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        while execute(postgresql, f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}"):
            time.sleep(0.1)
    assert execute(postgresql, "SELECT to_regclass('half') IS NULL") == [(True,)]


def test_without_drivers_one_sentence_says_what_to_install(places, monkeypatch):
    for module, address in (("duckdb", places.duckdb), ("adbc_driver_postgresql", "postgresql://ann@h/d")):
        monkeypatch.setitem(sys.modules, module, None)
        code, _, err = rgld("score", address, "--table", "t", folder=places.folder)
        assert (code, err) == (2, f"rgld: {address.split(':')[0]}:// needs the 'sql' extra: pip install 'rgld[sql]'.\n")
