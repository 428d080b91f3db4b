"""Datasets: the 47 of the study, synthetic ones, a folder of ODDBench's tables, and a user's own table.

In: a name and a folder. Out: X and y (1 = anomaly), or what is missing. Nothing is ever unpickled. `fetch` downloads
files from ADBench's public repository, continues a download that broke off, and verifies the checksums that are known.
"""

import csv
import hashlib
import http.client
import os
import urllib.request
import zipfile
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays import Int64s
from .._modelfile.atomic import written_beside
from ..exceptions import ParameterError, RGLDError, TableError
from .specs import parse_spec
from .synthetic import GENERATORS

DATA_VARIABLE = "RGLD_DATA"
ADBENCH_ADDRESS = "https://github.com/Minqi824/ADBench/raw/main/adbench/datasets/Classical"
DOWNLOAD_CHUNK_BYTES = 2**18
SECONDS_WITHOUT_DATA = 30.0
MAX_TRIES = 5
"""Connections that may break off during one download; each goes on where the one before stopped."""
ARCHIVE_BYTES = 2**20
"""Far more than an archive takes beside its numbers."""
PARTIAL_CONTENT = 206
"""HTTP's answer to a request for the rest of a file."""


class Dataset(NamedTuple):
    """One of the 47 datasets."""

    number: int
    name: str
    rows: int
    columns: int
    anomalies: int
    category: str
    sha256: str
    """Checksum of ADBench's own file; empty if it is not known."""

    @property
    def file_name(self) -> str:
        """The name of the file, as in ADBench: number_name.npz."""
        return f"{self.number}_{self.name}.npz"

    @property
    def max_bytes(self) -> int:
        """More than the file can have: sixteen bytes for each number and label, and what an archive adds."""
        return 16 * self.rows * (self.columns + 1) + ARCHIVE_BYTES


@cache
def registry() -> dict[str, Dataset]:
    """Return the 47 datasets by name, in ADBench's order."""
    text = (files(__package__) / "data" / "datasets.csv").read_text()
    rows = csv.DictReader(text.splitlines())
    entries = (
        Dataset(
            int(r["number"]),
            r["name"],
            int(r["rows"]),
            int(r["columns"]),
            int(r["anomalies"]),
            r["category"],
            r["sha256"],
        )
        for r in rows
    )
    return {entry.name: entry for entry in entries}


def data_folder(given: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder of the datasets: the given one, or that of RGLD_DATA, or None."""
    chosen = given or os.environ.get(DATA_VARIABLE)
    return Path(chosen) if chosen else None


def known_datasets(names: Iterable[str]) -> list[str]:
    """Return the names of datasets, with "all" replaced by all names. An unknown name is an error that lists all."""
    result: list[str] = []
    for name in names:
        if name == "all":
            result.extend(registry())
        elif name in registry() or parse_spec(name).name in GENERATORS:
            result.append(name)
        else:
            known = ", ".join([*registry(), *GENERATORS])
            raise ParameterError(f"Expected the name of a dataset, got {name!r}: choose from {known}.")
    return list(dict.fromkeys(result))


def missing_datasets(names: Iterable[str], folder: Path | None) -> list[str]:
    """Return the datasets of the study whose files are not in the folder."""
    return [
        n for n in names if n in registry() and (folder is None or not (folder / registry()[n].file_name).is_file())
    ]


def load_dataset(name: str, folder: Path | None) -> tuple[NDArray[Any], Int64s]:
    """Return X and y of a dataset of the study, or of a synthetic one."""
    spec = parse_spec(name)
    if spec.name in GENERATORS:
        return GENERATORS[spec.name](**spec.settings)  # type: ignore[no-any-return]
    if folder is None:
        raise TableError(f"Dataset {name!r} needs the folder of its file: give it with --data DIR or {DATA_VARIABLE}.")
    unpacked = _unpacked_paths(name, folder)
    if unpacked["X"].exists():
        return np.load(unpacked["X"], mmap_mode="r"), np.load(unpacked["y"])
    return load_npz(folder / registry()[name].file_name)


def _unpacked_paths(name: str, folder: Path) -> dict[str, Path]:
    return {array: folder / f"{registry()[name].file_name}.{array}.npy" for array in ("y", "X")}


def unpack(name: str, folder: Path, into: Path) -> None:
    """Write a dataset's arrays as plain files, from which `load_dataset` reads only the rows it needs."""
    X, y = load_npz(folder / registry()[name].file_name)
    for array, path in _unpacked_paths(name, into).items():
        np.save(path, X if array == "X" else y, allow_pickle=False)


def load_npz(path: Path) -> tuple[NDArray[Any], Int64s]:
    """Return the arrays X and y of a NumPy archive, without unpickling."""
    with np.load(path, allow_pickle=False) as archive:
        return archive["X"], archive["y"].astype(np.int64).ravel()


def oddbench_tables(folder: Path) -> list[Path]:
    """Return the tables of a folder, by name. Each is an archive with X, y (1 = anomaly) and n_train: its first
    n_train rows hold no anomalies."""
    found = sorted(folder.glob("*.npz"))
    if not found:
        raise TableError(f"There is no table (*.npz) in {folder}: give the folder of ODDBench's tables.")
    for path in found:
        load_n_train(path)
    return found


def load_n_train(path: Path) -> int:
    """Return how many rows of a table of ODDBench are for training."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = set(archive.files)
            n_train = int(archive["n_train"]) if {"X", "y", "n_train"} <= names else 0
            n_rows = len(archive["y"]) if n_train else 0
    except (ValueError, OSError, TypeError, zipfile.BadZipFile) as error:
        raise TableError(f"{path.name} cannot be read: check that it is a NumPy archive (npz) of numbers.") from error
    if not 0 < n_train < n_rows:
        raise TableError(f"Expected arrays X, y and n_train (fewer than the rows) in {path.name}, got {sorted(names)}.")
    return n_train


def load_table(path: Path, label: str) -> tuple[NDArray[Any], Int64s]:
    """Return X and y of a user's own labelled table: CSV, Parquet or NPZ. The label column holds two values; the rarer
    one is the anomaly."""
    from polars.exceptions import PanicException

    if not path.is_file():
        raise TableError(f"There is no file {path}: check the path.")
    try:
        X, labels = (_read_npz if path.suffix == ".npz" else _read_frame)(path, label)
    except (RGLDError, MemoryError):
        raise
    except (Exception, PanicException) as error:  # the readers raise many kinds for a damaged file
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")[:200]
        raise TableError(
            f"{path.name} cannot be read ({reason}): check that it is a CSV, Parquet or NPZ file."
        ) from error
    if X.ndim != 2 or X.dtype.kind not in "biuf" or len(X) != len(labels):
        raise TableError(
            f"Expected a numeric array X with rows and columns and a label for each row in {path.name}, got "
            f"{X.dtype} {X.shape} and {len(labels)} labels."
        )
    return X, labels


def _read_npz(path: Path, label: str) -> tuple[NDArray[Any], Int64s]:
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        if not {"X", label} <= set(archive.files):
            raise TableError(f"Expected arrays 'X' and {label!r} in {path.name}, got {sorted(archive.files)}.")
        return archive["X"], binary_labels(archive[label].ravel(), label)


def _read_frame(path: Path, label: str) -> tuple[NDArray[Any], Int64s]:
    import polars as pl

    frame = pl.read_parquet(path) if path.suffix in (".parquet", ".pq") else pl.read_csv(path)
    if label not in frame.columns:
        raise TableError(f"Expected a column {label!r} in {path.name}, got {frame.columns}.")
    labels = binary_labels(frame[label].to_numpy(), label)
    features = frame.drop(label)
    others = [name for name, dtype in features.schema.items() if not (dtype.is_numeric() or dtype == pl.Boolean)]
    if others:
        raise TableError(f"Column {others[0]!r} of {path.name} does not hold numbers: drop or encode it first.")
    return features.to_numpy().astype(np.float64), labels


def binary_labels(values: NDArray[Any], label: str) -> Int64s:
    """Return 1 for the rarer of the two values of a label column, 0 for the other."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) != 2:
        raise TableError(f"Expected two values in the label column {label!r}, got {len(distinct)}.")
    labels: Int64s = (values == distinct[counts.argmin()]).astype(np.int64)
    return labels


def fetch(
    names: Iterable[str], folder: Path, address: str = ADBENCH_ADDRESS, say: Callable[[str], None] = print
) -> list[str]:
    """Download datasets into the folder and return the names of those that failed."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in names:
        entry = registry()[name]
        target = folder / entry.file_name
        if target.exists() and _is_right(target, entry):
            say(f"{name}: already in the folder")
            continue
        try:
            _download(f"{address}/{entry.file_name}", target, entry)
            say(f"{name}: fetched{'' if entry.sha256 else ' (no checksum is known for it)'}")
        except (OSError, TableError) as error:
            failed.append(name)
            say(f"{name}: failed: {error}")
    return failed


def _download(url: str, target: Path, entry: Dataset) -> None:
    """Download to a file beside the target, with a name that no one can guess; it takes the target's place if it is
    whole and its checksum is right."""
    with written_beside(target) as beside:
        if not any(_receive(url, beside, entry) for _ in range(MAX_TRIES)):
            raise TableError(f"the connection broke off {MAX_TRIES} times: try again later")
        if not _is_right(beside, entry):
            raise TableError(
                f"the checksum of the download is not {entry.sha256[:12]}..., so it was deleted: try again"
            )


def _receive(url: str, path: Path, entry: Dataset) -> bool:
    """Add what a file lacks of a download; return whether it is whole now."""
    have = path.stat().st_size
    try:
        request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
        with urllib.request.urlopen(request, timeout=SECONDS_WITHOUT_DATA) as response:
            n_left = int(response.headers.get("Content-Length", -1))
            with open(path, "ab" if response.status == PARTIAL_CONTENT else "wb") as file:
                while chunk := response.read(DOWNLOAD_CHUNK_BYTES):
                    file.write(chunk)
                    n_left -= len(chunk)
                    if file.tell() > entry.max_bytes:
                        raise TableError(f"the server sends more than {entry.max_bytes:,} bytes: check the address")
        return n_left <= 0
    except (ConnectionError, TimeoutError, http.client.IncompleteRead):
        return False
    except (http.client.HTTPException, ValueError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"the server's answer cannot be read ({type(error).__name__}): check the address") from error


def _is_right(path: Path, entry: Dataset) -> bool:
    """Return whether a file has the checksum of the dataset, or none is known."""
    if not entry.sha256:
        return True
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256
