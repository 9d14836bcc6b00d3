"""Slurm with one node, this machine: its daemons from Debian's packages, with a configuration of their own."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.remote.engines.hosts import free_port

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo")
STARTS_IN_S = 60.0

CONFIG = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={node_port}
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
JobRequeue=1
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def is_here() -> bool:
    """Whether Slurm is installed, and may be started."""
    return os.geteuid() == 0 and all(map(shutil.which, PROGRAMS))


@contextlib.contextmanager
def slurm() -> Iterator[dict[str, str]]:
    """Start the daemons; yield the variables with which commands of Slurm find them."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    for name in ("state", "spool", "munge"):
        (folder / name).mkdir()
    shutil.chown(folder / "munge", "munge", "munge")
    folder.chmod(0o755)
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    shutil.chown(key, "munge", "munge")
    host, conf = socket.gethostname().partition(".")[0], folder / "slurm.conf"
    ports = {"port": free_port(), "node_port": free_port(), "cpus": len(os.sched_getaffinity(0))}
    config = CONFIG.replace("{folder}/munge.socket", "{folder}/munge/socket")
    conf.write_text(config.format(host=host, folder=folder, **ports))
    env = {**os.environ, "SLURM_CONF": str(conf)}
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    as_munge = ["setpriv", "--reuid=munge", "--regid=munge", "--clear-groups", "munged", "--foreground"]
    started: list[subprocess.Popen[bytes]] = []
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.callback(_end, started)
        munge = [*as_munge, *(f"--{name}={folder}/munge/{file}" for name, file in files.items())]
        for command in (munge, ["slurmctld", "-D"], ["slurmd", "-D", "-N", host]):
            quiet = subprocess.DEVNULL
            started.append(subprocess.Popen(command, env=env, stdout=quiet, stderr=quiet, stdin=quiet))
            if command is munge:
                _until((folder / "munge" / "socket").exists, "munged starts")
        _until(lambda: "idle" in _says(["sinfo", "--noheader", "--format=%T"], env), "the node is idle")
        yield env


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    for process in reversed(started):
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()


def _says(command: list[str], env: dict[str, str]) -> str:
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False).stdout


def _until(look: object, what: str) -> None:
    assert callable(look)
    end = time.monotonic() + STARTS_IN_S
    while not look():
        assert time.monotonic() < end, what
        time.sleep(0.1)
