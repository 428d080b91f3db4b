"""The candidates of the search, by name: specs of detectors, with the random state left open where there is one."""

FOUR = ("standard", "arcsinh", "arcsinh-standard", "quantile")


def _rgld(**settings: object) -> str:
    return _spec("RGLD", settings)


FIRST_EDITION: dict[str, object] = {
    "n_global_views": 0,
    "n_local_views": 64,
    "n_references": 100,
    "feature_fraction": (1.0, 0.3),
    "projection": "orthogonal",
    "preprocessing": FOUR,
    "aggregation": "standard",
}
"""`RGLD.plus()` as this search left it. Today it is the second edition, see docs/plus.md."""


def _plus(**settings: object) -> str:
    return _spec("RGLD", {**FIRST_EDITION, **settings})


def _spec(name: str, settings: dict[str, object]) -> str:
    words = "".join(f"{key}={value!r}, " for key, value in settings.items())
    return f"{name}({words}random_state={{state}})"


OTHERS = {name: name for name in ("IForest", "ADERH-script", "COPOD", "HBOS")}

VIEWS = {"n_references": 100, "n_local_views": 40}
COLUMNS = {**VIEWS, "feature_fraction": (1.0, 0.3)}
SCALINGS = {**COLUMNS, "preprocessing": FOUR}
STANDARD = {**SCALINGS, "aggregation": "standard"}
ORTHOGONAL = {**STANDARD, "projection": "orthogonal"}

PATH = {
    "RGLD": _rgld(),
    "1 smaller reference sets, more local views": _rgld(**VIEWS),
    "2 all columns beside 30 %": _rgld(**COLUMNS),
    "3 four scalings": _rgld(**SCALINGS),
    "4 standardized scores": _rgld(**STANDARD),
    "5 orthogonal projections": _rgld(**ORTHOGONAL),
    "6 the local branch alone": _rgld(**ORTHOGONAL, n_global_views=0),
    "plus": _plus(),
}
"""From the paper's settings to plus, one change after the other; plus has 64 local views in place of 40."""

ALONE = {
    "RGLD, 100 references, 40 local views": _rgld(**VIEWS),
    "RGLD, all columns beside 30 %": _rgld(feature_fraction=(1.0, 0.3)),
    "RGLD, four scalings": _rgld(preprocessing=FOUR),
    "RGLD, standardized scores": _rgld(aggregation="standard"),
    "RGLD, orthogonal projections": _rgld(projection="orthogonal"),
    "RGLD, the local branch alone": _rgld(n_global_views=0),
}
"""The paper's settings with one change."""

ONE_BACK = {
    "plus, 400 references, 16 local views": _plus(n_references=400, n_local_views=16),
    "plus, 30 % of the columns": _plus(feature_fraction=0.3),
    "plus, all columns": _plus(feature_fraction=1.0),
    "plus, scaling chosen": _plus(preprocessing="auto"),
    "plus, ranks": _plus(aggregation="rank"),
    "plus, gaussian projections": _plus(projection="gaussian"),
    "plus, global branch, weight 0.5": _plus(n_global_views=16),
    "plus, global branch, weight 0.1": _plus(n_global_views=16, local_weight=0.9),
}
"""Plus with one change taken back."""

AROUND = {
    "plus, 32 local views": _plus(n_local_views=32),
    "plus, 128 local views": _plus(n_local_views=128),
    "plus, 5 neighbours": _plus(n_neighbors=5),
    "plus, 14 neighbours": _plus(n_neighbors=14),
    "plus, without standard": _plus(preprocessing=FOUR[1:], n_local_views=66),
    "plus, without arcsinh": _plus(preprocessing=("standard", "arcsinh-standard", "quantile"), n_local_views=66),
    "plus, without arcsinh-standard": _plus(preprocessing=("standard", "arcsinh", "quantile"), n_local_views=66),
    "plus, without quantile": _plus(preprocessing=FOUR[:3], n_local_views=66),
}
"""Neighbours of plus."""

CANDIDATES = {**OTHERS, **PATH, **ALONE, **ONE_BACK, **AROUND}
