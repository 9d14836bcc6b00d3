"""Scripts that fail and invalid command lines: the exit status, the error and the hint."""

import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
import pytest

from detaudit import wire
from tests import interpreters
from tests.process.conftest import Finished, Project


def unusable(done: Finished) -> Any:
    """Return what is wrong with the first run, for which the audit is inconclusive."""
    (group,) = done.json["groups"]
    (error,) = group["reason"]["errors"]
    assert group["verdict"] == "inconclusive"
    assert group["reason"] == {"kind": "run-unusable", "run": 1, "errors": group["runs"][0]["errors"]}
    return error


def test_no_such_script(project: Project) -> None:
    project.write("train.py", "")
    done = project.detaudit("run", "trian.py")
    assert done.code == 2
    assert "script not found: 'trian.py'" in done.err
    assert "  hint: Did you mean 'train.py'?\n" in done.err
    done = project.detaudit("run", "evaluate.py")
    assert done.code == 2
    assert "  hint: Python files in that folder: torch_training.py, train.py, training.py\n" in done.err


def test_no_such_flag_names_the_nearest(project: Project, seeded: str) -> None:
    done = project.detaudit("run", seeded, "--flag", "torch-sede")
    assert done.code == 2
    assert "Did you mean 'torch-seed'?" in done.err


def test_no_such_recipe_names_the_nearest(project: Project, seeded: str) -> None:
    done = project.detaudit("run", seeded, "--recipe", "sead")
    assert done.code == 2
    assert "Did you mean 'seeds'?" in done.err


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("name: mine\nflags: [torch-seed\n", "mine.yaml:3:1"),
        ("name: mine\nflags:\n  - torch-seed\n  - 7\n", "mine.yaml:4:5"),
        ("name: mine\nflagz: []\n", "mine.yaml:2:1"),
    ],
)
def test_an_invalid_recipe_is_reported_with_line_and_column(
    project: Project, seeded: str, text: str, place: str
) -> None:
    project.write("mine.yaml", text)
    done = project.detaudit("run", seeded, "--recipe", "mine.yaml")
    assert done.code == 2
    assert place in done.err


def test_two_recipes_with_the_same_name(project: Project, seeded: str) -> None:
    project.write("mine.yaml", "name: none\nflags: []\n")
    done = project.detaudit("run", seeded, "--recipe", "none", "--recipe", "mine.yaml")
    assert done.code == 2
    assert "two recipes have the name 'none'" in done.err


def test_a_script_of_another_language_is_refused_with_the_right_command(project: Project) -> None:
    project.write("run.sh", "#!/bin/sh\n")
    done = project.detaudit("run", "run.sh")
    assert done.code == 2
    assert "detaudit run -- ./run.sh" in done.err


def test_script_arguments_without_dashes(project: Project, seeded: str) -> None:
    done = project.detaudit("run", seeded, "data")
    assert done.code == 2
    assert f"detaudit run {seeded} -- data" in done.err


def test_no_such_command(project: Project) -> None:
    done = project.detaudit("run", "--", "no-such-program", "x")
    assert done.code == 2
    assert "no-such-program" in done.err


def test_a_script_that_exits_1(project: Project) -> None:
    project.write("train.py", "import sys\nprint('no data', file=sys.stderr)\nsys.exit(1)\n")
    done = project.run("train.py", "--runs", "2")
    assert done.code == 125
    first = done.json["groups"][0]["runs"][0]
    assert (first["status"], first["exit_code"]) == ("failed", 1)
    assert first["stderr_tail"] == ["no data"]


def test_a_script_that_raises_shows_its_own_traceback(project: Project) -> None:
    project.write("train.py", "def main():\n    raise ValueError('bad batch')\nmain()\n")
    done = project.detaudit("run", "train.py", "--runs", "2")
    assert done.code == 125
    assert "ValueError: bad batch" in done.out
    assert 'train.py", line 2, in main' in done.out
    assert "stderr.log" in done.out
    assert "detaudit/" not in done.out.split("next:")[0]


def test_a_missing_module_hints_at_the_python(project: Project) -> None:
    project.write("train.py", "import no_such_framework\n")
    shell = {"VIRTUAL_ENV": "", "CONDA_PREFIX": ""}
    done = project.detaudit("run", "train.py", "--runs", "2", env=shell)
    assert done.code == 125
    assert "--python PATH/TO/python" in done.out
    project.write(".venv/bin/python", "#!/bin/sh\n").chmod(0o755)
    done = project.detaudit("run", "train.py", "--runs", "2", env=shell)
    assert done.code == 125
    assert "use your training's Python\n  detaudit run train.py --python .venv/bin/python\n" in done.out


def test_a_python_that_is_too_old_is_inconclusive(project: Project) -> None:
    python = interpreters.find("3.8")
    if python is None:
        pytest.skip("no Python 3.8 is installed")
    project.write("train.py", "pass\n")
    done = project.detaudit("run", "train.py", "--runs", "2", "--python", python)
    assert done.code == 125
    assert "the Python that ran train.py did not load the recorder" in done.out
    assert "could not load the recorder: RuntimeError('it needs Python 3.9 or later')" in done.out


def test_an_interpreter_for_a_command_is_refused(project: Project) -> None:
    done = project.detaudit("run", "--python", sys.executable, "--", "sh", "train.sh")
    assert (done.code, done.out) == (2, "")
    assert f"hint: Name it in the command, as in: -- {sys.executable} train.py" in done.err


def test_a_script_that_is_killed(project: Project) -> None:
    project.write("train.py", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    done = project.run("train.py", "--runs", "2")
    assert done.code == 125
    assert unusable(done) == {"kind": "killed", "signal": "SIGKILL", "out_of_memory": False}


def test_os_exit_loses_nothing(project: Project) -> None:
    project.write("train.py", "import os, torch_training\ntorch_training.train(seed=0)\nos._exit(0)\n")
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0
    assert {run["steps"] for run in done.json["groups"][0]["runs"]} == {3}


def test_os_exit_with_a_status_is_a_failure(project: Project) -> None:
    project.write("train.py", "import os, torch_training\ntorch_training.train(seed=0)\nos._exit(3)\n")
    done = project.run("train.py", "--runs", "2")
    assert done.code == 125
    run = done.json["groups"][0]["runs"][0]
    assert (run["status"], run["exit_code"], run["steps"]) == ("failed", 3, 3)


def test_a_script_that_hangs_is_ended(project: Project) -> None:
    project.write("train.py", "import time\ntime.sleep(1000)\n")
    done = project.run("train.py", "--runs", "2", "--timeout", "1")
    assert done.code == 125
    assert [run["status"] for run in done.json["groups"][0]["runs"]] == ["timeout", "timeout"]
    assert unusable(done) == {"kind": "timed-out", "seconds": 1.0, "step": 0, "hung": False}


@pytest.mark.slow
def test_a_script_that_hangs_only_at_exit_is_reported_as_such(project: Project) -> None:
    project.write(
        "train.py",
        """
        import threading, torch_training
        threading.Thread(target=threading.Event().wait).start()
        torch_training.train(seed=0)
        """,
    )
    done = project.run("train.py", "--runs", "1", "--timeout", "20")
    assert done.code == 125
    assert unusable(done) == {"kind": "timed-out", "seconds": 20.0, "step": 3, "hung": True}
    assert [run["ranks"][0]["digest"] is not None for run in done.json["groups"][0]["runs"]] == [True]


def test_a_daemon_in_a_session_of_its_own_is_ended(project: Project) -> None:
    project.write(
        "train.py",
        """
        import subprocess, sys, training
        daemon = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
        open("daemon.pid", "a").write(f"{daemon.pid}\\n")
        training.train(seed=0)
        """,
    )
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0
    killed = {"kind": "processes-killed", "audit": "", "recipe": "none", "recording": ""}
    command = f"{sys.executable} -c import time; time.sleep(1000)"
    assert done.json["warnings"] == [{**killed, "run": run, "commands": [command]} for run in (1, 2)]
    pids = [int(line) for line in (project.folder / "daemon.pid").read_text().split()]
    assert len(pids) == 2
    assert not any(psutil.pid_exists(pid) for pid in pids)


NOTHING_LEFT = {"left": [], "left_by": 0, "read": False}


def test_nothing_trained_says_what_was_looked_for(project: Project) -> None:
    project.write("train.py", "print('hello')\n")
    done = project.run("train.py", "--runs", "2")
    assert done.code == 125
    assert unusable(done) == {"kind": "no-training", "imported": [], **NOTHING_LEFT}
    shown = project.detaudit("report", str(next((project.folder / ".detaudit").glob("2*"))))
    said = "inconclusive: run 1: no training detected: none of torch, "
    assert said in shown.out


def test_a_framework_that_trains_nothing_is_named(project: Project) -> None:
    project.write("train.py", "import torch\nprint(torch.ones(3).sum())\n")
    done = project.run("train.py", "--runs", "2")
    assert done.code == 125
    assert unusable(done) == {"kind": "no-training", "imported": [f"torch {version('torch')}"], **NOTHING_LEFT}


def test_an_isolated_python_is_not_mistaken_for_its_recorded_child(project: Project, seeded: str) -> None:
    project.write("helper.py", "import training\ntraining.train(seed=0)\n")
    project.write(
        "outer.py",
        """
        import subprocess, sys
        subprocess.run([sys.executable, "helper.py"], check=True)
        """,
    )
    done = project.run("--runs", "2", "--", sys.executable, "-I", "outer.py")
    assert done.code == 125
    assert unusable(done) == {"kind": "recorder-not-loaded", "program": "outer.py"}


def test_a_replaced_pythonpath_is_reported(project: Project, seeded: str) -> None:
    project.write("run.sh", f"#!/bin/sh\nPYTHONPATH=/nowhere exec {sys.executable} {seeded}\n").chmod(0o755)
    done = project.run("--runs", "2", "--", "./run.sh")
    assert done.code == 125
    assert unusable(done) == {"kind": "recorder-not-loaded", "program": "./run.sh"}


def test_a_number_of_steps_that_changes_is_a_difference(project: Project) -> None:
    project.write(
        "train.py",
        """
        import os, training
        steps = 3 + os.path.exists("been.here")
        open("been.here", "w").close()
        training.train(steps=steps, seed=0)
        """,
    )
    done = project.run("train.py", "--runs", "2")
    assert done.code == 1
    found = done.json["groups"][0]["first_difference"]
    assert (found["step"], found["stage"]) == (4, "steps")


def test_megabytes_on_stdout_neither_block_nor_fill_the_disk(project: Project) -> None:
    project.write(
        "train.py",
        """
        import sys, training
        for _ in range(100):
            sys.stdout.write("x" * 2**20)
        training.train(seed=0)
        print("the end")
        """,
    )
    done = project.run("train.py", "--runs", "2", "--out", "results")
    assert done.code == 0
    log = project.folder / "results" / "runs" / "none" / "1" / "stdout.log"
    assert log.stat().st_size <= 64 * 2**20
    assert log.read_bytes().endswith(b"the end\n")


def test_stdin_is_empty(project: Project) -> None:
    project.write("train.py", "import sys, training\nassert sys.stdin.read() == ''\ntraining.train(seed=0)\n")
    assert project.run("train.py", "--runs", "2").code == 0


FAILS_ONCE = """
    import os, sys, training
    count = len([n for n in os.listdir() if n.startswith("run-")])
    open(f"run-{count}", "w").close()
    if count == 0:
        sys.exit("the first one fails")
    training.train(seed=SEED)
"""


def test_a_run_that_fails_beside_matching_ones_has_another_result(project: Project) -> None:
    project.write("train.py", FAILS_ONCE.replace("SEED", "0"))
    done = project.run("train.py", "--runs", "3")
    assert done.code == 1
    group = done.json["groups"][0]
    assert group["distinct_results"] == 2
    difference = group["first_difference"]
    assert (difference["stage"], difference["runs"]) == ("exit", [1, 2])
    assert difference["output"]["values"] == ["1", "0"]
    assert group["runs"][0]["errors"] == [{"kind": "failed", "exit_code": 1}]
    for path in project.folder.glob("run-*"):
        path.unlink()
    done = project.run("train.py", "--runs", "3", "--compare", "training")
    assert done.code == 125
    assert unusable(done) == {"kind": "failed", "exit_code": 1}
    assert done.json["groups"][0]["distinct_results"] == 1


def test_a_failed_run_beside_two_that_differ_changes_nothing(project: Project) -> None:
    project.write("train.py", FAILS_ONCE.replace("SEED", "None"))
    done = project.run("train.py", "--runs", "3")
    assert done.code == 1
    assert done.json["groups"][0]["first_difference"]["runs"] == [2, 3]


def test_one_run_proves_nothing(project: Project, seeded: str) -> None:
    done = project.run(seeded, "--runs", "1")
    assert done.code == 125
    assert done.json["groups"][0]["reason"] == {"kind": "single-run"}


def marked_processes(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(wire.ENV_MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


SLOW_SECOND = """
    import os, subprocess, sys, time, training
    training.train(seed=0)
    if os.path.exists("been.here"):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
        open("mark", "w").write(os.environ["DETAUDIT_MARK"])
        time.sleep(1000)
    open("been.here", "w").close()
"""


def start_and_wait_for(project: Project, name: str, *words: str) -> subprocess.Popen[str]:
    process = project.start("run", "train.py", "--format", "json", *words)
    limit = time.monotonic() + 120
    while not (project.folder / name).exists() or not (project.folder / name).read_text():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.1)
    return process


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_keeps_what_finished(project: Project, how: signal.Signals) -> None:
    project.write("train.py", SLOW_SECOND)
    process = start_and_wait_for(project, "mark", "--runs", "3", "--out", "results")
    mark = (project.folder / "mark").read_text()
    process.send_signal(how)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert '"interrupted": true' in out
    assert '"status": "ok"' in out
    assert (project.folder / "results" / "audit.json").read_text() == out
    assert marked_processes(mark) == []


def test_killing_detaudit_leaves_no_orphan(project: Project) -> None:
    project.write("train.py", SLOW_SECOND)
    process = start_and_wait_for(project, "mark", "--runs", "3", "--out", "results")
    mark = (project.folder / "mark").read_text()
    assert len(marked_processes(mark)) >= 2
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    limit = time.monotonic() + 60
    while marked_processes(mark):
        assert time.monotonic() < limit, "orphans are left"
        time.sleep(0.2)
    assert '"status": "ok"' in (project.folder / "results" / "audit.json").read_text()


def test_a_full_disk_is_reported_and_never_read_as_a_result(project: Project, seeded: str) -> None:
    # A limit on the size of files fails writes exactly as a full disk does, and needs no mount.
    project.write("train.py", "import training\ntraining.train(steps=200, seed=0)\n")
    words = project.command("run", "train.py", "--runs", "2", "--format", "json")
    limited = (
        "import resource, os, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited, *words], cwd=project.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 125
    assert "Traceback" not in done.stderr
    error = unusable(Finished(done.returncode, done.stdout, done.stderr))
    assert (error["kind"], type(error["pid"])) == ("log-incomplete", int)


def test_results_that_can_not_be_saved_are_refused_before_any_run(project: Project, seeded: str) -> None:
    (project.folder / "results").write_text("in the way")
    done = project.run(seeded, "--runs", "2", "--out", "results/x")
    assert done.code == 2
    assert "results is a file" in done.err
    assert "choose another --out" in done.err


def test_an_unreadable_report_folder(project: Project, tmp_path: Path) -> None:
    done = project.detaudit("report", str(tmp_path))
    assert done.code == 2
    assert "no audit" in done.err
