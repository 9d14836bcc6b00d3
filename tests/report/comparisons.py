"""Comparisons for the golden reports: a difference in the middle, identical recordings, several ranks."""

from msgspec.structs import replace

from detaudit.model import (
    SCHEMA_VERSION,
    AppliedRecipe,
    Change,
    ComparedSide,
    Comparison,
    ComparisonVerdict,
    Confidence,
    Difference,
    Explanation,
    Group,
    LikelyCause,
    LossPair,
    NextStep,
    OutputDifference,
    OutputKind,
    Purpose,
    RankRecord,
    Run,
    Stage,
    Status,
    Verdict,
    WeightPair,
)
from detaudit.model.warnings import NoChangeLoaded, RecipesDiffer
from tests.report.facts import DOUBTS, ENVIRONMENT_PARTINGS, PARTINGS

STAGES = (Stage.INIT, Stage.RNG, Stage.BATCH, Stage.FORWARD, Stage.UPDATE)


def a_side(name: str, total: float, digest: str, *flags: str, ranks: int = 1, steps: int = 40) -> ComparedSide:
    return ComparedSide(
        name=name,
        recipe=AppliedRecipe(name="seeds" if flags else "none", seed=7, flags=flags),
        ranks=tuple(
            RankRecord(
                rank=rank,
                framework="torch",
                steps=steps,
                sum_of_weights=total + rank,
                final_loss=0.1,
                digest=f"{digest}{rank}abcdef0123",
            )
            for rank in range(ranks)
        ),
        command=("detaudit", "run", "train.py", "--", "--name", "my model"),
        environment={"python": "3.11.7", "torch": "2.13.0" if flags else "2.12.0"},
    )


def a_pair(step: int, apart: float) -> LossPair:
    return LossPair(rank=0, step=step, a=1 / step, b=1 / step + apart, distance=apart)


def a_group(*, distinct: int) -> Group:
    repeats = distinct == 1
    runs = [Run(id=n, status=Status.OK, exit_code=0, wall_s=2.0, steps=40, log_dir=f"a/runs/none/{n}") for n in (1, 2)]
    return Group(
        recipe=AppliedRecipe(name="none", seed=0, flags=()),
        verdict=Verdict.DETERMINISTIC if repeats else Verdict.NONDETERMINISTIC,
        distinct_results=distinct,
        confidence=Confidence(level=0.95, max_differing_rate=0.95) if repeats else None,
        runs=tuple(runs),
        first_difference=None,
    )


def a_commit(name: str, total: float, digest: str, *, distinct: int = 1, changed: tuple[str, ...] = ()) -> ComparedSide:
    side = a_side(name, total, digest)
    return replace(side, group=a_group(distinct=distinct), commit="0123456789abcdef", changed=changed)


_OF_COMMITS = ("detaudit", "compare", "train.py", "--against", "v1.0", "--trace")
_BEFORE = a_commit("v1.0 (0123456789)", 241.42266417505016, "a")
_AFTER = a_commit("working tree", 241.42266417504999, "b", changed=("model.py", "notes.txt"))

COMPARISONS = {
    "compared-commits": Comparison(
        schema_version=SCHEMA_VERSION,
        command=_OF_COMMITS,
        verdict=ComparisonVerdict.DIFFERENT,
        a=_BEFORE,
        b=_AFTER,
        first_difference=Difference(rank=0, step=1, stage=Stage.FORWARD),
        explanation=Explanation(matching=(Stage.RNG, Stage.BATCH), likely=(LikelyCause.CODE,)),
        losses=(a_pair(1, 1e-9), a_pair(2, 1e-8)),
        stages=STAGES,
        steps_compared=2,
        code=("model.py",),
        parting=PARTINGS[0],
        started="2026-11-21T14:50:42+00:00",
        ended="2026-11-21T14:50:59+00:00",
    ),
    "compared-environments": Comparison(
        schema_version=SCHEMA_VERSION,
        command=(
            "detaudit",
            "compare",
            "train.py",
            "--requirements",
            "old.txt",
            "--requirements",
            "new.txt",
            "--trace",
        ),
        verdict=ComparisonVerdict.DIFFERENT,
        a=replace(_BEFORE, name="old.txt", commit=""),
        b=replace(_AFTER, name="new.txt", commit="", changed=()),
        environment_changes=(Change(name="numpy", a="1.26.4", b="2.4.6"),),
        first_difference=Difference(rank=0, step=1, stage=Stage.BATCH),
        explanation=Explanation(matching=(Stage.RNG,), likely=(LikelyCause.ENVIRONMENT,)),
        losses=(a_pair(1, 1e-9), a_pair(2, 1e-8)),
        stages=STAGES,
        steps_compared=2,
        parting=ENVIRONMENT_PARTINGS[0],
    ),
    "compared-doubtful": Comparison(
        schema_version=SCHEMA_VERSION,
        command=_OF_COMMITS[:-1],
        verdict=ComparisonVerdict.INCONCLUSIVE,
        a=a_commit("v1.0 (0123456789)", 241.42266417505016, "a", distinct=2),
        b=_AFTER,
        first_difference=Difference(rank=0, step=1, stage=Stage.FORWARD),
        stages=STAGES,
        steps_compared=2,
        doubts=DOUBTS[:1],
        warnings=(NoChangeLoaded(files=("evaluate.py",)),),
        interrupted=True,
    ),
    "compared-different": Comparison(
        schema_version=SCHEMA_VERSION,
        command=("detaudit", "compare", "detaudit.lock.json#digits", "after"),
        verdict=ComparisonVerdict.DIFFERENT,
        a=a_side("detaudit.lock.json#digits", 241.42266417505016, "a"),
        b=a_side("after", 241.42266139595449, "b", "torch-seed", "numpy-seed"),
        environment_changes=(
            Change(name="OMP_NUM_THREADS", a=None, b="1"),
            Change(name="torch", a="2.12.0", b="2.13.0"),
        ),
        first_difference=Difference(rank=0, step=8, stage=Stage.UPDATE),
        last_equal_step=4,
        explanation=Explanation(gap=(4, 8)),
        losses=(
            *(a_pair(step, 0.0) for step in range(1, 9)),
            *(a_pair(step, 0.25 / step) for step in range(9, 40)),
            LossPair(rank=0, step=40, a=0.1, b="nan", distance=None),
        ),
        differing_weights=tuple(
            WeightPair(rank=0, place=place, dtype="torch.float32", shape=shape, a=1.5, b=1.25)
            for place, shape in enumerate([(4, 8), (4,), (), *[(2,)] * 9])
        ),
        weights_compared=14,
        stages=STAGES,
        steps_compared=40,
        output_differences=(
            OutputDifference(path="submission.csv", kind=OutputKind.VALUE, at="row 3, target", values=("3.41", "3.39")),
            OutputDifference(path="metrics.json", kind=OutputKind.ONLY_ONE, only_run=1),
            OutputDifference(path="blob.bin", kind=OutputKind.UNREADABLE),
            OutputDifference(path="stdout", kind=OutputKind.MEASUREMENT, at="line 7"),
        ),
        warnings=(RecipesDiffer(a="none", b="seeds"),),
        next_steps=(
            NextStep(
                command="detaudit compare detaudit.lock.json#digits after --format json",
                purpose=Purpose.PRINT_ALL_LOSSES,
            ),
        ),
    ),
    "compared-identical": Comparison(
        schema_version=SCHEMA_VERSION,
        command=("detaudit", "compare", "a", "b"),
        verdict=ComparisonVerdict.IDENTICAL,
        a=a_side("a", 241.42266417505016, "a"),
        b=a_side("b", 241.42266417505016, "a"),
        losses=(a_pair(1, 0.0), a_pair(2, 0.0)),
        weights_compared=3,
        stages=(Stage.FORWARD,),
        steps_compared=2,
    ),
    "compared-ranks": Comparison(
        schema_version=SCHEMA_VERSION,
        command=("detaudit", "compare", "a", "b"),
        verdict=ComparisonVerdict.DIFFERENT,
        a=a_side("a", 241.42266417505016, "a", ranks=2),
        b=a_side("b", 241.42266417505016, "b", ranks=2, steps=41),
        first_difference=Difference(rank=1, step=41, stage=Stage.STEPS),
        last_equal_step=40,
        losses=(a_pair(1, 0.0), a_pair(2, 0.0)),
        differing_weights=(WeightPair(rank=1, place=0, dtype="float16", shape=(2,), a="inf", b=None),),
        weights_compared=6,
        stages=STAGES,
        steps_compared=40,
    ),
}
