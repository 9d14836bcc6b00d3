"""Run detaudit as ``python -m detaudit``."""

import os
import sys

INTERRUPTED = 130


def main() -> int:
    """Run the command line and return its exit status."""
    try:
        from detaudit.cli import main as run

        return run()
    except KeyboardInterrupt:  # while modules were imported
        return INTERRUPTED


if __name__ == "__main__":
    # Python puts the working folder first, where a file of the user may have the name of a module that is needed here.
    if not getattr(sys.flags, "safe_path", False) and sys.path[0] in ("", os.getcwd()):
        del sys.path[0]
    sys.exit(main())
