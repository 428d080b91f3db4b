"""Model files and stream files, forged: with a checksum that fits, so that what lies behind it is reached."""

import json
import warnings
from datetime import datetime, timedelta

import numpy as np
import pandas as pd

from rgld import RGLD, RGLDError, load

from ..cli.command import rgld
from .mutations import changed_bytes, forged_model
from .targets import Target, require_sentence

NUMBERS = [0.0, 1.5, -2.0, None, 1e300, -1e-300, 7.0, 1e6]
TIMES = [datetime(2024, 1, 1), None, datetime(1, 1, 1), datetime(2262, 1, 1), datetime(9999, 12, 31)]
SPANS = [timedelta(0), None, timedelta(days=-1), timedelta(days=10_000), timedelta(microseconds=1)]
N_ROWS = 8


class Models(Target):
    """Files that `rgld.load` reads: refused in a sentence, or a detector whose scores are in (0, 1)."""

    name = "models"

    def make(self, rng):
        content = self.pick(rng)
        return changed_bytes(rng, content) if rng.random() < 0.05 else forged_model(rng, content)

    def check(self, content, folder):
        path = folder / "model.rgld"
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)  # of NumPy: a number overflowed
            return self.loaded(path)

    def loaded(self, path):
        try:
            detector = load(path)
        except (RGLDError, OSError) as error:
            require_sentence(error)
            return "refused"
        table = table_for(detector)
        try:
            self.use(detector, table)
        except RGLDError as error:
            require_sentence(error)
            return "loaded"  # but it wants a table that is not this one
        _require_same_after_saving(detector, table, path.with_name("again.rgld"))
        code, shown, error = rgld("info", path)
        assert code == 0 and not error and "\x1b" not in shown
        return "scored"

    def use(self, detector, table):
        """Let the detector do all it can."""
        _require_scores(detector.anomaly_score(table))
        assert set(detector.predict(table)) <= {-1, 1}
        explanation = detector.explain(table)
        assert np.all(np.isfinite(explanation.contributions)) and np.all(explanation.contributions >= 0)
        for i in range(N_ROWS):
            assert all(isinstance(reason, str) for reason in explanation.reasons(i))
        for relation in detector.relations_:
            assert str(relation).strip()
        if len(detector.model_.calibration):
            p_values = detector.p_values(table)
            assert np.all((p_values > 0) & (p_values <= 1))
        _require_check(detector.check(table))


class Streams(Models):
    """Files of streams: a loaded detector also goes on learning."""

    name = "streams"

    def use(self, detector, table):
        super().use(detector, table)
        detector.partial_fit(table, half_life=detector._stream and detector._stream.half_life)
        super().use(detector, table)


def table_for(detector: RGLD):
    """Return rows that the detector can score, of the kinds of column that it says it has."""
    if not hasattr(detector, "feature_names_in_"):
        return np.resize(np.array(NUMBERS, dtype=float), (N_ROWS, detector.n_features_in_))
    columns = [_cells(column, j) for j, column in enumerate(detector.columns_)]
    frame = pd.concat([pd.Series(cells, dtype=object) for cells in columns], axis=1)
    frame.columns = [str(name) for name in detector.feature_names_in_]
    return frame


def _cells(column, j):
    """Return cells for a column, in another order for each."""
    if column.kind == "time":
        cells = TIMES
    elif column.kind == "duration":
        cells = SPANS
    elif column.kind == "category":
        cells = [*column.values[:3], None, "never seen"]
    else:
        cells = NUMBERS
    return [cells[(i + j) % len(cells)] for i in range(N_ROWS)]


def _require_check(found) -> None:
    """What a check of the table says is said in finite numbers and in sentences."""
    json.dumps(found.as_dict(), allow_nan=False)
    for text in (*found.reasons, *found.notes):
        require_sentence(text)


def _require_scores(scores) -> None:
    assert np.all((scores > 0) & (scores < 1)), f"scores not in (0, 1): {scores[~((scores > 0) & (scores < 1))][:3]}"


def _require_same_after_saving(detector, table, path):
    """What was loaded can be saved, and the new file gives the same scores."""
    detector.save(path)
    np.testing.assert_array_equal(load(path).anomaly_score(table), detector.anomaly_score(table))
