"""What the server refuses, how it says so, and that it goes on."""

import gzip
import io
import json
import os
import random
import shutil
import signal
import socket
import threading
import time

import polars as pl
import pyarrow as pa
import pytest

from rgld import RGLD
from rgld.serve.arrow import count_rows
from tests.cli.command import rgld

from .conftest import trips
from .servers import Answer, limited, running
from .test_serve import ARROW, arrow

ROW = trips(1, 0).to_dicts()[0]
BEGUN = b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: 99\r\n\r\n"
SECRET = "cell-value-that-no-log-may-hold"


def refused(answer, status):
    """Return the detail of a problem."""
    assert answer.status == status, answer.body
    assert answer.headers["content-type"] == "application/problem+json"
    content = answer.json
    assert content["status"] == status and content["title"]
    assert "Traceback" not in answer.body.decode() and "/src/" not in answer.body.decode()
    return content["detail"]


WRONG = {
    "no body": (b"", "application/json", 400, "Expected a table in the body, got none"),
    "no JSON": (b"{", "application/json", 400, "Expected JSON, got something that cannot be read (line 1, column 2)"),
    "other bytes": (b"\xff\xfe\x00", "application/json", 400, "Expected JSON"),
    "NaN": (b'[{"fare": NaN}]', "application/json", 400, "got NaN, which JSON does not have: send null"),
    "deep JSON": (b"[" * 200_000, "application/json", 400, "nested too deep"),
    "a number": (b"3", "application/json", 422, "Expected a list of rows"),
    "no rows": (b"[]", "application/json", 422, "Expected at least one row"),
    "rows of text": (b'["a"]', "application/json", 422, "Expected all rows to be objects"),
    "a row that is short": (b"[[1, 2]]", "application/json", 422, "Row 0 has 2 values, expected 6"),
    "a lost column": (
        json.dumps([ROW, {"fare": 1}]).encode(),
        "application/json",
        422,
        "Row 1 lacks the column 'distance'",
    ),
    "a list in a cell": (
        json.dumps([{**ROW, "fare": [1]}]).encode(),
        "application/json",
        422,
        "Column 'fare' holds a list in row 0, expected a number",
    ),
    "a huge number": (
        json.dumps([ROW]).replace(str(ROW["fare"]), "1e999").encode(),
        "application/json",
        422,
        "Column 'fare' holds infinity (inf) in row 0",
    ),
    "a long integer": (
        json.dumps([ROW]).replace(str(ROW["fare"]), "9" * 5000).encode(),
        "application/json",
        400,
        "Expected JSON",
    ),
    "a very large integer": (
        json.dumps([ROW]).replace(str(ROW["fare"]), "9" * 400).encode(),
        "application/json",
        422,
        "Column 'fare' holds infinity",
    ),
    "a line that is long": (b"fare,distance\n1,2,3\n", "text/csv", 422, "Line 2 has 3 fields, expected 2"),
    "an open quotation": (b'fare,distance\n"1,2\n', "text/csv", 400, "cannot be read as CSV"),
    "a repeated name": (b"fare,fare\n1,2\n", "text/csv", 422, "got 'fare' more than once"),
    "CSV without a column": (b"fare,tip\n1,2\n", "text/csv", 422, "The table lacks the column 'distance'"),
    "binary CSV": (b"fare\n\0\n", "text/csv", 400, "got binary data"),
    "a long cell": (b"fare\n" + b"1" * 20_000 + b"\n", "text/csv", 413, "a cell of more than 10,000 characters"),
    "no Arrow": (b"fare,tip", ARROW, 400, "Expected an Arrow stream"),
    "Arrow without a column": (arrow(trips(2, 0).drop("tip")), ARROW, 422, "The table lacks the column 'tip'"),
    "another type": (b"x", "application/x-pickle", 415, "Expected the Content-Type application/json"),
    "no type": (b"x", "", 415, "Expected the Content-Type application/json"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_tables(server, case):
    body, kind, status, words = WRONG[case]
    assert words in refused(server.post("/v1/score", body, kind), status)


def test_problems_name_the_column(server):
    assert server.post("/v1/score", [{**ROW, "tip": {}}]).json["column"] == "tip"


def test_wrong_paths_methods_and_parameters(server):
    refused(server.get("/v2/score"), 404)
    refused(server.get("/../../etc/passwd"), 404)
    assert server.get("/v1/score").headers["allow"] == "POST"
    refused(server.get("/v1/score"), 405)
    refused(server.post("/v1/score", [ROW], Accept="image/png"), 406)
    for top in ("0", "101", "x", "-1", "1e9", "99999999999999999999", "%D9%A3"):
        refused(server.post(f"/v1/explain?top={top}", [ROW]), 422)
    for alpha in ("0", "1", "nan", "x", ""):
        refused(server.post(f"/v1/check?alpha={alpha}", [ROW]), 422)
    assert "ask for the top ones" in refused(server.post("/v1/explain", [ROW] * 101), 413)


@pytest.mark.parametrize(
    "name", ["../trips", "..%2ftrips", "trips.rgld", "%00", "/etc/passwd", "trips%0a", "", "x" * 5000]
)
def test_path_tricks_in_model_names(server, name):
    refused(server.post(f"/v1/score?model={name}", [ROW]), 404)


def test_a_gzip_bomb_is_not_unpacked(server):
    bomb = gzip.compress(bytes(200 * 2**20), 9)
    assert len(bomb) < 300_000
    detail = refused(server.post("/v1/score", bomb, **{"Content-Encoding": "gzip"}), 413)
    assert "unpacked bytes" in detail
    refused(server.post("/v1/score", b"no gzip", **{"Content-Encoding": "gzip"}), 400)
    packed = gzip.compress(json.dumps([ROW]).encode())
    refused(server.post("/v1/score", packed[:-3], **{"Content-Encoding": "gzip"}), 400)
    refused(server.post("/v1/score", packed + b"more", **{"Content-Encoding": "gzip"}), 400)
    refused(server.post("/v1/score", packed, **{"Content-Encoding": "br"}), 415)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_an_arrow_bomb_is_not_unpacked(server, compression):
    """A small one can stand for gigabytes."""
    bomb = io.BytesIO()
    pl.concat([trips(1, 0)] * 50_000).write_ipc_stream(bomb, compression=compression)
    assert "send it in gzip instead" in refused(server.post("/v1/score", bomb.getvalue(), ARROW), 415)


def test_the_rows_of_an_arrow_stream_are_counted_before_it_is_read(server):
    schema = pa.schema([(name, pa.null()) for name in trips(1, 0).columns])
    bomb = io.BytesIO()
    with pa.ipc.new_stream(bomb, schema) as writer:
        writer.write_batch(pa.record_batch([pa.nulls(2**30)] * len(schema), schema=schema))
    assert "Expected at most 100,000 rows, got 1,073,741,824" in refused(
        server.post("/v1/score", bomb.getvalue(), ARROW), 413
    )


def test_arrow_cells_that_share_a_long_string(server):
    """Rows may point into the same bytes: a megabyte in each of a thousand rows takes a megabyte in the stream."""
    table = trips(1000, 0).with_columns(pl.lit("x" * 2**20).alias("payment"))
    views = table.to_arrow(compat_level=pl.CompatLevel.newest())
    bomb = io.BytesIO()
    with pa.ipc.new_stream(bomb, views.schema) as writer:
        writer.write_table(views)
    assert len(bomb.getvalue()) < 2**23
    assert "'payment' has a cell of more than 10,000 bytes" in refused(
        server.post("/v1/score", bomb.getvalue(), ARROW), 413
    )


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"[" + b"[]," * 11_000_000 + b"[]]"),
        ("application/json", b"[" + b"[[[[[[[1]]]]]]]," * 2_000_000 + b"1]"),
        ("text/csv", b"," * 30_000_000 + b"\n1\n"),
    ],
    ids=["many rows", "deep rows", "many columns"],
)
def test_small_values_are_counted_before_they_are_made(server, kind, body):
    started = time.perf_counter()
    assert "Expected at most" in refused(server.post("/v1/score", body, kind), 413)
    assert time.perf_counter() - started < 10.0


def test_the_parts_of_a_stream(server):
    """Batches and dictionaries are gone through, whoever wrote them."""
    table = trips(300, 0).with_columns(pl.col("payment").cast(pl.Categorical))
    expected = server.post("/v1/score", table.to_dicts()).json["scores"]
    for rows in (1, 70, 300):
        own = io.BytesIO()
        with pa.ipc.new_stream(own, table.to_arrow().schema) as writer:
            writer.write_table(table.to_arrow(), max_chunksize=rows)
        assert count_rows(own.getvalue()) == 300
        assert server.post("/v1/score", own.getvalue(), ARROW).json["scores"] == expected


def test_limits_of_body_rows_columns_and_cells(model):
    with limited(model, body_bytes=5000, rows=20, columns=8, cells=100) as server:
        assert "at most 5,000 bytes" in refused(server.post("/v1/score", b" " * 6000), 413)
        connection = server.connect()
        connection.request(
            "POST", "/v1/score", iter([b" " * 3000] * 3), {"Content-Type": "text/csv"}, encode_chunked=True
        )
        assert connection.getresponse().status == 413  # no Content-Length: counted while it comes
        assert "at most 20 rows, got 21" in refused(server.post("/v1/score", [[1]] * 21), 413)
        assert "at most 20 rows" in refused(server.post("/v1/score", b"fare\n" + b"1\n" * 21, "text/csv"), 413)
        assert "at most 8 columns, got 9" in refused(server.post("/v1/score", [dict.fromkeys("abcdefghi", 1)]), 413)
        assert "at most 100 cells, got 120" in refused(server.post("/v1/score", [[1] * 6] * 20), 413)
        assert server.post("/v1/score", [ROW]).status == 200


def test_slow_bodies_and_slow_headers_end(model):
    with limited(model, body_seconds=0.5, header_seconds=0.5) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as slow:
            slow.sendall(BEGUN + b"fare")
            slow.settimeout(10)
            assert slow.recv(100).startswith(b"HTTP/1.1 408 ")
        with socket.create_connection(("127.0.0.1", server.port)) as slow:
            slow.sendall(b"POST /v1/score HTTP/1.1\r\nHost: loc")
            slow.settimeout(10)
            assert slow.recv(100) == b""  # closed
        with socket.create_connection(("127.0.0.1", server.port)) as endless:
            endless.settimeout(10)
            with pytest.raises(OSError):  # noqa: PT011 - reset or broken, as the system likes
                endless.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: aaaaaaaaaaaaa\r\n" * 4_000_000)
        assert server.get("/healthz").status == 200


def test_too_many_requests_at_once(model):
    with limited(model, requests=2) as server:
        held = []
        for _ in range(2):
            waiting = socket.create_connection(("127.0.0.1", server.port))
            waiting.sendall(BEGUN)
            held.append(waiting)
        time.sleep(0.3)
        answer = server.post("/v1/score", [ROW])
        assert "at most 2 requests at once" in refused(answer, 429) and answer.headers["retry-after"] == "1"
        for waiting in held:
            waiting.close()
        time.sleep(0.3)
        assert server.post("/v1/score", [ROW]).status == 200


def test_token(model, tmp_path):
    token = "correct-horse-battery-staple"
    (tmp_path / "token").write_text(f"{token}\n")
    for arguments, environment in ((("--token-file", tmp_path / "token"), {}), ((), {"RGLD_TOKEN": token})):
        with running("--model", model, *arguments, environment=environment) as server:
            for header in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": token},
                {"Authorization": f"Basic {token}"},
            ):
                answer = server.post("/v1/score", [ROW], **header)
                refused(answer, 401)
                assert answer.headers["www-authenticate"] == "Bearer"
            assert server.post("/v1/score", [ROW], Authorization=f"Bearer {token}").status == 200
            assert server.get("/metrics").status == server.get("/v1/model").status == 401
            assert server.get("/healthz").status == server.get("/").status == 200
            assert token not in "".join(server.lines)


def test_other_machines_need_a_token(model):
    from tests.cli.command import rgld

    code, _, error = rgld("serve", "--model", model, "--host", "0.0.0.0", "--port", "0")
    assert code == 2 and "lets other machines ask" in error
    for arguments, words in (
        (("--model", "nowhere.rgld"), "There is no file nowhere.rgld"),
        ((), "Expected one of --model FILE and --models FOLDER"),
        (("--models", model.parent / "nowhere"), "there is no such folder"),
        (("--model", __file__), "model file"),
    ):
        code, _, error = rgld("serve", *arguments, "--port", "0")
        assert code == 2 and words in error and error.count("\n") == 1


def test_other_host_names_are_refused(server):
    """A page on the web whose name leads to 127.0.0.1 must not read what this server says."""
    for name in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example", ""):
        refused(server.get("/v1/model", Host=name), 403)
    for name in ("localhost", f"LOCALHOST:{server.port}", "127.0.0.1", "[::1]:80"):
        assert server.get("/v1/model", Host=name).status == 200


def test_pages_of_other_servers_may_not_ask(server):
    """No CORS header: a browser keeps the answer from them, and never sends a table in the first place."""
    answer = server.ask(
        "OPTIONS", "/v1/score", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    )
    assert answer.status == 405 and not [name for name in answer.headers if name.startswith("access-control")]


def test_logs_hold_no_cells(model):
    with running("--model", model) as server:
        server.post("/v1/score", [{**ROW, "payment": SECRET}])
        server.post("/v1/score", [{**ROW, "payment": [SECRET]}])
        server.post(f"/v1/score?model={SECRET}", [ROW])
        server.post(f"/{SECRET}", [ROW])
        server.post("/v1/score", f"fare\n{SECRET},{SECRET}\n".encode(), "text/csv")
        raw_answer(server, f"{SECRET}\r\n\r\n".encode())
        server.stop()
        assert SECRET not in "".join(server.lines)
        events = [json.loads(line) for line in server.lines]
        asked = [event for event in events if event["event"] == "request"]
        assert [event["status"] for event in asked] == [200, 422, 404, 404, 422]
        assert [event["endpoint"] for event in asked][3] == "other" and asked[0]["rows"] == 1


def test_malformed_requests_are_4xx(server):
    """Damaged bodies of every format: an answer each, and never one of 500."""
    rng = random.Random(0)
    table = trips(20, 1)
    good = {
        "application/json": json.dumps(table.to_dicts()).encode(),
        "text/csv": table.write_csv().encode(),
        ARROW: arrow(table),
    }
    statuses = set()
    for i in range(450):
        kind = list(good)[i % 3]
        body = bytearray(good[kind])
        for _ in range(rng.choice([1, 1, 2, 8, 40])):
            at = rng.randrange(len(body))
            body[at : at + rng.choice([0, 1, 1, 4])] = rng.choice([b"", b"\0", b"\xff", b"[", b'"', rng.randbytes(4)])
        statuses.add(server.post("/v1/score", bytes(body), kind).status)
    assert statuses <= {200, 400, 413, 415, 422} and 400 in statuses
    assert server.get("/healthz").status == 200


def test_garbage_instead_of_http(server):
    rng = random.Random(1)
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            raw.settimeout(10)
            raw.sendall(rng.randbytes(200) + b"\r\n\r\n")
            raw.shutdown(socket.SHUT_WR)
            answer = raw.recv(100)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert server.get("/healthz").status == 200


def raw_answer(server, request):
    """Return all that comes back for some bytes, until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.settimeout(10)
        raw.sendall(request)
        return b"".join(iter(lambda: raw.recv(65536), b""))


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Content-Length: -5",
        "Content-Length: 99999999999999999999",
        "Host: evil.example",  # a second one
    ],
)
def test_requests_that_can_be_read_in_two_ways(server, lines):
    request = f"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}\r\n\r\n"
    head, _, body = raw_answer(server, request.encode()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ") and b"content-type: application/problem+json" in head.lower()
    assert json.loads(body)["status"] == 400


def test_a_replaced_model_is_picked_up_whole_or_not_at_all(model, tmp_path):
    path = tmp_path / "trips.rgld"
    shutil.copy(model, path)
    other = RGLD.fast(random_state=1).fit(trips(800, 11))
    expected = other.anomaly_score(trips(1, 0)).tolist()
    with running("--model", path) as server:
        before = server.post("/v1/score", [ROW]).json
        (tmp_path / "broken").write_bytes(model.read_bytes()[:-1000])
        os.replace(tmp_path / "broken", path)
        assert server.wait_for("model refused")["reason"] == "not a model file"
        assert server.post("/v1/score", [ROW]).json == before
        other.save(path)
        server.wait_for("model loaded")
        after = server.post("/v1/score", [ROW]).json
        assert after["scores"] == expected and after["version"] != before["version"]
        path.unlink()
        time.sleep(2.5)
        assert server.post("/v1/score", [ROW]).json == after


def test_a_folder_of_models(model, tmp_path):
    shutil.copy(model, tmp_path / "first.rgld")
    shutil.copy(model, tmp_path / ".hidden.rgld")
    with running("--models", tmp_path) as server:
        assert server.post("/v1/score", [ROW]).json["model"] == "first"
        shutil.copy(model, tmp_path / "copied")
        os.replace(tmp_path / "copied", tmp_path / "second.rgld")
        assert server.wait_for("model loaded")["model"] == "second"
        assert [one["model"] for one in server.get("/v1/models").json["models"]] == ["first", "second"]
        assert "name one, as in ?model=NAME" in refused(server.post("/v1/score", [ROW]), 422)
        assert server.post("/v1/score?model=second", [ROW]).json["model"] == "second"
        (tmp_path / "first.rgld").unlink()
        assert server.wait_for("model removed")["model"] == "first"
        refused(server.post("/v1/score?model=first", [ROW]), 404)


def test_other_things_than_files_in_a_folder_of_models(model, tmp_path):
    """The server goes on looking, and goes on answering."""
    shutil.copy(model, tmp_path / "first.rgld")
    with running("--models", tmp_path) as server:
        (tmp_path / "a-loop.rgld").symlink_to("a-loop.rgld")
        (tmp_path / "a-nowhere.rgld").symlink_to("nowhere")
        os.mkfifo(tmp_path / "a-pipe.rgld")
        assert server.wait_for("model refused")["model"] == "a-pipe"
        (tmp_path / "b-folder.rgld").mkdir()
        assert server.wait_for("model refused")["model"] == "b-folder"
        shutil.copy(model, tmp_path / "copied")
        os.replace(tmp_path / "copied", tmp_path / "second.rgld")
        assert server.wait_for("model loaded")["model"] == "second"
        assert server.post("/v1/score?model=first", [ROW]).json["model"] == "first"


def test_tokens_of_files_that_are_no_text(model, tmp_path):
    (tmp_path / "token").write_bytes(b"\xff" * 40)
    for path in (tmp_path / "token", "/dev/zero"):
        code, _, error = rgld("serve", "--model", model, "--token-file", path)
        assert code == 2 and "Expected a token of at least" in error


def test_sigterm_answers_what_is_under_way(model):
    with running("--model", model) as server:
        body = json.dumps([ROW]).encode()
        connection = server.connect()
        connection.putrequest("POST", "/v1/score")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body[:10])
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        with pytest.raises(OSError):  # noqa: PT011 - refused: no new connection is taken
            server.get("/healthz")
        connection.send(body[10:])
        assert Answer(connection.getresponse()).status == 200
        connection.close()
        server.stop()
        assert [json.loads(line)["event"] for line in server.lines][-1] == "stopped"


def test_many_clients_at_once_get_their_own_scores(server, detector):
    table = trips(160, 12)
    expected = detector.anomaly_score(table).tolist()
    rows = table.to_dicts()
    wrong = []

    def ask(start):
        for i in range(start, 160, 8):
            wrong.extend([i] * (server.post("/v1/score", [rows[i]]).json["scores"] != [expected[i]]))

    threads = [threading.Thread(target=ask, args=(start,)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
