"""Measure what detaudit costs: ``python -m benchmarks`` prints one table, and writes docs/lab/benchmarks.md."""
