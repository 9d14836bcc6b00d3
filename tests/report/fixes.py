"""Fixes for the golden reports: proven, applied, in need of a variable, with a rest, nothing to fix."""

from typing import Any

from detaudit.model import (
    SCHEMA_VERSION,
    AppliedRecipe,
    Confidence,
    Difference,
    Divergence,
    Explanation,
    Fix,
    Group,
    Hunk,
    LikelyCause,
    NextStep,
    Purpose,
    RankRecord,
    Refusal,
    Refused,
    Run,
    Stage,
    Status,
    Variable,
    Verdict,
)
from tests.report.traces import ORDER

RNG, BATCH = (Difference(rank=0, step=1, stage=stage) for stage in (Stage.RNG, Stage.BATCH))
HUNKS = (
    Hunk(
        file="train.py",
        line=4,
        old=(),
        new=("", "torch.manual_seed(0)"),
        flag="torch-seed",
        rule="global-generators",
        without=RNG,
    ),
    Hunk(
        file="data.py",
        line=7,
        old=("    names = list(set(names))",),
        new=("    names = sorted(set(names))",),
        rule="set-order",
        without=BATCH,
    ),
)
DIFF = """--- a/data.py
+++ b/data.py
@@ -7 +7 @@
-    names = list(set(names))
+    names = sorted(set(names))
--- a/train.py
+++ b/train.py
@@ -3,0 +4,2 @@
+
+torch.manual_seed(0)
"""
REFUSED = (
    Refused(file="data.py", line=9, new=("rng = np.random.default_rng(0)",), why=Refusal.REPEATS_BATCHES),
    Refused(file="", line=0, new=("OMP_NUM_THREADS=1",), why=Refusal.NO_EFFECT, flag="openmp-one-thread"),
    Refused(file="train.py", line=1, new=("torch.use_deterministic_algorithms(True)",), why=Refusal.FAILS),
    Refused(file="model.py", line=2, new=("x = torch.zeros(3)",), why=Refusal.NOT_LOADED),
)


def _run(number: int, first: Difference | None = None) -> Run:
    rank = RankRecord(rank=0, framework="torch", steps=9, sum_of_weights=1.5, final_loss=0.25, digest="ab12" * 4)
    return Run(id=number, status=Status.OK, exit_code=0, wall_s=3.25, steps=9, ranks=(rank,), first_difference=first)


def _group(first: Difference | None = None) -> Group:
    divergence = (
        Divergence(
            runs=(1, 2),
            rank=first.rank,
            step=first.step,
            stage=first.stage,
            explanation=Explanation(matching=(Stage.RNG,), likely=(LikelyCause.DATA_PIPELINE,)),
        )
        if first is not None
        else None
    )
    return Group(
        recipe=AppliedRecipe(name="none", seed=0, flags=()),
        verdict=Verdict.NONDETERMINISTIC if first is not None else Verdict.DETERMINISTIC,
        distinct_results=2 if first is not None else 1,
        confidence=None if first is not None else Confidence(level=0.95, max_differing_rate=0.95),
        runs=(_run(1), _run(2, first)),
        first_difference=divergence,
        stages=(Stage.RNG, Stage.BATCH, Stage.UPDATE),
    )


def _fix(first: Difference | None = None, **changes: Any) -> Fix:
    fields: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "command": ("detaudit", "fix", "train.py"),
        "environment": {"python": "3.11.7"},
        "verdict": Verdict.NONDETERMINISTIC if first is not None else Verdict.DETERMINISTIC,
        "groups": (_group(first),),
        "hunks": (),
        "variables": (),
        "refused": (),
        "diff": "",
        "culprit": None,
        "narrowed_to": None,
        "rounds": 3,
        "total_runs": 23,
    }
    return Fix(**{**fields, **changes})


APPLY = NextStep(command="git apply .detaudit/20261121-145042-24652d70/fix.diff", purpose=Purpose.APPLY_FIX)
UNDO = NextStep(command="git apply .detaudit/20261121-145042-24652d70/undo.diff", purpose=Purpose.UNDO_FIX)
HASH_SEED = Variable(name="PYTHONHASHSEED", value="0", flag="python-hash-seed", without=BATCH)

FIXES = {
    "fix-proven": _fix(hunks=HUNKS, diff=DIFF, refused=REFUSED, next_steps=(APPLY,)),
    "fix-applied": _fix(hunks=HUNKS[:1], diff=DIFF, applied=True, next_steps=(UNDO,)),
    "fix-by-variable": _fix(variables=(HASH_SEED,), verdict=Verdict.NONDETERMINISTIC),
    "fix-partly": _fix(BATCH, hunks=HUNKS[:1], diff=DIFF, culprit=ORDER),
    "fix-nothing-helps": _fix(BATCH, refused=REFUSED),
    "fix-nothing-to-do": _fix(),
    "fix-interrupted": _fix(groups=(), interrupted=True, verdict=Verdict.INCONCLUSIVE),
}
