"""Start a launcher with the next fault of a list: ``launch.py PLANTS COMMAND…``.

PLANTS is a file with a fault on each line. A second file beside it counts how many were used.
"""

import os
import sys
from pathlib import Path

plants = Path(sys.argv[1])
used = plants.with_suffix(".used")
number = int(used.read_text()) if used.exists() else 0
used.write_text(str(number + 1))
os.environ["PLANT"] = plants.read_text().splitlines()[number].ljust(20)
os.environ["MEETING"] = str(plants.with_suffix(f".meeting{number:04}"))
os.execvp(sys.argv[2], sys.argv[2:])
