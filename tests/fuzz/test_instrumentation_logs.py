"""Instrumentation logs: whatever is in one, comparing it with a whole one raises nothing and ends."""

import json
from functools import cache
from pathlib import Path
from random import Random

from detaudit.trace import instrumented, lines, operations
from detaudit.trace.align import first_differing_operation
from tests.fuzz.fuzzing import bent, changed, fuzz, profiles

KIND = "instrumentation logs"
SAMPLES = Path(__file__).parent / "samples"
TENSOR = {"k": "tensor", "role": "in0", "digest": "float32[2]:0", "dtype": "float32", "shape": [2], "file": "in0.bin"}


@cache
def samples() -> dict[str, bytes]:
    found = {level: (SAMPLES / level / "7.0.ops").read_bytes() for level in ("operations", "lines")}
    return {**found, "tensors": json.dumps(TENSOR).encode() + b"\n"}


def mutated(random: Random) -> tuple[str, bytes]:
    level = random.choices(list(samples()), (5, 5, 1))[0]
    lines = samples()[level].splitlines(keepends=True)
    at = random.randrange(len(lines))
    match random.randrange(5):
        case 0:
            return level, bent(random, samples()[level], list(samples().values()))
        case 1:
            lines[at : at + random.choice((1, 2, 9))] = []
        case 2:
            lines[at] = bent(random, lines[at])
        case _:
            tree = changed(random, json.loads(lines[at]))
            lines[at] = json.dumps(tree, ensure_ascii=random.random() < 0.8).encode(errors="surrogatepass") + b"\n"
    return level, b"".join(lines)


@profiles(KIND)
def test_any_instrumentation_log_is_compared(inputs: int, tmp_path: Path) -> None:
    wholes = {level: tmp_path / f"{level}.ops" for level in samples()}
    for level, path in wholes.items():
        path.write_bytes(samples()[level])
    (tmp_path / "in0.bin").write_bytes(bytes(8))
    other = tmp_path / "other.ops"

    def make(random: Random) -> tuple[str, bytes]:
        level, data = mutated(random)
        other.write_bytes(data)
        return level, data

    def check(made: tuple[str, bytes]) -> None:
        level, _ = made
        whole = wholes[level]
        if level == "operations":
            for pair in ((whole, other), (other, whole)):
                first_differing_operation(*map(operations.operations, pair))
        elif level == "lines":
            for a, b in ((whole, other), (other, whole)):
                lines.fork(lines.watched(a), lines.watched(b))
                list(lines.assignments(lines.watched(a), lines.watched(b)))
        else:
            kept = [instrumented._kept(path, "in0") for path in (whole, other)]
            if kept[0] and kept[1]:
                instrumented._pair(kept[0], (kept[1][0], bytes(7) + b"1"), None)
            if kept[1]:
                instrumented._pair(kept[1], (kept[1][0], bytes(7) + b"1"), None)

    fuzz(KIND, inputs, make, check)
