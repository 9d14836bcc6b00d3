"""Clusters of Ray on this machine, each node at an address of loopback and with processes of its own."""

import contextlib
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.remote.engines.hosts import free_port

STARTS_IN_S = 60.0


@dataclass
class Cluster:
    """A cluster whose nodes are started by `ray start`, and ended by signals: `ray stop` would end others as well.

    ``variables`` are the environment of its nodes. Nodes listen on all interfaces, so a token keeps others out.
    """

    folder: Path
    variables: dict[str, str]
    address: str = field(default_factory=lambda: f"127.0.0.2:{free_port()}")
    nodes: dict[str, psutil.Popen] = field(default_factory=dict)

    def start(self, name: str, *options: str) -> None:
        """Start a node and wait for it; the first is the head."""
        head = not self.nodes
        where = ["--head", f"--port={self.address.rpartition(':')[2]}", f"--temp-dir={self.folder}/ray"]
        words = [
            *(str(Path(sys.executable).with_name("ray")), "start", "--block", "--disable-usage-stats"),
            *((*where, "--include-dashboard=false") if head else (f"--address={self.address}",)),
            *(f"--node-ip-address=127.0.0.{2 + len(self.nodes)}", f"--node-name={name}"),
            *("--object-store-memory=80000000", *(options or ("--num-cpus=1",))),
        ]
        log = self.folder / f"{name}.log"
        with log.open("wb") as out:
            node = psutil.Popen(words, env=self.variables, stdout=out, stderr=out, start_new_session=True, cwd="/")
        self.nodes[name] = node
        end = time.monotonic() + STARTS_IN_S
        while "Ray runtime started" not in log.read_text():
            assert time.monotonic() < end, log.read_text()
            assert node.poll() is None, log.read_text()
            time.sleep(0.1)

    def processes(self, name: str) -> list[psutil.Process]:
        """Return all processes of a node, the one that started the others first."""
        return [self.nodes[name], *self.nodes[name].children(recursive=True)]

    def end(self) -> None:
        """End all nodes, and what one of them that was killed left."""
        everything = [one for name, node in self.nodes.items() if node.poll() is None for one in self.processes(name)]
        for node in self.nodes.values():
            with contextlib.suppress(psutil.Error):
                node.send_signal(signal.SIGTERM)
        psutil.wait_procs(everything, timeout=15)
        for process in everything:
            with contextlib.suppress(psutil.Error):
                process.kill()
        for node in self.nodes.values():
            node.wait()


@contextlib.contextmanager
def cluster(**variables: str) -> Iterator[Cluster]:
    """Yield a cluster without nodes, and end those that are started; its folder is short enough for sockets."""
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    made = Cluster(folder, {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", **token, **variables})
    try:
        yield made
    finally:
        made.end()
        shutil.rmtree(folder, ignore_errors=True)
