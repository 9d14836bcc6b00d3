"""``python busy.py PARENT``: keep one CPU busy until the parent process is gone, however it ended."""

import os
import sys


def main() -> None:
    """Stay busy as long as the parent lives."""
    parent = int(sys.argv[1])
    while os.getppid() == parent:
        for _ in range(100_000):
            pass


if __name__ == "__main__":
    main()
