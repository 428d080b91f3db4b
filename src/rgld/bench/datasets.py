"""Datasets: the 47 of the study, synthetic ones, and a table of one's own.

In: a name, a folder. Out: X and y (1 = anomaly), or what is missing. Nothing is ever unpickled. `fetch` gets
files from ADBench's public repository, resumes a broken download and verifies checksums where they are
known.
"""

import csv
import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..exceptions import ParameterError, TableError
from .specs import parse_spec
from .synthetic import GENERATORS

DATA_VARIABLE = "RGLD_DATA"
ADBENCH_ADDRESS = "https://github.com/Minqi824/ADBench/raw/main/adbench/datasets/Classical"
CHUNK_BYTES = 2**18
SECONDS_WITHOUT_DATA = 30.0


class Dataset(NamedTuple):
    """An entry of the registry."""

    number: int
    name: str
    rows: int
    columns: int
    anomalies: int
    category: str
    sha256: str
    """Of ADBench's own file; empty where it is not known."""

    @property
    def file_name(self) -> str:
        """As in ADBench: number_name.npz."""
        return f"{self.number}_{self.name}.npz"


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
    """Return the folder of the datasets: the one given, else RGLD_DATA, else none."""
    chosen = given or os.environ.get(DATA_VARIABLE)
    return Path(chosen) if chosen else None


def known_datasets(names: Iterable[str]) -> list[str]:
    """Return the names, with "all" spelled out; an unknown one is an error that lists what there is."""
    result: list[str] = []
    for name in names:
        if name == "all":
            result.extend(registry())
        elif name in registry() or parse_spec(name).name in GENERATORS:
            result.append(name)
        else:
            known = ", ".join([*registry(), *GENERATORS])
            raise ParameterError(f"Expected the name of a dataset, got {name!r}; known are: {known}.")
    return list(dict.fromkeys(result))


def missing_datasets(names: Iterable[str], folder: Path | None) -> list[str]:
    """Return those of the names that are files of the study and do not lie in the folder."""
    return [
        n for n in names if n in registry() and (folder is None or not (folder / registry()[n].file_name).is_file())
    ]


def load_dataset(name: str, folder: Path | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return X and y of a dataset of the registry or of a synthetic one."""
    spec = parse_spec(name)
    if spec.name in GENERATORS:
        return GENERATORS[spec.name](**spec.settings)  # type: ignore[no-any-return]
    if folder is None:
        raise TableError(f"Dataset {name!r} lies in a folder: name it with --data DIR or {DATA_VARIABLE}.")
    unpacked = _unpacked_paths(name, folder)
    if unpacked["X"].exists():
        return np.load(unpacked["X"], mmap_mode="r"), np.load(unpacked["y"])
    return load_npz(folder / registry()[name].file_name)


def _unpacked_paths(name: str, folder: Path) -> dict[str, Path]:
    return {array: folder / f"{registry()[name].file_name}.{array}.npy" for array in ("y", "X")}


def unpack(name: str, folder: Path, into: Path) -> None:
    """Write a dataset's arrays as plain files, from which `load_dataset` reads the rows it needs and no more."""
    X, y = load_npz(folder / registry()[name].file_name)
    for array, path in _unpacked_paths(name, into).items():
        np.save(path, X if array == "X" else y, allow_pickle=False)


def load_npz(path: Path) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the arrays X and y of a NumPy archive, without unpickling."""
    with np.load(path, allow_pickle=False) as archive:
        return archive["X"], archive["y"].astype(np.int64).ravel()


def load_table(path: Path, label: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return X and y of a user's own labelled table: CSV, Parquet or NPZ; the label column holds two values,
    the rarer is the anomaly."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            if not {"X", label} <= set(archive.files):
                raise TableError(f"Expected arrays 'X' and {label!r} in {path.name}, got {sorted(archive.files)}.")
            return archive["X"], binary_labels(archive[label].ravel(), label)
    import polars as pl

    frame = pl.read_parquet(path) if path.suffix in (".parquet", ".pq") else pl.read_csv(path)
    if label not in frame.columns:
        raise TableError(f"Expected a column {label!r} in {path.name}, got {frame.columns}.")
    labels = binary_labels(frame[label].to_numpy(), label)
    features = frame.drop(label)
    text = [name for name, dtype in features.schema.items() if not (dtype.is_numeric() or dtype == pl.Boolean)]
    if text:
        raise TableError(f"Column {text[0]!r} of {path.name} does not hold numbers: drop it or encode it first.")
    return features.to_numpy().astype(np.float64), labels


def binary_labels(values: NDArray[Any], label: str) -> NDArray[np.int64]:
    """Return 1 for the rarer of the two values of a label column, 0 for the other."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) != 2:
        raise TableError(f"Expected two values in the label column {label!r}, got {len(distinct)}.")
    labels: NDArray[np.int64] = (values == distinct[counts.argmin()]).astype(np.int64)
    return labels


def fetch(
    names: Iterable[str], folder: Path, address: str = ADBENCH_ADDRESS, say: Callable[[str], None] = print
) -> list[str]:
    """Download datasets into the folder; return the names of those that could not be had."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in names:
        entry = registry()[name]
        target = folder / entry.file_name
        if target.exists() and _is_right(target, entry):
            say(f"{name}: already there")
            continue
        try:
            _download(f"{address}/{entry.file_name}", target, entry)
            say(f"{name}: fetched{'' if entry.sha256 else ' (no checksum is known for it)'}")
        except (OSError, TableError) as error:
            failed.append(name)
            say(f"{name}: failed: {error}")
    return failed


def _download(url: str, target: Path, entry: Dataset) -> None:
    """Download beside the target, going on where an earlier try stopped; rename when the checksum is right."""
    part = target.with_name(target.name + ".part")
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=SECONDS_WITHOUT_DATA)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # "range not satisfiable": the part is whole already
            raise
        response = None
    if response is not None:
        with response:
            resumed = have > 0 and response.status == 206
            with open(part, "ab" if resumed else "wb") as file:
                while chunk := response.read(CHUNK_BYTES):
                    file.write(chunk)
    if not _is_right(part, entry):
        part.unlink()
        raise TableError(f"the downloaded file's checksum is not {entry.sha256[:12]}..., it was deleted: try again")
    os.replace(part, target)


def _is_right(path: Path, entry: Dataset) -> bool:
    return not entry.sha256 or hashlib.sha256(path.read_bytes()).hexdigest() == entry.sha256
