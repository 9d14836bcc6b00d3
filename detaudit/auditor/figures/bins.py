"""Put the steps of a long training into bins, so that a figure of a million steps has a few hundred points."""

from collections.abc import Iterable, Sequence

from detaudit.model.figures import Steps

MOST = 600
"""Bins of a figure."""

NEAR = 10
"""Steps on both sides of a mark that have a bin each."""

MOST_MARKS = 5


def bins(steps: Sequence[int], marks: Iterable[int], most: int = MOST) -> list[Steps]:
    """Return ascending steps as bins, each as its first and last step.

    No bin holds steps before and after a mark. Around the first marks each step has a bin of its own.
    """
    if len(steps) <= most:
        return [(step, step) for step in steps]
    cuts = set(marks)
    near = {step + by for step in sorted(cuts)[:MOST_MARKS] for by in range(-NEAR, NEAR + 1)}
    size = -(-len(steps) // (most - min(len(near), most // 2)))
    found: list[Steps] = []
    held = 0
    for step in steps:
        alone = step in near
        if found and 0 < held < size and not alone and step not in cuts:
            found[-1] = found[-1][0], step
            held += 1
        else:
            found.append((step, step))
            held = 0 if alone else 1
    return found
