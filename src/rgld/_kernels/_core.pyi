# The compiled core, from core/bindings.cpp.
from .._arrays import Float32s, Float64s, Floats, Int32s, Int64s, UInt8s

Knots = tuple[Float64s, Float64s]

def instruction_set() -> str: ...
def fused_rate(n_rounds: int) -> float: ...
def column_statistics(X: Floats, n_quantiles: int, largest: float, n_threads: int) -> tuple[Float64s, Float64s]: ...
def count_pairs(codes: UInt8s, sizes: list[int], n_threads: int) -> Int32s: ...
def column_knots(X: Floats, places: Int64s, n_threads: int) -> tuple[Float64s, Int64s]: ...

class Scaling:
    def __init__(
        self,
        kinds: list[str],
        center: Float64s,
        scale: Float64s,
        shift: Float64s,
        unit: Float64s,
        quantiles: Float64s,
        largest_value: float,
    ) -> None: ...

class Rows:
    def __init__(self, X: Floats, scaling: Scaling, keep: bool, n_threads: int) -> None: ...
    @property
    def n_columns(self) -> int: ...
    def take(self, indices: Int64s) -> Float32s: ...
    def moments(self, n_threads: int) -> tuple[Float64s, Float64s]: ...

class Ranks:
    def __init__(
        self,
        view_knots: list[Knots],
        standards: Float32s,
        branch_knots: Knots | None,
        bounds: tuple[float, float],
        n_rows: float,
        smallest_range: float,
    ) -> None: ...
    def standards(self) -> Float32s: ...
    def view_knots(self) -> list[Knots]: ...
    def branch_knots(self) -> Knots: ...
    def normalized_rank(self, view: int, scores: Float64s) -> Float64s: ...

class Branch:
    @staticmethod
    def of_global(
        n_columns: int,
        features: Int32s,
        directions: Float32s,
        multipliers: Float64s,
        cos_weights: Float32s,
        sin_weights: Float32s,
        constants: Float32s,
    ) -> Branch: ...
    @staticmethod
    def of_leverage(
        n_columns: int,
        features: Int32s,
        projection: Float32s,
        linear: Float32s,
        frequencies: Float32s,
        phases: Float32s,
        mean: Float32s,
        root: Float32s,
    ) -> Branch: ...
    @staticmethod
    def of_local(
        n_columns: int, features: Int32s, projection: Float32s, references: Float32s, n_neighbors: int
    ) -> Branch: ...
    def embedding_sums(self, rows: Rows, n_threads: int) -> tuple[Float64s, Float64s]: ...
    def leverage_sums(self, rows: Rows, indices: Int64s, n_threads: int) -> tuple[Float64s, Float64s]: ...
    def view_scores(self, rows: Rows, n_threads: int) -> Float32s: ...
    def fit_ranks(
        self,
        rows: Rows,
        exact_size: int,
        grid: Float64s,
        smallest_range: float,
        smallest: Float32s,
        smallest_scale: float,
        bounds: tuple[float, float],
        n_threads: int,
    ) -> tuple[Ranks, Float64s]: ...

class Team:
    def __init__(self, n_threads: int) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *failure: object) -> None: ...

def project_rows(rows: Rows, features: Int32s, projection: Float32s, indices: Int64s, n_threads: int) -> Float32s: ...
def pair_distances(
    rows: Rows,
    features: Int32s,
    projection: Float32s,
    indices: Int64s,
    n_pairs: int,
    smallest: float,
    n_threads: int,
) -> tuple[Float64s, Float64s]: ...
def score(rows: Rows, branches: list[tuple[Branch, Ranks]], is_ranked: bool, n_threads: int) -> list[Float64s]: ...
def count_floats(scores: Float32s, knots: Float64s, n_threads: int) -> Int64s: ...
def count_doubles(scores: Float64s, knots: Float64s, n_threads: int) -> Int64s: ...
