"""What it costs to fold long event logs into trees, and to compare two runs by them.

The event logs of 64 ranks are generated one after another, folded, and removed: the steps of one rank differ between
two runs from three quarters on, the others match. Decoding is `json.loads` of each line of an event log. Trees are
compared in a process of its own: the trees of all ranks of both runs are read, and of the rank that differs one block
of each event log. The linear comparison reads both event logs of that rank alone. CPU times.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from unittest import mock

from benchmarks.comparison import STAGES, decoding_s, peak_mib
from benchmarks.rows import Figure, Goal, Row, Scale, median, ratios

RANKS = 64
TURNS = 3
DIFFERS = 41
"""The rank that differs."""

RATE = Goal(1_000_000, at_least=True)
STEP = "".join(
    f'{{"k":"event","fw":"torch","step":%d,"stage":"{stage}","digest":"%s","value":%s}}\n' for stage in STAGES
)
SAMPLE = 2**24


def write_log(folder: Path, rank: int, steps: int, differs: int | None) -> Path:
    """Write the event log of a rank, which differs from others with its number from a step on."""
    log = folder / "logs" / f"{1000 + rank}.0.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    hello = {"k": "hello", "schema": 1, "pid": 1000 + rank, "ppid": 1, "argv": ["python", "train.py"]}
    final = {"k": "final", "fw": "torch", "steps": steps, "sum": "0x1.8p+1", "loss": "0x1p-1", "params": 2}
    with log.open("w") as file:
        file.write(json.dumps({**hello, "python": "3.11.7", "rank": rank, "world": RANKS, "identity": []}) + "\n")
        chance, digests = random.Random(rank), ""
        for step in range(1, steps + 1):
            chance = random.Random(-1 - rank) if step == differs else chance
            digests = chance.randbytes(64).hex()
            loss = f'"{chance.random().hex()}"'
            shown = [digests[place : place + 32] for place in range(0, 128, 32)]
            values = ("null", "null", loss, "null")
            file.write(STEP % tuple(one for row in zip([step] * 4, shown, values, strict=True) for one in row))
        file.write(json.dumps({**final, "digest": digests[:32], "sparse": False, "devices": ["cpu"]}) + "\n")
        file.write(json.dumps({"k": "bye", "how": "exit"}) + "\n")
    return log


def cpu_s(action: Callable[[], object]) -> float:
    """Return the CPU time of an action."""
    started = time.process_time()
    action()
    return time.process_time() - started


def fold_ranks(folder: Path, steps: int, ranks: int, differs: int) -> Iterator[dict[str, float]]:
    """Leave the trees of two runs in ``a`` and ``b``, and both event logs of the rank that differs.

    Yield the figures of each rank; those of the first TURNS have the time of decoding its event log.
    """
    from detaudit.runs import log as runs_log

    for rank in range(ranks):
        log = write_log(folder / "a", rank, steps, None)
        found = {"fold": cpu_s(partial(runs_log.fold, log))}
        tree = runs_log.tree_file(log)
        found |= {"log": log.stat().st_size / steps, "tree": tree.stat().st_size / steps}
        if rank < TURNS:
            with log.open("rb") as file:
                sample = file.read(SAMPLE)
            found["packed"] = len(zlib.compress(sample, 6)) / len(sample) * found["log"]
            found["decoding"] = decoding_s(log)
        if rank == DIFFERS % ranks:
            runs_log.fold(write_log(folder / "b", rank, steps, differs))
        else:
            log.unlink()
            (folder / "b" / "logs").mkdir(parents=True, exist_ok=True)
            os.link(tree, folder / "b" / "logs" / tree.name)
        yield found


def bytes_read() -> int:
    """Return the bytes that this process has read so far."""
    found = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(found["rchar"])


def compare(folder: Path, differs: int) -> dict[str, float]:
    """Compare two runs by their trees, and one rank of them by its event logs."""
    from detaudit.judge import comparer
    from detaudit.model import RunRecord
    from detaudit.runs import log as runs_log
    from detaudit.runs.log_pages import FoldedTree
    from detaudit.runs.status import recorded

    def record(run: str, read: Callable[[Path], list[runs_log.Process]]) -> RunRecord:
        return RunRecord(trainings=recorded(read(folder / run)))

    started, before = time.process_time(), bytes_read()
    a, b = (record(run, runs_log.read_folded) for run in "ab")
    heads, read = bytes_read() - before, FoldedTree._read
    with mock.patch.object(FoldedTree, "_read", autospec=True, side_effect=read) as nodes:
        found = comparer.first_difference(a, b)
    taken, whole = time.process_time() - started, bytes_read() - before - heads
    assert found is not None
    assert found.step == differs, found
    figures = {"trees": taken, "heads": heads, "MiB": peak_mib(), "nodes": nodes.call_count, "blocks": whole}
    started = time.process_time()
    one, two = (record(run, runs_log.read_run) for run in "ab")
    linear = comparer.first_difference(one, two)
    assert linear is not None
    assert linear.step == differs, linear
    figures["logs"] = time.process_time() - started
    tracemalloc.start()
    kept = [record("a", runs_log.read_run)]
    return {**figures, "held": tracemalloc.get_traced_memory()[0] / len(kept)}


def measure(scale: Scale) -> Iterator[Row]:
    """Yield a row for folding, and one for comparing."""
    steps, ranks = scale.size(1_000_000, 10_000), scale.size(RANKS, 4)
    differs = steps * 3 // 4
    with tempfile.TemporaryDirectory() as name:
        found = list(fold_ranks(Path(name), steps, ranks, differs))
        words = [sys.executable, "-m", "benchmarks.folding", name, str(differs)]
        turns = [
            json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
            for _ in range(scale.turns(TURNS))
        ]
    decoded = [one for one in found if "decoding" in one]
    yield Row(
        what=f"fold an event log of {steps:,} steps",
        over="decoding it",
        ratios=ratios(decoded, "fold", "decoding"),
        also=(
            Figure(median(steps * len(STAGES) / one["fold"] for one in found), "events per second", RATE),
            Figure(ranks, "ranks"),
            Figure(median(one["log"] for one in found), "bytes of log per step"),
            Figure(median(one["packed"] for one in decoded), "bytes of compressed log per step"),
            Figure(median(one["tree"] for one in found), "bytes of trees per step"),
        ),
    )
    yield Row(
        what=f"compare 2 runs of {ranks} ranks by their trees",
        over="a linear comparison of the rank that differs",
        ratios=ratios(turns, "trees", "logs"),
        also=(
            Figure(median(one["trees"] for one in turns), "s"),
            Figure(turns[0]["nodes"], "nodes read"),
            Figure(turns[0]["blocks"], "bytes of nodes and blocks"),
            Figure(turns[0]["heads"] / 2 / ranks, "bytes of each head"),
            Figure(max(one["MiB"] for one in turns), "MiB"),
            Figure(turns[0]["held"], "bytes held of a rank without trees"),
        ),
    )


if __name__ == "__main__":
    print(json.dumps(compare(Path(sys.argv[1]), int(sys.argv[2]))))
