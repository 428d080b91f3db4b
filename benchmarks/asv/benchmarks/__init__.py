"""Benchmarks of asv: a dozen, each of a thing that users wait for. See docs/history.md."""
