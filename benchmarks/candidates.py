"""The candidates of the search, by name: specs of detectors, with the random state left open where there is one."""

FOUR = ("standard", "arcsinh", "arcsinh-standard", "quantile")
VIEWS = {"n_references": 100, "n_local_views": 40}


def _rgld(**settings: object) -> str:
    return _spec("RGLD", settings)


def _plus(**settings: object) -> str:
    return _spec("RGLD-plus", settings)


def _spec(name: str, settings: dict[str, object]) -> str:
    words = "".join(f"{key}={value!r}, " for key, value in settings.items())
    return f"{name}({words}random_state={{state}})"


OTHERS = {name: name for name in ("IForest", "ADERH", "ADERH-script", "COPOD", "HBOS", "ECOD", "KNN")}

PATH = {
    "RGLD": _rgld(),
    "1 smaller reference sets, more local views": _rgld(**VIEWS),
    "2 all columns beside 30 %": _rgld(**VIEWS, feature_fraction=(1.0, 0.3)),
    "3 four scalings": _rgld(**VIEWS, feature_fraction=(1.0, 0.3), preprocessing=FOUR),
    "4 standardized scores": _rgld(
        **VIEWS, feature_fraction=(1.0, 0.3), preprocessing=FOUR, aggregation="standard"
    ),
    "5 local weight 0.8": _rgld(
        **VIEWS, feature_fraction=(1.0, 0.3), preprocessing=FOUR, aggregation="standard", local_weight=0.8
    ),
    "plus": _plus(),
}
"""From the paper's settings to plus, one change after the other."""

ONE_BACK = {
    "plus, 400 references and 16 local views": _plus(n_references=400, n_local_views=16),
    "plus, 30 % of the columns": _plus(feature_fraction=0.3),
    "plus, all columns": _plus(feature_fraction=1.0),
    "plus, scaling chosen": _plus(preprocessing="auto"),
    "plus, ranks": _plus(aggregation="rank"),
    "plus, local weight 0.5": _plus(local_weight=0.5),
    "plus, no global branch": _plus(n_global_views=0),
    "plus, no local branch": _plus(n_local_views=0),
}
"""Plus with one change taken back."""

AROUND = {
    "plus, 8 global views": _plus(n_global_views=8),
    "plus, 32 global views": _plus(n_global_views=32),
    "plus, 20 random features": _plus(n_random_features=20),
    "plus, 32 local views": _plus(n_local_views=32),
    "plus, 128 local views": _plus(n_local_views=128),
    "plus, 20 neighbours": _plus(n_neighbors=20),
    "plus, 5 neighbours": _plus(n_neighbors=5),
    "plus, 50 references, 5 neighbours": _plus(n_references=50, n_neighbors=5, n_local_views=96),
    "plus, 256 references, 25 neighbours": _plus(n_references=256, n_neighbors=25, n_local_views=32),
    "plus, without arcsinh": _plus(preprocessing=("standard", "arcsinh-standard", "quantile"), n_local_views=66),
    "plus, without quantile": _plus(preprocessing=FOUR[:3], n_local_views=66),
    "plus, arcsinh-standard only": _plus(preprocessing="arcsinh-standard"),
    "plus, arcsinh only": _plus(preprocessing="arcsinh"),
    "plus, standard only": _plus(preprocessing="standard"),
    "plus, local weight 0.7": _plus(local_weight=0.7),
    "plus, local weight 0.9": _plus(local_weight=0.9),
    "plus, columns 1.0, 0.6, 0.3": _plus(feature_fraction=(1.0, 0.6, 0.3), n_local_views=60),
}
"""Neighbours of plus."""

CANDIDATES = {**OTHERS, **PATH, **ONE_BACK, **AROUND}
