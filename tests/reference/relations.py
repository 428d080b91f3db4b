"""The slow twin of relations: what a row's evidence is, and how strong orders and pairs of values are, in plain loops.

A table is a list of rows; a missing cell is None. Relations are dictionaries.
"""

import math
from itertools import pairwise


def evidence(relation, row):
    """How surprising it is that a row breaks a relation; 0 if it does not."""
    broken = {"number": _number, "curve": _curve, "order": _order, "pair": _pair, "determined": _determined}[
        relation["kind"]
    ]
    return broken(relation, row)


def _number(relation, row):
    unit = (lambda x: None if x is None or x <= 0 else math.log(x)) if relation["form"] else (lambda x: x)
    if relation["when"] is not None and row[relation["when"]] != relation["when_value"]:
        return 0.0
    rest = unit(row[relation["target"]])
    if rest is None:
        return 0.0
    rest -= relation["constant"]
    for column, value, weight in relation["terms"]:
        term = unit(row[column]) if value is None else float(row[column] == value)
        if term is None:
            return 0.0
        rest -= weight * term
    if relation["form"] == 2:  # a product, compared as it is
        value = row[relation["target"]]
        rest = value - value * math.exp(min(240.0, max(-240.0, -rest)))
    beyond = (abs(rest) - relation["limit"]) / relation["decade"]
    return min(beyond, relation["strength"]) if beyond > 0 else 0.0


def _order(relation, row):
    low, high = row[relation["low"]], row[relation["high"]]
    return relation["strength"] if low is not None and high is not None and low > high else 0.0


def _pair(relation, row):
    meets = row[relation["first"]] == relation["first_value"] and row[relation["second"]] == relation["second_value"]
    return relation["strength"] if meets else 0.0


def _determined(relation, row):
    expected = relation["expected"].get(row[relation["by"]], ...)
    return relation["strength"] if expected is not ... and row[relation["column"]] != expected else 0.0


def score(found, training, n_rows):
    """1 - p of a row with this evidence, given the evidence of the training rows that break a relation."""
    if not found:
        return 0.0
    above = sum(own >= found for own in training)
    return 1.0 - (1 + above) / (n_rows + 1) / (1 + max(0.0, found - max(training, default=0.0)))


def order_strength(low, high):
    """log10(E / (k + 1)) of a <= b."""
    expected = sum(a > b for a in low for b in high) / len(high)
    return math.log10(expected / (sum(a > b for a, b in zip(low, high, strict=True)) + 1))


def pair_strength(first, a, second, b):
    """log10(E / (k + 1)) of two values."""
    expected = first.count(a) * second.count(b) / len(first)
    return math.log10(expected / (sum((x, y) == (a, b) for x, y in zip(first, second, strict=True)) + 1))


def _curve(relation, row):
    value, beside = row[relation["target"]], row[relation["partner"]]
    if value is None or beside is None:
        return 0.0
    center, below, above = (
        _interpolated(beside, relation["knot"], relation[name]) for name in ("center", "below", "above")
    )
    beyond = (abs(value - center) / (above if value >= center else below) - relation["limit"]) / relation["decade"]
    return min(beyond, relation["strength"]) if beyond > 0 else 0.0


def _interpolated(x, knots, values):
    if x <= knots[0]:
        return values[0]
    for (a, b), (left, right) in zip(pairwise(knots), pairwise(values), strict=True):
        if x <= b:
            return left + (right - left) * (x - a) / (b - a)
    return values[-1]
