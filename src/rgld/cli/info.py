"""`rgld info`: what a model file holds."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._options import Json
from ._relations import MAX_INFO_RELATIONS, print_relations, relations_as_dicts
from ._terminal import as_json, printable

if TYPE_CHECKING:
    from rgld._detector import Detector
    from rgld._table.encoding import Column

MAX_NAME_WIDTH = 28
"""Characters printed of a column's name."""
MAX_VALUES = 5
"""Values listed of a category column."""


def info(
    model: Annotated[str, typer.Argument(help="A model file of `rgld fit` or `RGLD.save`.")],
    json_: Json = False,
) -> None:
    """Print what a model file holds: its parameters, how it reads each column, and the relations between columns."""
    from rgld._detector import load  # not for `--help`: it takes a while to load

    detector = load(model)
    if json_:
        print(as_json(_as_dict(detector)))
        return
    fitted = detector.model_
    n_calibration = len(fitted.calibration)
    calibrated = f", p-values from {n_calibration:,} more" if n_calibration else ""
    print(f"RGLD model, fitted on {fitted.encoding.n_rows:,} rows{calibrated}")
    print(f"threshold {-detector.offset_:.4f}")
    defaults = _parameters(type(detector)())
    changed = {name: value for name, value in _parameters(detector).items() if value != defaults[name]}
    print("settings other than the paper's: " + (", ".join(f"{k}={v!r}" for k, v in changed.items()) or "none"))
    print(f"\n{'column':<{MAX_NAME_WIDTH}}  {'read as':<9}  how")
    for column in fitted.encoding.columns:
        name = printable(column.name)[:MAX_NAME_WIDTH]
        print(f"{name:<{MAX_NAME_WIDTH}}  {column.kind:<9}  {printable(_how(column))}")
    if detector.relations_:
        print()
        print_relations(detector, sys.stdout, MAX_INFO_RELATIONS)


def _as_dict(detector: "Detector") -> dict[str, Any]:
    fitted = detector.model_
    return {
        "parameters": _parameters(detector),
        "rows": fitted.encoding.n_rows,
        "calibration": len(fitted.calibration),
        "threshold": -detector.offset_,
        "relations": relations_as_dicts(detector),
        "columns": [
            {"name": c.name, "kind": c.kind, "encoded": list(c.parts), "note": c.note, "gaps": c.has_gaps}
            | ({"hint": c.hint} if c.hint else {})
            | ({"values": dict(zip(c.values, c.counts, strict=True))} if c.kind == "category" else {})
            for c in fitted.encoding.columns
        ],
    }


def _parameters(detector: "Detector") -> dict[str, Any]:
    from rgld._detector import given_parameters

    return {name: value for name, value in given_parameters(detector).items() if name != "n_jobs"}


def _how(column: "Column") -> str:
    """Return how a column is read, in words."""
    if column.kind == "dropped":
        return f"left out: {column.note}"
    if column.kind == "category":
        counts = list(zip(column.values, column.counts, strict=True))
        shown = ", ".join(f"{value or 'missing'} {count:,}" for value, count in counts[:MAX_VALUES])
        more = ", ..." if len(counts) > MAX_VALUES else ""
        how = "a column for each value, and its rarity" if len(column.parts) > 1 else "by rarity"
        return f"{len(counts):,} values ({shown}{more}); {how}"
    others = [name for name in column.parts if name != "value"]
    how = f"value, {', '.join(others)}" if others else "as it is"
    return f"{how}; {column.note}" if column.note else how
