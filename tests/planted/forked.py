"""A launcher whose runs are forked children of one process, for audits that are otherwise those of the command line."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from detaudit import wire
from detaudit.launch import RunOutcome, RunSpec
from detaudit.launch.plan import run_environment

SERVER = Path(__file__).with_name("server.py")
ROOT = Path(__file__).parents[2]


class ForkLauncher:
    """Does the given requests one after another, one for each run of the audits."""

    def __init__(self, server: subprocess.Popen[str], live: Path) -> None:
        self._server, self._live = server, live
        self.requests: Iterator[Mapping[str, Any]] = iter(())

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        """See Launcher.launch."""
        if spec.live != self._live:
            raise ValueError("all audits of a server have one results folder")
        (spec.live / wire.LOGS).mkdir(parents=True)
        started = time.monotonic()
        status = self.request({"cwd": str(spec.cwd), "live": str(spec.live), **next(self.requests)})
        tick()
        spec.folder.parent.mkdir(parents=True, exist_ok=True)
        spec.live.rename(spec.folder)
        return RunOutcome(status, time.monotonic() - started)

    def request(self, request: Mapping[str, Any]) -> int:
        """Have a child do this, and return its exit status."""
        if self._server.stdin is None or self._server.stdout is None:
            raise ValueError("the server has no pipes")
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())


@contextmanager
def serving(out: Path, env: Mapping[str, str], *modules: str) -> Iterator[ForkLauncher]:
    """Start the process whose children train; ``out`` is the results folder of all audits, one after another.

    It imports ``modules`` beside torch.
    """
    live = out / "live"
    base = {**env, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    variables = run_environment(
        base, (), 0, logs=live / wire.LOGS, scratch=out, mark="planted", stages=wire.DEFAULT_STAGES
    )
    with subprocess.Popen(
        [sys.executable, str(SERVER), *modules], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        if server.stdout is None or server.stdout.readline() != "ready\n":
            raise RuntimeError("the server did not start")
        try:
            yield ForkLauncher(server, live)
        finally:
            if server.stdin is not None:
                server.stdin.close()
