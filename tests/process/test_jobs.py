"""Several runs at once: each has its own folder, CPUs and devices, and none touches the processes of another."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from detaudit import wire
from tests.process.conftest import Finished, Project
from tests.process.test_check import TRAIN

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two runs at once need two CPUs to count")

SLOT = """
    import os, pathlib, subprocess, sys, time, training
    SLOT = int(os.environ["DETAUDIT_MARK"].rpartition("-")[2])
    MEET = pathlib.Path(os.environ["MEET"])

    def wait_for(done, limit=60):
        end = time.monotonic() + limit
        while not done():
            if time.monotonic() > end:
                sys.exit("waited in vain")
            time.sleep(0.02)

    def meet(name):
        (MEET / f"{name}{SLOT}").touch()
        wait_for((MEET / f"{name}{1 - SLOT}").exists)
"""
"""A run that learns which slot it has, and meets the one beside it."""


@pytest.fixture
def meet(tmp_path: Path, project: Project) -> dict[str, str]:
    """Return the variables of runs that meet in a folder which is not copied."""
    project.write("slot.py", SLOT)
    (tmp_path / "meet").mkdir()
    return {"MEET": str(tmp_path / "meet"), "RESULTS": str(project.folder / "results")}


def at_once(project: Project, env: dict[str, str], *words: str) -> Finished:
    return project.run("train.py", "--jobs", "2", "--out", "results", *words, env=env)


def statuses(audit: dict[str, Any]) -> list[str]:
    return [run["status"] for run in audit["groups"][0]["runs"]]


def printed(project: Project, number: int) -> str:
    return (project.folder / "results" / "runs" / "none" / str(number) / "stdout.log").read_text().strip()


def test_two_runs_go_at_once_in_folders_of_their_own(project: Project, meet: dict[str, str]) -> None:
    project.write(
        "train.py",
        """
        from slot import *
        meet("here")
        pathlib.Path("mine").touch(exist_ok=False)
        meet("wrote")
        training.train(seed=0)
        size = sum(len(os.fsencode(part)) for pair in os.environ.items() for part in pair)
        print(os.getcwd(), os.environ["TMPDIR"], len(os.sched_getaffinity(0)), size, sep="|")
        """,
    )
    done = at_once(project, meet, "--runs", "2")
    assert done.code == 0, (done.out, done.err)
    (one, one_tmp, cpus, size), (two, two_tmp, *rest) = (printed(project, n).split("|") for n in (1, 2))
    assert (one != two, one_tmp != two_tmp) == (True, True)
    assert (len(one), len(one_tmp)) == (len(two), len(two_tmp))
    assert rest == [cpus, size]
    assert int(cpus) == len(os.sched_getaffinity(0)) // 2
    assert [entry.name for entry in (project.folder / "results").iterdir() if "-" in entry.name] == []
    assert not (project.folder / "mine").exists()


def test_the_runs_of_a_check_go_at_once_and_one_is_resumed_in_its_slot(project: Project, meet: dict[str, str]) -> None:
    project.write("train.py", f"from slot import *\nmeet('here')\n{TRAIN.replace('RATE', '0.1')}")
    project.write(
        "detaudit.yaml",
        """
        audits:
          small:
            command: train.py --seconds 0.02
            runs: 2
            resume: train.py --resume
            baseline: false
        """,
    )
    done = project.detaudit("check", "--jobs", "2", "--format", "json", env=meet)
    assert done.code == 0, (done.out, done.err)
    (small,) = done.json["audits"]
    assert [gate["status"] for gate in small["gates"]] == ["passed", "passed"]
    assert "--jobs 2" in " ".join(small["audit"]["command"])
    assert not (project.folder / "checkpoint.npz").exists()


def test_results_come_in_the_order_of_their_numbers(project: Project, meet: dict[str, str]) -> None:
    project.write(
        "train.py",
        """
        from slot import *
        if SLOT == 0 and not (MEET / "first").exists():
            (MEET / "first").touch()
            wait_for(pathlib.Path(os.environ["RESULTS"], "runs/none/2").exists)
        training.train(seed=0)
        """,
    )
    done = at_once(project, meet, "--runs", "3", "--ignore", "meet/")
    assert done.code == 0, (done.out, done.err)
    assert [run["id"] for run in done.json["groups"][0]["runs"]] == [1, 2, 3]


DAEMON = """
    from slot import *
    START = "import subprocess, sys, time\\nimport os\\n" \\
        "print(subprocess.Popen(['sleep', '1000'], start_new_session=True, env=ENV, stdout=-3, stderr=-3).pid)\\n" \\
        "sys.stdout.flush(); time.sleep(1)"
    out = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True).stdout
    (MEET / f"pid{SLOT}").write_text(out)
    meet("daemon")
    training.train(seed=0)
    if SLOT == 1:
        wait_for(pathlib.Path(os.environ["RESULTS"], "runs/none/1").exists)
        alive = [slot for slot in (0, 1) if pathlib.Path("/proc", (MEET / f"pid{slot}").read_text().strip()).exists()]
        (MEET / "alive").write_text(str(alive))
"""


@pytest.mark.full
@pytest.mark.parametrize("env", ["None", "{}"], ids=["with the mark", "without variables"])
def test_an_orphan_is_ended_with_its_own_run_alone(project: Project, meet: dict[str, str], env: str) -> None:
    project.write("train.py", DAEMON.replace("ENV", env))
    done = at_once(project, meet, "--runs", "2", "--ignore", "meet/")
    assert done.code == 0, (done.out, done.err)
    assert Path(meet["MEET"], "alive").read_text() == "[1]"
    killed = [(one["run"], one["commands"]) for one in done.json["warnings"]]
    assert killed == [(1, ["sleep 1000"]), (2, ["sleep 1000"])]
    pids = [int(Path(meet["MEET"], f"pid{slot}").read_text()) for slot in (0, 1)]
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_a_run_that_is_killed_beside_one_that_ends_is_no_success(project: Project, meet: dict[str, str]) -> None:
    project.write(
        "train.py",
        """
        from slot import *
        (MEET / f"pid{SLOT}").write_text(str(os.getpid()))
        meet("here")
        training.train(seed=0)
        if SLOT == 0:
            other = pathlib.Path("/proc", (MEET / "pid1").read_text())
            wait_for(lambda: not other.exists())
            os.kill(os.getpid(), 9)
        subprocess.Popen(["sleep", "1000"])  # the audit waits for it, and then looks for more
        """,
    )
    done = at_once(project, meet, "--runs", "2")
    assert done.code == 125, (done.out, done.err)
    assert [(run["status"], run["exit_code"]) for run in done.json["groups"][0]["runs"]] == [("failed", -9), ("ok", 0)]


@pytest.mark.full
def test_a_run_that_ignores_its_end_has_the_exit_status_of_what_killed_it(project: Project) -> None:
    project.write(
        "train.py",
        """
        import signal, time, training
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        training.train(seed=0)
        time.sleep(1000)
        """,
    )
    done = project.run("train.py", "--runs", "1", "--timeout", "3")
    assert [(run["status"], run["exit_code"]) for run in done.json["groups"][0]["runs"]] == [("timeout", -9)]


def test_a_crash_in_one_run_leaves_the_other_alone(project: Project, meet: dict[str, str]) -> None:
    project.write(
        "train.py", "from slot import *\nmeet('here')\ntraining.train(seed=0)\nsys.exit(3 if SLOT == 0 else 0)\n"
    )
    done = at_once(project, meet, "--runs", "2")
    assert done.code == 1, (done.out, done.err)
    (group,) = done.json["groups"]
    assert [(run["status"], run["exit_code"]) for run in group["runs"]] == [("failed", 3), ("ok", 0)]
    assert (group["first_difference"]["stage"], group["first_difference"]["runs"]) == ("exit", [1, 2])


SLOW = """
    from slot import *
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # so that it takes a while to end it
    training.train(seed=0)
    if pathlib.Path(os.environ["RESULTS"], "runs/none/2").exists() or SLOT == HANGS:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
        (MEET / f"mark{SLOT}").write_text(os.environ["DETAUDIT_MARK"])
        time.sleep(1000)
    meet("trained") if HANGS < 0 else None
"""


def carrying(mark: str) -> list[psutil.Process]:
    """Return the processes of all slots of an audit."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(wire.ENV_MARK, "").startswith(mark) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def started(project: Project, env: dict[str, str], marks: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, str]:
    """Start four runs, two at once, and wait until so many hang; return the audit, and its mark."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    words = ("train.py", "--format", "json", "--jobs", "2", "--runs", "4", "--out", "results")
    process = project.start("run", *words)
    limit = time.monotonic() + 120
    while len(found := [one.read_text() for one in Path(env["MEET"]).glob("mark*")]) < marks or not all(found):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.1)
    return process, found[0].rpartition("-")[0]


@pytest.mark.full
def test_an_interruption_ends_both_runs_and_keeps_what_finished(
    project: Project, meet: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("train.py", SLOW.replace("HANGS", "-1"))
    process, mark = started(project, meet, 2, monkeypatch)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in err) == (130, False), err
    assert statuses(json.loads(out)) == ["ok", "ok", "stopped", "stopped"]
    assert (project.folder / "results" / "audit.json").read_text() == out
    assert carrying(mark) == []


@pytest.mark.full
def test_a_later_run_that_finished_is_kept_if_an_earlier_one_is_interrupted(
    project: Project, meet: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("train.py", SLOW.replace("HANGS", "0").replace('"runs/none/2"', '"runs/none/4"'))
    process, mark = started(project, meet, 1, monkeypatch)
    limit = time.monotonic() + 60
    while not (project.folder / "results" / "runs" / "none" / "2").exists():
        assert time.monotonic() < limit
        time.sleep(0.1)
    time.sleep(1)  # what it left is looked for, and its event log is read
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert statuses(json.loads(out)) == ["stopped", "ok"]
    assert carrying(mark) == []


@pytest.mark.full
def test_killing_detaudit_ends_the_runs_of_each_slot(
    project: Project, meet: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("train.py", SLOW.replace("HANGS", "-1"))
    process, mark = started(project, meet, 2, monkeypatch)
    assert len(carrying(mark)) >= 4
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    limit = time.monotonic() + 60
    while carrying(mark):
        assert time.monotonic() < limit, "orphans are left"
        time.sleep(0.2)


def test_the_first_difference_ends_the_runs_beside_it(project: Project, meet: dict[str, str]) -> None:
    project.write(
        "train.py",
        """
        from slot import *
        training.train(seed=SLOT)
        if (MEET / f"been{SLOT}").exists():
            time.sleep(1000)
        (MEET / f"been{SLOT}").touch()
        """,
    )
    done = at_once(project, meet, "--runs", "4", "--fail-fast")
    assert done.code == 1, (done.out, done.err)
    assert [run["id"] for run in done.json["groups"][0]["runs"]] == [1, 2]


def test_two_runs_that_differ_end_each_other(project: Project, meet: dict[str, str]) -> None:
    project.write(
        "train.py",
        """
        from slot import *
        import detaudit
        meet("here")
        for step in range(1, 3001):
            detaudit.record(loss=1.0, weights=[float(SLOT) if step > 4 else 0.5])
            time.sleep(0.02)
        """,
    )
    done = at_once(project, meet, "--runs", "4", "--fail-fast")
    assert done.code == 1, (done.out, done.err)
    (group,) = done.json["groups"]
    assert [(run["id"], run["status"], run["steps"]) for run in group["runs"]] == [(1, "ended", 5), (2, "ended", 5)]
    assert (group["first_difference"]["step"], group["first_difference"]["stage"]) == (5, "update")


@pytest.mark.full
def test_two_long_runs_that_differ_end_each_other(project: Project, meet: dict[str, str]) -> None:
    project.write(
        "train.py",
        """
        from slot import *
        import detaudit, itertools
        meet("here")
        for step in itertools.count(1):
            detaudit.record(loss=1.0, weights=[float(SLOT) if step > 4 else 0.5])
            time.sleep(0.02)
        """,
    )
    done = at_once(project, meet, "--runs", "2")
    assert done.code == 1, (done.out, done.err)
    (group,) = done.json["groups"]
    assert [(run["status"], run["through"]) for run in group["runs"]] == [("ended", 5), ("ended", 5)]
    assert "differs from an earlier run by step 5" in done.err


def test_each_run_has_its_own_device(project: Project, meet: dict[str, str]) -> None:
    project.write(
        "train.py",
        """
        from slot import *
        training.train(seed=0)
        size = sum(len(os.fsencode(part)) for pair in os.environ.items() for part in pair)
        print(os.environ["CUDA_VISIBLE_DEVICES"], size)
        """,
    )
    ignored = "--ignore-text", r"^\d+ \d+$"  # the device that a run was given differs
    done = at_once(project, {**meet, "CUDA_VISIBLE_DEVICES": "3"}, "--runs", "3", "--devices", "0,11", *ignored)
    assert done.code == 0, (done.out, done.err)
    assert done.json["warnings"] == []
    (a, size), *others = (printed(project, number).split() for number in (1, 2, 3))
    assert (a, others) == ("0", [["11", size], ["0", size]])
    assert "--jobs 2 --devices 0,11" in done.json["next_steps"][0]["command"]


def test_a_device_that_the_script_selects_itself_is_not_its_own(project: Project, meet: dict[str, str]) -> None:
    project.write(
        "train.py",
        """
        import os
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
        import numpy
        import training
        training.train(seed=0)
        """,
    )
    done = at_once(project, meet, "--runs", "2", "--devices", "0,1")
    assert done.code == 125, (done.out, done.err)
    assert done.json["groups"][0]["reason"] == {"kind": "device-shared", "jobs": 2, "device": "0"}


def test_matching_runs_with_more_threads_than_cores_do_not_count(project: Project, meet: dict[str, str]) -> None:
    cores = len(os.sched_getaffinity(0))
    project.write("train.py", "import numpy, training\ntraining.train(seed=0)\n")
    done = at_once(project, {**meet, "OMP_NUM_THREADS": str(cores)}, "--runs", "2")
    assert done.code == 125, (done.out, done.err)
    (group,) = done.json["groups"]
    assert group["reason"] == {"kind": "runs-crowded", "jobs": 2, "threads": cores, "cores": cores}
    assert (group["distinct_results"], group["confidence"]) == (1, None)


def test_threads_that_no_framework_sets_need_cores_too(project: Project, meet: dict[str, str]) -> None:
    project.write(
        "train.py",
        """
        import hashlib, threading, time, training
        end = time.monotonic() + 3

        def work():
            while time.monotonic() < end:
                hashlib.sha256(bytes(2**24))  # without the GIL

        threads = [threading.Thread(target=work) for _ in range(2 * CORES)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        training.train(seed=0)
        """.replace("CORES", str(len(os.sched_getaffinity(0)))),
    )
    done = at_once(project, meet, "--runs", "2")
    assert done.code == 125, (done.out, done.err)
    assert done.json["groups"][0]["reason"]["kind"] == "runs-crowded"


def test_auto_runs_as_many_as_the_first_leaves_cores_for(project: Project, meet: dict[str, str]) -> None:
    project.write(
        "train.py",
        """
        from slot import *
        if (MEET / "first").exists():
            meet("here")
        (MEET / "first").touch()
        print(len(os.sched_getaffinity(0)))
        training.train(seed=0)
        """,
    )
    done = project.run("train.py", "--jobs", "auto", "--out", "results", "--runs", "3", env=meet)
    if len(os.sched_getaffinity(0)) == 2:  # else the slots have other numbers
        assert done.code == 0, (done.out, done.err)
        assert printed(project, 1) == printed(project, 2) == "2"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--jobs", "0"), "'0' is neither a number of runs nor auto"),
        (("--jobs", "two"), "'two' is neither a number of runs nor auto"),
        (("--jobs", "3", "--devices", "0,1"), "--jobs 3 needs 3 devices, and --devices names 2"),
        (("--jobs", "2", "--devices", "0,1,2"), "--devices names 3, which 2 runs cannot share equally"),
        (("--devices", "0,1,0"), "--devices names '0' twice"),
        (("--devices", "0,,1"), "--devices '0,,1' does not name devices"),
        (("--jobs", "2", "--vary", "background-load"), "needs --jobs 1, because it loads the whole machine"),
    ],
)
def test_what_cannot_be_divided_is_refused(project: Project, seeded: str, words: tuple[str, ...], said: str) -> None:
    done = project.detaudit("run", seeded, *words)
    assert (done.code, said in done.err) == (2, True), done.err
