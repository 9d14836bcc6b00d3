"""A library that is missing where detaudit is installed is used by the interpreter that has it."""

import sys
from pathlib import Path

import pytest

from detaudit.runs.formats import apart, parts

LIBRARY = '''
class KvStore:
    """Stands for tensorstore, with no arrays and one key."""

    @classmethod
    def open(cls, spec):
        print("a library may print")
        return cls()

    def result(self):
        return self

    def list(self):
        return Result([b"step"])

    def read(self, key):
        return Result(Value)


class Value:
    value = b"three"


class Result:
    def __init__(self, found):
        self.found = found

    def result(self):
        return self.found
'''


@pytest.fixture
def interpreter(tmp_path: Path) -> str:
    """Return an interpreter with a library that is missing here."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(Path(sys.executable).resolve())
    (tmp_path / "venv" / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    packages = tmp_path / "venv" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "tensorstore.py").write_text(LIBRARY)
    return str(python)


@pytest.mark.skipif(apart._is_here("tensorstore"), reason="tensorstore is installed here")
def test_another_interpreter_reads_what_has_no_library_here(tmp_path: Path, interpreter: str) -> None:
    manifest = tmp_path / "manifest.ocdbt"
    manifest.write_bytes(b"\x0c\xdb\x3a\x2a" + bytes(20))
    token = apart.interpreter.set(interpreter)
    try:
        assert [(part.name, list(part.pieces)) for part in parts(manifest)[1]] == [("step", [b"three"])]
    finally:
        apart.interpreter.reset(token)
    token = apart.interpreter.set("/gone/python")
    try:
        with pytest.raises(OSError, match="gone"):
            list(parts(manifest)[1])
    finally:
        apart.interpreter.reset(token)


def test_an_interpreter_without_the_library_says_so(tmp_path: Path, interpreter: str) -> None:
    (Path(interpreter).parents[1] / "lib" / f"python3.{sys.version_info.minor}/site-packages/tensorstore.py").unlink()
    (tmp_path / "manifest.ocdbt").write_bytes(b"\x0c\xdb\x3a\x2a" + bytes(20))
    token = apart.interpreter.set(interpreter)
    try:
        with pytest.raises(ModuleNotFoundError) as raised:
            list(parts(tmp_path / "manifest.ocdbt")[1])
        assert raised.value.name == "tensorstore"
    finally:
        apart.interpreter.reset(token)
