"""The two sentences that most reports have, for tests that look for them: a changed sentence changes few files."""


def same(runs: int = 2) -> str:
    """What is said of runs that match."""
    return f"{'both' if runs == 2 else f'all {runs:,}'} runs are bit-identical"


def different(runs: int = 2, results: int = 2) -> str:
    """What is said of runs that differ."""
    return f"{runs:,} runs gave {results:,} different results"
