"""Families of causes of nondeterminism, by when they begin and how often they show; an hour of training has STEPS."""

from collections.abc import Mapping, Sequence

from tests.bisect.simulated import Cause

STEPS = 3600


def race(mean: float, step: int = 1) -> Cause:
    """Return a cause that may show at each step, after ``mean`` steps on average."""
    return Cause(step, hazard=1 / mean)


EARLY = Cause()
RARE = 0.25

FAMILIES: Mapping[str, Sequence[Cause]] = {
    "none": (),
    "(a) always, at step 1": (EARLY,),
    "(a) three, at steps 1, 2, 3": (Cause(1), Cause(2), Cause(3)),
    "(b) a race, 10 steps on average": (race(10),),
    "(b) a race, T/36": (race(STEPS / 36),),
    "(b) a race, 0.28 T": (race(0.28 * STEPS),),
    "(c) 1 run in 4, at step 1": (Cause(rate=RARE),),
    "(c) 1 run in 4, at T/20": (Cause(STEPS // 20, rate=RARE),),
    "(c) 1 run in 4, at T/16": (Cause(STEPS // 16, rate=RARE),),
    "(d) from 0.1 T": (race(10, STEPS // 10),),
    "(d) from 0.5 T": (race(10, STEPS // 2),),
    "(d) from 0.9 T": (race(10, 9 * STEPS // 10),),
    "(e) step 1, and a race, T/36": (EARLY, race(STEPS / 36)),
    "(e) step 1, and a race, 0.28 T": (EARLY, race(0.28 * STEPS)),
    "(e) step 1, and 1 run in 4 at T/120": (EARLY, Cause(STEPS // 120, rate=RARE)),
    "(e) step 1, and 1 run in 4 at T/16": (EARLY, Cause(STEPS // 16, rate=RARE)),
    "(e) step 1, and from 0.1 T": (EARLY, race(10, STEPS // 10)),
    "(e) step 1, and from 0.5 T": (EARLY, race(10, STEPS // 2)),
    "(e) step 1, a race, T/36, and from 0.1 T": (EARLY, race(STEPS / 36), race(10, STEPS // 10)),
    "(f) each set of flags has its own first step": (Cause(hazard=0.1, drifts=True),),
}
"""What the promised error rate covers. T is the length of the training."""

LATE_AND_RARE: Mapping[str, Sequence[Cause]] = {
    "(X) step 1, and 1 run in 2 at 0.5 T": (EARLY, Cause(STEPS // 2, rate=0.5)),
    "(X) step 1, and 1 run in 4 at 0.5 T": (EARLY, Cause(STEPS // 2, rate=RARE)),
    "(X) step 1, and a race in 1 whole run of 4": (EARLY, race(STEPS / 0.288)),
}
"""What two whole runs overlook."""
