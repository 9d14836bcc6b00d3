"""Every report comes back from JSON as it was, as the type that its ``kind`` names, with all of its facts."""

from typing import Any, get_args

import msgspec
import pytest

from detaudit.model import (
    SCHEMA_VERSION,
    Alternative,
    AppliedRecipe,
    Artifact,
    Audit,
    Bisection,
    BisectOutcome,
    Boundary,
    Cause,
    Change,
    Check,
    CheckedAudit,
    CheckVerdict,
    ComparedSide,
    Comparison,
    ComparisonVerdict,
    Confidence,
    Culprit,
    Diagnosis,
    Difference,
    DifferingShare,
    Divergence,
    Edit,
    EffectExample,
    Evidence,
    Excerpt,
    Explanation,
    FailingFlag,
    FirstMismatch,
    FlagFix,
    FlagOutcome,
    FlagState,
    Gate,
    GateDetail,
    GateName,
    GateStatus,
    Group,
    How,
    LeftOut,
    LikelyCause,
    LockChange,
    LossPair,
    Narrowed,
    NeededFlag,
    NextStep,
    Operation,
    Override,
    Pass,
    Purpose,
    RankRecord,
    Reason,
    Replicas,
    Report,
    Risk,
    Run,
    RunError,
    ScriptCall,
    Setting,
    Source,
    SourceKind,
    Stage,
    Status,
    TensorDifference,
    TensorPair,
    Trace,
    VariationBisection,
    VariationEffect,
    Varied,
    VaryOutcome,
    Verdict,
    Warning,
    WeightPair,
    to_json,
)
from detaudit.model.check import DiffersFromBaseline, RunsMatch
from detaudit.model.difference import Probe, ProbeDifference
from detaudit.model.fact import Fact, kind_of, kinds
from detaudit.model.problems import Failed, RunsMissing, RunUnusable, TimedOut
from detaudit.model.sources import NoSecondLocale, NotImported
from detaudit.model.warnings import FlagOverridden, LeftoversUnchecked, SettingsDiffer
from tests.report.fixes import FIXES
from tests.report.resumes import RESUMPTIONS

RECIPE = AppliedRecipe(name="seeds", seed=0, flags=("torch-seed",))
RANK = RankRecord(
    rank=0, framework="torch", steps=2, sum_of_weights="nan", final_loss=0.5, digest="d", devices=("cpu",)
)
DIFFERENCE = Difference(rank=0, step=2, stage=Stage.ARTIFACT, site="model.bin")
EXPLANATION = Explanation(matching=(Stage.RNG,), likely=(LikelyCause.DATA, LikelyCause.FORWARD_KERNEL), gap=(1, 4))
SOURCE = Source(file="train.py", line=3, kind=SourceKind.UNSEEDED, call="random.shuffle", generators=("random",))
SUSPECT = Source(file="train.py", line=4, kind=SourceKind.RACING_OPERATION, suspect=True, condition="atomics")
CALL = ScriptCall(file="train.py", line=1, call="torch.manual_seed", value="7")
OVERRIDE = Override(at="seed", call=CALL, differs=SourceKind.CLOCK)
RUN = Run(
    id=2,
    status=Status.TIMEOUT,
    exit_code=None,
    wall_s=1.5,
    steps=2,
    ranks=(RANK,),
    first_difference=DIFFERENCE,
    errors=(TimedOut(seconds=3.0, step=2, hung=False), Failed(exit_code=1)),
    stderr_tail=("boom",),
    warnings=(SettingsDiffer(run=2, first=1, settings=(("TZ", "UTC", "None"),)),),
    log_dir="runs/seeds/2",
    result=2,
    artifacts=(Artifact(path="model.bin", by="bytes", digest="d"),),
)
GROUP = Group(
    recipe=RECIPE,
    verdict=Verdict.NONDETERMINISTIC,
    distinct_results=2,
    confidence=Confidence(level=0.95, max_differing_rate=0.5),
    runs=(RUN,),
    first_difference=Divergence(
        runs=(1, 2), rank=0, step=2, stage=Stage.ARTIFACT, site="model.bin", explanation=EXPLANATION
    ),
    stages=(Stage.FORWARD, Stage.ARTIFACT),
    weights_sampled=True,
    replicas=Replicas(ranks=2, run=1, first_difference=DIFFERENCE),
    sources=(SOURCE, SUSPECT),
    differing_generators=("random",),
    probe_count=1,
    first_probe_difference=ProbeDifference(
        name="h",
        occurrence=1,
        step=None,
        gradient=True,
        runs=(1, 2),
        rank=0,
        values=("1", None),
        missing=2,
        last_match=Probe(name="x", occurrence=1, step=1, gradient=False),
    ),
    planned_runs=3,
    differing_share=DifferingShare(runs=12, differing=5, level=0.95, least=0.15, most=0.72),
    excerpts=(Excerpt(file="train.py", line=3, first=2, lines=("import random", "random.shuffle(x)"), digest="d"),),
    flags=(FlagState(id="torch-seed", title="Seed torch", state=FlagOutcome.OVERRIDDEN, override=OVERRIDE),),
    settings=(Setting(name="TZ", value="UTC", before={"start": None}),),
    warnings=(FlagOverridden(flag="torch-seed", override=OVERRIDE),),
    reason=RunUnusable(run=2, errors=RUN.errors),
    varied=(Varied(id="hash-seed", values=("0", "1")),),
    not_varied={"locale": NoSecondLocale()},
)
STEP = NextStep(command="less stderr.log", purpose=Purpose.READ_STDERR, run=2)
EVIDENCE = Evidence(runs=16, confidence=GROUP.confidence, assumed_rate=0.25, miss_probability=0.01)
AUDIT: dict[str, Any] = {
    "schema_version": SCHEMA_VERSION,
    "command": ("detaudit", "run", "train.py"),
    "environment": {"cpus": 2, "gpus": [], "packages": {"torch": "2.13.0"}},
    "verdict": Verdict.NONDETERMINISTIC,
    "groups": (GROUP,),
    "warnings": (LeftoversUnchecked(), FlagOverridden(recipe="seeds", flag="torch-seed", override=OVERRIDE)),
    "next_steps": (STEP,),
    "interrupted": True,
    "target": ("train.py",),
}
BISECTION = Bisection(
    **AUDIT,
    outcome=BisectOutcome.FIXED,
    needed=(
        NeededFlag(
            flag="torch-seed",
            title="Seed torch",
            left_out=LeftOut(trial="trial-1", runs=(1, 2), rank=0, step=2, stage=Stage.UPDATE),
            cost=1.5,
            requires=("python-hash-seed",),
            alternatives=(Alternative(flag="numpy-seed", title="Seed NumPy", matching=5, cost=1.0),),
        ),
    ),
    not_needed=("numpy-seed",),
    failing_flags=(FailingFlag(flag="jax-prng", message="boom", errors=(Failed(exit_code=1),)),),
    not_applicable={"keras-seed": NotImported(modules=("keras",))},
    evidence=EVIDENCE,
    total_runs=20,
    recipe_file="recipe.yaml",
    best_so_far=("torch-seed",),
)
VARIATION_BISECTION = VariationBisection(
    **AUDIT,
    outcome=VaryOutcome.SENSITIVE,
    sensitive_to=(
        VariationEffect(
            variation="hash-seed",
            title="String hash seed",
            cause=Cause.HASH,
            expected=False,
            example=EffectExample(
                trial="trial-2",
                runs=(1, 2),
                values=("1",),
                step=2,
                stage=Stage.UPDATE,
                explanation=EXPLANATION,
                errors=(Failed(exit_code=1),),
                last_line="boom",
            ),
            together_with=("locale",),
            suspects=(SUSPECT,),
            fix="sort sets",
            flags=("python-hash-seed",),
        ),
    ),
    no_effect=("addresses",),
    controls={"hash-seed": "0"},
    not_varied={"locale": NoSecondLocale()},
    evidence=EVIDENCE,
    total_runs=20,
)
TENSOR = TensorPair(
    dtype="float32",
    shape=(2,),
    difference=TensorDifference(
        mismatched=1,
        total=2,
        max_abs="inf",
        max_rel=1.0,
        max_ulp=3,
        nans=0,
        first=FirstMismatch(index=(0,), values=("0", "1"), bits=("0x0", "0x1")),
        next=(FirstMismatch(index=(1,), values=("0", "1"), bits=("0x0", "0x1")),),
    ),
    saved_to="two.npz",
)
TRACE = Trace(
    **AUDIT,
    culprit=Culprit(
        how=How.OUTPUT,
        cause=Cause.KERNEL,
        rank=0,
        step=2,
        stage=Stage.BACKWARD,
        file="train.py",
        line=3,
        code="loss.backward()",
        source=SOURCE,
        operation=Operation(
            name="aten.mm", graph_node="mm", module="encoder", collective=True, op_location="a.py:1", tensor=TENSOR
        ),
        thread="worker",
        name="loss",
        values=("1", "2"),
        flags=(FlagFix(flag="torch-seed", title="Seed torch"),),
        suggested_edit=Edit(file="train.py", line=3, old=("a",), new=("b",), needs=("import zlib",)),
        suspects=(SUSPECT,),
    ),
    narrowed_to=Narrowed(
        step=2,
        after=Boundary(stage=Stage.FORWARD),
        before=Boundary(module="encoder", side="output"),
        suspects=(SUSPECT,),
    ),
    observer_effect=True,
    passes=(Pass(level="ops", first_step=2, last_step=2, runs=2, first_difference=DIFFERENCE),),
    total_runs=6,
)
CHECK = Check(
    schema_version=SCHEMA_VERSION,
    command=("detaudit", "check"),
    verdict=CheckVerdict.FAILED,
    audits=(
        CheckedAudit(
            name="train",
            audit=Audit(**AUDIT),
            gates=(
                Gate(name=GateName.REPEATABLE, status=GateStatus.PASSED, blocking=False, detail=RunsMatch(runs=5)),
                Gate(
                    name=GateName.BASELINE,
                    status=GateStatus.INCOMPARABLE,
                    blocking=True,
                    detail=DiffersFromBaseline(
                        step=3, stage=Stage.UPDATE, explanation=EXPLANATION, loss_distance="inf"
                    ),
                    first_difference=DIFFERENCE,
                    environment_changes=(Change(name="torch", a="2.13.0", b=None),),
                ),
            ),
        ),
    ),
    lock_file="detaudit.lock.json",
    lock_changes=(LockChange(audit="train", old_ranks=(RANK,), new_ranks=(RANK,)),),
    warnings=(LeftoversUnchecked(audit="train"),),
    next_steps=(NextStep(command="detaudit check train --update", purpose=Purpose.ACCEPT_BASELINE, audit="train"),),
    interrupted=True,
)
SIDE = ComparedSide(name="a", recipe=RECIPE, ranks=(RANK,), command=("detaudit", "run"))
COMPARISON = Comparison(
    schema_version=SCHEMA_VERSION,
    command=("detaudit", "compare", "a", "b"),
    verdict=ComparisonVerdict.DIFFERENT,
    a=SIDE,
    b=SIDE,
    environment_changes=(Change(name="torch", a=None, b="2.13.0"),),
    first_difference=DIFFERENCE,
    last_equal_step=1,
    explanation=EXPLANATION,
    losses=(LossPair(rank=0, step=1, a="nan", b=0.5, distance=None),),
    differing_weights=(WeightPair(rank=0, place=1, dtype="float32", shape=(2,), a=1.0, b=None),),
    weights_compared=2,
    stages=(Stage.INIT,),
    steps_compared=4,
    warnings=(LeftoversUnchecked(recording="a"),),
    next_steps=(STEP,),
)
REPORTS: dict[str, Report] = {
    "run": Audit(**AUDIT),
    "bisect": BISECTION,
    "vary": VARIATION_BISECTION,
    "trace": TRACE,
    "fix": FIXES["fix-proven"],
    "resume": RESUMPTIONS["resume-differs"],
    "check": CHECK,
    "compare": COMPARISON,
}


@pytest.mark.parametrize(("kind", "report"), REPORTS.items(), ids=REPORTS)
def test_a_report_comes_back_as_its_own_type(kind: str, report: Report) -> None:
    text = to_json(report)
    assert msgspec.json.decode(text)["kind"] == kind
    assert msgspec.json.decode(text)["schema_version"] == SCHEMA_VERSION
    found: Any = msgspec.json.decode(text, type=Report)
    assert type(found) is type(report)
    assert found == report


def test_there_is_a_report_of_every_type() -> None:
    assert {type(report) for report in REPORTS.values()} == set(get_args(Report))


@pytest.mark.parametrize("sort", [Warning, RunError, Reason, GateDetail, Risk])
def test_every_fact_has_its_own_kind(sort: type[Fact]) -> None:
    facts = [*kinds(sort)]
    tags = {fact.__struct_config__.tag for fact in facts}
    assert tags == {kind_of(fact.__name__) for fact in facts}
    assert len(tags) == len(facts)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("TimedOut", "timed-out"), ("Failed", "failed"), ("RunsGaveDifferentResults", "runs-gave-different-results")],
)
def test_kinds_are_the_names_of_classes(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_a_diagnosis_comes_back_as_it_was() -> None:
    made = Diagnosis(schema_version=SCHEMA_VERSION, python="python", environment={}, relevant={"cpus": "2"}, risks=())
    text = msgspec.json.encode(made)
    assert msgspec.json.decode(text)["kind"] == "doctor"
    assert msgspec.json.decode(text, type=Diagnosis) == made


def test_the_fields_of_a_fact_are_beside_its_kind() -> None:
    missing = RunsMissing(finished=2, planned=5)
    assert msgspec.json.decode(msgspec.json.encode(missing)) == {"kind": "runs-missing", "finished": 2, "planned": 5}
    unusable = RunUnusable(run=1, errors=(Failed(exit_code=1),))
    assert msgspec.json.decode(msgspec.json.encode(unusable)) == {
        "kind": "run-unusable",
        "run": 1,
        "errors": [{"kind": "failed", "exit_code": 1}],
    }
