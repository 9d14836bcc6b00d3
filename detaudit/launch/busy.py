"""``python busy.py PARENT``: computes nothing of use until its parent is gone, however that ended."""

import os
import sys


def main() -> None:
    """Stay busy."""
    parent = int(sys.argv[1])
    while os.getppid() == parent:
        for _ in range(100_000):
            pass


if __name__ == "__main__":
    main()
