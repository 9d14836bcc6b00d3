"""How each kind of fault is injected."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

from tests.faults.cases import Case
from tests.faults.harness import CLOCK, Injection, Outcome, problems

Ended = tuple[int, str, str]


def inject(case: Case, folder: Path) -> Outcome:
    """Run a case in an empty folder."""
    one, started = Injection(case, folder), time.monotonic()
    try:
        code, out, err = KINDS[case.kind](one)
        wrong = tuple(problems(one, code, out, err))
    finally:
        one.kill_all()
    return Outcome(case, code, time.monotonic() - started, wrong)


def _script(one: Injection) -> Ended:
    return one.finish(one.start())


def _auditor(one: Injection) -> Ended:
    slow = (
        (one.project / "train.py")
        .read_text()
        .replace("    if step == 2:", "    __import__('time').sleep(0.25)\n    if step == 2:")
    )
    (one.project / "train.py").write_text(slow)
    process = one.start()
    moment = time.monotonic() + float(one.case.point.split()[0])
    while time.monotonic() < moment and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(getattr(signal, f"SIG{one.case.fault}"))
    return one.finish(process)


def _storage(one: Injection) -> Ended:
    results = one.project / "results"
    if one.case.fault == "folder in the way":
        results.write_text("a file")
        return one.finish(one.start(one.words("--out", "results/below")))
    if one.case.fault == "folder of another audit":
        results.mkdir()
        (results / "audit.json").write_text('{"groups": []}')
        return one.finish(one.start())
    if one.case.fault == "folder that vanishes":
        return one.finish(one.start(FAULT="remove_the_results", AT=one.case.point))
    results.mkdir()
    return _mounted(one, results)


def _mounted(one: Injection, results: Path) -> Ended:
    """Run the audit in a mount namespace of its own, whose results folder is a small file system."""
    below = str(results / "below")
    if one.case.fault == "read-only folder":
        mount, more = f"mount -t tmpfs -o ro,size=1m none {results}", {}
    else:  # what is free at the point is filled by the script
        mount, more = f"mount -t tmpfs -o size=1m none {results}", {"FAULT": "fill_the_disk", "AT": one.case.point}
    script = f'{mount} && exec "$@"'
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", *one.words("--out", below)]
    return one.finish(one.start(words, FILL=str(results / "filler"), **more))


def _together(one: Injection) -> Ended:
    if one.case.fault == "clock that jumps":
        (one.project / "clock").mkdir()
        (one.project / "clock" / "sitecustomize.py").write_text(dedent(CLOCK))
        return one.finish(one.start(PYTHONPATH=str(one.project / "clock")))
    if one.case.fault == "copies of a repository":
        subprocess.run(["git", "init", "-q"], cwd=one.project, check=True)
        (one.project / "link.py").symlink_to("faulty.py")
        return one.finish(one.start(one.words("--isolate")))
    same = one.case.fault == "one results folder for two audits"
    first = one.start()
    second = one.start(one.words() if same else one.words("--out", "others"))
    ends = [one.finish(first), one.finish(second)]
    shutil.rmtree(one.project / "others", ignore_errors=True)
    codes = sorted(code for code, _, _ in ends)
    if same:
        return ends[0] if codes == [0, 2] else (-1, "", f"exit statuses {codes}: {ends[0][2]}{ends[1][2]}")
    return ends[0] if codes[0] == codes[1] else (-1, "", f"exit statuses {codes}")


KINDS: dict[str, Callable[[Injection], Ended]] = {
    "script": _script,
    "auditor": _auditor,
    "storage": _storage,
    "together": _together,
}


def can_mount() -> bool:
    """Return whether a file system can be mounted in a namespace here."""
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"]
    try:
        return subprocess.run(words, capture_output=True, check=False, env=dict(os.environ)).returncode == 0
    except OSError:
        return False
