"""Relations on the page: what they say, how many rows of the table break each, and which of the rows shown do."""

from typing import Any

import numpy as np

from .._arrays import Float64s, Indices
from .._explain.relations import BrokenByRow, rows_by_relation, strongest
from .._model.model import Model
from .._table.table import Table
from ._text import LONGEST_REASON, visible

MAX_LISTED_RELATIONS = 30
"""Relations on the page: those that rows of the table break, then the strongest."""


def relation_list(model: Model, table: Table, scores: Float64s | None, shown: Indices) -> dict[str, Any]:
    """Return the strongest relations, each with how many rows break it and the places of these among the rows shown;
    and how many relations and broken rows there are."""
    if model.relations is None or scores is None:
        return {"relations": [], "n_relations": 0, "n_breaking": 0}
    rows = np.flatnonzero(scores > 0.0)
    found = rows_by_relation(BrokenByRow.of(model, table.take(rows)))
    place_of = {int(row): place for place, row in enumerate(shown)}
    listed = []
    for kind, i, relation in strongest(model):
        breaking = [int(rows[k]) for k in found.get((kind, i), [])]
        places = sorted(place_of[row] for row in breaking if row in place_of)
        listed.append({"words": visible(relation.words, LONGEST_REASON), "n_rows": len(breaking), "rows": places})
    listed.sort(key=lambda own: own["n_rows"] == 0)  # stable: the strongest first among either
    return {"relations": listed[:MAX_LISTED_RELATIONS], "n_relations": len(listed), "n_breaking": len(rows)}
