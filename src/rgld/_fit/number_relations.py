"""Numbers that follow from others: which partners, which weights.

In: the cells of a sample. Out: relations of numbers. Two passes are made, on the numbers as they are (sums and
differences) and on their logarithms (products). In each:

1. The covariance C of all numbers and of the frequent values, over the inner rows: without those that fit the others
   least, by the residuals (P (x - mean))_j / P_jj with P = (C + ridge)^-1, which are those of every column given all
   others.
2. For every column that the others explain, partners one by one, each the one that explains most of what is left.
3. Weights by least squares, without the rows that are farthest from the weights that the covariance gives; whole
   numbers where they do as well.

These three look at the rows that decide (`deciding.py`). How near rows are is measured on all of them (`residuals.py`).
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .. import _kernels
from .._arrays import Bools, Float32s, Float64s, Floats, Indices
from .._kernels.relations import MAX_LOG_FACTOR, Cells, beside_product, in_unit
from .._model.relations import LOGARITHMS, MAX_TERMS, PRODUCT, SUM, UNLISTED
from .candidates import Candidate, evenly_spaced
from .conditions import Scaled, under_conditions
from .curves import MIN_CURVE_ROWS, Correlations, curves
from .deciding import Deciding, n_true
from .residuals import (
    MAX_SPREAD,
    MIN_NOISY_ROWS,
    NEAR_FRACTION,
    PROBE_SLACK,
    PROBED_EVERY,
    Measured,
    distance,
    distances_in_order,
    in_order,
    measured,
    middle,
    shuffled,
    sizes,
    with_limits,
)

MIN_SOLVED_ROWS, MIN_ROWS_PER_TERM = 50, 10
"""A relation needs at least `MIN_SOLVED_ROWS` rows without missing values, and `MIN_ROWS_PER_TERM` more per partner."""
MIN_GAIN = 0.1
"""A partner must explain this fraction of the variance that the partners before it leave open."""
MIN_TERM = 0.05
"""A term that varies by less than this fraction of what is left open is left out."""
RIDGE, INNER_RIDGE = 1e-9, 1e-4
"""Added to the variances, which are about 1: `INNER_RIDGE` in the fit that only decides which rows to leave out,
`RIDGE` in the last one."""
INNER_FRACTION = 0.95
"""Fraction of the rows that remain each time the rows that fit worst are left out."""
MIN_VALUE_ROWS, MIN_VALUE_FRACTION, MAX_COLUMN_VALUES = 20, 0.01, 8
"""A value of a category can be a partner if it occurs in at least `MIN_VALUE_ROWS` rows and this fraction of all rows.
Of each column, the `MAX_COLUMN_VALUES` most frequent values are tried."""
MAX_LEVEL_VALUES = 64
"""Values of numbers with levels that are tried, of all such columns together: they are numbers already."""
MEDIAN_ROWS = 512
"""Rows, evenly spaced, whose median stands for that of all rows where only the rows to leave out are decided."""
MAX_EXACT_PROBE = 0.05
"""Where only exact relations are kept, the rows that are looked at first keep within this fraction of the column's
spread."""
MAX_ROUGH = 1e15
"""Where only the rows to leave out are decided, farther values count as this: their squares stay finite as float32."""
MIN_POSITIVE = 0.9
"""A column has logarithms if this fraction of its numbers is above 0."""
MAX_CURVE_DIGITS = 1.5
"""Two columns that are nearer to a sum or a product need no curve."""
MAX_LINEAR = 32
"""Relations without a condition that are kept."""
MAX_EXACT_OPEN = 0.1
"""An exact relation leaves less open than this fraction of a column's standard deviation, by the covariance."""
MAX_NOISY = 4
"""Columns that their partners explain, but not precisely, whose weights are fitted in each pass, the best explained
first: bounds the time for tables in which everything correlates with everything."""
DIGITS = 10
"""Significant digits of weights and constants: fewer than rounding, which may differ between processors, can change."""
MAX_FACTORS = 3
"""Numbers in a product: logarithms of more fit by chance, and no one would name it."""
MIN_POWER_PRECISION = 2.0
"""Of a product with powers that are not whole, in decimal digits."""
WHOLE_WITHIN = 0.02
"""A weight that is this near to a whole number may be one."""
WHOLE_LIKELY, MIN_LIKELY_PRECISION = 0.1, 1.5
"""The same of a power, and the decimal digits from which a column counts as precisely explained, as the covariance
shows them: rougher than the fit."""


Kind = TypeVar("Kind", Float32s, Float64s)


class Feature(NamedTuple):
    """A column of numbers or a value, over the rows that decide."""

    column: int
    code: int
    """`UNLISTED` for numbers."""
    scaled: Float64s
    """Centered and scaled; 0 where missing."""
    missing: Bools | None
    scale: float
    near: float = 1.0
    """The distance that 90 % of the rows keep, scaled: 1, or 0 if most rows have one number, ..."""
    far: float = 1.0
    """... and 99 %."""

    @property
    def is_number(self) -> bool:
        """Whether it is a number, not a value."""
        return self.code == UNLISTED


def varying(cells: Cells, columns: Sequence[int]) -> list[int]:
    """Return the columns that have at least two different numbers, and enough of them."""
    return [j for j in columns if _varies(cells, j)]


def _varies(cells: Cells, j: int) -> bool:
    low, high = cells.range_of(j)
    if np.isnan(low):
        numbers = cells.numbers(j)
        present = numbers[~np.isnan(numbers)]
        return len(present) >= MIN_SOLVED_ROWS and bool(present.min() < present.max())
    return len(cells) >= MIN_SOLVED_ROWS and low < high


def most_correlated(cells: Cells, columns: Sequence[int], n: int, n_rows: int) -> list[int]:
    """Return the n columns whose ranks have the strongest correlation to another column's, over evenly spaced rows."""
    some = evenly_spaced(len(cells), n_rows)
    numbers = np.array([cells.numbers(j)[some] for j in columns])
    differing = np.flatnonzero(numbers.min(axis=1) != numbers.max(axis=1))  # in these rows; also for NaN
    ranks = _ranks(numbers[differing])
    ranks -= (len(some) - 1) / 2.0  # halves of whole numbers: float32 is exact in any order of summation
    correlation = np.abs(ranks @ ranks.T)
    np.fill_diagonal(correlation, 0.0)
    strongest = np.zeros(len(columns), np.float32)
    strongest[differing] = correlation.max(axis=1, initial=0.0)
    best = np.argsort(-strongest, kind="stable")[:n]
    return sorted(columns[int(i)] for i in best)


def _ranks(numbers: Float64s) -> Float32s:
    """Return the place of each number in the order of its column, shape (d, n); equal ones stay in the order of the
    rows."""
    every = np.arange(numbers.shape[1], dtype=np.float32)
    is_low, is_high = (numbers == own(axis=1, keepdims=True) for own in (numbers.min, numbers.max))
    before = np.cumsum(is_low, axis=1, dtype=np.float32)
    ranks = before[:, -1:] + every
    ranks -= before
    before -= 1.0
    np.copyto(ranks, before, where=is_low)  # of flags, which need no sorting
    others = np.flatnonzero(~(is_low ^ is_high).all(axis=1))
    ranks[others[:, None], in_order(numbers[others])] = every
    return ranks


def candidates(cells: Cells, deciding: Deciding, values: Sequence[int]) -> tuple[list[Candidate], list[Candidate]]:
    """Return the relations of numbers, and the curves, with limits that allow for how many there are."""
    numbers, some = deciding.columns.tolist(), deciding.rows
    if not numbers or len(numbers) + len(values) < 2:
        return [], []
    of_values = list(_values(cells, values, some))
    found: list[Measured] = []
    correlations = Correlations(deciding.columns, np.zeros((len(numbers), len(numbers))))
    as_is, logarithms = (_numbers(cells, deciding, is_log) for is_log in (False, True))
    for is_log, features in ((False, as_is), (True, logarithms)):
        if features:
            found += _linear(cells, [*features, *of_values], is_log, correlations)
    found = sorted(_one_of_each(found), key=lambda one: -one.precision)[:MAX_LINEAR]
    of_one = {(one.relation["target"], one.relation["partner"][0]) for one in found if one.precision > MAX_CURVE_DIGITS}
    correlations.leave_out(of_one)
    scaled = {own.column: Scaled(own.scaled, own.scale) for own in as_is if own.near > 0.0}
    found += [*under_conditions(cells, numbers, values, some, scaled), *curves(cells, correlations)]
    limited = with_limits(found, len(cells))
    return [one for one in limited if "knot" not in one.relation], [one for one in limited if "knot" in one.relation]


def _numbers(cells: Cells, deciding: Deciding, is_log: bool) -> list[Feature]:
    """Return the columns as features. Those of which the same places are used are scaled together."""
    columns, _, numbers, ordered, stops = deciding
    starts = n_true(lambda own: own <= 0.0, ordered, ordered[:, 0]) if is_log else np.zeros_like(stops)
    is_span = columns >= len(cells.encoding.columns)  # as it is, it is the difference of two columns, and says nothing
    has_unit = np.array([cells.kind(j) not in ("time", "boolean") for j in columns]) if is_log else ~is_span
    least = np.maximum(MIN_SOLVED_ROWS, MIN_POSITIVE * stops) if is_log else MIN_SOLVED_ROWS
    found: dict[int, Feature] = {}
    groups: dict[tuple[int, int], list[int]] = {}
    for place in np.flatnonzero(has_unit & (stops - starts >= least)).tolist():
        groups.setdefault((int(starts[place]), int(stops[place])), []).append(place)
    for (start, stop), places in groups.items():
        is_whole = stop - start == numbers.shape[1]
        unit = in_unit(numbers[places], is_log)
        center, near, far = distances_in_order(ordered[:, start:stop], places, is_log)
        scale, mostly_one = near.copy(), np.flatnonzero(near <= 0.0)
        if len(mostly_one):
            scale[mostly_one] = np.nanstd(unit[mostly_one], axis=1)
        unit -= center[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # of columns that are left out
            unit /= scale[:, None]
        missing = None if is_whole else np.isnan(unit)
        if missing is not None:
            unit[missing] = 0.0
        for i, place in enumerate(places):
            if 1e-150 < scale[i] < 1e150:
                own = None if missing is None else missing[i]
                near_i, far_i, scale_i = float(near[i]), float(far[i]), float(scale[i])
                found[place] = Feature(
                    int(columns[place]), UNLISTED, unit[i], own, scale_i, near_i / scale_i, far_i / scale_i
                )
    return [found[place] for place in sorted(found)]


def _values(cells: Cells, values: Sequence[int], some: Indices) -> Iterator[Feature]:
    # A flag is a number already, and whether a number is given says nothing of others.
    with_levels = {j for j in values if cells.kind(j) != "category" and len(cells.levels.get(j, ())) > 2}
    of_levels = min(MAX_COLUMN_VALUES, max(1, MAX_LEVEL_VALUES // max(1, len(with_levels))))
    for j in values:
        if j not in with_levels and cells.kind(j) != "category":
            continue
        codes = cells.codes(j)[some]
        count = np.bincount(codes[codes >= 0], minlength=1)
        frequent = np.flatnonzero(count >= max(MIN_VALUE_ROWS, MIN_VALUE_FRACTION * len(codes)))
        most = of_levels if j in with_levels else MAX_COLUMN_VALUES
        chosen = np.sort(frequent[np.argsort(-count[frequent], kind="stable")[:most]])
        scaled = (codes == chosen[:, None]) - (count[chosen] / len(codes))[:, None]
        for code, own in zip(chosen.tolist(), scaled, strict=True):
            yield Feature(j, code, own, None, 1.0)


def _linear(
    cells: Cells,
    features: list[Feature],
    is_log: bool,
    correlations: Correlations,
) -> Iterator[Measured]:
    """Yield the relations of one pass, and note how columns of numbers correlate."""
    matrix = np.array([feature.scaled for feature in features])
    is_number = np.array([feature.is_number for feature in features])
    covariance = _inner_covariance(matrix, is_number)
    spread = np.sqrt(np.diag(covariance))
    if len(cells) >= MIN_CURVE_ROWS:
        can_curve = [
            place
            for place, own in enumerate(features)
            if own.is_number and cells.kind(own.column) in ("number", "duration") and own.column not in cells.levels
        ]
        correlations.note([features[place].column for place in can_curve], covariance[np.ix_(can_curve, can_curve)])
    numbers = np.flatnonzero(is_number)
    precision = np.diag(_precision(covariance, is_number, RIDGE)[:, numbers])
    open_part = 1.0 / (np.sqrt(np.maximum(precision, 1e-300)) * np.maximum(spread[numbers], 1e-150))
    # Few rows show no tail, so that only what is exact is kept.
    most_open = MAX_SPREAD if len(cells) >= MIN_NOISY_ROWS else MAX_EXACT_OPEN
    targets = numbers[(spread[numbers] > 1e-6) & (open_part < most_open)]
    explained: list[tuple[float, int, list[int]]] = []
    for i, partners, left_open in _partners(covariance, targets, np.array([own.column for own in features])):
        # A column of few numbers that only values of others explain is left to the relations of values.
        if any(features[p].is_number or features[i].column not in cells.levels for p in partners) and (
            not is_log or _may_be_product(covariance, features, i, partners, left_open)
        ):
            explained.append((round(left_open, 6), i, partners))
    explained.sort()
    n_precise = sum(left_open <= 10.0**-MIN_LIKELY_PRECISION for left_open, _, _ in explained)
    for _, i, partners in explained[: n_precise + MAX_NOISY]:
        weights = _weights(covariance, i, partners)
        one = _fitted(cells, features[i], [features[p] for p in partners], weights, is_log)
        if one is not None:
            yield one


def _may_be_product(
    covariance: Float64s, features: list[Feature], target: int, partners: list[int], left_open: float
) -> bool:
    """Tell, by the covariance alone, whether few numbers explain a column as a product that would be kept."""
    if sum(features[p].is_number for p in partners) > MAX_FACTORS:
        return False
    if left_open <= 10.0**-MIN_LIKELY_PRECISION:
        return True
    powers = [
        float(w) * features[target].scale / features[p].scale
        for w, p in zip(_weights(covariance, target, partners), partners, strict=True)
        if features[p].is_number
    ]
    return all(abs(power - round(power)) < WHOLE_LIKELY for power in powers)


def _weights(covariance: Float64s, target: int, partners: list[int]) -> Float64s:
    """Return the weights with which the partners explain the target, by the covariance."""
    own = covariance[partners][:, partners]
    own.flat[:: len(partners) + 1] += RIDGE
    return np.linalg.solve(own, covariance[partners, target]).astype(np.float64, copy=False)


def _inner_covariance(matrix: Float64s, is_number: Bools) -> Float64s:
    """Return the covariance over the rows that fit the others."""
    numbers = matrix[: np.count_nonzero(is_number)]  # they come first
    farthest = np.maximum(numbers.max(axis=0), -numbers.min(axis=0))
    kept = _inner(farthest)
    rough = matrix if farthest.max() <= MAX_ROUGH else np.clip(matrix, -MAX_ROUGH, MAX_ROUGH)
    rough = rough.astype(np.float32)  # precise enough to tell which rows to leave out
    precision = _precision(_covariance(rough, kept).astype(np.float64), is_number, INNER_RIDGE)
    weights = precision / np.sqrt(np.diag(precision[:, is_number]))[:, None]
    residuals = weights.astype(np.float32) @ rough
    some = residuals[:, :: max(1, residuals.shape[1] // MEDIAN_ROWS)]
    residuals -= np.sort(some, axis=1)[:, (some.shape[1] - 1) // 2, None]
    return _covariance(matrix, kept & _inner(np.maximum(residuals.max(axis=0), -residuals.min(axis=0))))


def _precision(covariance: Float64s, is_number: Bools, ridge: float) -> Float64s:
    """Return the rows of (covariance + ridge)^-1 that belong to numbers: half of the time of the whole inverse."""
    every = np.eye(len(covariance))
    return np.linalg.solve(covariance + ridge * every, every[:, is_number]).T.astype(np.float64)


def _inner(distances: Floats) -> Bools:
    inner: Bools = distances <= distance(distances, INNER_FRACTION)
    return inner


def _covariance(matrix: Kind, rows: Bools) -> Kind:
    centered = matrix.take(np.flatnonzero(rows), axis=1)  # (a mask takes ten times as long)
    centered -= centered.mean(axis=1, keepdims=True)
    covariance: Kind = centered @ centered.T
    covariance /= max(1, centered.shape[1])
    return covariance


class Explained(NamedTuple):
    """A column that others explain."""

    target: int
    partners: list[int]
    """The one that explains most first."""
    left_open: float
    """The fraction of its standard deviation that they leave open."""


def _partners(covariance: Float64s, targets: Indices, columns: Indices) -> list[Explained]:
    """Return the partners of these features. `columns` are those of all features."""
    chosen, left_open = _kernels.find_partners(covariance, targets, columns, MAX_TERMS, MIN_GAIN)
    return [
        Explained(target, [p for p in own if p >= 0], rest)
        for target, own, rest in zip(targets.tolist(), chosen.tolist(), left_open.tolist(), strict=True)
    ]


def _fitted(cells: Cells, target: Feature, partners: list[Feature], weights: Float64s, is_log: bool) -> Measured | None:
    """Return the relation with weights by least squares, if it is a strong one. `weights` are those by the covariance:
    they tell which rows fit least, unless cells are missing or a partner is mostly one value."""
    # Of a partner that is mostly one value, the covariance may have seen too few other rows.
    is_seen = all(own.near > 0.0 and own.is_number for own in partners)
    start: Float64s | None = weights if is_seen else None
    most_probed = PROBE_SLACK * MAX_SPREAD if len(cells) >= MIN_NOISY_ROWS else MAX_EXACT_PROBE
    while True:  # terms that hardly vary are left out, and the others fitted again
        present = _present([target, *partners])
        if not partners or len(present) < MIN_SOLVED_ROWS + MIN_ROWS_PER_TERM * len(partners):
            return None
        is_whole = len(present) == len(target.scaled)
        y, *others = (own.scaled if is_whole else own.scaled[present] for own in (target, *partners))
        x = np.array(others)
        if start is None or not is_whole:
            start = _solved(y, x)
        elif not _keeps_near(y[::PROBED_EVERY] - start @ x[:, ::PROBED_EVERY], most_probed * target.near):
            return None
        rest = y - start @ x
        rest -= middle(rest)
        inner = np.flatnonzero(_inner(np.abs(rest, out=rest)))
        solution = _solved(y[inner], x.take(inner, axis=1))
        rest = y - solution @ x
        near = distance(rest, NEAR_FRACTION, middle(rest))
        if near > MAX_SPREAD * target.near:
            return None
        least = MIN_TERM * max(near, 1e-6 * target.near)
        kept = [own for own, weight in zip(partners, solution.tolist(), strict=True) if abs(weight) * own.far > least]
        if len(kept) == len(partners):
            break
        partners, start = kept, None
    raw = [float(w) * target.scale / partner.scale for w, partner in zip(solution, partners, strict=True)]
    return _related(cells, target, partners, raw, target.near * target.scale, is_log)


def _keeps_near(rest: Float64s, most: float) -> bool:
    return distance(rest, NEAR_FRACTION, middle(rest)) <= most


def _present(features: list[Feature]) -> Indices:
    missing = [feature.missing for feature in features if feature.missing is not None]
    n = len(features[0].scaled)
    return np.flatnonzero(~np.logical_or.reduce(missing)) if missing else np.arange(n)


def _solved(y: Float64s, x: Float64s) -> Float64s:
    """Return the weights by least squares, beside a constant."""
    centered = x - x.mean(axis=1, keepdims=True)
    gram = centered @ centered.T
    gram.flat[:: len(gram) + 1] += RIDGE * 1e-3
    return np.linalg.solve(gram, centered @ y).astype(np.float64)


def _related(
    cells: Cells, target: Feature, partners: list[Feature], weights: list[float], spread: float, is_log: bool
) -> Measured | None:
    """Return the relation with how near all rows are."""
    values = in_unit(cells.numbers(target.column), is_log)
    terms = [
        in_unit(cells.numbers(own.column), is_log) if own.is_number else (cells.codes(own.column) == own.code) * 1.0
        for own in partners
    ]
    rows = np.flatnonzero(~np.isnan(values + sum(terms)))
    if len(rows) < len(values):
        values, terms = values[rows], [term[rows] for term in terms]
    weights, constant, rest = _rounded(values, terms, weights, [own.is_number for own in partners])
    relation: dict[str, Any] = {
        "target": target.column,
        "form": LOGARITHMS if is_log else SUM,
        "when": -1,
        "when_code": -1,
        "partner": _padded([own.column for own in partners], -1),
        "partner_code": _padded([own.code for own in partners], UNLISTED),
        "weight": _padded(weights, 0.0),
        "constant": constant,
    }
    # As if the column were independent of its partners: each row has the value of another.
    unrelated = rest - values + values[shuffled(len(values))]
    found = measured(relation, sizes(values), rest, unrelated, rows, spread)
    return _of_products(cells, target.column, found, rest, unrelated, rows, relation) if is_log else found


def _of_products(
    cells: Cells,
    column: int,
    found: Measured | None,
    rest: Float64s,
    unrelated: Float64s,
    rows: Indices,
    relation: dict[str, Any],
) -> Measured | None:
    """Return the more precise of a product's two forms: rounding is as large for small numbers as for large ones, other
    differences grow with the numbers. A power that is not whole makes no product, unless it leaves nothing open."""
    values = cells.numbers(column)[rows]
    spread = distance(values, NEAR_FRACTION, middle(values))
    # If the column were independent, each row would have the value of another beside its own product.
    product = values * np.exp(np.clip(-rest, -MAX_LOG_FACTOR, MAX_LOG_FACTOR))
    other = product * np.exp(np.clip(unrelated, -MAX_LOG_FACTOR, MAX_LOG_FACTOR)) - product
    as_is = measured({**relation, "form": PRODUCT}, sizes(values), beside_product(values, rest), other, rows, spread)
    forms = [one for one in (found, as_is) if one is not None]
    powers = [w for w, code in zip(relation["weight"], relation["partner_code"], strict=True) if code == UNLISTED]
    n_factors = sum(
        j >= 0 and code == UNLISTED for j, code in zip(relation["partner"], relation["partner_code"], strict=True)
    )
    if n_factors > MAX_FACTORS:
        return None
    if not all(power == round(power) for power in powers):
        forms = [one for one in forms if one.precision >= MIN_POWER_PRECISION]
    return max(forms, key=lambda one: one.precision, default=None)


def _padded(elements: Sequence[float], filler: float) -> list[float]:
    return [*elements, *([filler] * (MAX_TERMS - len(elements)))]


def _rounded(
    values: Float64s, terms: list[Float64s], weights: list[float], is_number: list[bool]
) -> tuple[list[float], float, Float64s]:
    """Return weights, constant and what they leave open: with whole weights if these leave hardly more."""

    def rest_of(chosen: list[float]) -> tuple[float, Float64s]:
        rest = values.copy()
        for weight, term in zip(chosen, terms, strict=True):
            rest -= weight * term
        constant = float(f"{middle(rest):.{DIGITS}g}")
        return constant, rest - constant

    weights = [float(f"{weight:.{DIGITS}g}") for weight in weights]
    whole = [
        float(round(w)) if number and round(w) and abs(w - round(w)) < WHOLE_WITHIN else w
        for w, number in zip(weights, is_number, strict=True)
    ]
    constant, rest = rest_of(weights)
    if whole != weights:
        other, other_rest = rest_of(whole)
        if distance(other_rest, NEAR_FRACTION) <= 1.05 * distance(rest, NEAR_FRACTION):
            weights, constant, rest = whole, other, other_rest
    if constant and abs(constant) <= 0.1 * distance(rest, NEAR_FRACTION):
        rest, constant = rest + constant, 0.0
    return weights, constant, rest


def _one_of_each(found: list[Measured]) -> list[Measured]:
    """Return one relation of several that relate the same columns: total = fare + tip is tip = total - fare. Of those
    that are about as precise, a sum without a minus sign is preferred."""

    def order(one: Measured) -> tuple[float, bool, float]:
        weights = [weight for weight in one.relation["weight"] if weight]
        return -round(one.precision), any(weight < 0 for weight in weights), -one.precision

    best: dict[frozenset[int], Measured] = {}
    for one in sorted(found, key=order):
        named = frozenset({one.relation["target"], *(j for j in one.relation["partner"] if j >= 0)})
        best.setdefault(named, one)
    return list(best.values())
