"""How many matching runs prove enough."""

from detaudit.model.evidence import runs_needed


def test_runs_needed_are_the_fewest() -> None:
    assert runs_needed(1 - 0.95, 0.1) == 30
    for level in (0.8, 0.9, 0.95, 0.99):
        for rate in (0.01, 0.05, 0.1, 0.5):
            runs = runs_needed(1 - level, rate)
            assert (1 - rate) ** (runs - 1) <= 1 - level + 1e-9
            assert (1 - rate) ** (runs - 2) > 1 - level
