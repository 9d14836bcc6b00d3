"""For the golden reports: a check with gates of every kind, and a bisection over variations."""

from detaudit.model import (
    Audit,
    Change,
    Check,
    Checked,
    CheckVerdict,
    Difference,
    Gate,
    GateName,
    GateStatus,
    Matters,
    Report,
    Seen,
    Stage,
    VariationBisection,
    Verdict,
    Verified,
)
from tests.report.bisections import a_trial


def an_audit(script: str, stage: Stage | None) -> Audit:
    group = a_trial(1, (), 1.5, stage)
    return Audit(
        schema_version=1, command=("detaudit", "run", script), environment={}, verdict=group.verdict, groups=(group,)
    )


ELSEWHERE = (Change(name="torch", a="2.12.0", b="2.13.0"), Change(name="cuda", a=None, b="12.8"))
DIFFERS = Difference(rank=0, step=8, stage=Stage.UPDATE)

CHECK = Check(
    schema_version=1,
    command=("detaudit", "check", "--format", "junit"),
    verdict=CheckVerdict.FAILED,
    checked=(
        Checked(
            name="digits",
            audit=an_audit("examples/digits.py", None),
            gates=(
                Gate(
                    name=GateName.REPEATABLE,
                    status=GateStatus.PASSED,
                    blocks=False,
                    message="2 runs, all bit-identical",
                ),
                Gate(
                    name=GateName.BASELINE,
                    status=GateStatus.INCOMPARABLE,
                    blocks=False,
                    message="not the baseline from step 8, update on, but it was made elsewhere (torch, cuda changed)",
                    differs=DIFFERS,
                    environment=ELSEWHERE,
                ),
                Gate(
                    name=GateName.RESUME,
                    status=GateStatus.FAILED,
                    blocks=True,
                    message="stopped after step 4 of 9, resumed for 5: it ends otherwise",
                ),
            ),
        ),
        Checked(
            name="race",
            audit=an_audit("race.py", Stage.UPDATE),
            gates=(
                Gate(
                    name=GateName.REPEATABLE,
                    status=GateStatus.FAILED,
                    blocks=True,
                    message="2 runs, 2 different results: step 1, update",
                    differs=Difference(rank=0, step=1, stage=Stage.UPDATE),
                ),
                Gate(
                    name=GateName.BASELINE,
                    status=GateStatus.UNKNOWN,
                    blocks=True,
                    message="only runs that are equal to each other can be compared with it",
                ),
            ),
        ),
    ),
    lock="detaudit.lock.json",
    warnings=("race: 100% of what it read, was left by an earlier run",),
)

VARIATIONS = VariationBisection(
    schema_version=1,
    command=("detaudit", "bisect", "-m", "pkg.train", "--over", "variations"),
    environment={},
    verdict=Verdict.NONDETERMINISTIC,
    groups=(a_trial(1, (), 1.5), a_trial(2, (), 1.5, Stage.BATCH)),
    answer="some-matter",
    matters=(
        Matters(
            variation="listings",
            title="The order of listings",
            cause="order",
            legitimate=False,
            seen=Seen(
                trial="trial-2", runs=(1, 2), values=("reversed",), step=1, stage="batch", cause="the inputs differ"
            ),
            cure="sort it",
        ),
    ),
    no_matter=("hash-seed",),
    controls={"hash-seed": "PYTHONHASHSEED=0"},
    left_out={},
    verified=Verified(runs=17, confidence=None, rate=0.25, overlooked=0.01),
    launches=20,
)

REPORTS: dict[str, Report] = {"check": CHECK, "variations": VARIATIONS}
