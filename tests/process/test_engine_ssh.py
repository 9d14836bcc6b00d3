"""Runs on other hosts by ssh. The hosts are this machine, behind a program that takes the place of ssh."""

import json
import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.process.conftest import Finished, Project
from tests.remote.engines.hosts import another, pretended, python


class Hosts:
    """Hosts a and b, and audits on them."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project, self.folder = project, folder
        self.env = {"DETAUDIT_SSH_COMMAND": pretended(folder)}

    def words(self, *words: str, hosts: str = "a,b") -> tuple[str, ...]:
        return ("run", "train.py", "--engine", f"ssh:{hosts}", "--python", python(), "--format", "json", *words)

    def run(self, *words: str, hosts: str = "a,b", env: dict[str, str] | None = None) -> Finished:
        return self.project.detaudit(*self.words(*words, hosts=hosts), env={**self.env, **(env or {})})

    def down(self, host: str) -> None:
        (self.folder / f"{host}.down").touch()

    def pids(self) -> list[int]:
        return [int(line) for path in self.folder.glob("*.pids") for line in path.read_text().split()]


@pytest.fixture
def hosts(project: Project, tmp_path: Path) -> Hosts:
    folder = tmp_path / "hosts"
    folder.mkdir()
    return Hosts(project, folder)


@pytest.mark.slow
def test_the_report_is_that_of_runs_here(hosts: Hosts, seeded: str) -> None:
    there, here = hosts.run("--runs", "4"), hosts.project.run(seeded, "--runs", "4")
    assert (there.code, here.code) == (0, 0), there.err
    (group,), (local,) = there.json["groups"], here.json["groups"]
    for key in ("verdict", "stages", "confidence", "flags", "sources"):
        assert group[key] == local[key], key
    assert [run["ranks"] for run in group["runs"]] == [run["ranks"] for run in local["runs"]]
    assert len(hosts.pids()) == 4


def test_a_script_whose_runs_differ(hosts: Hosts, unseeded: str) -> None:
    done = hosts.run("--runs", "2")
    assert done.code == 1
    (group,) = done.json["groups"]
    assert [(source["file"], source["kind"]) for source in group["sources"]][:1] == [("training.py", "unseeded")]
    assert group["excerpts"], "the code here is that which ran"


@pytest.mark.slow
def test_a_hash_seed_here_does_not_hide_a_difference(hosts: Hosts) -> None:
    hosts.project.write("train.py", "import training\ntraining.train(seed=hash('x') % 1000)\n")
    assert hosts.run("--runs", "3").code == 1
    pinned = hosts.run("--runs", "3", env={"PYTHONHASHSEED": "0"})
    assert pinned.code == 0, "the user's own setting is part of the audit, as here"


def test_flags_are_those_for_the_devices_of_any_machine(hosts: Hosts, seeded: str) -> None:
    done = hosts.run("--runs", "2", "--recipe", "all")
    assert done.code == 0, done.err
    flags = {one["id"]: one["state"] for one in done.json["groups"][0]["flags"]}
    assert flags["cuda-cublas-workspace"] == "applied"


def test_a_host_that_is_down_costs_no_run(hosts: Hosts, seeded: str) -> None:
    hosts.down("a")
    done = hosts.run("--runs", "3")
    assert done.code == 0, done.err
    assert len(hosts.pids()) == 3


def test_all_hosts_down(hosts: Hosts, seeded: str) -> None:
    hosts.down("a")
    done = hosts.run("--runs", "2", hosts="a")
    assert done.code == 125
    (error,) = done.json["groups"][0]["runs"][0]["errors"]
    assert (error["kind"], error["attempts"]) == ("run-lost", 3)
    assert "Connection refused" in error["reason"]


@pytest.mark.full
def test_spread_runs_are_shared_out_evenly(hosts: Hosts, seeded: str) -> None:
    done = hosts.run("--runs", "3", "--spread", hosts="a,b,c")
    assert done.code == 0, done.err
    assert [len((hosts.folder / f"{host}.pids").read_text().split()) for host in "abc"] == [2, 2, 2]
    assert [run["id"] for run in done.json["groups"][0]["runs"]] == [1, 2, 3, 4, 5, 6]


OF_THE_HOST = "import os, training\ntraining.train(seed=int(os.path.exists(os.path.expanduser('~/planted'))))\n"
AND_OF_THE_RUN = OF_THE_HOST.replace("))))", ")) and os.getpid()))")


@pytest.mark.full
def test_a_machine_that_is_planted_to_differ_is_found(hosts: Hosts) -> None:
    another(hosts.folder, "c", "planted")
    hosts.project.write("train.py", OF_THE_HOST)
    done = hosts.run("--spread", hosts="a,b,c")
    assert (done.code, done.json["verdict"]) == (1, "machine-dependent")
    (group,) = done.json["groups"]
    places = [(machine["runs"], machine["results"]) for machine in group["machines"]]
    assert places == [([1, 2, 4, 5], [1]), ([3, 6], [2])], "a and b are the same machine"
    assert hosts.run("--spread", "--across", "warn", hosts="a,b,c").code == 0


@pytest.mark.slow
def test_a_machine_that_disagrees_with_itself_is_nondeterministic(hosts: Hosts) -> None:
    another(hosts.folder, "c", "planted")
    hosts.project.write("train.py", AND_OF_THE_RUN)
    done = hosts.run("--spread", "--across", "warn", hosts="a,c")
    assert (done.code, done.json["verdict"]) == (1, "nondeterministic")
    assert [machine["runs"] for machine in done.json["groups"][0]["machines"]] == [[1, 3, 5], [2, 4, 6]]


def test_a_banner_does_no_harm(hosts: Hosts, seeded: str) -> None:
    (hosts.folder / "a.banner").touch()
    assert hosts.run("--runs", "2", hosts="a").code == 0


def test_a_host_without_detaudit_is_named(hosts: Hosts, seeded: str) -> None:
    done = hosts.project.detaudit("run", "train.py", "--engine", "ssh:a", "--python", "/bin/false", env=hosts.env)
    assert done.code == 125
    assert "a: detaudit cannot be started" in done.err
    assert "Install detaudit" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--engine", "ssh:"), "does not name hosts"),
        (("--engine", "ssh:-oProxyCommand=x"), "is not a host"),
        (("--engine", "shh:a"), "ssh"),
        (("--engine", "ssh:a", "--jobs", "2"), "--jobs cannot be combined"),
        (("--engine", "ssh:a", "--vary", "hash-seed"), "--vary cannot be combined"),
        (("--engine", "ssh:a", "--until", "90s"), "after a time"),
        (("--spread",), "--spread needs --engine"),
    ],
)
def test_bad_input(hosts: Hosts, seeded: str, words: tuple[str, ...], said: str) -> None:
    done = hosts.project.detaudit("run", "train.py", *words, env=hosts.env)
    assert done.code == 2
    assert said in done.err
    assert not hosts.pids()


SLEEPS = "import pathlib, time, training\ntraining.train(seed=0)\npathlib.Path(HERE).touch()\ntime.sleep(120)\n"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_audit_ends_the_runs_everywhere(hosts: Hosts, tmp_path: Path, how: int) -> None:
    started = tmp_path / "started"
    hosts.project.write("train.py", SLEEPS.replace("HERE", repr(str(started))))
    os.environ.update(hosts.env)
    audit = hosts.project.start(*hosts.words("--runs", "2"))
    _wait(started.exists)
    trained = [one for one in psutil.process_iter() if _is(one, "train.py", str(hosts.folder))]
    audit.send_signal(how)
    out, _ = audit.communicate(timeout=60)
    _, alive = psutil.wait_procs(trained, timeout=30)
    assert trained
    assert not alive
    _wait(lambda: not any(psutil.pid_exists(pid) for pid in hosts.pids()))
    if how == signal.SIGINT:
        assert audit.returncode == 130
        assert json.loads(out)["interrupted"]


def _is(process: psutil.Process, name: str, folder: str) -> bool:
    try:
        return name in process.cmdline() and "detaudit-" in process.cwd()
    except psutil.Error:
        return False


def _wait(until: object) -> None:
    assert callable(until)
    end = time.monotonic() + 60
    while not until():
        assert time.monotonic() < end
        time.sleep(0.1)
