"""Jobs for real engines: what they run, and how to look for the processes of one."""

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from detaudit import __version__
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.remote.archive import Attempt, unpack
from detaudit.remote.engine import Engine, Job, Returned
from detaudit.remote.plan import SCHEMA_VERSION, Plan, to_file

STARTS_IN_S = 120.0
ENDS_IN_S = 60.0

HOLD = """
    import os, sys, time
    path = sys.argv[1]
    with open(path + ".new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(path + ".new", path)
    while not os.path.exists(path + ".go"):
        time.sleep(0.05)
"""
"""A run that says where it is, and waits."""

SHOW = """
    import os, signal
    print(sorted(os.environ))
    print(os.environ.get("PYTHONHASHSEED"), os.environ.get("OMP_NUM_THREADS"), os.getpriority(os.PRIO_PROCESS, 0))
    links = [f"/proc/self/fd/{number}" for number in range(64)]
    files = [os.readlink(link) for link in links if os.path.lexists(link)]
    print([file for file in files if ":" in file], signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    print(list({"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"}))
"""


def job(name: str, script: str, *arguments: str, run: int = 1) -> Job:
    source = textwrap.dedent(script).encode()
    plan = Plan(
        schema_version=SCHEMA_VERSION, detaudit=__version__, created="", nonce="n", command=("detaudit",), runs=9,
        recipes=(load_recipe("none", load_catalogue()),), script="train.py", arguments=arguments,
        options={"timeout": 120}, sources={"train.py": hashlib.blake2b(source, digest_size=8).hexdigest()},
    )  # fmt: skip
    code = io.BytesIO()
    with tarfile.open(fileobj=code, mode="w:gz") as tar:
        member = tarfile.TarInfo("train.py")
        member.size = len(source)
        tar.addfile(member, io.BytesIO(source))
    data = code.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    return Job(id=name, run=run, plan=to_file(plan), code=data, digest=digest, python=sys.executable)


def until(look: Callable[[], object], what: str, seconds: float = STARTS_IN_S) -> None:
    end = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end, what
        time.sleep(0.05)


class Running:
    """A run that waits, and the processes above it."""

    def __init__(self, path: Path) -> None:
        until(path.is_file, "the run has begun")
        self.training = psutil.Process(int(path.read_text()))
        self.folder = Path(self.training.cwd())
        above = self.training.parents()
        (self.job,) = [one for one in above if "detaudit.remote.worker" in command_of(one)]
        self.worker = psutil.Process(self.job.ppid())
        self.manager = psutil.Process(self.worker.ppid())
        self.beside = self.manager.children()

    def ends(self, seconds: float = ENDS_IN_S) -> None:
        gone([self.training, self.job], seconds)
        assert not self.folder.exists()


def command_of(process: psutil.Process) -> list[str]:
    """Return the command of a process, nothing if it is gone."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def gone(processes: list[psutil.Process], seconds: float = ENDS_IN_S) -> None:
    until(lambda: not any(map(is_alive, processes)), f"these processes end: {processes}", seconds)


def returned(engine: Engine, count: int = 1) -> list[Returned]:
    found: list[Returned] = []

    def enough() -> bool:
        assert not engine.failure()
        found.extend(engine.poll())
        return len(found) >= count

    until(enough, "jobs return")
    return found


def attempt_of(one: Returned, folder: Path) -> Attempt:
    assert isinstance(one.result, bytes), one.result
    archive = folder / f"{one.job}.detaudit"
    archive.write_bytes(one.result)
    return unpack(archive, folder / one.job)


def auditor(code: str) -> "subprocess.Popen[str]":
    root = Path(__file__).parents[3]
    env = {**os.environ, "PYTHONPATH": f"{root}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=env)


def is_clean_in(engine: Engine, folder: Path, *names: str) -> None:
    """Check that runs have nothing of the engine's workers, neither variables with such names nor anything else."""
    for number in (1, 2, 3):
        engine.submit(job(f"run{number}", SHOW, run=number))
    shown = []
    for one in returned(engine, 3):
        attempt_of(one, folder)
        (path,) = (folder / one.job).rglob("stdout.log")
        shown.append(path.read_text().split("\n"))
    variables, values, open_files, *_ = zip(*shown, strict=True)
    assert len(set(variables)) == len(set(values)) == len(set(open_files)) == 1
    for name in names:
        assert name not in variables[0]
    assert values[0].split()[:2] == ["None", "None"]
    assert values[0].split()[2] == "0" or os.geteuid(), "only root may raise a priority"
    assert open_files[0] == "[] set()", "neither pipes nor sockets, and no signal is blocked"
    assert len({lines[3] for lines in shown}) == 3, "each run has its own string hash seed"
