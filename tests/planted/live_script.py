"""The script of a live training: FOLDER TRAINING WORLD. Each run takes the next of the plants in FOLDER/plants.json."""

import json
import sys
from pathlib import Path

from tests.planted.noted import Values
from tests.planted.plants import Plant


def main() -> None:
    """Train once; what is noted is written into FOLDER/<number of the run>."""
    folder, name, world = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    counter = folder / "runs"
    number = int(counter.read_text()) + 1 if counter.exists() else 1
    counter.write_text(str(number))
    fields = json.loads((folder / "plants.json").read_text())[number - 1]
    plant, noted = Plant(*fields) if fields else None, folder / str(number)
    noted.mkdir()
    if name == "record":  # without the seconds that torch takes to load
        from tests.planted.without_framework import record

        record(Values(noted, plant))
    else:
        from tests.planted.trainings import train

        train(name, world, plant, noted)


if __name__ == "__main__":
    main()
