"""Representations trained so that distances to random rows separate outliers from other rows."""

from typing import Any

from ._deepod import NEEDS as NEEDS

NAME = "REPEN"
GROUP = "deep"


def make(seed: int, **settings: Any) -> Any:
    """Return DeepOD's detector with its defaults. Its sampler fails on NumPy 2, so it is replaced: the same draws, all
    at once."""
    from ._deepod import DeepOD, import_tabular

    module: Any = import_tabular("repen")
    if not issubclass(module.REPENLoader, _TripletSampler):
        module.REPENLoader = type("REPENLoader", (_TripletSampler, module.REPENLoader), {})
    return DeepOD("repen", "REPEN", seed, settings)


class _TripletSampler:
    """Draws triplets (inlier, another inlier, outlier): inliers with low initial scores, outliers with high ones."""

    X: Any
    batch_size: int
    init_scores: Any
    inlier_ids: Any
    outlier_ids: Any

    def triplet_batch_generation(self, prior_knowledge: Any = None) -> tuple[Any, Any, Any]:
        import numpy as np

        # DeepOD seeds NumPy's global generator and draws from it.
        draw = np.random.choice
        scores = np.asarray(self.init_scores).ravel()
        inlier_weights = scores[self.inlier_ids].sum() - scores[self.inlier_ids]
        outlier_weights = scores[self.outlier_ids]
        n, size = len(self.inlier_ids), self.batch_size
        example = draw(n, size, p=inlier_weights / inlier_weights.sum())
        positive = (example + 1 + draw(n - 1, size)) % n
        negative = draw(len(outlier_weights), size, p=outlier_weights / outlier_weights.sum())
        return self.X[self.inlier_ids[example]], self.X[self.inlier_ids[positive]], self.X[self.outlier_ids[negative]]
