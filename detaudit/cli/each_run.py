"""What ``--verbose`` says about each run: how it is started, where its logs are, how it ended."""

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from detaudit import redact
from detaudit.launch import RunSpec
from detaudit.launch.plan import BOOTSTRAP
from detaudit.model import Run
from detaudit.model.fact import count
from detaudit.report.messages import problems, statuses
from detaudit.report.messages.wording import duration
from detaudit.report.plain import row

_OWN = "DETAUDIT_"
"""How the variables begin that the recorder reads."""


def started(name: str, spec: RunSpec) -> Iterator[str]:
    """Yield the command of a run, its working directory if it is another, what its environment changes, its logs."""
    yield f"{name}: {row(shlex.join(redact.command(spec.argv)))}"
    if spec.cwd != Path.cwd():
        yield f"  in: {row(str(spec.cwd))}"
    if spec.timeout is not None:
        yield f"  timeout: {duration(spec.timeout, 'g')}"
    changed = {key: value for key, value in _without_recorder(spec.env).items() if os.environ.get(key) != value}
    if pairs := [_assignment(key, value) for key, value in sorted(changed.items())]:
        yield f"  set: {row(' '.join(pairs))}"
    if unset := sorted(os.environ.keys() - spec.env.keys()):
        yield f"  unset: {row(' '.join(unset))}"
    if spec.slot.cpus:
        yield f"  CPUs: {', '.join(map(str, spec.slot.cpus))}"
    if spec.slot.devices:
        yield f"  devices: {', '.join(spec.slot.devices)}"
    yield f"  logs: {row(os.path.relpath(spec.folder))}"


def finished(name: str, run: Run) -> str:
    """Return how a run ended."""
    why = f" ({problems.errors(run.errors)})" if run.errors else ""
    return row(f"{name}: {statuses.NAMES[run.status]} after {duration(run.wall_s)}, {count(run.steps, 'step')}{why}")


def _without_recorder(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what loads the recorder, and what only it reads."""
    found = {key: value for key, value in env.items() if not key.startswith(_OWN)}
    first, _, rest = found.pop("PYTHONPATH", "").partition(os.pathsep)
    path = rest if first == str(BOOTSTRAP) else first + os.pathsep * bool(rest) + rest
    return {**found, "PYTHONPATH": path} if path else found


def _assignment(name: str, value: str) -> str:
    hidden = redact.HIDDEN if redact.is_secret(name) else shlex.quote(redact.text(value))
    return f"{name}={hidden}"
