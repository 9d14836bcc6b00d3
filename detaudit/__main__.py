"""Run detaudit as ``python -m detaudit``."""

import sys

from detaudit.cli import main

if __name__ == "__main__":
    sys.exit(main())
