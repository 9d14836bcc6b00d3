"""Measure what detaudit costs: ``python -m benchmarks`` measures, prints one table, and writes docs/lab/benchmarks.md."""
