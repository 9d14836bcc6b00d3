"""Audit every labeled script with each recipe, as a user would, and write the table of docs/lab/corpus-verdicts.md.

Results are kept below .detaudit/, for one state of detaudit and of the script: an interrupted pass can be resumed.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml

from tests.corpus.corpus_table import RECIPES, Audited, right, table
from tests.corpus.measure import HERE, SCRIPTS, fingerprint

ROOT = HERE.parents[1]
LETTERS = {"deterministic": "D", "nondeterministic": "N", "inconclusive": "?"}


def detaudit(verb: str, script: str, options: Iterable[str]) -> dict[str, Any]:
    """Return the JSON that detaudit prints for a script, in a copy of its folder: some scripts leave files."""
    with tempfile.TemporaryDirectory() as folder:
        project = shutil.copytree(SCRIPTS, Path(folder) / "project", ignore=shutil.ignore_patterns("__pycache__"))
        finished = subprocess.run(
            [sys.executable, "-m", "detaudit", verb, f"{script}.py", *options,
             "--timeout", "600", "--out", f"{folder}/out", "--format", "json", "--quiet"],
            cwd=project, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if not finished.stdout:
        raise RuntimeError(finished.stderr)
    printed: dict[str, Any] = json.loads(finished.stdout)
    return printed


def audit(script: str, runs: int, recipes: Sequence[str] = RECIPES) -> Audited:
    """Return the verdicts of one audit of a script."""
    options = [word for recipe in recipes for word in ("--recipe", recipe)]
    found = detaudit("run", script, ["--runs", str(runs), "--fail-fast", *options])
    verdicts = {group["recipe"]["name"]: LETTERS[group["verdict"]] for group in found["groups"]}
    return Audited(letters="".join(verdicts[recipe] for recipe in recipes), named=named(found))


def named(audit: dict[str, Any]) -> str:
    """Return what an audit without flags names: the first stage that differs, lines by kind and call, leftovers."""
    group = audit["groups"][0]
    if group["first_difference"] is None:
        return ""
    sources = [f"line {one['line']} {one['kind']} {one['call']}".strip() for one in group["sources"]]
    leftovers = [one["kind"] for one in audit["warnings"] if one["kind"] == "leftover-files-read"]
    return ", ".join([group["first_difference"]["stage"], *sources, *leftovers])


def state_of_detaudit() -> str:
    """Return a digest of detaudit itself: results from another state do not count."""
    digest = hashlib.sha256()
    for path in sorted([*(ROOT / "detaudit").rglob("*.py"), *(ROOT / "configs").rglob("*.yaml")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


Entry = TypeVar("Entry", bound=tuple[Any, ...])


class Kept(Generic[Entry]):
    """Finished work, one JSON line each: the script, its fingerprint, the options, the result."""

    def __init__(
        self, name: str, kind: Callable[..., Entry], fingerprint_of: Callable[[str], str] | None = None
    ) -> None:
        self._kind = kind
        self._fingerprint_of = fingerprint_of or (lambda script: fingerprint(SCRIPTS / f"{script}.py"))
        self._path = ROOT / ".detaudit" / f"{name}-{state_of_detaudit()}.jsonl"
        self._path.parent.mkdir(exist_ok=True)

    def of(self, script: str, how: int | str) -> list[Entry]:
        """Return the results for a script, as it is now, with these options."""
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        key = [script, self._fingerprint_of(script), how]
        return [self._kind(*line[3:]) for line in map(json.loads, lines) if line[:3] == key]

    def add(self, script: str, how: int | str, found: Entry) -> None:
        """Keep one more."""
        with self._path.open("a") as file:
            print(json.dumps([script, self._fingerprint_of(script), how, *found]), file=file)


def main() -> int:
    """Audit the corpus; the exit status is 1 if a verdict misses its label."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", help="names without .py; all of them by default")
    parser.add_argument("--repeats", type=int, default=3, help="audits of each script")
    parser.add_argument("--rare-repeats", type=int, default=10, help="audits of a script whose difference is rare")
    parser.add_argument("--more", type=int, default=0, help="audits without flags of each script, beside those")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    labels = yaml.safe_load((HERE / "labels.yaml").read_text())
    measured = yaml.safe_load((HERE / "measured.yaml").read_text())
    kept, seen = Kept("corpus", Audited), {}
    for script in options.scripts or labels:
        repeats = options.rare_repeats if labels[script].get("rare") else options.repeats
        while len(kept.of(script, options.runs)) < repeats:
            kept.add(script, options.runs, audit(script, options.runs))
            print(script, *kept.of(script, options.runs)[-1], file=sys.stderr, flush=True)
        plain = f"{options.runs} without flags"
        while len(kept.of(script, plain)) < options.more:
            kept.add(script, plain, audit(script, options.runs, RECIPES[:1]))
            print(script, *kept.of(script, plain)[-1], file=sys.stderr, flush=True)
        seen[script] = [*kept.of(script, options.runs)[:repeats], *kept.of(script, plain)[: options.more]]
    text = table(seen, labels, measured, options.runs)
    print(text)
    if options.write:
        options.write.write_text(text)
    return 0 if all(right(labels[script], found) for script, found in seen.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
