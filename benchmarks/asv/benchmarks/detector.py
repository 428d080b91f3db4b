"""Fitting, scoring, explaining; one thread, the same table each time."""

import numpy as np

from rgld import RGLD

PRESETS = {"paper": RGLD, "fast": RGLD.fast, "plus": RGLD.plus, "novelty": RGLD.novelty}
N_ROWS, N_COLUMNS = 7000, 20  # the usual training part of the study


def table(n_rows: int = N_ROWS) -> np.ndarray:
    """Return normal rows, skewed columns and a few far values: what a scaling has to deal with."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, N_COLUMNS))
    X[:, ::4] = np.exp(X[:, ::4])
    X[::100] *= 5.0
    return X


class Presets:
    """What a preset takes to fit, and to score as many rows."""

    params = (list(PRESETS),)
    param_names = ("preset",)

    def setup(self, preset):
        self.X = table()
        self.detector = PRESETS[preset](random_state=0, n_jobs=1).fit(self.X)

    def time_fit(self, preset):
        PRESETS[preset](random_state=0, n_jobs=1).fit(self.X)

    def time_score(self, preset):
        self.detector.anomaly_score(self.X)


class Rest:
    """What else a detector does."""

    def setup(self):
        self.X = table()
        self.detector = RGLD(random_state=0, n_jobs=1).fit(self.X)

    def time_explain_100_rows(self):
        self.detector.explain(self.X[:100])

    def time_score_one_row(self):
        self.detector.anomaly_score(self.X[:1])

    def time_partial_fit(self):
        RGLD(random_state=0, n_jobs=1).partial_fit(self.X)

    def peakmem_score(self):
        self.detector.anomaly_score(table(200_000))
