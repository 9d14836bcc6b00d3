"""What recording every operation costs, as `detaudit trace` does, against torch's own DebugMode, in CPU time.

DebugMode has hashes of inputs and outputs, once as it is, and once with stacks and modules: without stacks it names no
lines, and detaudit always records the line and the module.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.pace import blocks, recorded
from benchmarks.rows import Figure, Goal, Row, Scale, median, ratios
from benchmarks.trainings import TORCH_TRAININGS
from detaudit import wire

DEBUG_MODE = """
from torch.utils._debug_mode import DebugMode
debug = DebugMode({options})
debug.__enter__()
hashes = DebugMode.log_tensor_hashes(hash_fn={hash!r}, hash_inputs=True)
hashes.__enter__()
while True:
"""
"""What a user would add to a script before its loop."""

PLAIN, OURS = "unrecorded", "detaudit"
KINDS = {
    "DebugMode with norms": DEBUG_MODE.format(hash="norm", options=""),
    "DebugMode with hash_tensor, stacks and modules": DEBUG_MODE.format(
        hash="hash_tensor", options="record_stack_trace=True, record_nn_module=True"
    ),
}
TURNS = 5
GOAL = Goal(1)


def measure(scale: Scale) -> Iterator[Row]:
    """Yield rows for each training: over an unrecorded step, and over each kind of DebugMode."""
    watch = json.dumps({"level": "ops", "first": 0, "last": 10**9})
    for name, training in TORCH_TRAININGS.items():
        with tempfile.TemporaryDirectory() as logs:
            processes: dict[str, tuple[str, dict[str, str]]]
            processes = {kind: (training.code.replace("while True:\n", mode), {}) for kind, mode in KINDS.items()}
            processes[PLAIN] = training.code, {}
            processes[OURS] = training.code, {**recorded(Path(logs) / "logs"), wire.ENV_WATCH: watch}
            found = blocks(processes, max(1, training.block // scale.size(2, 100)), scale.turns(TURNS))
        step = Figure(median(turn[PLAIN] for turn in found) * 1e3, "ms for an unrecorded step")
        yield Row(
            what=f"{name}, all operations",
            over="an unrecorded step",
            ratios=ratios(found, OURS, PLAIN),
            also=(step, *(Figure(median(ratios(found, kind, PLAIN)), f"with {kind}") for kind in KINDS)),
        )
        for kind in KINDS:
            yield Row(what=f"{name}, all operations", over=kind, ratios=ratios(found, OURS, kind), goal=GOAL)
