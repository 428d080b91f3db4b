"""Presets: the settings of a detector, and the named configurations.

In: keywords. Out: an object that carries every parameter as an attribute of the same name, unchecked: scikit-learn asks
for that, and `fit` checks.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "fast": {"n_global_views": 20, "n_local_views": 5, "n_random_features": 5, "n_references": 200},
    "plus": {
        "n_global_views": 6,
        "n_local_views": 48,
        "n_random_features": 20,
        "bandwidth_multipliers": (1.0, 2.0),
        "n_references": 50,
        "n_neighbors": 5,
        "feature_fraction": (1.0, 0.3, 1.0, 1.0),
        "max_features": 48,
        "projection": "orthogonal",
        "preprocessing": ("arcsinh", "arcsinh-standard", "quantile"),
        "aggregation": "standard",
        "global_score": "leverage",
        "ridge": 0.02,
        "whitening": (0.0, 0.0, 0.0, 0.1),
        "trim": 0.4,
        "max_training_rows": 2048,
        "relations": True,
        "local_weight": 0.67,
    },
    "novelty": {
        "n_global_views": 6,
        "n_local_views": 18,
        "n_random_features": 30,
        "bandwidth_multipliers": (0.5, 1.0),
        "n_references": 1000,
        "n_neighbors": 1,
        "feature_fraction": (1.0, 0.3),
        "max_features": 64,
        "projection": "orthogonal",
        "preprocessing": ("arcsinh", "arcsinh-standard", "quantile"),
        "aggregation": "standard",
        "global_score": "leverage",
        "ridge": 0.001,
        "whitening": 0.01,
        "relations": True,
        "local_weight": 0.75,
    },
}
"""For each named configuration, the parameters that differ from the paper's."""


class Configured:
    """The parameters of a detector with the paper's values as defaults, and the presets."""

    def __init__(
        self,
        *,
        n_global_views: int = 40,
        n_local_views: int = 10,
        n_random_features: int = 10,
        bandwidth_multipliers: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0),
        n_bandwidth_pairs: int = 8192,
        n_references: int = 400,
        n_neighbors: int = 10,
        feature_fraction: float | tuple[float, ...] = 0.3,
        min_features: int = 3,
        max_features: int | None = None,
        projection_dim: int | str = "auto",
        projection: str = "gaussian",
        preprocessing: str | tuple[str, ...] = "auto",
        aggregation: str = "rank",
        global_score: str = "support",
        ridge: float = 0.02,
        whitening: float | tuple[float, ...] = 0.0,
        trim: float = 0.0,
        max_training_rows: int | None = None,
        relations: bool = False,
        local_weight: float = 0.5,
        columns: Mapping[str, str] | None = None,
        na_values: Mapping[str, Sequence[str | float]] | Sequence[str | float] | None = None,
        calibration_fraction: float = 0.0,
        contamination: float | str = "auto",
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_global_views = n_global_views
        self.n_local_views = n_local_views
        self.n_random_features = n_random_features
        self.bandwidth_multipliers = bandwidth_multipliers
        self.n_bandwidth_pairs = n_bandwidth_pairs
        self.n_references = n_references
        self.n_neighbors = n_neighbors
        self.feature_fraction = feature_fraction
        self.min_features = min_features
        self.max_features = max_features
        self.projection_dim = projection_dim
        self.projection = projection
        self.preprocessing = preprocessing
        self.aggregation = aggregation
        self.global_score = global_score
        self.ridge = ridge
        self.whitening = whitening
        self.trim = trim
        self.max_training_rows = max_training_rows
        self.relations = relations
        self.local_weight = local_weight
        self.columns = columns
        self.na_values = na_values
        self.calibration_fraction = calibration_fraction
        self.contamination = contamination
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def fast(cls, **parameters: Any) -> Self:
        """Return the paper's RGLD-Fast: half the views, random features and references. Keywords overrule its settings.

        >>> from rgld import RGLD
        >>> RGLD.fast(random_state=0)
        RGLD(n_global_views=20, n_local_views=5, n_random_features=5, n_references=200,
             random_state=0)
        """
        return cls(**{**PRESETS["fast"], **parameters})

    @classmethod
    def plus(cls, **parameters: Any) -> Self:
        """Return the most accurate configuration, see docs/plus.md. Keywords overrule its settings.

        It does not learn from the training rows that look most anomalous to a first, cheap pass, and it has many local
        views in three scalings, a few leverage views in place of the paper's global views, and relations. Views are
        learned from at most 2,048 rows.

        >>> from rgld import RGLD
        >>> RGLD.plus(random_state=0).n_local_views
        48
        """
        return cls(**{**PRESETS["plus"], **parameters})

    @classmethod
    def novelty(cls, **parameters: Any) -> Self:
        """Return the configuration for training tables without anomalies. Keywords overrule its settings.

        It trusts every training row: a row is anomalous if it is far from the nearest of a thousand references. With
        1 or 2 % of anomalies among the training rows, `plus` is as good or better, see docs/plus.md.

        >>> from rgld import RGLD
        >>> RGLD.novelty(random_state=0).n_references
        1000
        """
        return cls(**{**PRESETS["novelty"], **parameters})
