"""The immutable values that detaudit passes around and stores in audit.json."""

from typing import TypeAlias

import msgspec

from detaudit.model.applicability import Inapplicable, NotVaried
from detaudit.model.audit import (
    SCHEMA_VERSION,
    AppliedRecipe,
    Audit,
    Divergence,
    FlagOutcome,
    FlagState,
    Group,
    Replicas,
    Setting,
    Varied,
)
from detaudit.model.bisect import Alternative, Bisection, BisectOutcome, FailingFlag, LeftOut, NeededFlag
from detaudit.model.by_hand import Edit, HandLine, LineToFix
from detaudit.model.check import Check, CheckedAudit, CheckVerdict, Gate, GateDetail, GateName, GateStatus, LockChange
from detaudit.model.compare import Change, ComparedSide, Comparison, ComparisonVerdict, LossPair, WeightPair
from detaudit.model.doctor import Diagnosis, Risk
from detaudit.model.encoding import encode
from detaudit.model.enums import (
    FITTED,
    NAMED,
    OUTPUTS,
    UNHOOKED,
    Across,
    ArchiveFlaw,
    Cause,
    Stage,
    Status,
    Verdict,
    is_inference,
)
from detaudit.model.evidence import Confidence, DifferingShare, Evidence
from detaudit.model.excerpt import Excerpt
from detaudit.model.exits import exit_code
from detaudit.model.explanation import Explanation, LikelyCause
from detaudit.model.files import Artifact
from detaudit.model.machines import Machine
from detaudit.model.next_steps import NextStep, Purpose
from detaudit.model.number import Number, as_number, digits
from detaudit.model.outputs import Compare, FileBudget, OutputDifference, OutputKind, OutputRules, Outputs
from detaudit.model.overrides import Override, ScriptCall
from detaudit.model.problems import RunError
from detaudit.model.reasons import Reason
from detaudit.model.record import FinalState, ModelTensor, Recording, RunRecord, Training, Weight, record_of
from detaudit.model.replay import (
    MOST_RESULTS,
    Condition,
    ModeEffect,
    Obstacle,
    Replay,
    ReplayedPass,
    ReplayVerdict,
    Series,
)
from detaudit.model.run import Difference, RankRecord, Run, shorter
from detaudit.model.sources import COMPLETION, ORDERS, SEEDING, Source, SourceKind, SourceMatch
from detaudit.model.tensor import FirstMismatch, TensorDifference, TensorGrid
from detaudit.model.trace import (
    ALL_STEPS,
    MOST_OPERANDS,
    Argument,
    Boundary,
    Culprit,
    FlagFix,
    FlagTrial,
    How,
    Narrowed,
    Operand,
    Operation,
    Pass,
    StepSpread,
    TensorPair,
    Trace,
)
from detaudit.model.vary import EffectExample, VariationBisection, VariationEffect, VaryOutcome
from detaudit.model.warnings import Warning  # the term for it

Report: TypeAlias = Audit | Bisection | VariationBisection | Trace | Comparison | Check
"""What a reporter can print; in JSON, ``kind`` says which it is."""

__all__ = [
    "ALL_STEPS",
    "COMPLETION",
    "FITTED",
    "MOST_OPERANDS",
    "MOST_RESULTS",
    "NAMED",
    "ORDERS",
    "OUTPUTS",
    "SCHEMA_VERSION",
    "SEEDING",
    "UNHOOKED",
    "Across",
    "Alternative",
    "AppliedRecipe",
    "ArchiveFlaw",
    "Argument",
    "Artifact",
    "Audit",
    "BisectOutcome",
    "Bisection",
    "Boundary",
    "Cause",
    "Change",
    "Check",
    "CheckVerdict",
    "CheckedAudit",
    "Compare",
    "ComparedSide",
    "Comparison",
    "ComparisonVerdict",
    "Condition",
    "Confidence",
    "Culprit",
    "Diagnosis",
    "Difference",
    "DifferingShare",
    "Divergence",
    "Edit",
    "EffectExample",
    "Evidence",
    "Excerpt",
    "Explanation",
    "FailingFlag",
    "FileBudget",
    "FinalState",
    "FirstMismatch",
    "FlagFix",
    "FlagOutcome",
    "FlagState",
    "FlagTrial",
    "Gate",
    "GateDetail",
    "GateName",
    "GateStatus",
    "Group",
    "HandLine",
    "How",
    "Inapplicable",
    "LeftOut",
    "LikelyCause",
    "LineToFix",
    "LockChange",
    "LossPair",
    "Machine",
    "ModeEffect",
    "ModelTensor",
    "Narrowed",
    "NeededFlag",
    "NextStep",
    "NotVaried",
    "Number",
    "Obstacle",
    "Operand",
    "Operation",
    "OutputDifference",
    "OutputKind",
    "OutputRules",
    "Outputs",
    "Override",
    "Pass",
    "Purpose",
    "RankRecord",
    "Reason",
    "Recording",
    "Replay",
    "ReplayVerdict",
    "ReplayedPass",
    "Replicas",
    "Report",
    "Risk",
    "Run",
    "RunError",
    "RunRecord",
    "ScriptCall",
    "Series",
    "Setting",
    "Source",
    "SourceKind",
    "SourceMatch",
    "Stage",
    "Status",
    "StepSpread",
    "TensorDifference",
    "TensorGrid",
    "TensorPair",
    "Trace",
    "Training",
    "VariationBisection",
    "VariationEffect",
    "Varied",
    "VaryOutcome",
    "Verdict",
    "Warning",
    "Weight",
    "WeightPair",
    "as_number",
    "digits",
    "exit_code",
    "is_inference",
    "record_of",
    "shorter",
    "to_json",
]


def to_json(report: Report) -> bytes:
    """Return a report in the layout of its type: an audit as in audit.json."""
    return msgspec.json.format(encode(report), indent=2) + b"\n"
