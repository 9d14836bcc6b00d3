"""Event logs: whatever was lost or changed in one, reading it raises nothing, and what was lost is no match."""

import json
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random

import msgspec
import pytest

from detaudit import wire
from detaudit.judge.group import GroupInProgress
from detaudit.judge.live import Follower
from detaudit.launch import RunOutcome, RunSpec
from detaudit.launch.plan import GroupPlan, plan_group, workspace_for
from detaudit.model import Group, Status, Verdict
from detaudit.runner import Result
from detaudit.runs.environment import add_processes
from detaudit.runs.files import Unhooked
from detaudit.runs.live_log import Growing, Tail
from detaudit.runs.log import read_run
from detaudit.runs.status import compared, judge
from tests.fakes import settings
from tests.fuzz.fuzzing import bent, changed, fuzz, profiles

KIND = "event logs"
SAMPLES = Path(__file__).parent / "samples"
RUNS = {"torch": "t1.py", "sklearn": "t2.py"}
"""Folders with the event logs of one recorded run each, and its script."""

RESULT = re.compile(rb'"k":"(final|undigested)"')


@cache
def samples() -> dict[str, dict[str, bytes]]:
    return {run: {path.name: path.read_bytes() for path in sorted((SAMPLES / run).iterdir())} for run in RUNS}


@cache
def every() -> tuple[bytes, ...]:
    return tuple(log for logs in samples().values() for log in logs.values())


class Case:
    """Two runs in a folder. What the first one recorded is whole."""

    def __init__(self, folder: Path, run: str) -> None:
        folder.mkdir()
        options = settings(folder, "seeds", runs=2)
        self.plan: GroupPlan = plan_group(options, options.recipes[0], workspace_for(options), {})
        self.cwd = options.cwd
        self._expected = RUNS[run]
        self.spec(2).folder.joinpath("logs").mkdir(parents=True)
        self.write(samples()[run])
        self.first = self.judged(1)

    def spec(self, number: int) -> RunSpec:
        found = self.plan.spec(number)
        return RunSpec(found.argv, found.cwd, {}, found.folder, found.folder, "", self._expected)

    def write(self, logs: Mapping[str, bytes]) -> None:
        """Write the event logs of the second run."""
        folder = self.spec(2).folder / "logs"
        for name in os.listdir(folder):
            os.unlink(folder / name)
        for name, data in logs.items():
            (folder / name).write_bytes(data)

    def judged(self, number: int = 2) -> Result:
        """Read what was written as a run with this number."""
        processes = read_run(self.spec(2).folder)
        run = judge(number, self.spec(number), RunOutcome(0, 1.0), processes, Unhooked())
        return Result(run, processes, compared(self.spec(2), processes))

    def group(self, *results: Result) -> Group:
        """Compare runs, as an audit does."""
        group = GroupInProgress(self.plan, self.cwd)
        for result in results:
            add_processes({"python": "", "frameworks": {}, "packages": {}}, result.processes)
            group.add(result.run, result.processes, result.record)
        return group.result()


@pytest.fixture
def cases(tmp_path: Path) -> dict[str, Case]:
    return {run: Case(tmp_path / run, run) for run in RUNS}


def mutated(random: Random) -> tuple[str, dict[str, bytes]]:
    run = random.choice(list(RUNS))
    logs = dict(samples()[run])
    name = random.choice(list(logs))
    if name.endswith(wire.ROWS_SUFFIX):
        logs[name] = changed_rows(random, logs[name])
        return run, logs
    lines = logs[name].splitlines(keepends=True)
    match random.randrange(8):
        case 0:
            logs[name] = bent(random, logs[name], every())
        case 1:
            del lines[random.randrange(len(lines))]
            logs[name] = b"".join(lines)
        case 2:
            random.shuffle(lines)
            logs[name] = b"".join(lines)
        case 3:
            at = random.randrange(len(lines))
            logs[name] = b"".join([*lines[:at], bent(random, lines[at]), *lines[at + 1 :]])
        case 4:
            logs[f"{random.choice((0, 1, 7, '../x', 'a'))!s:.9}.0.jsonl".replace("/", "")] = bent(random, logs[name])
        case _:
            at = random.randrange(len(lines))
            tree = changed(random, json.loads(lines[at]))
            lines[at] = json.dumps(tree, ensure_ascii=random.random() < 0.8).encode(errors="surrogatepass") + b"\n"
            logs[name] = b"".join(lines)
    return run, logs


def changed_rows(random: Random, data: bytes) -> bytes:
    size = wire.ROW.size
    rows = [data[place : place + size] for place in range(0, len(data), size)]
    at = random.randrange(len(rows))
    match random.randrange(5):
        case 0:
            return bent(random, data, every())
        case 1:
            del rows[at]
        case 2:
            random.shuffle(rows)
        case 3:
            rows.insert(at, random.choice(rows))
        case _:
            fields = list(wire.ROW.unpack(rows[at]))
            number = random.randrange(len(fields))
            limits = (2**63 - 1, 2**32 - 1, 2**32 - 1, 255, 255)
            fields[number] = random.choice((bytes(16), random.randbytes(16))) if number == 5 else (
                random.choice((float("nan"), float("-inf"), -0.0)) if number == 6
                else random.choice((0, 1, 12, limits[number], -1 if number == 0 else 2))
            )  # fmt: skip
            rows[at] = wire.ROW.pack(*fields)
    return b"".join(rows)


@profiles(KIND, 0.8)
def test_any_event_log_is_read(inputs: int, cases: dict[str, Case]) -> None:
    def make(random: Random) -> tuple[str, dict[str, bytes], bool]:
        run, logs = mutated(random)
        cases[run].write(logs)
        return run, logs, not random.randrange(10)

    def check(made: tuple[str, dict[str, bytes], bool]) -> None:
        run, _, wholly = made
        case = cases[run]
        second = case.judged()
        if wholly:
            group = case.group(case.first, second)
            assert group.verdict is not Verdict.DETERMINISTIC or second.run.status is Status.OK
            msgspec.json.encode(group)
        tail, follower = Tail(), Follower(case.first.record)
        for path, news in Growing(case.spec(2).folder).new():
            tail.take(news)
            follower.differs(path, news)

    fuzz(KIND, inputs, make, check)


@profiles(KIND, 0.2)
def test_what_was_cut_off_is_no_match(inputs: int, cases: dict[str, Case]) -> None:
    """Not even if it was cut off at the same place in all runs, as on a disk that is full."""

    def make(random: Random) -> tuple[str, str, bytes, bytes]:
        run = random.choice(list(RUNS))
        name = random.choice(list(samples()[run]))
        whole = samples()[run][name]
        at = random.randrange(len(whole))
        cases[run].write({**samples()[run], name: whole[:at]})
        return run, name, whole[:at], whole[at:]

    def check(made: tuple[str, str, bytes, bytes]) -> None:
        run, name, kept, lost = made
        case = cases[run]
        second = case.judged()
        if name.endswith(wire.ROWS_SUFFIX) or not kept.endswith(b"\n") or (run == "torch" and b'"bye"' in lost):
            assert second.run.status is Status.NOT_RECORDED
            assert case.group(second, second).verdict is Verdict.INCONCLUSIVE
            assert case.group(case.first, second).verdict is Verdict.INCONCLUSIVE
        else:
            matches = case.group(case.first, second).verdict is Verdict.DETERMINISTIC
            assert not matches or not RESULT.search(lost)

    fuzz(KIND, inputs, make, check)
