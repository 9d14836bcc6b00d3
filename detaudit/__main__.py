"""Run detaudit as ``python -m detaudit``."""

import os
import sys

if __name__ == "__main__":
    # Python puts the working folder first, where a file of the user may have the name of a module that is needed here.
    if not getattr(sys.flags, "safe_path", False) and sys.path[0] in ("", os.getcwd()):
        del sys.path[0]
    from detaudit.cli import main

    sys.exit(main())
