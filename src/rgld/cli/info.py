"""`rgld info`: what a model file holds, without scoring anything."""

import json
from typing import Annotated

import typer

import rgld

from . import _options as options
from ._show import printable


def info(
    model: Annotated[str, typer.Argument(help="A model file of `rgld fit` or `RGLD.save`.")],
    json_: options.Json = False,
) -> None:
    """Print what a model file holds: its parameters and how it reads each column."""
    detector = rgld.load(model)
    parts = detector.model_
    columns = [
        {"name": c.name, "kind": c.kind, "encoded": list(c.parts), "note": c.note, "gaps": c.has_gaps}
        | ({"values": dict(zip(c.values, c.counts, strict=True))} if c.kind == "category" else {})
        for c in parts.encoding.columns
    ]
    parameters = {name: value for name, value in detector.get_params().items() if name != "n_jobs"}
    if json_:
        content = {"parameters": parameters, "rows": parts.encoding.n_rows, "calibration": len(parts.calibration)}
        print(json.dumps({**content, "threshold": -detector.offset_, "columns": columns}, indent=1, default=str))
        return
    held_out = len(parts.calibration)
    print(
        f"RGLD model, fitted on {parts.encoding.n_rows:,} rows"
        + (f", p-values from {held_out:,} more" if held_out else "")
    )
    print(f"threshold {-detector.offset_:.4f}")
    defaults = type(detector)().get_params()
    changed = {name: value for name, value in parameters.items() if value != defaults[name]}
    print("settings other than the paper's: " + (", ".join(f"{k}={v!r}" for k, v in changed.items()) or "none"))
    print(f"\n{'column':<28}  {'read as':<9}  how")
    for column in parts.encoding.columns:
        print(f"{printable(column.name)[:28]:<28}  {column.kind:<9}  {printable(_how(column))}")


def _how(column: object) -> str:
    kind, note, parts = (getattr(column, name) for name in ("kind", "note", "parts"))
    if kind == "dropped":
        return f"left out: {note}"
    if kind == "category":
        values, counts = (getattr(column, name) for name in ("values", "counts"))
        shown = ", ".join(
            f"{value or 'missing'} {count:,}" for value, count in list(zip(values, counts, strict=True))[:5]
        )
        how = "a column for each value, and its rarity" if len(parts) > 1 else "by rarity"
        return f"{len(values):,} values ({shown}{', ...' if len(values) > 5 else ''}); {how}"
    words = [part for part in parts if part != "value"]
    return "; ".join(part for part in ("as it is" if not words else f"value, {', '.join(words)}", note) if part)
