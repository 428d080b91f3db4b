"""The study: the paper's evaluation, runnable on its datasets, on synthetic ones and on a table of one's own.

    datasets   the 47 datasets: what they are, where they lie, how to fetch them; a user's own table
    synthetic  the paper's generators
    protocol   resampling, split, scaling, measures
    detectors  one small file per detector
    runner     every (dataset, detector, seed) in a process of its own; one JSON line per run
    tables     pure functions of the lines: tables
    figures    pure functions of the lines: figures
    pages      the results page, made of both

A benchmark entry is a *detector*: an object with `fit(X)` and `decision_function(X)`, higher is more anomalous.
"""
