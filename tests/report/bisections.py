"""Bisections for the golden reports: one that found two flags, one that nothing mends."""

from detaudit.model import (
    Alternative,
    Bisection,
    Confidence,
    Difference,
    Divergence,
    Failing,
    Group,
    Needed,
    NextStep,
    RankRecord,
    Recipe,
    Run,
    Source,
    Stage,
    Status,
    Verdict,
    Verified,
    Without,
)


def a_trial(number: int, flags: tuple[str, ...], total: float, stage: Stage | None = None, runs: int = 2) -> Group:
    """Return a trial whose last run differs at step 1 where a stage is given."""
    differs = Difference(rank=0, step=1, stage=stage) if stage else None
    rank = RankRecord(rank=0, framework="torch", steps=9, sum_of_weights=total, final_loss=0.1, digest="abcdef0123")
    done = [Run(id=n, status=Status.OK, exit_code=0, wall_s=3.25, steps=9, ranks=(rank,)) for n in range(1, runs)]
    last = Run(id=runs, status=Status.OK, exit_code=0, wall_s=3.25, steps=9, ranks=(rank,), differs=differs)
    cause = "the updated weights differ: a backward kernel, the optimizer, or a race on shared memory"
    return Group(
        recipe=Recipe(name=f"trial-{number}", seed=0, flags=flags),
        verdict=Verdict.NONDETERMINISTIC if stage else Verdict.DETERMINISTIC,
        distinct=2 if stage else 1,
        confidence=None,
        runs=(*done, last),
        divergence=Divergence(runs=(1, runs), rank=0, step=1, stage=stage, site=None, cause=cause) if stage else None,
        sources=(Source(file="train.py", line=7, what="random.seed() with a seed that follows the clock"),),
    )


FAILED = Group(
    recipe=Recipe(name="trial-2", seed=0, flags=("torch-deterministic-algorithms",)),
    verdict=Verdict.INCONCLUSIVE,
    distinct=0,
    confidence=None,
    runs=(Run(id=1, status=Status.FAILED, exit_code=1, wall_s=2.0, steps=0, stderr_tail=("RuntimeError: no",)),),
    divergence=None,
)

BISECTIONS = {
    "mended": Bisection(
        schema_version=1,
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
        outcome="mended",
        needed=(
            Needed(
                flag="numpy-default-rng",
                title="Give unseeded default_rng() and its kin repeatable entropy",
                without=Without(trial="trial-5", runs=(1, 2), rank=0, step=1, stage="batch"),
                cost=1.01,
                in_script="np.random.default_rng(0)",
                where="after import numpy.random",
            ),
            Needed(
                flag="openmp-one-thread",
                title="One OpenMP thread in each operation on the CPU",
                without=Without(trial="trial-3", runs=(1, 2), rank=0, step=1, stage="update"),
                cost=1.8,
                goes_with=("mkl-dynamic-off",),
                instead=(
                    Alternative(flag="torch-one-thread", title="One thread", matching=5, cost=1.7),
                    Alternative(flag="torch-deterministic-warn", title="Warn"),
                ),
                in_script="OMP_NUM_THREADS=1 python train.py",
                where="before Python starts",
            ),
        ),
        not_needed=("python-hash-seed",),
        failing=(Failing(flag="torch-deterministic-algorithms", message="RuntimeError: no"),),
        not_applicable={"tensorflow-seed": "tensorflow was not imported", "jax-prng": "jax was not imported"},
        verified=Verified(
            runs=17, confidence=Confidence(level=0.95, max_deviation_rate=0.171), rate=0.25, overlooked=0.01
        ),
        launches=25,
        recipe_file=".detaudit/x/detaudit-recipe.yaml",
        next_steps=(NextStep(command="detaudit run train.py --recipe x", why="audit it with the recipe"),),
    ),
    "not-mended": Bisection(
        schema_version=1,
        command=("detaudit", "bisect", "train.py"),
        environment={},
        verdict=Verdict.NONDETERMINISTIC,
        groups=(a_trial(1, (), 1.5, Stage.UPDATE), a_trial(2, ("torch-seed",), 1.25, Stage.UPDATE)),
        outcome="not-mended",
        needed=None,
        not_needed=(),
        failing=(),
        not_applicable={},
        verified=None,
        launches=4,
    ),
}
