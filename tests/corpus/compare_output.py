"""Run labeled scripts twice alone and once with the recorder: do they print the same, with the same exit status?

If the two runs alone differ, numbers are left out.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from detaudit import wire
from detaudit.launch.plan import BOOTSTRAP
from tests.corpus.measure import HERE, SCRIPTS, TIMEOUT_S

_NUMBER = re.compile(r"[0-9a-f]{64}|-?\d+(\.\d+)?(e[+-]?\d+)?|\b(nan|inf)\b")

Printed = tuple[int, list[str]]
"""The exit status, and the lines of stdout."""


def run(script: str, *, recorded: bool) -> Printed:
    """Run a script in a copy of its folder."""
    with tempfile.TemporaryDirectory() as folder:
        project = shutil.copytree(SCRIPTS, Path(folder) / "project", ignore=shutil.ignore_patterns("__pycache__"))
        logs = Path(folder) / "logs"
        logs.mkdir()
        with_recorder = {"PYTHONPATH": str(BOOTSTRAP), wire.ENV_LOGS: str(logs)} if recorded else {}
        done = subprocess.run(
            [sys.executable, f"{script}.py"], cwd=project, env={**os.environ, **with_recorder},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        if recorded and not list(logs.iterdir()):
            raise RuntimeError(f"{script}: nothing was recorded")
    return done.returncode, done.stdout.splitlines()


def same(alone: Printed, again: Printed, recorded: Printed) -> bool:
    """Return whether a recorded run printed what two runs alone did; if theirs differ, numbers and repeats may too."""
    if alone == again:
        return recorded == alone
    shapes = [(status, {_NUMBER.sub("#", line) for line in lines}) for status, lines in (alone, again, recorded)]
    return shapes[2] in shapes[:2]


def main() -> int:
    """Compare; the exit status is 1 if the recorder changed anything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", help="names without .py; all of them by default")
    scripts = parser.parse_args().scripts or list(yaml.safe_load((HERE / "labels.yaml").read_text()))
    changed = []
    for script in scripts:
        found = [run(script, recorded=recorded) for recorded in (False, False, True)]
        if not same(*found):
            changed.append(script)
            print(script, *found, sep="\n  ", file=sys.stderr, flush=True)
    print(f"{len(scripts) - len(changed)} of {len(scripts)} scripts print the same with the recorder")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
