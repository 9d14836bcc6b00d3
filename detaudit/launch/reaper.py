"""``reaper.main`` in a process with the argument MARK: outlive an audit that is killed, and end its runs."""

import sys

from detaudit.launch.processes import kill_marked


def main() -> None:
    """Wait until the audit closes the pipe, and end its runs unless it wrote that it is done."""
    if sys.stdin.buffer.read() != b"done":
        kill_marked(sys.argv[1])
