"""Run an audit of a script with a fault, and look at all that must hold afterwards."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import psutil

from tests.faults import faulty
from tests.faults.cases import DETERMINISTIC, INCONCLUSIVE, INTERRUPTED, KILLED, USAGE, Case

SCRIPT = """
    import os, random
    import detaudit
    import faulty
    draws = random.Random(0 if os.environ["SEEDED"] else None)
    faulty.register("exit")
    faulty.at("start")
    w = [draws.gauss(0, 1) for _ in range(8)]
    for step in range(1, 5):
        x = [draws.gauss(0, 1) for _ in w]
        error = sum(a * b for a, b in zip(x, w)) - sum(x)
        w = [a - 0.1 * error * b for a, b in zip(w, x)]
        detaudit.record(loss=error**2, weights=w)
        if step == 2:
            faulty.at("step")
    faulty.at("end")
"""

TORCH = """
    import os, torch
    import faulty
    if os.environ["SEEDED"]:
        torch.manual_seed(0)
    else:
        torch.seed()
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, 5):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
        if step == 2:
            faulty.at("step")
"""

CLOCK = """
    import random, time
    real = time.time
    time.time = lambda: real() + random.choice((-1, 1)) * random.uniform(0, 10**8)
"""

RUNS = 2
TIMEOUT_S, LONG_TIMEOUT_S = 6, 30
LIMIT_S = 120
"""Seconds after which the audit itself counts as hanging."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case: the exit status, and what did not hold."""

    case: Case
    code: int
    seconds: float
    problems: tuple[str, ...]


class Injection:
    """One audit with a fault, in a folder of its own."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        self.id = uuid.uuid4().hex
        self.temporary = folder / "tmp"
        self.project = folder / "project"
        for place in (self.temporary, self.project):
            place.mkdir(parents=True)
        shutil.copy(faulty.__file__, self.project / "faulty.py")
        (self.project / "train.py").write_text(dedent(TORCH if case.torch else SCRIPT))
        in_script = hasattr(faulty, case.fault)
        self.env = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "FAULT_ID": self.id,
            "TMPDIR": str(self.temporary),
            "SEEDED": "1" if case.seeded else "",
            **({"FAULT": case.fault, "AT": case.point} if in_script else {}),
        }

    def words(self, *more: str) -> list[str]:
        long = self.case.torch or self.case.fault == "print_gigabytes"  # which are read at 130 MB/s or so
        timeout = str(LONG_TIMEOUT_S if long else TIMEOUT_S)
        # --full: what hangs is to reach its limit, before which runs would be ended that train for five seconds.
        options = ("--runs", str(RUNS), "--full", "--format", "json", "--timeout", timeout, "--out", "results")
        return [sys.executable, "-m", "detaudit", "run", "train.py", *options, *more]

    def start(self, words: list[str] | None = None, **changed: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            words or self.words(), cwd=self.project, env={**self.env, **changed}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip

    def finish(self, process: subprocess.Popen[str]) -> tuple[int, str, str]:
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err += "\nthe audit itself hung"
        return process.returncode, out, err

    def left_processes(self) -> list[str]:
        """Return the processes of this case that are alive; those of an audit that was killed get a moment."""
        limit = time.monotonic() + 15
        while (found := list(self._alive())) and time.monotonic() < limit:
            time.sleep(0.2)
        return found

    def _alive(self) -> Iterator[str]:
        for process in psutil.process_iter():
            try:
                ours = process.environ().get("FAULT_ID") == self.id and process.pid != os.getpid()
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    yield " ".join(process.cmdline())[:80]
            except (psutil.Error, OSError):
                continue

    def kill_all(self) -> None:
        for process in psutil.process_iter():
            try:
                if process.environ().get("FAULT_ID") == self.id and process.pid != os.getpid():
                    process.kill()
            except (psutil.Error, OSError):
                continue


def problems(one: Injection, code: int, out: str, err: str) -> Iterator[str]:
    """Yield what does not hold after a case."""
    yield from _wrong_answer(one.case, code, out, err)
    yield from _wrong_report(one, code, out)
    yield from _left_behind(one, code)


def _wrong_answer(case: Case, code: int, out: str, err: str) -> Iterator[str]:
    if code not in case.right:
        said = " ".join((err or out).split())[-200:]
        yield f"exit status {code}, not {' or '.join(map(str, sorted(case.right)))}: {said}"
    if code == DETERMINISTIC and not case.seeded:
        yield "a false match"
    own = "\n".join(line for line in err.splitlines() if not line.startswith("  | "))
    in_python_itself = code == -signal.SIGINT  # which had not started detaudit yet
    if not in_python_itself and ("Traceback" in own or "Exception ignored" in own):
        yield f"a traceback: {own[-300:]}"
    report = _report(out)
    why = [group["reason"] for group in report["groups"]] + report["warnings"] if report else []
    if code in (INCONCLUSIVE, USAGE) and not any(why) and "hint:" not in err:
        yield "no reason, and no hint"


def _wrong_report(one: Injection, code: int, out: str) -> Iterator[str]:
    kept = one.project / "results" / "audit.json"
    text = kept.read_text() if kept.is_file() else ""
    found, printed = _report(text), _report(out)
    if text and found is None:
        yield "audit.json is torn"
    whole = one.case.kind in ("script", "auditor") and one.case.fault != "remove_the_results"
    if printed is not None and whole and text != out:
        yield "the report that was kept is not the one that was printed"
    if printed is not None and not printed["interrupted"] and code == INTERRUPTED and _runs(printed) < RUNS:
        yield "the report does not say that it was interrupted"
    for group in found["groups"] if found else ():
        if group["verdict"] == "deterministic" and len(group["runs"]) < 2:
            yield "a match of fewer than two runs"


def _left_behind(one: Injection, code: int) -> Iterator[str]:
    for name in one.left_processes():
        yield f"a process is left: {name}"
    places = [*one.temporary.rglob("*"), *(one.project.rglob("*.part") if code != KILLED else ())]
    if code != KILLED and (one.project / "results" / "work").exists():
        places.append(one.project / "results" / "work")
    for path in places:
        if "torchinductor_" not in str(path):  # torch makes it whenever it is imported
            yield f"a temporary file is left: {path.name}"


def _runs(report: dict[str, Any]) -> int:
    return sum(len(group["runs"]) for group in report["groups"])


def _report(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "groups" in found else None
