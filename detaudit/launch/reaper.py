"""``reaper.main`` in a process with the arguments MARK and OUT: outlive an audit that is killed, and end its runs."""

import sys
from pathlib import Path

from detaudit.launch.processes import kill_marked
from detaudit.launch.put_aside import recover_own
from detaudit.launch.tree import sweep


def main() -> None:
    """Wait until the audit closes the pipe. Unless it wrote that it is done, end its runs, and undo what it did.

    What it moved is put back, and its copies are removed.
    """
    if sys.stdin.buffer.read() != b"done":
        kill_marked(sys.argv[1])
        if len(sys.argv) > 2:
            recover_own(Path(sys.argv[2]))
            sweep(Path(sys.argv[2]))
