"""Our own detector as the study expects it: a higher value is more anomalous."""

from typing import Any

from rgld import RGLD


class Ours:
    """RGLD or one of its presets."""

    def __init__(self, preset: str, seed: int, settings: dict[str, Any]) -> None:
        make = RGLD if preset == "RGLD" else getattr(RGLD, preset)
        self.model: RGLD = make(**{"random_state": seed, **settings})

    def fit(self, X: Any) -> "Ours":
        self.model.fit(X)
        return self

    def decision_function(self, X: Any) -> Any:
        return self.model.anomaly_score(X)

    def notes(self) -> dict[str, Any]:
        """Return what the study records in addition to the measures."""
        return {"preprocessing": self.model.preprocessing_}
