"""What it costs to fold long event logs into blocks, and to compare two runs by them.

The event logs of 64 ranks are generated one after another, folded, and their rows removed: the steps of one rank differ
between two runs from three quarters on, the others match. Hashing is SHA-256 of the rows of an event log. Blocks are
compared in a process of its own: the blocks of all ranks of both runs are read, and of the rank that differs one block
of the rows of each run. The linear comparison reads all rows of that rank alone. CPU times.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.comparison import STAGES, hashing_s, peak_mib, write
from benchmarks.rows import Figure, Goal, Row, Scale, median, ratios

RANKS = 64
TURNS = 3
DIFFERS = 41
"""The rank that differs."""

RATE = Goal(10_000_000, at_least=True)


def write_log(folder: Path, rank: int, steps: int, differs: int) -> Path:
    """Write the event log of a rank, which differs from that of another run from a step on; 0 for no step."""
    log = folder / "logs" / f"{1000 + rank}.0.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    write(log, steps, differs, 1 + rank)
    hello, *lines = log.read_text().splitlines()
    fields = {**json.loads(hello), "pid": 1000 + rank, "rank": rank, "world": RANKS}
    log.write_text("".join(line + "\n" for line in (json.dumps(fields), *lines)))
    return log


def cpu_s(action: Callable[[], object]) -> float:
    """Return the CPU time of an action."""
    started = time.process_time()
    action()
    return time.process_time() - started


def fold_ranks(folder: Path, steps: int, ranks: int, differs: int) -> Iterator[dict[str, float]]:
    """Leave the blocks of two runs in ``a`` and ``b``, and the rows of both of the rank that differs.

    Yield the figures of each rank; those of the first TURNS have the time of hashing its rows.
    """
    from detaudit.runs import log as runs_log
    from detaudit.runs.log_rows import blocks_of, rows_of

    for rank in range(ranks):
        log = write_log(folder / "a", rank, steps, 0)
        found = {"fold": cpu_s(partial(runs_log.fold, log))}
        found |= {"rows": rows_of(log).stat().st_size / steps, "blocks": blocks_of(log).stat().st_size / steps}
        if rank < TURNS:
            found["hashing"] = hashing_s(log)
        if rank == DIFFERS % ranks:
            runs_log.fold(write_log(folder / "b", rank, steps, differs))
        else:
            rows_of(log).unlink()
            (folder / "b" / "logs").mkdir(parents=True, exist_ok=True)
            for path in (log, blocks_of(log)):
                os.link(path, folder / "b" / "logs" / path.name)
        yield found


def bytes_read() -> int:
    """Return the bytes that this process has read so far."""
    found = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(found["rchar"])


def compare(folder: Path, differs: int) -> dict[str, float]:
    """Compare two runs by their blocks, and one rank of them by its rows."""
    from detaudit.judge import comparer
    from detaudit.model import RunRecord
    from detaudit.runs import log as runs_log
    from detaudit.runs.log_rows import blocks_of, rows_of
    from detaudit.runs.status import recorded

    def record(run: str) -> RunRecord:
        return RunRecord(trainings=recorded(runs_log.read_run(folder / run)))

    def first_step() -> int | None:
        a, b = record("a"), record("b")
        found = comparer.first_difference(a, b)
        return found.step if found else None

    rows = [path for run in "ab" for path in (folder / run / "logs").glob("*.rows")]
    away = [path.rename(path.with_suffix(".away")) for path in rows]
    started, before = time.process_time(), bytes_read()
    a, b = record("a"), record("b")
    heads = bytes_read() - before
    for path, name in zip(away, rows, strict=True):
        path.rename(name)
    found = comparer.first_difference(a, b)
    figures = {"blocks": time.process_time() - started, "heads": heads, "read": bytes_read() - before - heads}
    assert found is not None
    assert found.step == differs, found
    figures["MiB"] = peak_mib()
    for run in "ab":
        for path in (folder / run / "logs").glob("*.jsonl"):
            (blocks_of(path) if rows_of(path).exists() else path).unlink()
    started = time.process_time()
    assert first_step() == differs
    return {**figures, "rows": time.process_time() - started}


def measure(scale: Scale) -> Iterator[Row]:
    """Yield a row for folding, and one for comparing."""
    steps, ranks = scale.size(1_000_000, 10_000), scale.size(RANKS, 4)
    differs = steps * 3 // 4
    with tempfile.TemporaryDirectory() as name:
        found = list(fold_ranks(Path(name), steps, ranks, differs))
        words = [sys.executable, "-m", "benchmarks.folding", name, str(differs)]
        compared = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
    hashed = [one for one in found if "hashing" in one]
    yield Row(
        what=f"fold an event log of {steps:,} steps",
        over="hashing its rows",
        ratios=ratios(hashed, "fold", "hashing"),
        also=(
            Figure(median(steps * len(STAGES) / one["fold"] for one in found), "rows per second", RATE),
            Figure(ranks, "ranks"),
            Figure(median(one["rows"] for one in found), "bytes of rows per step"),
            Figure(median(one["blocks"] for one in found), "bytes of blocks per step"),
        ),
    )
    yield Row(
        what=f"compare 2 runs of {ranks} ranks by their blocks",
        over="a linear comparison of the rank that differs",
        ratios=ratios([compared], "blocks", "rows"),
        also=(
            Figure(compared["blocks"], "s"),
            Figure(compared["read"], "bytes of rows"),
            Figure(compared["heads"] / 2 / ranks, "bytes of lines and blocks of each rank"),
            Figure(compared["MiB"], "MiB"),
        ),
    )


if __name__ == "__main__":
    print(json.dumps(compare(Path(sys.argv[1]), int(sys.argv[2]))))
