"""The lines of a study, in the form that tables and figures need."""

import pandas as pd

from . import tables
from .datasets import registry as dataset_registry
from .detectors import registry as detector_registry
from .lines import Line
from .specs import parse_spec

RGLD_DEFAULTS = {"n_global_views": 40, "n_local_views": 10, "n_random_features": 10}


class Study:
    """The lines of a study, in the form that tables and figures need."""

    def __init__(self, lines: list[Line]) -> None:
        self.lines = lines
        known = dataset_registry()
        published = [line for line in lines if line["protocol"] == "paper" and line["dataset"] in known]
        # If no dataset of the study was run, the user's own tables are the study.
        chosen = published or [line for line in lines if not line["dataset"].startswith("mixture(")]
        self.frame = tables.frame_of(chosen)
        measured = dict.fromkeys(line["dataset"] for line in chosen)
        self.datasets = [name for name in known if name in measured] or list(measured)
        self.datasets_44 = [name for name in self.datasets if name not in tables.OTHER_44]
        present = set(self.frame["method"])
        order = [name for name in detector_registry() if name in present]
        deep = [name for name, module in detector_registry().items() if module.GROUP == "deep"]
        self.deep = [name for name in deep if published and name in set(tables.paper_results()["method"])]
        self.methods = list(dict.fromkeys([*order, *self.deep]))
        self.cells = tables.cells(self.frame, self.methods, self.datasets, fill_from_paper=self.deep)
        self.cells_44 = tables.cells(self.frame, self.methods, self.datasets_44, fill_from_paper=self.deep)

    def errors(self) -> list[Line]:
        """Return the runs that failed."""
        return [line for line in self.lines if line.get("error")]

    def varied(self, parameter: str) -> pd.DataFrame:
        """Return the means of RGLD on the 44 datasets for each value of one parameter, over the split seeds that all
        values have."""
        runs = self.frame[self.frame["dataset"].isin(self.datasets_44)]
        values = {}
        for method in runs["method"].unique():
            spec = parse_spec(method)
            if spec.name == "RGLD" and set(spec.settings) <= {parameter}:
                values[method] = spec.settings.get(parameter, RGLD_DEFAULTS[parameter])
        runs = runs[runs["method"].isin(values)]
        seeds = set.intersection(*(set(part["seed"]) for _, part in runs.groupby("method")), set(runs["seed"]))
        runs = runs[runs["seed"].isin(seeds)]
        rows = {
            values[method]: part.groupby("dataset")[["auroc", "auprc", "seconds"]].mean().mean()
            for method, part in runs.groupby("method")
        }
        return pd.DataFrame(rows).T.sort_index()

    def scaling(self, variable: str) -> dict[str, pd.DataFrame]:
        """Return the seconds of each method by n or d, from the lines of `mixture` tables."""
        frame = tables.frame_of(line for line in self.lines if line["dataset"].startswith("mixture("))
        if frame.empty:
            return {}
        settings = frame["dataset"].map(lambda text: parse_spec(text).settings)
        frame = frame.assign(n=[s["n"] for s in settings], d=[s["d"] for s in settings])
        other = "d" if variable == "n" else "n"
        fixed = frame[frame[other] == frame.groupby(other)[variable].nunique().idxmax()]
        return {
            str(m): runs.groupby(variable)[["seconds", "auroc", "peak_memory_mb"]].mean().sort_index()
            for m, runs in fixed.groupby("method")
        }
