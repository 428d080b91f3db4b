"""Drift: is a new table still like the one that a model was fitted on?

In: scores of new rows and of held-out rows; new columns and the profiles of the training columns. Out: a `Check`: a
verdict with a bounded probability of false alarm, and what changed, in words. Knows nothing of views. docs/drift.md has
the theorems.

`sequence.py` bets against the rows, one after the other; `two_samples.py` compares two samples; `columns.py` compares
column by column; `words.py` says it; `verdict.py` puts it together.
"""
