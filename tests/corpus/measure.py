"""Measure the corpus: how many different final weights each script ends with, unmodified and with fixes.

Each run is a fresh process. Only what a script prints as ``weights`` is read. This module knows nothing of detaudit;
labels.yaml must follow from what it writes into measured.yaml (test_labels.py).
"""

import argparse
import collections
import contextlib
import fcntl
import hashlib
import importlib.metadata
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
SCRIPTS = HERE / "scripts"
MEASURED = HERE / "measured.yaml"
TIMEOUT_S = 300

BARE = "bare"
RUNS = {BARE: 20}
OTHER_RUNS = 10

HASH_SEED = {"PYTHONHASHSEED": "0"}
FIXED_ADDRESSES = ("setarch", "-R")

# Environment variables, fixes of with_fixes.py, what precedes the command, and whether each run starts in an empty
# folder instead of where the last one ended.
CONDITIONS: dict[str, tuple[dict[str, str], str, tuple[str, ...], bool]] = {
    BARE: ({}, "", (), False),
    "seeds": (HASH_SEED, "seeds", (), False),
    "all": (HASH_SEED, "seeds,numpy-entropy,deterministic", FIXED_ADDRESSES, False),
    "deterministic": (HASH_SEED, "seeds,deterministic", (), False),
    "numpy-entropy": ({}, "numpy-entropy", (), False),
    "fixed-addresses": (HASH_SEED, "", FIXED_ADDRESSES, False),
    "one-thread": (HASH_SEED, "seeds,one-thread", (), False),
    "hash-seed": (HASH_SEED, "", (), False),
    "fresh-folder": ({}, "", (), True),
}

NOT_IN_ALL = {BARE, "one-thread", "fresh-folder"}
"""Fixes that the condition ``all`` does not include."""


def digest_of_one_run(script: Path, condition: str, folder: Path) -> str | None:
    """Run a script once, in a process of its own; return the digest of its final weights, None if it failed."""
    env, words, before, _ = CONDITIONS[condition]
    fixes = [str(HERE / "with_fixes.py"), words] if words else []
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = [*before, sys.executable, *fixes, str(script)]
    with tempfile.TemporaryFile("w+") as output:
        run = subprocess.Popen(
            command, cwd=folder, env=kept | {"PYTHONDONTWRITEBYTECODE": "1"} | env,
            stdout=output, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(TIMEOUT_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        output.seek(0)
        found = re.findall(r"^weights ([0-9a-f]{64})$", output.read(), re.MULTILINE)
    return found[-1] if run.returncode == 0 and found else None


def measure(script: Path, condition: str) -> dict[str, int]:
    """Return how many runs ended, with how many different weights, and how many with the commonest of them."""
    runs = RUNS.get(condition, OTHER_RUNS)
    fresh = CONDITIONS[condition][3]
    digests: collections.Counter[str | None] = collections.Counter()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        for _ in range(runs):
            where = stack.enter_context(tempfile.TemporaryDirectory()) if fresh else folder
            digests[digest_of_one_run(script, condition, Path(where))] += 1
    failed = digests.pop(None, 0)
    result = {"runs": runs, "distinct": len(digests), "commonest": max(digests.values(), default=0)}
    return result | ({"failed": failed} if failed else {})


def fingerprint(script: Path) -> str:
    """Return what changes when a script is edited: it must be measured again then."""
    return hashlib.sha256(script.read_bytes()).hexdigest()[:12]


def machine() -> dict[str, str | int]:
    """Return what the figures depend on."""
    versions = {name: importlib.metadata.version(name) for name in ("numpy", "torch", "tensorflow-cpu", "keras")}
    return {"python": platform.python_version(), "cores": len(os.sched_getaffinity(0)), **versions}


@contextlib.contextmanager
def measured() -> Iterator[dict[str, Any]]:
    """Hold measured.yaml for the time of the block, and write it at its end."""
    with (HERE / ".measured.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = yaml.safe_load(MEASURED.read_text()) if MEASURED.exists() else {}
        yield known
        lines = [
            "# Written by measure.py: runs, different final weights among them, runs that ended with the commonest."
        ]
        lines += [f"machine: {yaml.safe_dump(known.pop('machine'), default_flow_style=True, width=200).strip()}"]
        for script, found in sorted(known.items()):
            lines.append(f"{script}:")
            lines += [
                f"  {key}: {yaml.safe_dump(value, default_flow_style=True, sort_keys=False).splitlines()[0]}"
                for key, value in found.items()
            ]
        MEASURED.write_text("\n".join(lines) + "\n")


def wanted(label: dict[str, Any]) -> list[str]:
    """Return the conditions under which a script with this label is measured.

    ``all`` includes all fixes but a few; each of those is measured alone only if ``all`` does not fix the script.
    """
    causes = label["cause"] != "control" and label["all"] != "D"
    return list(dict.fromkeys([BARE, "seeds", *label.get("fix", ()), *(["all"] if causes else [])]))


def main() -> None:
    """Measure what measured.yaml does not know yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", help="names without .py; all of them by default")
    options = parser.parse_args()
    labels = yaml.safe_load((HERE / "labels.yaml").read_text())
    for name in options.scripts or labels:
        script = SCRIPTS / f"{name}.py"
        for condition in wanted(labels[name]):
            with measured() as known:
                known["machine"] = machine()
                if known.get(name, {}).get("script") != fingerprint(script):
                    known[name] = {"script": fingerprint(script)}
                if condition in known[name]:
                    continue
            found = measure(script, condition)
            with measured() as known:
                known[name][condition] = found
            print(name, condition, found, flush=True)


if __name__ == "__main__":
    main()
