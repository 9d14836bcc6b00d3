"""Hosts on this machine: by a program that takes the place of ssh, or by real servers."""

import contextlib
import getpass
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]

PRETENDED = """\
#!/bin/sh
# ssh [-o OPTION]... HOST COMMAND, on this machine, with the environment of a login
while [ "$1" = -o ]; do shift 2; done
host=$1; shift
if [ -f "{folder}/$host.down" ]; then echo "ssh: connect to host $host: Connection refused" >&2; exit 255; fi
if [ -f "{folder}/$host.banner" ]; then echo "Welcome to $host"; fi
echo $$ >> "{folder}/$host.pids"
if [ -d "{folder}/$host.home" ]; then HOME="{folder}/$host.home"; fi
exec env -i HOME="$HOME" USER="$USER" PATH=/usr/bin:/bin PYTHONPATH="$HOME:{pythonpath}" SSH_CONNECTION=x sh -c "$*"
"""


ANOTHER = """
import detaudit.runs.environment as environment
read = environment.read
environment.read = lambda path: "another" if str(path).endswith("boot_id") else read(path)
"""
"""What makes a host a machine of its own, as its workers see it: Python runs it first."""


def another(folder: Path, host: str, *files: str) -> None:
    """Make a host of ``pretended`` a machine of its own, with these files in its home."""
    home = folder / f"{host}.home"
    home.mkdir()
    (home / "sitecustomize.py").write_text(ANOTHER)
    for name in files:
        (home / name).touch()


def pretended(folder: Path) -> str:
    """Return a command that takes the place of ssh; files in the folder say which hosts are down."""
    path = folder / "ssh"
    path.write_text(PRETENDED.format(folder=folder, pythonpath=ROOT))
    path.chmod(0o755)
    return str(path)


def free_port() -> int:
    """Return a port of loopback on which nothing listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def servers(folder: Path, names: tuple[str, ...]) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Start a server of ssh for each name, with keys made for it; yield their processes.

    The configuration of the client is ``config`` in the folder.
    """
    for key in ("user", "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    (folder / "authorized").write_bytes((folder / "user.pub").read_bytes())
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    config, running = [], {}
    for name in names:
        port = free_port()
        (folder / f"{name}.sshd").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
            f"PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n"
            f"SetEnv PYTHONPATH={ROOT} HOME={folder}\n"  # no .bashrc, which may do anything
        )
        config.append(
            f"Host {name}\n HostName 127.0.0.1\n Port {port}\n User {getpass.getuser()}\n IdentityFile {folder}/user\n"
            f" IdentitiesOnly yes\n StrictHostKeyChecking no\n UserKnownHostsFile {folder}/known\n LogLevel ERROR\n"
        )
        running[name] = subprocess.Popen(
            ["/usr/sbin/sshd", "-D", "-e", "-f", folder / f"{name}.sshd"], stderr=subprocess.DEVNULL
        )
        _wait_for(port)
    (folder / "config").write_text("".join(config))
    try:
        yield running
    finally:
        for server in running.values():
            server.kill()
            server.wait()


def _wait_for(port: int) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on port {port}")


def python() -> str:
    """Return the interpreter of jobs."""
    return sys.executable


def is_here() -> bool:
    """Whether servers of ssh can be started."""
    return os.access("/usr/sbin/sshd", os.X_OK)
