"""Find the line and the operation where two runs diverge."""
