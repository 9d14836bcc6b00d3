"""The frozen values that detaudit passes around and keeps in audit.json."""

from typing import TypeAlias

import msgspec

from detaudit.model.audit import (
    SCHEMA_VERSION,
    Artifact,
    Audit,
    Confidence,
    Difference,
    Divergence,
    FlagState,
    Group,
    NextStep,
    RankRecord,
    Recipe,
    Replicas,
    Run,
    Setting,
    Source,
    Varied,
)
from detaudit.model.bisect import Alternative, Bisection, BisectOutcome, Failing, Needed, Verified, Without
from detaudit.model.check import Check, Checked, CheckVerdict, Gate, GateName, GateStatus
from detaudit.model.compare import Change, Comparison, Likeness, LossPair, Side, WeightPair
from detaudit.model.doctor import Diagnosis, Threat
from detaudit.model.enums import NAMED, UNHOOKED, Stage, Status, Verdict
from detaudit.model.exits import exit_code
from detaudit.model.number import Number, as_number, digits
from detaudit.model.record import FinalState, Recording, RunRecord, Training, Weight, record_of
from detaudit.model.tensor import FirstMismatch, TensorDifference
from detaudit.model.trace import ALL_STEPS, Bounded, CauseClass, Culprit, Edit, FlagCure, How, Pass, TensorPair, Trace
from detaudit.model.vary import Matters, Seen, VariationBisection, VaryOutcome

Report: TypeAlias = Audit | Comparison | Check
"""What a reporter can print."""

__all__ = [
    "ALL_STEPS",
    "NAMED",
    "SCHEMA_VERSION",
    "UNHOOKED",
    "Alternative",
    "Artifact",
    "Audit",
    "BisectOutcome",
    "Bisection",
    "Bounded",
    "CauseClass",
    "Change",
    "Check",
    "CheckVerdict",
    "Checked",
    "Comparison",
    "Confidence",
    "Culprit",
    "Diagnosis",
    "Difference",
    "Divergence",
    "Edit",
    "Failing",
    "FinalState",
    "FirstMismatch",
    "FlagCure",
    "FlagState",
    "Gate",
    "GateName",
    "GateStatus",
    "Group",
    "How",
    "Likeness",
    "LossPair",
    "Matters",
    "Needed",
    "NextStep",
    "Number",
    "Pass",
    "RankRecord",
    "Recipe",
    "Recording",
    "Replicas",
    "Report",
    "Run",
    "RunRecord",
    "Seen",
    "Setting",
    "Side",
    "Source",
    "Stage",
    "Status",
    "TensorDifference",
    "TensorPair",
    "Threat",
    "Trace",
    "Training",
    "VariationBisection",
    "Varied",
    "VaryOutcome",
    "Verdict",
    "Verified",
    "Weight",
    "WeightPair",
    "Without",
    "as_number",
    "digits",
    "exit_code",
    "record_of",
    "to_json",
]


def to_json(report: Report) -> bytes:
    """Return a report in the layout that its type has: an audit in that of audit.json."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"
