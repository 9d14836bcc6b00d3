"""What a number of runs proves: one mismatch is proof, matching runs are evidence."""

from collections.abc import Iterable

from detaudit.auditor.judge.confidence import RAREST, miss_probability
from detaudit.model import Confidence, Evidence, Verdict

LEVEL = 0.95


def confidence(matching: int, level: float = LEVEL) -> Confidence | None:
    """Return what ``matching`` runs prove, None for fewer than two.

    If a run differs from the first with probability p, n - 1 of them all match it with probability (1 - p)**(n - 1);
    at confidence c that bounds p by 1 - (1 - c)**(1 / (n - 1)).
    """
    if matching < 2:
        return None
    return Confidence(level=level, max_differing_rate=1 - (1 - level) ** (1 / (matching - 1)))


def evidence(matching: int, through: int | None = None, whole: int | None = None) -> Evidence:
    """Return what an answer rests on that this number of matching runs confirms.

    They match ``through`` a step and ``whole`` of them to their ends, or all to their ends if both are None.
    """
    return Evidence(
        runs=matching,
        confidence=confidence(matching),
        assumed_rate=RAREST,
        miss_probability=miss_probability(matching, RAREST),
        through=through,
        whole=whole,
        whole_confidence=None if whole is None else confidence(whole),
    )


def of_runs(finished: int, planned: int, distinct: int) -> Verdict:
    """Return the verdict on a group: two different results are proof, whatever else failed."""
    if distinct > 1:
        return Verdict.NONDETERMINISTIC
    if finished >= 2 and finished == planned:
        return Verdict.DETERMINISTIC
    return Verdict.INCONCLUSIVE


def of_groups(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on an audit: the worst verdict of its groups."""
    found = set(verdicts)
    order = (Verdict.NONDETERMINISTIC, Verdict.INCONCLUSIVE, Verdict.DETERMINISTIC)
    return next((verdict for verdict in order if verdict in found), Verdict.INCONCLUSIVE)
