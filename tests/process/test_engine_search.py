"""``detaudit bisect`` and ``trace`` with ``--engine``, on hosts that are this machine behind a program for ssh."""

import json
import os
import shlex
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.process.conftest import Finished, Project
from tests.remote.engines.hosts import another, pretended, python

QUICK = ("--confirm", "2", "--error-rate", "0.9")
HASH = "import training\ntraining.train(seed=hash('x') % 1000)\n"
OF_THE_PROCESS = """
    import os, detaudit
    w = [0.0] * 4
    for step in range(3):
        rate = 0.1 + os.getpid() % 997
        w = [a + rate for a in w]
        detaudit.record(loss=1.0, weights=w)
"""


class Hosts:
    """Hosts a and b, and searches on them."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project, self.folder = project, folder
        folder.mkdir()
        self.env = {"DETAUDIT_SSH_COMMAND": pretended(folder)}

    def words(self, verb: str, *words: str) -> tuple[str, ...]:
        return (verb, "train.py", "--engine", "ssh:a,b", "--python", python(), "--out", "found", *words)

    def search(self, verb: str, *words: str) -> Finished:
        return self.project.detaudit(*self.words(verb, "--format", "json", *words), env=self.env)

    def pids(self) -> list[int]:
        return [int(line) for path in self.folder.glob("*.pids") for line in path.read_text().split()]

    def sent(self, host: str) -> int:
        path = self.folder / f"{host}.pids"
        return len(path.read_text().split()) if path.exists() else 0


@pytest.fixture
def hosts(project: Project, tmp_path: Path) -> Hosts:
    project.write("train.py", HASH)
    return Hosts(project, tmp_path / "hosts")


@pytest.mark.slow
def test_a_bisection_on_another_host(hosts: Hosts) -> None:
    (hosts.folder / "a.down").touch()
    done = hosts.search("bisect", *QUICK)
    assert done.code == 0, done.err
    assert [one["flag"] for one in done.json["needed"]] == ["python-hash-seed"]
    assert (hosts.sent("a"), hosts.sent("b")) == (0, done.json["total_runs"])
    assert "all runs are done on b, or on machines like it" in done.err
    assert done.json["environment"]["host"]
    (step,) = done.json["next_steps"]
    again = hosts.project.detaudit(*shlex.split(step["command"])[1:], "--runs", "2", env=hosts.env)
    assert again.code == 0, again.out + again.err
    assert hosts.sent("b") == done.json["total_runs"] + 2, "what to type next is done there too"


@pytest.mark.full
def test_a_trace_on_another_host_names_what_one_here_does(hosts: Hosts) -> None:
    hosts.project.write("train.py", OF_THE_PROCESS)
    done, here = hosts.search("trace"), hosts.project.detaudit("trace", "train.py", "--format", "json")
    assert (done.code, here.code) == (1, 1), done.err
    culprits = [one.json["culprit"] for one in (done, here)]
    assert [{**culprit, "values": None} for culprit in culprits] == [{**culprits[0], "values": None}] * 2
    assert (culprits[0]["line"], culprits[0]["name"]) == (5, "rate")
    assert done.json["passes"] == here.json["passes"]
    assert (hosts.sent("a"), hosts.sent("b")) == (done.json["total_runs"], 0)


WAITS = """
    import os, time, training
    open(COUNT, "a").write("x")
    while os.path.exists(HOLD) and os.path.getsize(COUNT) > 3:
        time.sleep(0.1)
    training.train(seed=hash('x') % 1000)
"""


@pytest.mark.slow
def test_an_interrupted_bisection_goes_on_there(hosts: Hosts, tmp_path: Path) -> None:
    count, hold = tmp_path / "count", tmp_path / "hold"
    hold.touch()
    hosts.project.write("train.py", WAITS.replace("COUNT", repr(str(count))).replace("HOLD", repr(str(hold))))
    os.environ.update(hosts.env)
    with hosts.project.start(*hosts.words("bisect", *QUICK)) as running:
        _wait(lambda: count.exists() and count.stat().st_size > 3)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=120)
    assert running.returncode == 130, err
    assert "detaudit bisect --resume found" in out
    _wait(lambda: not any(map(psutil.pid_exists, hosts.pids())))
    before = json.loads((hosts.project.folder / "found" / "audit.json").read_text())
    hold.unlink()
    done = hosts.project.detaudit("bisect", "--resume", "found", "--format", "json", env=hosts.env)
    assert done.code == 0, done.err
    assert [one["flag"] for one in done.json["needed"]] == ["python-hash-seed"]
    assert done.json["environment"] == before["environment"], "it is known of the runs that were done before"
    assert hosts.sent("a") == done.json["total_runs"] + 1


def _wait(until: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not until():
        assert time.monotonic() < end
        time.sleep(0.1)


OF_A_KIND = """
import detaudit.runs.environment as environment
describe = environment.describe_machine
environment.describe_machine = lambda *given, **named: {**describe(*given, **named), "microcode": "another"}
"""
LOST = "import os, sys, training\nopen(COUNT, 'a').write('x')\nif os.path.getsize(COUNT) == 2:\n    open(DOWN, 'w')\n"


@pytest.mark.slow
def test_runs_on_two_kinds_of_machines_are_not_compared(hosts: Hosts, tmp_path: Path) -> None:
    another(hosts.folder, "b")
    with (hosts.folder / "b.home" / "sitecustomize.py").open("a") as file:
        file.write(OF_A_KIND)
    count, down = tmp_path / "count", hosts.folder / "a.down"
    text = LOST.replace("COUNT", repr(str(count))).replace("DOWN", repr(str(down)))
    hosts.project.write("train.py", text + HASH.partition("\n")[2])
    done = hosts.search("bisect", *QUICK)
    assert done.code == 125
    assert "b did a run, and is not like a, which did the first one: microcode" in done.err
    down.unlink()
    done = hosts.project.detaudit("bisect", "--resume", "found", "--format", "json", env=hosts.env)
    assert done.code == 0, done.err
    assert [one["flag"] for one in done.json["needed"]] == ["python-hash-seed"]


@pytest.mark.parametrize(
    ("verb", "words", "said"),
    [
        ("bisect", ("--over", "variations"), "--engine does not work with --over variations"),
        ("bisect", ("--until", "90s"), "after a time"),
        ("trace", ("--vary", "hash-seed"), "--vary cannot be combined with --engine"),
        ("trace", ("--replay", "3"), "--replay and --repro repeat the operation on this machine"),
        ("trace", ("--repro", "race"), "--replay and --repro repeat the operation on this machine"),
    ],
)
def test_what_only_works_here_is_refused(hosts: Hosts, verb: str, words: tuple[str, ...], said: str) -> None:
    done = hosts.search(verb, *words)
    assert done.code == 2
    assert said in done.err
    assert not hosts.sent("a")
