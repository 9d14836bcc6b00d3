"""Tests of detaudit/notebooks."""
