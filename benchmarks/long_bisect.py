"""Time a bisection of a real training of a minute and of ten, over the time of that training.

``make bench-long`` runs it: about an hour. One flag is needed, which shows at the first step.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

TRAINING = Path(__file__).parent / "waiting.py"
LENGTHS_S = (60, 600)


def seconds(words: list[str], folder: Path) -> float:
    """Return how long a command takes. Raises CalledProcessError if it fails."""
    started = time.monotonic()
    subprocess.run([sys.executable, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - started


def main() -> None:
    """Print a row for each length."""
    print("| training | alone | bisect | ratio |\n|---|---|---|---|")
    for length in LENGTHS_S:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "train.py").write_text(TRAINING.read_text())
            alone = seconds(["train.py", str(length)], folder)
            took = seconds(["-m", "detaudit", "bisect", "train.py", "--", str(length)], folder)
        print(f"| {length} s | {alone:.0f} s | {took:.0f} s | {took / alone:.1f} |", flush=True)


if __name__ == "__main__":
    main()
