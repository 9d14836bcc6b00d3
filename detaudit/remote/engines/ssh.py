"""Runs on machines that ssh reaches: a Python there that has detaudit takes a job on stdin, and answers on stdout."""

import contextlib
import os
import shlex
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field
from typing import IO

import msgspec

from detaudit import __version__
from detaudit.errors import UsageError
from detaudit.remote.engine import Job, Lost, Refused, Returned
from detaudit.remote.engines import Queue
from detaudit.remote.worker import frame, result_of, unframed

COMMAND = "DETAUDIT_SSH_COMMAND"
"""A variable with the command to use in place of ``ssh``, such as ``ssh -F config``; a shell is not involved."""

_OPTIONS = {"BatchMode": "yes", "ServerAliveInterval": "2", "ServerAliveCountMax": "3", "ConnectTimeout": "5"}
"""Never ask for a password, and end a connection that fell silent after 8 s."""

_OF_SSH = 255
"""The exit status of ssh's own failures; all others are those of the command there."""

_CLOSE_S = 5.0


def connect(argument: str, python: str) -> "Ssh":
    """Return the engine of ``HOST,HOST,…``, whose jobs ``python`` does there. Raises UsageError if none is named."""
    hosts = tuple(host.strip() for host in argument.split(","))
    if not all(hosts):
        raise UsageError(f"--engine ssh:{argument} does not name hosts", "Name them as in --engine ssh:node1,node2.")
    bad = next((host for host in hosts if host.startswith("-")), None)
    if bad is not None:
        raise UsageError(f"{bad!r} is not a host", "Options of ssh belong in its configuration.")
    return Ssh(hosts, python or "python3")


@dataclass
class _Connection:
    """One job on its way: the process of ssh, what it wrote, and the thread that writes to it."""

    job: Job
    process: subprocess.Popen[bytes]
    out: IO[bytes]
    err: IO[bytes]
    sender: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.sender = threading.Thread(target=self._send, daemon=True)
        self.sender.start()

    def _send(self) -> None:
        """Write the job; stdin stays open, because its end would end the run."""
        pipe = self.process.stdin
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.write(frame(msgspec.msgpack.encode(self.job)))
                pipe.flush()

    def result(self, host: str) -> bytes | Lost | Refused:
        """Return what came of the job, once the process has ended."""
        self.out.seek(0)
        data = unframed(self.out.read())
        if data is not None:
            return result_of(data)
        code, why = self.process.returncode, self._last_line()
        if code == _OF_SSH or code < 0 or code == 128 + 9:
            return Lost(why or "the connection was lost")
        if code == 0:
            return Lost("the connection was cut")
        hint = f"Install detaudit {__version__} beside the framework on {host}, and name that Python with --python."
        return Refused(f"detaudit cannot be started ({why or f'exit status {code}'})", hint)

    def _last_line(self) -> str:
        self.err.seek(max(0, self.err.seek(0, os.SEEK_END) - 4096))
        lines = self.err.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def end(self) -> None:
        """End the connection, which ends the run: its stdin closes."""
        self.hang_up()
        try:
            self.process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.out.close()
        self.err.close()

    def hang_up(self) -> None:
        """Close stdin, or end ssh itself if it did not even take the whole job."""
        if self.sender.is_alive():
            self.process.kill()
        self.sender.join()
        with contextlib.suppress(OSError):
            if self.process.stdin is not None:
                self.process.stdin.close()


class Ssh:
    """The Engine of hosts, each of which does one job at a time."""

    def __init__(self, hosts: tuple[str, ...], python: str) -> None:
        self._hosts, self._python = hosts, python
        self._queue = Queue()
        self._busy: dict[int, _Connection] = {}
        self.at_once, self.places = len(hosts), frozenset(hosts)

    def submit(self, job: Job, avoid: frozenset[str] = frozenset()) -> None:
        """See Engine."""
        self._queue.add(job, avoid)
        self._start()

    def poll(self) -> list[Returned]:
        """See Engine."""
        returned = []
        for index, connection in list(self._busy.items()):
            if connection.process.poll() is not None:
                del self._busy[index]
                returned.append(Returned(connection.job.id, connection.result(self._hosts[index]), self._hosts[index]))
                connection.end()
        self._start()
        return returned

    def cancel(self, job: str) -> None:
        """See Engine."""
        self._queue.remove(job)
        for index, connection in list(self._busy.items()):
            if connection.job.id == job:
                del self._busy[index]
                connection.end()

    def failure(self) -> str:
        """See Engine: hosts fail one by one."""
        return ""

    def close(self) -> None:
        """See Engine."""
        connections = list(self._busy.values())
        self._busy.clear()
        for connection in connections:  # all at once, then wait for each
            connection.hang_up()
        for connection in connections:
            connection.end()

    def _start(self) -> None:
        free = [index for index in range(len(self._hosts)) if index not in self._busy]
        for index in free:
            job = self._queue.take(self._hosts[index], self.places)
            if job is not None:
                self._busy[index] = self._connect(self._hosts[index], job)

    def _connect(self, host: str, job: Job) -> _Connection:
        command = shlex.split(os.environ.get(COMMAND, "ssh"))
        options = [word for name, value in _OPTIONS.items() for word in ("-o", f"{name}={value}")]
        there = f"exec {shlex.quote(self._python)} -m detaudit.remote.worker"
        out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed by _Connection.end
        try:
            process = subprocess.Popen(
                [*command, *options, host, there], stdin=subprocess.PIPE, stdout=out, stderr=err, start_new_session=True
            )
        except OSError as error:
            raise UsageError(f"cannot start {command[0]!r}: {error.strerror}", "Install an ssh client.") from error
        return _Connection(job, process, out, err)
