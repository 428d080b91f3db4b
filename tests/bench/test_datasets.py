"""Datasets of the study: fetched, verified, generated, or a table of one's own."""

import contextlib
import hashlib
import http.server
import os
import re
import threading
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

pytest.importorskip("pyod", reason="the study needs the extra 'bench'")
pytest.importorskip("pandas", reason="the study needs the extra 'bench'")

import pandas as pd

from rgld.bench import datasets, detectors, specs, synthetic
from rgld.bench.worker import run
from rgld.exceptions import ParameterError, TableError

from ..cli.command import rgld
from .study_tasks import ADBENCH, needs_data, task


def test_registry():
    assert len(datasets.registry()) == 47
    assert [entry.number for entry in datasets.registry().values()] == list(range(1, 48))
    assert sum(not entry.sha256 for entry in datasets.registry().values()) == 4


@needs_data
def test_registry_describes_the_files():
    for name in ("glass", "Wilt", "satimage-2"):
        X, y = datasets.load_dataset(name, ADBENCH)
        entry = datasets.registry()[name]
        assert (*X.shape, y.sum()) == (entry.rows, entry.columns, entry.anomalies)


def test_unknown_names_are_refused_with_what_there_is():
    with pytest.raises(ParameterError, match=r"got 'nope': choose from ALOI"):
        datasets.known_datasets(["nope"])
    with pytest.raises(ParameterError, match=r"got 'nope': choose from all"):
        detectors.known_detectors(["nope"])


def test_pickled_arrays_are_never_loaded(tmp_path):
    np.savez(tmp_path / "14_glass.npz", X=np.array([{"a": 1}], dtype=object), y=np.array([0]))
    line = run(task("glass", data=str(tmp_path)))
    assert "allow_pickle" in line["error"]


class Server(http.server.BaseHTTPRequestHandler):
    """A server of one file that knows ranges, and can break off, send too much or look at the folder."""

    content = np.random.default_rng(0).bytes(5000)
    break_after: ClassVar[list[int]] = []
    """Bytes after which the connection breaks off, one for each request."""
    knows_ranges = True
    watched: Path | None = None

    def do_GET(self):
        first = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        self.requested.append(first)
        first *= self.knows_ranges
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(self.content) - first))
        self.end_headers()
        if self.watched:
            self.seen.extend(os.listdir(self.watched))
        n_bytes = self.break_after.pop(0) if self.break_after else None
        with contextlib.suppress(ConnectionError):
            self.wfile.write(self.content[first:][:n_bytes])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    """Yield a handler to set, the address, and a registry with the checksum of what the server has."""

    class Own(Server):
        break_after: ClassVar[list[int]] = []
        requested: ClassVar[list[int]] = []
        seen: ClassVar[list[str]] = []

    known = datasets.registry()["glass"]._replace(sha256=hashlib.sha256(Own.content).hexdigest())
    monkeypatch.setattr(datasets, "registry", lambda: {"glass": known, "fraud": known._replace(sha256="")})
    instance = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Own)
    threading.Thread(target=instance.serve_forever, daemon=True).start()
    yield Own, f"http://127.0.0.1:{instance.server_port}"
    instance.shutdown()
    instance.server_close()


def fetched(address, folder, name="glass"):
    """Fetch a dataset; return what was said."""
    said = []
    failed = datasets.fetch([name], folder, address, said.append)
    assert failed == ([name] if "failed" in said[-1] else [])
    return said[-1]


def test_a_fetched_file_is_whole_and_fetched_once(server, tmp_path):
    handler, address = server
    assert fetched(address, tmp_path) == "glass: fetched"
    assert (tmp_path / "14_glass.npz").read_bytes() == handler.content
    assert fetched(address, tmp_path) == "glass: already in the folder"
    assert handler.requested == [0] and os.listdir(tmp_path) == ["14_glass.npz"]
    assert fetched(address, tmp_path / "other", "fraud") == "fraud: fetched (no checksum is known for it)"


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_broken_download_goes_on_where_it_stopped(server, tmp_path, knows_ranges):
    handler, address = server
    handler.break_after.extend([1000, 200])
    handler.knows_ranges = knows_ranges
    assert fetched(address, tmp_path) == "glass: fetched"
    assert handler.requested == ([0, 1000, 1200] if knows_ranges else [0, 1000, 200])
    assert (tmp_path / "14_glass.npz").read_bytes() == handler.content


@pytest.mark.parametrize("name", ["glass", "fraud"])
def test_a_download_that_always_breaks_off_leaves_nothing(server, tmp_path, name):
    """Without a checksum, half a file was taken for the whole."""
    handler, address = server
    handler.break_after.extend([7] * 10)
    assert "broke off 5 times" in fetched(address, tmp_path, name)
    assert os.listdir(tmp_path) == []


def test_a_wrong_file_is_not_kept_and_replaces_nothing(server, tmp_path):
    handler, address = server
    (tmp_path / "14_glass.npz").write_bytes(b"an older file")
    handler.content = handler.content[:-1] + b"x"
    assert "the checksum of the download is not" in fetched(address, tmp_path)
    assert (tmp_path / "14_glass.npz").read_bytes() == b"an older file" and len(os.listdir(tmp_path)) == 1


def test_a_download_has_a_limit(server, tmp_path):
    handler, address = server
    handler.content = bytes(2**21)
    assert "sends more than" in fetched(address, tmp_path)
    assert os.listdir(tmp_path) == []


def test_nobody_can_prepare_the_unfinished_file(server, tmp_path):
    """Its name is new for each download: a link of the old name, put there by someone else, is not followed."""
    handler, address = server
    handler.watched = tmp_path / "data"
    handler.watched.mkdir()
    (tmp_path / "precious").write_bytes(b"precious")
    (handler.watched / "14_glass.npz.part").symlink_to(tmp_path / "precious")
    handler.break_after.append(1000)
    assert fetched(address, handler.watched) == "glass: fetched"
    assert (tmp_path / "precious").read_bytes() == b"precious"
    names = set(handler.seen) - {"14_glass.npz.part"}
    assert len(names) == 1 and re.fullmatch(r"\.[0-9a-f]{16}\.part", *names)


@pytest.mark.parametrize("address", ["nonsense", "http://", "http://127.0.0.1:9", "http://a b"])
def test_an_address_that_is_none_is_one_line(tmp_path, address):
    code, _, error = rgld("bench", "fetch", tmp_path, "--datasets", "glass", "--address", address)
    assert code == 2
    assert "could not be fetched: glass" in error and "Traceback" not in error


def test_own_table(tmp_path):
    X, y = synthetic.sparse_subspace(n=400, d=4)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(fraud=np.where(y == 1, "yes", "no"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", X=X, fraud=y)
    for name in ("t.csv", "t.parquet", "t.npz"):
        loaded, labels = datasets.load_table(tmp_path / name, "fraud")
        np.testing.assert_allclose(loaded, X)
        np.testing.assert_array_equal(labels, y)
    with pytest.raises(TableError, match="column 'nope'"):
        datasets.load_table(tmp_path / "t.csv", "nope")
    with pytest.raises(TableError, match="two values"):
        datasets.load_table(tmp_path / "t.csv", "a")
    frame.assign(e="text").to_csv(tmp_path / "text.csv", index=False)
    with pytest.raises(TableError, match="Column 'e'"):
        datasets.load_table(tmp_path / "text.csv", "fraud")


DAMAGED_TABLES = {
    "t.parquet": b"PAR1 and more",
    "t.npz": b"PK\x03\x04 and more",
    "t.csv": b"a,fraud\n1,2,3\n",
    "binary.csv": bytes(range(256)),
}


@pytest.mark.parametrize("name", DAMAGED_TABLES)
def test_tables_that_cannot_be_read(tmp_path, name):
    (tmp_path / name).write_bytes(DAMAGED_TABLES[name])
    with pytest.raises(TableError, match=rf"{name} cannot be read \(.*\): check that it is a CSV") as found:
        datasets.load_table(tmp_path / name, "fraud")
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    "X", [np.zeros((3, 2)), np.zeros((4, 2, 2)), np.array([["a", "b"]] * 4)], ids=["rows", "dimensions", "text"]
)
def test_archives_that_hold_no_table(tmp_path, X):
    np.savez(tmp_path / "t.npz", X=X, y=np.array([0, 0, 0, 1]))
    with pytest.raises(TableError, match="Expected a numeric array X with rows and columns and a label for each row"):
        datasets.load_table(tmp_path / "t.npz", "y")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_is_no_table(tmp_path):
    """Opening it would wait for ever."""
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(TableError, match=r"There is no file .*t\.csv: check the path"):
        datasets.load_table(tmp_path / "t.csv", "y")


@pytest.mark.parametrize("name", synthetic.GENERATORS)
def test_generators(name):
    X, y = synthetic.GENERATORS[name](n=500, seed=3)
    assert len(X) == len(y) == 500 and set(y) == {0, 1} and np.isfinite(X).all()
    np.testing.assert_array_equal(X, synthetic.GENERATORS[name](n=500, seed=3)[0])
    assert 0.005 < y.mean() < 0.1


def test_specs():
    assert specs.parse_spec("RGLD(n_local_views=0)") == ("RGLD", {"n_local_views": 0})
    for bad in ("RGLD(", "RGLD(1)", "RGLD(x=__import__('os'))", "RGLD(x=1) + 1"):
        with pytest.raises(ParameterError):
            specs.parse_spec(bad)
