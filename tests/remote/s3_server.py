"""A real server of S3 on loopback: moto, in an environment of its own, whose botocore is another than that of s3fs."""

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

STARTS_IN_S = 120

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "planted-key",
    "AWS_SECRET_ACCESS_KEY": "planted-secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Nothing is asked of another machine."""


class S3Server:
    """A server that can be stopped and started at one address. What it keeps is in memory, so gone when it stops."""

    def __init__(self, log: Path) -> None:
        self._log = log
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self._port = str(found.getsockname()[1])
        self.address = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, **variables: str) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [os.environ["MOTO"], "-m", "moto.server", "-H", "127.0.0.1", "-p", self._port],
                stdout=log, stderr=log, env={**os.environ, **variables},
            )  # fmt: skip
        until = time.monotonic() + STARTS_IN_S
        while time.monotonic() < until:
            assert self._process.poll() is None, self._log.read_text()
            try:
                with urllib.request.urlopen(f"{self.address}/moto-api/", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise AssertionError(self._log.read_text())

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    def hang(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def serving(log: Path, **variables: str) -> Iterator[S3Server]:
    """Yield a server that runs, and point the clients of this process to it."""
    server = S3Server(log)
    server.start(**variables)
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AWS_", "FSSPEC_"))]:
            patch.delenv(name)
        for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": server.address}.items():
            patch.setenv(name, value)
        try:
            yield server
        finally:
            server.stop()
