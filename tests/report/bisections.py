"""Bisections for the golden reports: one that found two flags, one that no flag fixes, one that failed."""

from msgspec.structs import replace

from detaudit.model import (
    SCHEMA_VERSION,
    Alternative,
    AppliedRecipe,
    Bisection,
    BisectOutcome,
    Confidence,
    Difference,
    Divergence,
    Edit,
    Evidence,
    Explanation,
    FailingFlag,
    Group,
    LeftOut,
    LikelyCause,
    NeededFlag,
    NextStep,
    Purpose,
    RankRecord,
    Run,
    Source,
    SourceKind,
    Stage,
    Status,
    Verdict,
)
from detaudit.model.problems import Failed, RunUnusable
from detaudit.model.sources import NotImported

LIKELY = {
    Stage.BATCH: Explanation(matching=(Stage.RNG,), likely=(LikelyCause.DATA_PIPELINE,)),
    Stage.BACKWARD: Explanation(matching=(Stage.BATCH, Stage.FORWARD), likely=(LikelyCause.BACKWARD_KERNEL,)),
    Stage.UPDATE: Explanation(likely=(LikelyCause.BACKWARD_KERNEL, LikelyCause.OPTIMIZER, LikelyCause.RACE)),
}
CLOCK = Source(file="train.py", line=7, kind=SourceKind.CLOCK, call="random.seed")
UNSEEDED = Source(file="train.py", line=12, kind=SourceKind.UNSEEDED, call="numpy.random.default_rng")
ITEM = Source(file="data.py", line=30, kind=SourceKind.UNSEEDED, call="numpy.random.default_rng")
SEEDED = Edit(file="train.py", line=12, old=("rng = np.random.default_rng()",), new=("rng = np.random.default_rng(0)",))


def a_divergence(stage: Stage, run: int) -> Divergence:
    return Divergence(runs=(1, run), rank=0, step=1, stage=stage, site=None, explanation=LIKELY[stage])


def a_trial(
    number: int,
    flags: tuple[str, ...],
    total: float,
    stage: Stage | None = None,
    runs: int = 2,
    confidence: Confidence | None = None,
) -> Group:
    """Return a trial whose last run differs at step 1 if a stage is given."""
    differs = Difference(rank=0, step=1, stage=stage) if stage else None
    rank = RankRecord(rank=0, framework="torch", steps=9, sum_of_weights=total, final_loss=0.1, digest="abcdef0123")
    done = [Run(id=n, status=Status.OK, exit_code=0, wall_s=3.25, steps=9, ranks=(rank,)) for n in range(1, runs)]
    last = Run(id=runs, status=Status.OK, exit_code=0, wall_s=3.25, steps=9, ranks=(rank,), first_difference=differs)
    return Group(
        recipe=AppliedRecipe(name=f"trial-{number}", seed=0, flags=flags),
        verdict=Verdict.NONDETERMINISTIC if stage else Verdict.DETERMINISTIC,
        distinct_results=2 if stage else 1,
        confidence=confidence,
        runs=(*done, last),
        first_difference=a_divergence(stage, runs) if stage else None,
        sources=(CLOCK,) if stage else (),
    )


FAILED = Group(
    recipe=AppliedRecipe(name="trial-2", seed=0, flags=("torch-deterministic-algorithms",)),
    verdict=Verdict.INCONCLUSIVE,
    distinct_results=0,
    confidence=None,
    runs=(Run(id=1, status=Status.FAILED, exit_code=1, wall_s=2.0, steps=0, stderr_tail=("RuntimeError: no",)),),
    first_difference=None,
    reason=RunUnusable(run=1, errors=(Failed(exit_code=1),)),
)

_RANK = RankRecord(rank=0, framework="torch", steps=10, sum_of_weights=None, final_loss=0.5, digest="0123456789")
_SHORT = [Run(id=n, status=Status.ENDED, exit_code=None, wall_s=9.5, steps=225, ranks=(_RANK,)) for n in range(3, 17)]

LONG = Group(
    recipe=AppliedRecipe(name="trial-2", seed=0, flags=("numpy-default-rng",)),
    verdict=Verdict.DETERMINISTIC,
    distinct_results=1,
    confidence=None,
    runs=(
        *a_trial(2, (), 1.25).runs,
        *(replace(run, through=10 if run.id == 3 else 225, step_s=0.04) for run in _SHORT),
    ),
    first_difference=None,
)
"""A trial of which two runs went to their ends and the others were ended before."""

BISECTIONS = {
    "fixed-long": Bisection(
        schema_version=SCHEMA_VERSION,
        command=("detaudit", "bisect", "train.py"),
        environment={},
        verdict=Verdict.DETERMINISTIC,
        groups=(
            a_trial(1, (), 1.5, Stage.BATCH),
            LONG,
            replace(LONG, recipe=AppliedRecipe(name="trial-3", seed=0, flags=("jax-prng",)), runs=LONG.runs[1:]),
            replace(LONG, recipe=AppliedRecipe(name="trial-4", seed=0, flags=("torch-seed",)), runs=LONG.runs[2:5]),
        ),
        outcome=BisectOutcome.FIXED,
        needed=(
            NeededFlag(
                flag="numpy-default-rng",
                title="Seed default_rng() and similar calls that pass no seed",
                left_out=LeftOut(trial="trial-1", runs=(1, 2), rank=0, step=1, stage=Stage.BATCH),
                cost=None,
                alternatives=(Alternative(flag="torch-one-thread", title="One thread", matching=5, through=225),),
                acts_on=(ITEM,),
            ),
        ),
        not_needed=(),
        failing_flags=(),
        not_applicable={},
        evidence=Evidence(
            runs=16,
            confidence=Confidence(level=0.95, max_differing_rate=0.181),
            assumed_rate=0.25,
            miss_probability=0.013,
            through=225,
            whole=2,
            whole_confidence=Confidence(level=0.95, max_differing_rate=0.95),
        ),
        total_runs=18,
    ),
    "fixed": Bisection(
        schema_version=SCHEMA_VERSION,
        command=("detaudit", "bisect", "train.py"),
        environment={},
        verdict=Verdict.DETERMINISTIC,
        groups=(
            a_trial(1, (), 1.5, Stage.BATCH),
            FAILED,
            a_trial(3, ("numpy-default-rng",), 1.25, Stage.UPDATE),
            a_trial(4, ("mkl-dynamic-off", "numpy-default-rng", "openmp-one-thread"), 1.125, runs=17),
            a_trial(5, ("openmp-one-thread",), 1.75, Stage.BATCH),
        ),
        outcome=BisectOutcome.FIXED,
        needed=(
            NeededFlag(
                flag="numpy-default-rng",
                title="Seed default_rng() and similar calls that pass no seed",
                left_out=LeftOut(trial="trial-5", runs=(1, 2), rank=0, step=1, stage=Stage.BATCH),
                cost=1.01,
                cost_range=(0.98, 1.03),
                cost_runs=(6, 6),
                acts_on=(UNSEEDED,),
            ),
            NeededFlag(
                flag="openmp-one-thread",
                title="Run CPU operations on one OpenMP thread",
                left_out=LeftOut(trial="trial-3", runs=(1, 2), rank=0, step=1, stage=Stage.UPDATE),
                cost=1.8,
                cost_range=(1.75, 1.9),
                cost_runs=(6, 6),
                requires=("mkl-dynamic-off",),
                alternatives=(
                    Alternative(
                        flag="torch-one-thread",
                        title="One thread",
                        matching=5,
                        cost=1.7,
                        cost_range=(1.62, 1.8),
                        cost_runs=(3, 3),
                    ),
                    Alternative(flag="torch-deterministic-warn", title="Warn"),
                ),
            ),
        ),
        not_needed=("python-hash-seed",),
        failing_flags=(FailingFlag(flag="torch-deterministic-algorithms", message="RuntimeError: no"),),
        not_applicable={
            "tensorflow-seed": NotImported(modules=("tensorflow",)),
            "jax-prng": NotImported(modules=("jax",)),
        },
        evidence=Evidence(
            runs=17,
            confidence=Confidence(level=0.95, max_differing_rate=0.171),
            assumed_rate=0.25,
            miss_probability=0.01,
        ),
        total_runs=25,
        recipe_file=".detaudit/x/detaudit-recipe.yaml",
        next_steps=(NextStep(command="detaudit run train.py --recipe x", purpose=Purpose.AUDIT_WITH_RECIPE),),
    ),
    "fixed-by-hand": Bisection(
        schema_version=SCHEMA_VERSION,
        command=("detaudit", "bisect", "train.py"),
        environment={},
        verdict=Verdict.DETERMINISTIC,
        groups=(
            a_trial(1, (), 1.5, Stage.BATCH),
            a_trial(2, ("tensorflow-op-determinism", "tensorflow-seed", "torch-seed"), 1.25, runs=17),
        ),
        outcome=BisectOutcome.FIXED,
        needed=(
            NeededFlag(
                flag="tensorflow-op-determinism",
                title="Enable TensorFlow op determinism",
                left_out=None,
                cost=None,
                requires=("tensorflow-seed",),
            ),
            NeededFlag(
                flag="torch-seed",
                title="Seed torch",
                left_out=None,
                cost=None,
            ),
        ),
        not_needed=(),
        failing_flags=(),
        not_applicable={},
        evidence=Evidence(
            runs=17,
            confidence=Confidence(level=0.95, max_differing_rate=0.171),
            assumed_rate=0.25,
            miss_probability=0.01,
        ),
        total_runs=19,
    ),
    "not-fixed": Bisection(
        schema_version=SCHEMA_VERSION,
        command=("detaudit", "bisect", "train.py"),
        environment={},
        verdict=Verdict.NONDETERMINISTIC,
        groups=(a_trial(1, (), 1.5, Stage.UPDATE), a_trial(2, ("torch-seed",), 1.25, Stage.UPDATE)),
        outcome=BisectOutcome.NOT_FIXED,
        needed=None,
        not_needed=(),
        failing_flags=(),
        not_applicable={},
        evidence=None,
        total_runs=4,
    ),
    "bisection-failed": Bisection(
        schema_version=SCHEMA_VERSION,
        command=("detaudit", "bisect", "train.py"),
        environment={},
        verdict=Verdict.INCONCLUSIVE,
        groups=(FAILED,),
        outcome=BisectOutcome.INCONCLUSIVE,
        needed=None,
        not_needed=(),
        failing_flags=(),
        not_applicable={},
        evidence=None,
        total_runs=1,
    ),
}
