"""``python -m detaudit.launch.reaper MARK``: outlives an audit that is killed, and ends its runs."""

import sys

from detaudit.launch.processes import kill_marked


def main() -> None:
    """Wait until the audit closes the pipe; if it had no time to say that it is done, end its runs."""
    if sys.stdin.buffer.read() != b"done":
        kill_marked(sys.argv[1])


if __name__ == "__main__":
    main()
