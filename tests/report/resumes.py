"""Reports on trainings that were stopped and resumed."""

from typing import Any

from msgspec.structs import replace

from detaudit.model import SCHEMA_VERSION, Difference, RankRecord, Resumption, Stage, Verdict
from detaudit.model.problems import Failed
from detaudit.model.resume import Checkpoint, Lost, LostKind, Place, Restored, ResumedPoint, ResumeStatus
from tests.report.fixes import FIXES

RANK = RankRecord(rank=0, framework="torch", steps=32, sum_of_weights=1.5, final_loss=0.25, digest="a" * 32)
OTHER = RankRecord(rank=0, framework="torch", steps=16, sum_of_weights=1.25, final_loss=0.5, digest="b" * 32)
CHECKPOINT = Checkpoint(path="last.pt", by="torch", names=("model", "epoch"), file="train.py", line=19)
LOST = (
    Lost(what=LostKind.GENERATOR, step=17, names=("torch",), total=1, like=1, missing=("last.pt",)),
    Lost(what=LostKind.OPTIMIZER, step=17, names=("exp_avg of 0.weight", "step of 0.weight"), total=8,
         present=("last.pt",)),
    Lost(what=LostKind.LEARNING_RATE, step=17, names=("lr",), total=1, uninterrupted="0.005", resumed="0.01"),
    Lost(what=LostKind.COUNTER, step=17, uninterrupted="16 steps", resumed="32 steps"),
    Lost(what=LostKind.DATA_ORDER, step=17, like=1),
    Lost(what=LostKind.STATE, step=18),
)  # fmt: skip


def a_point(place: Place, status: ResumeStatus, **changes: Any) -> ResumedPoint:
    fields: dict[str, Any] = {
        "stopped_after": 17,
        "steps": 32,
        "resumed_after": 16,
        "resumed_steps": 16,
        "uninterrupted": (RANK,),
        "resumed": (RANK,),
    }
    return ResumedPoint(place=place, status=status, **{**fields, **changes})


def a_resumption(verdict: Verdict, *points: ResumedPoint, **changes: Any) -> Resumption:
    fields: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "command": ("detaudit", "resume", "train.py", "--resume", "train.py --resume"),
        "environment": {"python": "3.11.7"},
        "verdict": verdict,
        "groups": FIXES["fix-proven"].groups,
        "resume": ("train.py", "--resume"),
        "points": points,
        "total_runs": 2 + 2 * len(points),
    }
    return Resumption(**{**fields, **changes})


DIFFERS = a_point(
    Place.BETWEEN,
    ResumeStatus.DIFFERS,
    resumed=(OTHER,),
    first_difference=Difference(rank=0, step=17, stage=Stage.RNG),
    lost=LOST,
    checkpoints=(CHECKPOINT,),
)
BEFORE = a_point(
    Place.BEFORE,
    ResumeStatus.UNUSABLE,
    stopped_after=1,
    resumed_after=None,
    resumed_steps=0,
    errors=(Failed(exit_code=1),),
)
ANEW = a_point(Place.BEFORE, ResumeStatus.ANEW, stopped_after=1, resumed_after=0, resumed_steps=32)
MATCHES = a_point(Place.AT, ResumeStatus.MATCHES, stopped_after=16)
WHEN_STOPPED = a_point(Place.WHEN_STOPPED, ResumeStatus.MATCHES, stopped_after=16)
BY_ITSELF = a_point(Place.BY_ITSELF, ResumeStatus.DIFFERS, resumed=(OTHER,))
TOO_LATE = a_point(Place.BETWEEN, ResumeStatus.UNUSABLE, too_late=True, resumed_after=None)

RESTORED = Restored(
    what=(LostKind.OPTIMIZER,),
    diff="""\
--- a/train.py
+++ b/train.py
@@ -20,2 +20,3 @@
     model.load_state_dict(saved["model"])
+    optimizer.load_state_dict(saved["optimizer"])
 while step < 20:
""",
    stops=1,
    matching=1,
)
PARTLY = replace(RESTORED, stops=2, first_difference=Difference(rank=0, step=18, stage=Stage.UPDATE))

RESUMPTIONS = {
    "resume-differs": a_resumption(Verdict.NONDETERMINISTIC, DIFFERS, MATCHES, BEFORE),
    "resume-restored": a_resumption(Verdict.NONDETERMINISTIC, DIFFERS, BEFORE, restored=RESTORED),
    "resume-restored-partly": a_resumption(Verdict.NONDETERMINISTIC, DIFFERS, BY_ITSELF, restored=PARTLY),
    "resume-matches": a_resumption(Verdict.DETERMINISTIC, MATCHES, ANEW),
    "resume-by-itself": a_resumption(Verdict.NONDETERMINISTIC, BY_ITSELF, stop=("train.py", "--epochs", "2")),
    "resume-when-stopped": a_resumption(Verdict.DETERMINISTIC, WHEN_STOPPED),
    "resume-anew": a_resumption(Verdict.INCONCLUSIVE, ANEW),
    "resume-too-late": a_resumption(Verdict.INCONCLUSIVE, TOO_LATE),
    "resume-nothing": a_resumption(Verdict.INCONCLUSIVE),
}
