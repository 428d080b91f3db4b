"""The study: the paper's evaluation, on its datasets, on synthetic tables and on a user's own table.

    datasets   the 47 datasets: what they are, where the files are, how to fetch them; a user's own table
    synthetic  the paper's generators
    protocol   resampling, split, scaling, measures
    detectors  one small file per detector
    runner     runs every (dataset, detector, seed) in a process of its own and writes one JSON line per run
    tables     tables, as pure functions of the lines
    figures    figures, as pure functions of the lines
    labels     labels that cover no point and no other label
    pages      the results page, made of both
    oddbench   the page of the second study: ODDBench's tables under two protocols
    speed      time and memory against other detectors
    speedpage  the page about speed

A *detector* is an object with `fit(X)` and `decision_function(X)`; a higher value is more anomalous.
"""
