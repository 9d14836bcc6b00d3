"""State that a run leaves for the next: one run more starts without it, and it comes back however that ends."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from detaudit.launch.put_aside import JOURNAL
from tests.process.conftest import Finished, Project

DRAWN = """
    import json, os, training
    path = os.path.expanduser("~/.cache/split/split.json")
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            json.dump(int.from_bytes(os.urandom(4), "little"), file)
    training.train(seed=json.load(open(path)))
"""
CACHE = """
    import os, training
    if not os.path.exists("cache.txt"):
        open("cache.txt", "w").write("7")
    training.train(seed=int(open("cache.txt").read()))
"""
NATIVE = """
    import os, subprocess, training
    if not os.path.exists("cache.txt"):
        open("cache.txt", "w").write(str(int.from_bytes(os.urandom(4), "little")))
    training.train(seed=int(subprocess.check_output(["cat", "cache.txt"])))
"""


class Home(Project):
    """A user's working directory and home; temporary files are elsewhere."""

    def env(self) -> dict[str, str]:
        for name in ("home", "temporary"):
            (self.folder.parent / name).mkdir(exist_ok=True)
        return {"HOME": str(self.home), "TMPDIR": str(self.folder.parent / "temporary")}

    @property
    def home(self) -> Path:
        return self.folder.parent / "home"

    def audit(self, *words: str) -> tuple[int, dict[str, Any]]:
        done: Finished = self.run("train.py", *words, env=self.env())
        assert done.out, done.err
        return done.code, done.json["groups"][0]


@pytest.fixture
def at_home(tmp_path: Path) -> Home:
    (tmp_path / "project").mkdir()
    return Home(tmp_path / "project")


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".detaudit" not in path.relative_to(folder).parts
    }


@pytest.mark.parametrize("words", [(), ("--isolate",)], ids=["shared", "isolated"])
def test_a_split_that_the_first_run_drew_decides(at_home: Home, words: tuple[str, ...]) -> None:
    at_home.write("train.py", DRAWN)
    code, group = at_home.audit("--runs", "2", *words)
    state, split = group["left_state"], at_home.home / ".cache" / "split" / "split.json"
    assert (code, group["verdict"], len(group["runs"])) == (1, "nondeterministic", 3)
    (read,) = state["reads"]
    assert (state["outcome"], state["run"]) == ("different", 3)
    assert (read["path"], read["left_by"], read["read_by"]) == (str(split), 1, 2)
    assert (read["file"], read["line"]) == ("train.py", 8)
    assert [run["result"] for run in group["runs"]] == [1, 1, 2]
    assert [path.name for path in split.parent.iterdir()] == ["split.json"]
    assert not list(at_home.folder.rglob(JOURNAL))


def test_reads_of_other_programs_are_seen_too(at_home: Home) -> None:
    at_home.write("train.py", NATIVE)
    code, group = at_home.audit("--runs", "2")
    (read,) = group["left_state"]["reads"]
    assert (code, read["path"], read["line"]) == (1, "cache.txt", 0)


@pytest.mark.parametrize(("how", "reads"), [(">", False), (">>", True)])
def test_what_a_program_of_the_same_run_wrote_anew_is_not_of_an_earlier_one(
    at_home: Home, how: str, reads: bool
) -> None:
    program = f"import subprocess, training\nsubprocess.run('echo 7 {how} numbers.txt', shell=True, check=True)\n"
    at_home.write("train.py", program + "training.train(seed=len(open('numbers.txt').read()))\n")
    done = at_home.run("train.py", "--runs", "2", env=at_home.env())
    assert ("leftover-files-read" in json.dumps(done.json)) is reads
    first = done.json["groups"][0]["first_difference"]
    assert (first["explanation"]["likely"][0] if first else None) == ("leftovers" if reads else None)


def test_a_pure_cache_is_a_note(at_home: Home) -> None:
    at_home.write("train.py", CACHE)
    code, group = at_home.audit("--runs", "2")
    assert (code, group["verdict"], len(group["runs"])) == (0, "deterministic", 3)
    assert group["left_state"]["outcome"] == "same"
    (warning,) = group["warnings"]
    assert warning["kind"] == "state-checked"
    assert (at_home.folder / "cache.txt").read_text() == "7"
    text = at_home.detaudit("report", "--last", env=at_home.env()).out
    assert "run 2 read cache.txt at train.py:5, which run 1 left. Run 3 started without it and matches" in text


def test_what_existed_before_is_not_touched(at_home: Home) -> None:
    at_home.write("train.py", CACHE)
    at_home.write("cache.txt", "7")
    code, group = at_home.audit("--runs", "2")
    assert (code, group["left_state"], len(group["runs"])) == (0, None, 2)
    rewrites = CACHE + '    open("cache.txt", "w").write("7")\n'
    at_home.write("train.py", rewrites)
    code, group = at_home.audit("--runs", "2")
    assert (code, group["verdict"], len(group["runs"])) == (0, "deterministic", 2)
    assert (group["left_state"]["outcome"], group["left_state"]["older"]) == ("existed", ["cache.txt"])
    (warning,) = group["warnings"]
    assert warning["kind"] == "state-checked"
    text = at_home.detaudit("report", "--last", env=at_home.env()).out
    assert "was there in every run, may have another result: cache.txt" in text


def test_a_file_that_another_process_uses_is_not_touched(at_home: Home) -> None:
    at_home.write("train.py", DRAWN)
    split = at_home.home / ".cache" / "split" / "split.json"
    at_home.env()
    keeps = f"""
import os, time
while not os.path.exists({str(split)!r}):
    time.sleep(0.01)
file = open({str(split)!r})
time.sleep(600)
"""
    other = subprocess.Popen([sys.executable, "-c", keeps])
    try:
        code, group = at_home.audit("--runs", "2")
    finally:
        other.kill()
        other.wait()
    assert (code, group["verdict"], group["left_state"]["outcome"]) == (125, "inconclusive", "in-use")
    assert f"process {other.pid} " in group["left_state"]["detail"]
    assert [path.name for path in split.parent.iterdir()] == ["split.json"]


def test_what_a_script_only_looks_for_is_put_aside_too(at_home: Home) -> None:
    at_home.write(
        "train.py",
        """
        import os, training
        if not os.path.exists("done.txt"):
            open("cache.txt", "w").write("7")
            open("done.txt", "w")
        training.train(seed=int(open("cache.txt").read()))
        """,
    )
    code, group = at_home.audit("--runs", "2")
    assert (code, group["left_state"]["outcome"], len(group["runs"])) == (0, "same", 3)
    assert sorted(path.name for path in at_home.folder.glob("*.txt")) == ["cache.txt", "done.txt"]


def test_a_folder_that_runs_made_is_put_aside_as_a_whole(at_home: Home) -> None:
    at_home.write(
        "train.py",
        """
        import os, training
        if not os.path.exists("store"):
            os.makedirs("store/deep")
            open("store/deep/cache.txt", "w").write("7")
            open("store/index.txt", "w").write("1")
        training.train(seed=int(open("store/deep/cache.txt").read()))
        """,
    )
    code, group = at_home.audit("--runs", "2")
    assert (code, group["left_state"]["outcome"]) == (0, "same")
    assert sorted(everything(at_home.folder / "store")) == ["deep/cache.txt", "index.txt"]


def _until_aside(project: Home, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 120
    while not list(project.home.rglob(".detaudit-aside-*")):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


SLOW = (
    DRAWN
    + """
    import glob, time
    time.sleep(120 if glob.glob(os.path.expanduser("~/.cache/.detaudit-aside-*")) else 0)
"""
)


def start(project: Home) -> "subprocess.Popen[str]":
    """Start an audit, and wait until its last run, which sleeps, began without the state."""
    project.write("train.py", SLOW)
    env = {**os.environ, **project.env()}
    process = subprocess.Popen(
        project.command("run", "train.py", "--runs", "2"),
        cwd=project.folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    _until_aside(project, process)
    return process


def reapers(process: "subprocess.Popen[str]") -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in children if b"reaper" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.parametrize("how", ["interrupted", "killed", "killed with its reaper"])
def test_state_comes_back_however_the_run_ends(at_home: Home, how: str) -> None:
    process = start(at_home)
    try:
        folder = at_home.home / ".cache"
        (aside,) = list(folder.rglob(".detaudit-aside-*"))
        inside = aside / "split.json" if aside.is_dir() else aside
        drawn = inside.read_bytes()
        if how == "killed with its reaper":
            for pid in reapers(process):
                os.kill(pid, signal.SIGKILL)
        process.send_signal(signal.SIGINT if how == "interrupted" else signal.SIGKILL)
        process.communicate(timeout=60)
        if how == "killed with its reaper":
            assert list(folder.rglob(".detaudit-aside-*"))
            for environ in Path("/proc").glob("[0-9]*/environ"):  # nothing else ends what it started
                with contextlib.suppress(OSError):
                    if f"HOME={at_home.home}".encode() in environ.read_bytes():
                        os.kill(int(environ.parent.name), signal.SIGKILL)
            at_home.write("train.py", "import training\ntraining.train(seed=0)\n")
            assert at_home.detaudit("run", "train.py", "--runs", "2", env=at_home.env()).code == 0
        deadline = time.monotonic() + 60
        while list(folder.rglob(".detaudit-aside-*")) or list(at_home.folder.rglob(JOURNAL)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert (folder / "split" / "split.json").read_bytes() == drawn
    finally:
        process.kill()
        process.communicate()


def test_a_resume_that_trains_nothing_says_what_it_read(at_home: Home) -> None:
    at_home.write(
        "train.py",
        """
        import os, training
        if os.path.exists("checkpoint.pt"):
            print(open("checkpoint.pt").read())
        else:
            open("checkpoint.pt", "w").write(str(training.train(seed=0)))
        """,
    )
    code, group = at_home.audit("--runs", "2")
    (error,) = group["runs"][1]["errors"]
    assert (code, error["kind"], error["left"], error["read"]) == (125, "no-training", ["checkpoint.pt"], True)
    text = at_home.detaudit("report", "--last", env=at_home.env()).out
    assert (
        "run 1 left checkpoint.pt, and this run read it and trained nothing: use --isolate, or remove it"
        in " ".join(text.split())
    )


def test_make_with_nothing_to_do_says_so(at_home: Home) -> None:
    at_home.write("train.py", "import training\nopen('model.txt', 'w').write(str(training.train(seed=0)))\n")
    at_home.write("all.sh", f"test -e model.txt || {sys.executable} train.py\n")
    done = at_home.run("--runs", "2", "--", "sh", "all.sh", env=at_home.env())
    (error,) = done.json["groups"][0]["runs"][1]["errors"]
    assert done.code in (1, 125)
    assert (error["kind"], error["left"], error["read"]) == ("no-training", ["model.txt"], False)


def test_what_existed_before_stays_while_the_rest_is_put_aside(at_home: Home) -> None:
    at_home.write("train.py", CACHE + '    text = open("log.txt").read()\n    open("log.txt", "w").write(text)\n')
    at_home.write("log.txt", "a note")
    code, group = at_home.audit("--runs", "2")
    state = group["left_state"]
    assert (code, state["outcome"], state["run"], state["older"]) == (0, "same", 3, ["log.txt"])
    assert {read["path"] for read in state["reads"]} == {"cache.txt", "log.txt"}
