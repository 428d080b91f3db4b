# The compiled core, from core/bindings.cpp.
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Knots = tuple[Doubles, Doubles]

def instruction_set() -> str: ...
def fused_rate(n_rounds: int) -> float: ...
def column_statistics(
    X: NDArray[np.floating], n_quantiles: int, largest: float, n_threads: int
) -> tuple[Doubles, Doubles]: ...

class Scaling:
    def __init__(
        self,
        kinds: list[str],
        center: Doubles,
        scale: Doubles,
        shift: Doubles,
        unit: Doubles,
        quantiles: Doubles,
        largest_value: float,
    ) -> None: ...

class Rows:
    def __init__(self, X: NDArray[np.floating], scaling: Scaling, keep: bool, n_threads: int) -> None: ...
    @property
    def n_columns(self) -> int: ...
    def take(self, numbers: NDArray[np.int64]) -> Floats: ...
    def moments(self, n_threads: int) -> tuple[Doubles, Doubles]: ...

class Ranks:
    def __init__(
        self,
        knots: list[Knots],
        standards: Floats,
        bounds: tuple[float, float],
        n_rows: float,
        smallest_range: float,
    ) -> None: ...
    def standards(self) -> Floats: ...
    @property
    def n_views(self) -> int: ...
    def knots(self, view: int) -> Knots: ...
    def normalized_rank(self, view: int, scores: Doubles) -> Doubles: ...

class Branch:
    @staticmethod
    def of_global(
        n_columns: int,
        features: NDArray[np.int32],
        directions: Floats,
        multipliers: Doubles,
        cos_weights: Floats,
        sin_weights: Floats,
        constants: Floats,
    ) -> Branch: ...
    @staticmethod
    def of_local(
        n_columns: int, features: NDArray[np.int32], projection: Floats, references: Floats, n_neighbors: int
    ) -> Branch: ...
    def embedding_sums(self, rows: Rows, n_threads: int) -> tuple[Doubles, Doubles]: ...
    def view_scores(self, rows: Rows, n_threads: int) -> Floats: ...
    def fit_ranks(
        self,
        rows: Rows,
        exact_size: int,
        grid: Doubles,
        smallest_range: float,
        smallest: Floats,
        smallest_scale: float,
        bounds: tuple[float, float],
        n_threads: int,
    ) -> tuple[Ranks, Doubles]: ...

def project_rows(
    rows: Rows, features: NDArray[np.int32], projection: Floats, numbers: NDArray[np.int64], n_threads: int
) -> Floats: ...
def pair_distances(
    rows: Rows,
    features: NDArray[np.int32],
    projection: Floats,
    numbers: NDArray[np.int64],
    n_pairs: int,
    smallest: float,
    n_threads: int,
) -> tuple[Doubles, Doubles]: ...
def score(rows: Rows, branches: list[tuple[Branch, Ranks]], is_ranked: bool, n_threads: int) -> list[Doubles]: ...
def count_floats(scores: Floats, knots: Doubles, n_threads: int) -> NDArray[np.int64]: ...
def count_doubles(scores: Doubles, knots: Doubles, n_threads: int) -> NDArray[np.int64]: ...
