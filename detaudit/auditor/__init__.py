"""Decides: reads what the runs left behind, compares it, and says what it shows."""
