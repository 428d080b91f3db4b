"""The slow twin of what `RGLD.plus()` and `RGLD.novelty()` add to the paper: trimming, whitening, leverage views.

Written for reading, with plain lists wherever that is short. Random draws are given.
"""

import math

import numpy as np

from . import paper


def inner_rows(scores, trim):
    """Indices of the rows that stay: the ceil((1 - trim) n) lowest, at least 2, and rows that tie with the last."""
    n_inner = min(len(scores), max(2, math.ceil((1.0 - trim) * len(scores))))
    bound = sorted(scores)[n_inner - 1]
    return [i for i, score in enumerate(scores) if score <= bound]


def quantiles(ordered, n_quantiles):
    """So many evenly spaced quantiles; all values, to the bit, if there are as many."""
    places = [divmod(q * (len(ordered) - 1), n_quantiles - 1) for q in range(n_quantiles)]
    above = [*ordered, ordered[-1]]
    return [ordered[i] + part / (n_quantiles - 1) * (above[i + 1] - ordered[i]) for i, part in places]


def scale_table(kinds, every, inner, rows, n_quantiles):
    """Rows in all scalings side by side. Centre and spread come from the inner rows, quantiles from all rows; a column
    that is constant among the inner rows is scaled by all rows."""
    scaled = []
    for kind in kinds:
        for j in range(len(every[0])):
            column, own, values = ([row[j] for row in table] for table in (every, inner, rows))
            if kind == "quantile":
                own = quantiles(sorted(column), n_quantiles)
            elif max(own) == min(own):
                own = column
            scaled.append(paper.scale_column(kind, own, values))
    return [list(row) for row in zip(*scaled, strict=True)]


def whitened(projection, rows, features, ridge):
    """The projection R with R^T x made uncorrelated: R U diag((ridge / (e + ridge))^1/2), where U diag(e) U^T is the
    covariance of the projected rows, divided by the mean variance."""
    z = np.array([paper.project(row, features, projection) for row in rows])
    deviation = z - z.mean(axis=0)
    covariance = deviation.T @ deviation / len(z)
    n_dims = sum(any(column) for column in zip(*projection, strict=True))  # narrow views are padded with zeros
    variance = np.trace(covariance) / n_dims
    if variance <= 0:
        return projection
    eigenvalues, vectors = np.linalg.eigh(covariance / variance)
    return (np.array(projection) @ vectors @ np.diag(np.sqrt(ridge / (eigenvalues.clip(0) + ridge)))).tolist()


def leverage_view(train, inner, rows, view, pairs, ridge):
    """View scores of the training rows and of new rows: (phi - m)^T (C + ridge)^-1 (phi - m)."""
    z = [paper.project(x, view["features"], view["projection"]) for x in train + rows]
    h = paper.base_bandwidth(z[: len(train)], pairs)
    linear = 0.3 * math.sqrt(2 * len(z[0])) / h
    phi = [
        [linear * z_c for z_c in row]
        + [
            math.cos(sum(w * z_c for w, z_c in zip(frequency, row, strict=True)) / h + phase)
            for frequency, phase in zip(view["frequencies"], view["phases"], strict=True)
        ]
        for row in z
    ]
    phi = np.array(phi)
    deviation = phi - phi[inner].mean(axis=0)
    covariance = deviation[inner].T @ deviation[inner] / len(inner)
    solved = np.linalg.solve(covariance + ridge * np.eye(len(covariance)), deviation.T).T
    scores = (deviation * solved).sum(axis=1).tolist()
    return scores[: len(train)], scores[len(train) :]


def scores(every, drawn, rows, kinds, first_pass, local_views, leverage_views, settings):
    """Return the inner rows' indices, view scores, and final scores of training rows and new rows.

    `drawn` are the indices of the training rows that everything but the scaling is learned from (`max_training_rows`):
    in what is returned, these are the training rows, and an inner row's index is its place among them. Of every column,
    as many quantiles are known as there are drawn rows.

    `first_pass` is a list of local views, or empty without trimming; `local_views` and `leverage_views` are functions
    of the inner rows that return the draws: (views, rows for whitening) and (views, pairs).
    """
    n_neighbors, trim, ridge, local_weight = settings
    train = [every[i] for i in drawn]
    inner = of_global = list(range(len(train)))
    if first_pass:
        scaled = paper.scale_table(kinds, train, train)
        views = [paper.local_view(scaled, [], view, 3) for view in first_pass]
        smallest = [paper.smallest_distance(scaled, view) for view in first_pass]
        order = paper.standard_agg(views, smallest)[0]
        inner, of_global = inner_rows(order, trim), inner_rows(order, trim / 2)  # global views leave out half as many
    scaled_by = [train[i] for i in inner] if first_pass else every
    scaled_train, scaled_rows = (scale_table(kinds, every, scaled_by, table, len(train)) for table in (train, rows))
    views, for_whitening = local_views(inner)
    for view in views:
        if view["ridge"]:
            some = [scaled_train[i] for i in for_whitening]
            view["projection"] = whitened(view["projection"], some, view["features"], view["ridge"])
    local = [paper.local_view(scaled_train, scaled_rows, view, n_neighbors) for view in views]
    smallest = [paper.smallest_distance(scaled_train, view) for view in views]
    local_scores = paper.standard_agg(local, smallest)
    views, pairs = leverage_views(of_global)
    leverage = [leverage_view(scaled_train, of_global, scaled_rows, view, pairs, ridge) for view in views]
    leverage_scores = paper.standard_agg(leverage, [1e-12] * len(views))
    both = [
        [local_weight * a + (1.0 - local_weight) * b for a, b in zip(own, other, strict=True)]
        for own, other in zip(local_scores, leverage_scores, strict=True)
    ]
    return {"inner": inner, "local_views": local, "leverage_views": leverage, "train": both[0], "new": both[1]}
