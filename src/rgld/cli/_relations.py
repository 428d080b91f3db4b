"""Relations in the results of commands: on the terminal, in JSON and in tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from ._terminal import printable

if TYPE_CHECKING:
    from rgld import Explanation
    from rgld._detector import Detector

MAX_PRINTED = 5
"""Relations that `rgld score` prints."""
MAX_INFO_RELATIONS = 40
"""Relations that `rgld info` prints."""


def broken_as_dicts(explanation: Explanation, row: int) -> list[dict[str, Any]]:
    """Return the relations that a row breaks, the most surprising first, for JSON."""
    return [
        {
            "words": broken.words,
            "relation": broken.relation.words,
            "kind": broken.relation.kind,
            "column": broken.column,
            "partners": list(broken.partners),
            "value": broken.value,
            "expected": broken.expected,
            "evidence": broken.evidence,
        }
        for broken in explanation.broken_relations(row)
    ]


def relations_as_dicts(detector: Detector) -> list[dict[str, Any]]:
    """Return the relations of a model, the strongest first, for JSON."""
    return [
        {
            "words": relation.words,
            "kind": relation.kind,
            "columns": list(relation.columns),
            "strength": relation.strength,
            "rows": relation.n_rows,
            "broken": relation.n_broken,
        }
        for relation in detector.relations_
    ]


def print_relations(detector: Detector, file: TextIO, most: int = MAX_PRINTED) -> None:
    """Print the strongest relations between columns, each with how many training rows break it."""
    relations = detector.relations_
    if not relations:
        return
    print(f"{len(relations):,} relation{'s' * (len(relations) > 1)} between columns (docs/relations.md)", file=file)
    for relation in relations[:most]:
        rows = "row breaks" if relation.n_broken == 1 else "rows break"
        # The words of the other kinds say it already.
        broken = f"; {relation.n_broken:,} {rows} it" if relation.n_broken and relation.kind == "number" else ""
        print(f"  {printable(relation.words)}{broken}", file=file)
    if len(relations) > most:
        print(f"  and {len(relations) - most:,} more", file=file)
