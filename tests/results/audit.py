"""Audit every labeled script as a user would, compare with its label, and write a table.

Each script runs in a fresh folder with a home, caches and a temporary folder of its own. Results are kept below
.detaudit/, for one state of detaudit, of the script and of its label: an interrupted pass can be resumed.

    python -m tests.results.audit [NAMES] [--runs 3] [--cache cold|warm|isolated] [--write FILE]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.corpus.audit_corpus import LETTERS, Kept
from tests.results import twice

CACHES = ("cold", "warm", "isolated")
ENDED = 600
"""Seconds after which an audit is ended."""

_HEAD = """# Results: files, printed text and exit statuses

Written by `python -m tests.results.audit`: each script of tests/results/scripts/ audited with `--runs {runs}`, caches
{cache}. N is nondeterministic, D deterministic, ? inconclusive; in bold if it misses its label. What the label says
must be named is compared too: *missing* is what was not. measured.yaml has what two runs without detaudit left.

"""


class Audited(NamedTuple):
    """The result of one audit: its letter, ``!`` if there is none; what is named; what is wrong beside the letter."""

    letter: str
    named: list[str]
    problem: str
    seconds: float


def audit(script: Path, label: Mapping[str, Any], runs: int, cache: str) -> Audited:
    """Return what one audit of a script says. ``warm``: the script ran once before, elsewhere, with the same home."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        env = twice.environment(folder)
        if cache == "warm":
            before = twice.make_project(script, folder, label.get("given", {}))
            subprocess.run(
                [sys.executable, script.name], cwd=before, env=env, capture_output=True, timeout=ENDED, check=False
            )
            before.rename(folder / "before")
        project = twice.make_project(script, folder, label.get("given", {}))
        options = [*label.get("options", ()), *(["--isolate"] if cache == "isolated" else [])]
        command = [sys.executable, "-m", "detaudit", "run", script.name, "--runs", str(runs), "--format", "json"]
        started = time.monotonic()
        try:
            finished = subprocess.run(
                [*command, "--quiet", "--out", str(folder / "out"), *dict.fromkeys(options)],
                cwd=project, env=env, capture_output=True, text=True, timeout=ENDED, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Audited("!", [], f"ended after {ENDED} s", ENDED)
    took = round(time.monotonic() - started, 1)
    try:
        report = json.loads(finished.stdout)
    except ValueError:
        return Audited(
            "!", [], finished.stderr.strip().splitlines()[-1][:200] if finished.stderr else "no report", took
        )
    spilled = label.get("secret", "\0") in finished.stdout + finished.stderr
    return Audited(LETTERS[report["verdict"]], named(report), "the secret is in the report" if spilled else "", took)


def named(report: Mapping[str, Any]) -> list[str]:
    """Return what a report says of outputs, one text for each: the file or stream, the path inside, what is there.

    Whatever in its groups and warnings has a path counts, and a reason: so it does not matter here how a report is
    laid out. What is said of a single run, such as its list of files, does not count.
    """
    group = {key: value for key, value in report["groups"][0].items() if key not in ("runs", "flags", "settings")}
    return list(dict.fromkeys(_with_paths([group, report["warnings"]])))


def _with_paths(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for one in node:
            yield from _with_paths(one)
    elif isinstance(node, dict):
        simple = {key: value for key, value in node.items() if not isinstance(value, dict)}
        if {"path", "file", "files", "paths", "stream", "site"} & simple.keys() or ("kind" in node and len(simple) > 1):
            yield " ".join(json.dumps(value, ensure_ascii=False).strip('"') for value in simple.values() if value)[:300]
        for value in node.values():
            yield from _with_paths(value)


def verdict_of(label: Mapping[str, Any], cache: str) -> str:
    """Return the letter that an audit with these caches must give."""
    return str(label.get(cache, label["verdict"]))


def missing(label: Mapping[str, Any], audited: Audited, cache: str) -> str:
    """Return what the label says must be named and is not, "" if all is."""
    if verdict_of(label, cache) == "D" or "path" not in label:
        return ""
    texts = [text for text in audited.named if label["path"] in text]
    if not texts:
        return str(label["path"])
    least: list[str] = min(([word for word in label.get("inside", ()) if word not in text] for text in texts), key=len)
    return ", ".join(least)


def right(label: Mapping[str, Any], audited: Audited, cache: str) -> bool:
    """Return whether an audit says what the label says, and names what it names."""
    return audited.letter == verdict_of(label, cache) and not audited.problem and not missing(label, audited, cache)


def audit_all(
    names: Sequence[str], folder: Path, labels: Mapping[str, Mapping[str, Any]], runs: int, cache: str
) -> dict[str, Audited]:
    """Return the audit of each script of a folder, from an earlier pass if nothing changed since; print each."""

    def fingerprint(name: str) -> str:
        files = twice.fingerprint(folder / f"{name}.py") + twice.fingerprint(twice.NET)
        return files + json.dumps(labels[name], sort_keys=True)

    kept = Kept(f"{folder.parent.name}", Audited, fingerprint)
    audits = {}
    for name in names:
        how = f"{runs} {cache}"
        if not kept.of(name, how):
            kept.add(name, how, audit(folder / f"{name}.py", labels[name], runs, cache))
        audits[name] = found = kept.of(name, how)[-1]
        good = right(labels[name], found, cache)
        lacks = missing(labels[name], found, cache)
        words = ["ok  " if good else "MISS", name, verdict_of(labels[name], cache), "got", found.letter, found.problem]
        print(*words, f"missing {lacks}" if lacks else "", f"{found.seconds:.0f}s", flush=True)
        if not good:
            for text in found.named[:4]:
                print("       ", text, flush=True)
    return audits


def score(labels: Mapping[str, Mapping[str, Any]], audits: Mapping[str, Audited], cache: str) -> list[str]:
    """Return lines that count what is right and what is wrong, of all and of each class."""
    pairs = {name: (verdict_of(labels[name], cache), found) for name, found in audits.items()}
    unequal = [(want, found) for want, found in pairs.values() if want != "D"]
    alarms = [name for name, (want, found) in pairs.items() if want == "D" and found.letter != "D"]
    lines = [
        f"{len(pairs)} scripts, {len(pairs) - len(unequal)} of them controls: "
        f"{sum(want == found.letter for want, found in unequal)} of {len(unequal)} differences judged as labeled, "
        f"{len(alarms)} false alarms, "
        f"{sum(not right(labels[name], found, cache) for name, found in audits.items())} misjudged in all.",
        "",
        "| class | scripts | as labeled |",
        "|---|--:|--:|",
    ]
    good = Counter(labels[name]["class"] for name, found in audits.items() if right(labels[name], found, cache))
    total = Counter(labels[name]["class"] for name in audits)
    return [*lines, *(f"| {kind} | {count} | {good[kind]} |" for kind, count in sorted(total.items()))]


def table(labels: Mapping[str, Mapping[str, Any]], audits: Mapping[str, Audited], runs: int, cache: str) -> str:
    """Return the results as Markdown."""
    lines = [_HEAD.format(runs=runs, cache=cache), *score(labels, audits, cache), ""]
    lines += ["| script | class | label | audit | named | missing |", "|---|---|:-:|:-:|---|---|"]
    for name, found in audits.items():
        label = labels[name]
        letter = found.letter if right(label, found, cache) else f"**{found.letter}**"
        of_interest = [text for text in found.named if label.get("path", "\0") in text] or found.named
        shown = of_interest[0].replace("|", "\\|").replace("`", "'")[:100] if of_interest else ""
        lacks = missing(label, found, cache) or found.problem
        cells = [name, label["class"], verdict_of(label, cache), letter, f"`{shown}`" if shown else "", lacks]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return the options of an audit of a folder of scripts."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", help="names without .py; all of them by default")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cache", choices=CACHES, default="cold", help="isolated: with --isolate")
    parser.add_argument("--write", type=Path)
    return parser


def main() -> int:
    """Audit the scripts; the exit status is 1 if one is misjudged."""
    options = arguments(__doc__).parse_args()
    labels: dict[str, dict[str, Any]] = yaml.safe_load((twice.HERE / "labels.yaml").read_text())
    audits = audit_all(options.scripts or list(labels), twice.SCRIPTS, labels, options.runs, options.cache)
    print(*score(labels, audits, options.cache), sep="\n")
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(table(labels, audits, options.runs, options.cache))
    return 0 if all(right(labels[name], found, options.cache) for name, found in audits.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
