"""Algorithm 1 of the paper in plain float64 loops: slow, short, and what decides which numbers are right.

Nothing is imported from the library. Everything random (features, projections, frequencies, phases, row pairs,
reference rows) is an argument, so that the library and this twin can be given the same draws.
"""

import math
from statistics import NormalDist


def quantile(ordered, share):
    """Linearly interpolated quantile of a sorted list."""
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


def scale_column(kind, column, values):
    """Scale `values` by the statistics of the training `column`."""
    n, ordered = len(column), sorted(column)
    if kind == "standard":
        center = sum(column) / n
        spread = math.sqrt(sum((x - center) ** 2 for x in column) / n)
    elif kind == "robust":
        center = quantile(ordered, 0.5)
        spread = quantile(ordered, 0.75) - quantile(ordered, 0.25) or ordered[-1] - ordered[0]
    elif kind == "arcsinh":
        center = quantile(ordered, 0.5)
        spread = (quantile(ordered, 0.75) - quantile(ordered, 0.25)) / 1.349
        spread = spread or math.sqrt(sum((x - sum(column) / n) ** 2 for x in column) / n)
        return [math.asinh((x - center) / (spread or 1.0)) for x in values]
    elif kind == "arcsinh-standard":
        inner, outer = scale_column("arcsinh", column, column), scale_column("arcsinh", column, values)
        return scale_column("standard", inner, outer)
    else:
        return [quantile_score(ordered, x) for x in values]
    return [(x - center) / (spread or 1.0) for x in values]


def quantile_score(ordered, x):
    """Normal score of x (tables of at most 1000 rows): that of the middle of its place among the sorted training
    values, on a straight line between two of them."""
    n = len(ordered)
    below = sum(v < x for v in ordered)
    equal = sum(v == x for v in ordered)
    if equal:
        level = (below + 0.5 * (equal - 1)) / (n - 1)
        return NormalDist().inv_cdf(min(max(level, 0.5 / n), 1.0 - 0.5 / n))
    if below in (0, n):
        return quantile_score(ordered, ordered[0] if below == 0 else ordered[-1])
    left, right = ordered[below - 1], ordered[below]
    low, high = quantile_score(ordered, left), quantile_score(ordered, right)
    return low + (x - left) / (right - left) * (high - low)


def scale_table(kinds, train, rows):
    """Scale the rows of a table by the training rows, column by column: all columns in each of the kinds."""
    columns = [
        scale_column(kind, [t[j] for t in train], [x[j] for x in rows]) for kind in kinds for j in range(len(train[0]))
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def project(row, features, projection):
    """z_t(x) = x[S_t] R_t."""
    return [sum(row[f] * projection[j][c] for j, f in enumerate(features)) for c in range(len(projection[0]))]


def distance(a, b):
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))


def base_bandwidth(z, pairs):
    """Median distance of the row pairs; 0 gives way to the mean positive distance, that to 1."""
    distances = sorted(distance(z[i], z[j]) for i, j in pairs)
    median = quantile(distances, 0.5)
    if median > 0:
        return median
    positive = [d for d in distances if d > 0]
    return sum(positive) / len(positive) if positive else 1.0


def random_features(z, frequencies, phases, bandwidth):
    """phi(z) = sqrt(2/D) cos(W z / sigma + b)."""
    n_features = len(frequencies)
    return [
        math.sqrt(2.0 / n_features) * math.cos(sum(w_c * z_c for w_c, z_c in zip(w, z, strict=True)) / bandwidth + b)
        for w, b in zip(frequencies, phases, strict=True)
    ]


def global_view(train, rows, view, multipliers, pairs):
    """View scores of the training rows and of new rows: mean over bandwidths of the standardized negative support."""
    z_train = [project(x, view["features"], view["projection"]) for x in train]
    z_rows = [project(x, view["features"], view["projection"]) for x in rows]
    base, n = base_bandwidth(z_train, pairs), len(train)
    scores = [0.0] * (n + len(rows))
    for multiplier in multipliers:
        phi = [random_features(z, view["frequencies"], view["phases"], multiplier * base) for z in z_train + z_rows]
        mu = [sum(p[j] for p in phi[:n]) / n for j in range(len(phi[0]))]
        support = [sum(p_j * mu_j for p_j, mu_j in zip(p, mu, strict=True)) for p in phi]
        mean = sum(support[:n]) / n
        std = math.sqrt(sum((s - mean) ** 2 for s in support[:n]) / n)
        if std > 1e-6:
            scores = [a + (mean - s) / std / len(multipliers) for a, s in zip(scores, support, strict=True)]
    return scores[:n], scores[n:]


def local_view(train, rows, view, n_neighbors):
    """View scores: root mean squared distance to the k nearest references, leaving out one exact match."""
    z_train = [project(x, view["features"], view["projection"]) for x in train]
    z_rows = [project(x, view["features"], view["projection"]) for x in rows]
    references = [z_train[i] for i in view["rows"]]
    k = min(n_neighbors, len(references) - 1)
    scores = []
    for z in z_train + z_rows:
        distances = sorted(distance(z, c) for c in references)
        if distances[0] == 0.0:
            distances = distances[1:]
        scores.append(math.sqrt(sum(d * d for d in distances[:k]) / k))
    return scores[: len(train)], scores[len(train) :]


def normalized_rank(train_scores, s):
    """Rank among the training scores: average rank for ties, straight lines between scores, a slow tail beyond them."""
    ordered, n = sorted(train_scores), len(train_scores)
    below, equal = sum(v < s for v in ordered), sum(v == s for v in ordered)
    if equal:
        return (below + 0.5 * equal) / n
    unit = ordered[-1] - ordered[0] or max(abs(ordered[0]), 1.0)
    if below == n:
        return 1.0 - 0.5 / n / (1.0 + math.log1p((s - ordered[-1]) / unit))
    if below == 0:
        return 0.5 / n / (1.0 + math.log1p((ordered[0] - s) / unit))
    left, right = ordered[below - 1], ordered[below]
    r_left, r_right = normalized_rank(train_scores, left), normalized_rank(train_scores, right)
    return r_left + (s - left) / (right - left) * (r_right - r_left)


def rank_agg(views):
    """Branch scores of training and new rows: mean rank over views, ranked again.

    `views` holds (train, new) view scores.
    """
    train_ranks = [[normalized_rank(train, s) for s in train] for train, _ in views]
    new_ranks = [[normalized_rank(train, s) for s in new] for train, new in views]
    # Rounded, so that means which are equal on paper tie here too.
    train = [round(sum(ranks) / len(views), 12) for ranks in zip(*train_ranks, strict=True)]
    new = [round(sum(ranks) / len(views), 12) for ranks in zip(*new_ranks, strict=True)]
    return [normalized_rank(train, s) for s in train], [normalized_rank(train, s) for s in new]


def standard_agg(views, smallest):
    """Branch scores of training and new rows: mean standardized score over views, within -4 and 8, ranked.

    `smallest` holds the least score of each view to take the logarithm of; None: scores are taken as they are.
    """
    train_scores, new_scores = [], []
    for (train, new), least in zip(views, smallest, strict=True):
        if least is not None:
            train, new = ([math.log(max(s, least)) for s in part] for part in (train, new))
        mean = sum(train) / len(train)
        std = max(math.sqrt(sum((s - mean) ** 2 for s in train) / len(train)), 1e-3)
        for part, scores in ((train, train_scores), (new, new_scores)):
            scores.append([min(max((s - mean) / std, -4.0), 8.0) for s in part])
    train = [round(sum(scores) / len(views), 12) for scores in zip(*train_scores, strict=True)]
    new = [round(sum(scores) / len(views), 12) for scores in zip(*new_scores, strict=True)]
    return [normalized_rank(train, s) for s in train], [normalized_rank(train, s) for s in new]


def smallest_distance(train, view):
    """A ten-thousandth of the spread of the projected references."""
    points = [project(train[i], view["features"], view["projection"]) for i in view["rows"]]
    total = 0.0
    for values in zip(*points, strict=True):
        mean = sum(values) / len(values)
        total += sum((v - mean) ** 2 for v in values) / len(values)
    return max(1e-4 * math.sqrt(total), 1e-15)


def algorithm_1(
    train, rows, kinds, global_views, local_views, pairs, multipliers, n_neighbors, local_weight=0.5, aggregation="rank"
):
    """Return view scores and final scores of the training rows and of new rows.

    Returns
    -------
    dict with "global_views" and "local_views": lists of (train, new) view scores; "train" and "new": final scores.
    """
    scaled_train, scaled_rows = scale_table(kinds, train, train), scale_table(kinds, train, rows)
    result = {
        "global_views": [global_view(scaled_train, scaled_rows, view, multipliers, pairs) for view in global_views],
        "local_views": [local_view(scaled_train, scaled_rows, view, n_neighbors) for view in local_views],
    }
    weights = {"global_views": 1.0 - local_weight, "local_views": local_weight}
    if aggregation == "rank":
        aggregated = {name: rank_agg(result[name]) for name in weights if result[name]}
    else:
        smallest = {
            "global_views": [None] * len(global_views),
            "local_views": [smallest_distance(scaled_train, view) for view in local_views],
        }
        aggregated = {name: standard_agg(result[name], smallest[name]) for name in weights if result[name]}
    branches = [(weights[name], branch) for name, branch in aggregated.items()]
    total = sum(weight for weight, _ in branches)
    for i, part in enumerate(("train", "new")):
        of_branches = [[weight / total * s for s in branch[i]] for weight, branch in branches]
        result[part] = [sum(scores) for scores in zip(*of_branches, strict=True)]
    return result
