"""For the golden reports: a check with gates of every status, and bisections over variations."""

from typing import Any

import msgspec

from detaudit.model import (
    SCHEMA_VERSION,
    Audit,
    Cause,
    Change,
    Check,
    CheckedAudit,
    CheckVerdict,
    Confidence,
    Difference,
    Divergence,
    EffectExample,
    Evidence,
    Explanation,
    Gate,
    GateName,
    GateStatus,
    LikelyCause,
    LockChange,
    NextStep,
    Purpose,
    RankRecord,
    Report,
    Source,
    SourceKind,
    Stage,
    VariationBisection,
    VariationEffect,
    Varied,
    VaryOutcome,
    Verdict,
)
from detaudit.model.check import (
    DiffersFromBaseline,
    ResumeDiffers,
    RunsGaveDifferentResults,
    RunsMatch,
    RunsMustMatch,
)
from detaudit.model.sources import NoSecondLocale
from detaudit.model.warnings import BaselineNotWritten, BaselineWithoutAudit, LeftoverFilesRead
from tests.report.bisections import LIKELY, a_trial


def an_audit(script: str, stage: Stage | None) -> Audit:
    sure = Confidence(level=0.95, max_differing_rate=0.95) if stage is None else None
    group = msgspec.structs.replace(a_trial(1, (), 1.5, stage), confidence=sure)
    return Audit(
        schema_version=SCHEMA_VERSION,
        command=("detaudit", "run", script),
        environment={},
        verdict=group.verdict,
        groups=(group,),
    )


def a_rank(total: float, digest: str = "abcdef0123456789") -> RankRecord:
    return RankRecord(rank=0, framework="torch", steps=9, sum_of_weights=total, final_loss=0.1, digest=digest)


CHANGES = (Change(name="torch", a="2.12.0", b="2.13.0"), Change(name="cuda", a=None, b="12.8"))
OPTIMIZER = Explanation(matching=(Stage.BATCH, Stage.FORWARD), likely=(LikelyCause.OPTIMIZER,))
FIRST = Divergence(runs=(1, 2), rank=0, step=1, stage=Stage.UPDATE, site=None, explanation=LIKELY[Stage.UPDATE])

CHECK = Check(
    schema_version=SCHEMA_VERSION,
    command=("detaudit", "check", "--format", "junit"),
    verdict=CheckVerdict.FAILED,
    audits=(
        CheckedAudit(
            name="digits",
            audit=an_audit("examples/digits.py", None),
            gates=(
                Gate(name=GateName.REPEATABLE, status=GateStatus.PASSED, blocking=False, detail=RunsMatch(runs=2)),
                Gate(
                    name=GateName.BASELINE,
                    status=GateStatus.INCOMPARABLE,
                    blocking=False,
                    detail=DiffersFromBaseline(
                        step=8,
                        stage=Stage.UPDATE,
                        last_equal_step=4,
                        explanation=OPTIMIZER,
                        changed=("torch", "cuda"),
                    ),
                    first_difference=Difference(rank=0, step=8, stage=Stage.UPDATE),
                    environment_changes=CHANGES,
                ),
                Gate(
                    name=GateName.RESUME,
                    status=GateStatus.FAILED,
                    blocking=True,
                    detail=ResumeDiffers(
                        stopped_after=4,
                        steps=9,
                        resumed_steps=5,
                        uninterrupted=(a_rank(1.5),),
                        resumed=(a_rank(1.25),),
                    ),
                ),
            ),
        ),
        CheckedAudit(
            name="race",
            audit=an_audit("race.py", Stage.UPDATE),
            gates=(
                Gate(
                    name=GateName.REPEATABLE,
                    status=GateStatus.FAILED,
                    blocking=True,
                    detail=RunsGaveDifferentResults(runs=2, distinct_results=2, first_difference=FIRST),
                    first_difference=Difference(rank=0, step=1, stage=Stage.UPDATE),
                ),
                Gate(
                    name=GateName.BASELINE,
                    status=GateStatus.INCONCLUSIVE,
                    blocking=True,
                    detail=RunsMustMatch(),
                ),
            ),
        ),
    ),
    lock_file="detaudit.lock.json",
    lock_changes=(
        LockChange(audit="digits", old_ranks=(a_rank(1.5),), new_ranks=(a_rank(1.25, "0123456789abcdef"),)),
        LockChange(audit="digits", name="torch", old="2.12.0", new="2.13.0"),
    ),
    warnings=(
        LeftoverFilesRead(audit="race", files=("100% of it, cached.pt",)),
        BaselineNotWritten(audit="race"),
        BaselineWithoutAudit(audit="renamed"),
    ),
    next_steps=(
        NextStep(command="detaudit trace race.py", purpose=Purpose.TRACE, audit="race"),
        NextStep(command="detaudit bisect race.py", purpose=Purpose.BISECT, audit="race"),
        NextStep(command="detaudit check digits --update", purpose=Purpose.ACCEPT_BASELINE, audit="digits"),
    ),
)

LISTING = VariationEffect(
    variation="listing-order",
    title="Order of directory listings",
    cause=Cause.ORDER,
    expected=False,
    example=EffectExample(
        trial="trial-2",
        runs=(1, 2),
        values=("reversed",),
        step=1,
        stage=Stage.BATCH,
        explanation=LIKELY[Stage.BATCH],
    ),
    suspects=(Source(file="train.py", line=12, kind=SourceKind.LISTING_ORDER, call="os.listdir"),),
    fix="sort the names of files",
    flags=("python-sorted-listings",),
)
REVERSED = msgspec.structs.replace(
    a_trial(2, (), 1.5, Stage.BATCH), varied=(Varied(id="listing-order", values=("sorted", "reversed")),)
)
THREADS = VariationEffect(
    variation="threads",
    title="Number of threads in math libraries",
    cause=Cause.THREADS,
    expected=True,
    example=EffectExample(trial="trial-3", runs=(1, 4), values=("OMP_NUM_THREADS=2",), last_line="MemoryError"),
    together_with=("listing-order",),
    fix="use the same number on every machine",
)


def varied(**fields: Any) -> VariationBisection:
    values: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "command": ("detaudit", "bisect", "-m", "pkg.train", "--over", "variations"),
        "environment": {},
        "verdict": Verdict.NONDETERMINISTIC,
        "groups": (a_trial(1, (), 1.5), REVERSED),
        "outcome": VaryOutcome.SENSITIVE,
        "sensitive_to": (LISTING, THREADS),
        "no_effect": ("hash-seed",),
        "controls": {"hash-seed": "PYTHONHASHSEED=0", "listing-order": "sorted"},
        "not_varied": {"locale": NoSecondLocale()},
        "evidence": Evidence(runs=17, confidence=None, assumed_rate=0.25, miss_probability=0.01),
        "total_runs": 20,
    }
    return VariationBisection(**{**values, **fields})


REPORTS: dict[str, Report] = {
    "check": CHECK,
    "variations": varied(),
    "variations-control": varied(
        groups=(a_trial(1, (), 1.5, Stage.BATCH),),
        outcome=VaryOutcome.CONTROL_DIFFERS,
        sensitive_to=None,
        no_effect=(),
        evidence=None,
        total_runs=2,
    ),
    "variations-robust": varied(
        verdict=Verdict.DETERMINISTIC,
        groups=(a_trial(1, (), 1.5),),
        outcome=VaryOutcome.ROBUST,
        sensitive_to=(),
        total_runs=18,
    ),
}
