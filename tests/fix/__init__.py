"""Tests of detaudit/fix."""
