"""Files written whole or not at all, and nothing but regular files replaced."""

import os
import socket
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from rgld import RGLD, ModelFileError, load
from rgld._modelfile import atomic
from rgld._modelfile.atomic import write_whole, written_beside
from rgld.report import write_report

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes, links and devices of POSIX")

NULL_DEVICE = os.stat(os.devnull)
X = np.random.default_rng(0).normal(size=(20, 3))


@pytest.fixture(autouse=True)
def null_device_is_as_before():
    yield
    now = os.stat(os.devnull)
    assert stat.S_ISCHR(now.st_mode) and (now.st_rdev, now.st_ino) == (NULL_DEVICE.st_rdev, NULL_DEVICE.st_ino)


@pytest.fixture(scope="module")
def detector():
    return RGLD(n_global_views=2, n_local_views=2, n_references=6, n_neighbors=2, random_state=0).fit(X)


WRITERS = {
    "write_whole": lambda detector, path: write_whole(path, "new"),
    "save": lambda detector, path: detector.save(path),
    "write_report": lambda detector, path: write_report(detector, X, path),
}


@pytest.fixture(params=WRITERS)
def write(request, detector):
    """Whatever writes a file."""
    return lambda path: WRITERS[request.param](detector, path)


@contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def make_device(path, kind, major, minor):
    try:
        os.mknod(path, kind | 0o666, os.makedev(major, minor))
    except PermissionError:
        pytest.skip("making devices needs rights that this user does not have")


# ---- what is not a regular file


def test_a_pipe_is_not_replaced(tmp_path, write):
    os.mkfifo(tmp_path / "pipe")
    os.symlink("pipe", tmp_path / "link")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="got a device, a pipe or a socket, which it would replace"):
            write(tmp_path / name)
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]


def test_a_device_is_not_replaced(tmp_path, write):
    make_device(tmp_path / "zero", stat.S_IFCHR, 1, 5)
    with pytest.raises(OSError, match="got a device"):
        write(tmp_path / "zero")
    assert stat.S_ISCHR(os.stat(tmp_path / "zero").st_mode)


def test_a_socket_is_not_replaced(tmp_path):
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.bind(str(tmp_path / "socket"))
        except OSError:
            pytest.skip("the path is too long for a socket")
        with pytest.raises(OSError, match="a device, a pipe or a socket"):
            write_whole(tmp_path / "socket", "new")
    assert stat.S_ISSOCK(os.stat(tmp_path / "socket").st_mode)


def test_the_null_device_is_written_to(tmp_path, write):
    """A device of the same number, lest a defect removes the system's."""
    make_device(tmp_path / "null", stat.S_IFCHR, os.major(NULL_DEVICE.st_rdev), os.minor(NULL_DEVICE.st_rdev))
    os.symlink("null", tmp_path / "link")
    for name in ("null", "link"):
        try:
            write(tmp_path / name)
        except PermissionError:
            pytest.skip("this file system opens no devices")
        assert stat.S_ISCHR(os.stat(tmp_path / "null").st_mode)
    assert sorted(os.listdir(tmp_path)) == ["link", "null"]


def test_the_systems_null_device(write, monkeypatch):
    def renamed(*_):
        raise AssertionError("a defect must not remove the device")

    for name in ("replace", "rename", "link"):
        monkeypatch.setattr(os, name, renamed)
    write(os.devnull)


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1"])
@pytest.mark.parametrize("to", ["pipe", "file"])
def test_standard_output_is_written_to(tmp_path, path, to):
    if not os.path.exists(path):
        pytest.skip(f"there is no {path} here")
    code = f"""from rgld._modelfile.atomic import write_whole
print("before")
write_whole({path!r}, "content\\n")
print("after")"""
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}  # else nothing printed before could come too late
    if to == "pipe":
        written = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, env=buffered).stdout
    else:
        with open(tmp_path / "out", "wb") as file:
            subprocess.run([sys.executable, "-c", code], check=True, stdout=file, env=buffered)
        written = (tmp_path / "out").read_bytes()
    assert written == b"before\ncontent\nafter\n"


def test_a_failed_write_to_a_device_writes_nothing(capfd):
    def fail():
        with written_beside("/dev/stdout") as copy:
            copy.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert capfd.readouterr().out == ""


# ---- paths


def test_a_loop_of_links(tmp_path, write):
    os.symlink("b", tmp_path / "a")
    os.symlink("a", tmp_path / "b")
    with pytest.raises(OSError, match="got a link that leads to itself"):
        write(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic links"):
        load(tmp_path / "a")


def test_a_null_character(tmp_path, write):
    with pytest.raises(OSError, match="got a path with a null character"):
        write(f"{tmp_path}/a\0b")
    with pytest.raises(ModelFileError, match="got a path with a null character"):
        load(f"{tmp_path}/a\0b")


@pytest.mark.parametrize("length", [240, 255])
def test_long_names(tmp_path, write, length):
    write(tmp_path / ("x" * length))
    assert os.listdir(tmp_path) == ["x" * length]
    with pytest.raises(OSError, match="too long"):
        write(tmp_path / ("x" * 256))


def test_folders(tmp_path, write, monkeypatch):
    with pytest.raises(IsADirectoryError, match="got a folder"):
        write(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IsADirectoryError, match="got a folder"):
        write("")
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*: make it first"):
        write(tmp_path / "none" / "file")
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*: make it first"):
        write(tmp_path / "file" / "file")


def test_links_are_followed(tmp_path, write):
    (tmp_path / "there").write_text("old")
    os.symlink("there", tmp_path / "link")
    os.symlink("new", tmp_path / "dangling")
    write(tmp_path / "link")
    write(tmp_path / "dangling")
    assert os.path.islink(tmp_path / "link") and os.path.islink(tmp_path / "dangling")
    assert (tmp_path / "there").read_bytes() != b"old" and (tmp_path / "new").is_file()


# ---- who may read


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400, 0o666, 0o604])
def test_a_replaced_file_keeps_its_mode(tmp_path, write, mode):
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    write(path)
    assert mode_of(path) == mode and path.stat().st_size > 0


def test_a_replaced_file_does_not_run_as_its_owner(tmp_path, write):
    """Data of a new writer must not get the rights that a program of that name had."""
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o6755)
    write(path)
    assert mode_of(path) == 0o755


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o007, 0o660)])
def test_a_new_file_has_the_mode_of_the_umask(tmp_path, write, mask, mode):
    with umask(mask):
        write(tmp_path / "file")
    assert mode_of(tmp_path / "file") == mode


@pytest.mark.parametrize("before", [None, 0o600, 0o640, 0o444])
def test_the_file_beside_is_never_more_readable(tmp_path, before):
    path = tmp_path / "file"
    if before is not None:
        path.touch()
        path.chmod(before)
    with umask(0o027), written_beside(path) as beside:
        first = mode_of(beside)
        beside.write_text("new")
        assert mode_of(beside) == first
    final = mode_of(path)
    assert final == (0o640 if before is None else before)
    assert first & 0o077 & ~final == 0


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
def test_a_replaced_file_keeps_its_owner(tmp_path, write):
    path = tmp_path / "file"
    path.touch()
    os.chown(path, 1234, 2345)
    path.chmod(0o640)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid, mode_of(path)) == (1234, 2345, 0o640)


def test_another_group_may_not_read_more(tmp_path, monkeypatch):
    """Where the group cannot be kept, its rights are not passed on to the group that takes its place."""

    def not_permitted(*_):
        raise PermissionError

    path = tmp_path / "file"
    path.touch()
    path.chmod(0o664)
    replaced = os.stat_result((*os.stat(path)[:5], 2345, *os.stat(path)[6:]))
    monkeypatch.setattr(os, "chown", not_permitted)
    with written_beside(path) as beside:
        atomic._pass_on(replaced, beside)
        assert mode_of(beside) == 0o644


# ---- new files


def test_a_file_that_is_there_stays(tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="exists already: name another one"), written_beside(path, replace=False):
        raise AssertionError("nothing is written")
    assert path.read_text() == "mine"


@pytest.mark.parametrize("has_links", [True, False])
def test_of_several_writers_of_a_new_file_one_succeeds(tmp_path, monkeypatch, has_links):
    def no_links(*_):
        raise PermissionError(1, "Operation not permitted")

    if not has_links:
        monkeypatch.setattr(os, "link", no_links)

    def write(number):
        try:
            with written_beside(tmp_path / "file", replace=False) as beside:
                beside.write_text(str(number))
                all_started.wait()  # all found that there is no such file
        except FileExistsError:
            return None
        return number

    all_started = Barrier(8, timeout=60)
    with ThreadPoolExecutor(8) as pool:
        results = [number for number in pool.map(write, range(8)) if number is not None]
    assert len(results) == 1
    assert Path(tmp_path / "file").read_text() == str(results[0])
    assert os.listdir(tmp_path) == ["file"]


def test_an_unfinished_file_is_announced_before_it_is_there(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(atomic, "on_begin", lambda path: begun.append((path, path.exists())))
    with written_beside(tmp_path / "file") as beside:
        beside.write_bytes(b"content")
    assert begun == [(beside, False)] and not beside.exists()


def test_what_appears_while_a_file_is_written_is_not_replaced(tmp_path):
    def write(path):
        with written_beside(path) as beside:
            beside.write_text("new")
            os.mkfifo(path)

    with pytest.raises(OSError, match="a device, a pipe or a socket"):
        write(tmp_path / "file")
    assert os.listdir(tmp_path) == ["file"]
