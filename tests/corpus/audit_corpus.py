"""Audits every labelled script under each recipe, several times over, and writes the table of docs/corpus.md."""

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

HERE = Path(__file__).parent
RECIPES = ("none", "seeds", "all")
LETTERS = {"deterministic": "D", "nondeterministic": "N", "inconclusive": "?"}


def audit(script: str, runs: int) -> dict[str, str]:
    """Return the letter of the verdict under each recipe, from one audit as a user would start it."""
    options = [word for recipe in RECIPES for word in ("--recipe", recipe)]
    with tempfile.TemporaryDirectory() as folder:
        finished = subprocess.run(
            [sys.executable, "-m", "detaudit", "run", f"{script}.py", "--runs", str(runs), "--fail-fast", *options,
             "--out", folder, "--format", "json", "--quiet"],
            cwd=HERE, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if not finished.stdout:
        raise RuntimeError(finished.stderr)
    return {g["recipe"]["name"]: LETTERS[g["verdict"]] for g in json.loads(finished.stdout)["groups"]}


def table(seen: dict[str, list[dict[str, str]]], labels: dict[str, dict[str, str]], runs: int) -> str:
    """Return the results as Markdown, with recall and precision over all verdicts."""
    lines = [
        "# The corpus: what detaudit says of scripts whose cause is known",
        "",
        f"Made by `make test-corpus`: each script audited under each recipe with `--runs {runs} --fail-fast`,",
        "the whole several times over. N is nondeterministic, D deterministic, one letter for each audit; an audit",
        "that missed its label is bold. The scripts and their labels are in tests/corpus/.",
        "",
        "| script | cause | none | seeds | all | reported in |",
        "|---|---|---|---|---|---|",
    ]
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    for script, audits in seen.items():
        label = labels[script]
        cells = []
        for recipe in RECIPES:
            letters = "".join(found[recipe] for found in audits)
            counts.update((label[recipe], letter) for letter in letters)
            cells.append(letters if set(letters) == {label[recipe]} else f"**{letters}**")
        lines.append(f"| {script} | {label['cause']} | {' | '.join(cells)} | {label.get('reference', '')} |")
    caught, missed, false = counts["N", "N"], counts["N", "D"] + counts["N", "?"], counts["D", "N"]
    called, quiet = counts["D", "D"], sum(n for (want, _), n in counts.items() if want == "D")
    lines += [
        "",
        f"Recall {caught} of {caught + missed}; precision {caught} of {caught + false}; "
        f"{called} of {quiet} deterministic ones called so.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Audit the corpus; the exit status is 1 if any verdict missed its label."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", help="names without .py; all of them by default")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    labels = yaml.safe_load((HERE / "labels.yaml").read_text())
    seen: dict[str, list[dict[str, str]]] = {}
    for script in options.scripts or labels:
        seen[script] = []
        for _ in range(options.repeats):
            seen[script].append(audit(script, options.runs))
            print(script, seen[script][-1], file=sys.stderr, flush=True)
    text = table(seen, labels, options.runs)
    print(text)
    if options.write:
        options.write.write_text(text)
    right = all(
        found[recipe] == labels[script][recipe] for script in seen for found in seen[script] for recipe in RECIPES
    )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
