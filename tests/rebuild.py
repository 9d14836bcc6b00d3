"""Build the sdist and the wheel again and compare them by the byte: ``python -m tests.rebuild dist``.

The second build starts from the sdist, in a different folder, with files of a different time and mode, as somebody does
who wants to see that the published files come from the published source. The wheel names the hatchling that built it:
a different version may write different bytes.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

_OF_FILES = 1_234_567_890
"""Seconds since 1970: when the copied files were changed."""


def build(source: Path, folder: Path) -> None:
    """Build the sdist and the wheel of ``source`` into ``folder``, with the hatchling of this environment.

    Raises CalledProcessError if that fails.
    """
    words = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(words, cwd=source, check=True, stdout=subprocess.DEVNULL)


def differing(dist: Path) -> list[str]:
    """Return which files of ``dist``, a folder with an sdist and its wheel, a second build does not repeat."""
    (sdist,) = dist.glob("*.tar.gz")
    with tempfile.TemporaryDirectory(prefix="rebuild-") as name:
        folder = Path(name)
        with tarfile.open(sdist) as archive:
            archive.extractall(folder / "source", filter="data")
        (source,) = (folder / "source").iterdir()
        for path in source.rglob("*"):
            path.chmod(0o700 if path.is_dir() or path.stat().st_mode & 0o100 else 0o600)
            os.utime(path, (_OF_FILES, _OF_FILES))
        build(source, folder / "again")
        again = {path.name: path.read_bytes() for path in (folder / "again").iterdir()}
    first = {path.name: path.read_bytes() for path in dist.iterdir()}
    return sorted(name for name in first.keys() | again.keys() if first.get(name) != again.get(name))


def main(arguments: list[str]) -> int:
    """Compare a second build with the files in the folder that is given; return 1 if they differ."""
    wrong = differing(Path(arguments[0]))
    print(f"a second build differs: {', '.join(wrong)}" if wrong else "a second build is the same to the byte")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
