"""All measurements. Each has one stored result in benchmarks/results/, and one or more rows in the table."""

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rows import Row, Scale

FOLDER = Path(__file__).parent
SECTIONS = {
    "audits": "Whole audits",
    "differs": "When a difference is known",
    "bisections": "Whole bisections",
    "traces": "Whole traces",
    "at_once": "Several runs at once",
    "steps": "Recording a step",
    "stages": "Recording each stage",
    "operations": "Recording every operation",
    "digest": "Digests",
    "start": "Starting",
    "comparison": "Comparing runs",
    "folding": "Folding event logs",
    "pages": "HTML reports",
    "text": "Reading printed text",
    "files": "Comparing files",
    "distances": "Comparing tensors",
    "processes": "Watching processes",
    "search": "Runs per bisection",
}
"""The module of each section of docs/lab/benchmarks.md, whose docstring says how it is measured, and its heading."""


@dataclass(frozen=True)
class Measurement:
    """A name, the module that measures with these arguments, what it is if unmeasured, and whether it takes long."""

    name: str
    module: str
    what: str
    arguments: tuple[Any, ...] = ()
    long: bool = False

    def measure(self, scale: Scale) -> Iterator[Row]:
        """Yield the rows. The module is imported only now: it may load frameworks, or need packages of its own."""
        rows: Iterator[Row] = importlib.import_module(f"benchmarks.{self.module}").measure(scale, *self.arguments)
        return rows


def about(module: str) -> str:
    """Return how a section is measured, without importing its module."""
    return (ast.get_docstring(ast.parse((FOLDER / f"{module}.py").read_text())) or "").replace("``", "`")


def _audit(name: str, file: str, what: str) -> Measurement:
    return Measurement(f"audit-{name}", "audits", f"detaudit run --runs 5, {what}", (file, what), long=True)


def _bisection(name: str, seconds: int, needed: int, turns: int, goal: float | None) -> Measurement:
    flags = "one flag" if needed == 1 else "two flags"
    what = f"detaudit bisect, {flags} needed, training of {seconds // 60} min"
    return Measurement(f"bisect-{name}", "bisections", what, (seconds, needed, turns, goal), long=True)


MEASUREMENTS = (
    _audit("gpt", "gpt.py", "GPT of 10.8 million weights"),
    _audit("cnn", "cnn.py", "torch CNN"),
    _audit("keras", "keras_cnn.py", "Keras CNN"),
    Measurement("differs", "differs", "detaudit run says that runs differ", long=True),
    _bisection("minute", 60, 1, 3, 14),
    _bisection("ten-minutes", 600, 1, 1, 3.4),
    _bisection("two-needed", 600, 2, 1, 3.8),
    _bisection("hour", 3600, 1, 1, None),
    Measurement("trace", "traces", "detaudit trace", long=True),
    Measurement("at-once", "at_once", "detaudit run --runs 4 --jobs 1", long=True),
    Measurement("steps", "steps", "a recorded step"),
    Measurement("stages", "stages", "a step of which one stage is recorded"),
    Measurement("operations", "operations", "a step of which all operations are recorded"),
    Measurement("digest", "digest", "digest of 400 MB"),
    Measurement("start", "start", "detaudit --help"),
    Measurement("comparison", "comparison", "an audit of 5 runs of 1,000,000 steps", (1_000_000, False)),
    Measurement("comparison-different", "comparison", "the same if all runs differ", (1_000_000, True)),
    Measurement("folding", "folding", "fold an event log of 1,000,000 steps"),
    Measurement("pages-runs", "pages", "the HTML report of 100 runs", (100, 1_000)),
    Measurement("pages-steps", "pages", "the HTML report of runs of 1,000,000 steps", (5, 1_000_000)),
    Measurement("text", "text", "read 100 MB of printed text"),
    Measurement("files", "files", "find what a run changed, and read it"),
    Measurement("distances", "distances", "the distance of 1,000,000 elements"),
    Measurement("processes", "processes", "a look at the process tree"),
    Measurement("search", "search", "bisect, runs of simulated trainings"),
)
