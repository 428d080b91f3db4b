"""The frozen files of `RGLD.plus()` and `RGLD.novelty()`: how each detector is fitted, and the rows it scores.

`python -m tests.files.second_edition.cases` writes them anew, with version 5 of the format. Do so only for a MINOR
version in which these presets score otherwise (docs/versions.md), and say by how much in the changelog. For a new
version of the format, keep the model files and test them as those of the version that wrote them.

`results.npz` also holds the scores of a long table, which has no model file, as it would be large.
"""

from pathlib import Path

import numpy as np

from rgld import RGLD

from ..house.cases import mixed, numbers

FOLDER = Path(__file__).parent


def orders(n, seed=0):
    """Return a table of all kinds of columns, with a relation: a total that one row breaks."""
    frame = mixed(n, seed)
    frame["pieces"] = np.random.default_rng(seed + 100).integers(1, 9, n)
    frame["total"] = (frame["amount"] * frame["pieces"]).round(2)
    frame.loc[n // 3, "total"] *= 1.5
    return frame


TABLES = {"orders": (lambda: orders(300), lambda: orders(120, seed=9))}
TABLES["long"] = (lambda: numbers(2600), lambda: np.concatenate((numbers(120, seed=9), 1e4 * numbers(5, seed=10))))
"""For each name, training table and new rows. The long one has more rows than plus learns its views from."""

CASES = [(preset, table) for preset in ("plus", "novelty") for table in TABLES]


def fitted(preset, table):
    """Return the detector of a case."""
    more = {"calibration_fraction": 0.25} if table == "orders" else {}
    return getattr(RGLD, preset)(random_state=0, **more).fit(TABLES[table][0]())


def results(detector, table):
    """Return what a detector says of the new rows, as arrays by name."""
    rows = TABLES[table][1]()
    parts = detector.branch_scores(rows)._asdict().items()
    found = {"score": detector.anomaly_score(rows), **{name: part for name, part in parts if part is not None}}
    if len(detector.model_.calibration):
        found["p_value"] = detector.p_values(rows)
    return found


def main():
    arrays = {}
    for preset, table in CASES:
        detector = fitted(preset, table)
        if table == "orders":
            detector.save(FOLDER / f"{preset}.rgld")
        arrays |= {f"{preset}.{table}.{name}": part for name, part in results(detector, table).items()}
    np.savez_compressed(FOLDER / "results.npz", **arrays)


if __name__ == "__main__":
    main()
