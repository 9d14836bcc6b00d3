"""Run the tests that need no framework with each Python that is installed: ``python -m tests.interpreters``."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "interpreters"
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")

_NEEDS_A_FRAMEWORK = re.compile(
    r"\b(import|from)\b.* (jax|keras|tensorflow|torch)\b|^from tests\.(fuzz import artifacts|planted import .*)$",
    re.MULTILINE,
)
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def find(version: str) -> str | None:
    """Return a Python of this version: the one on PATH, or one that uv or pyenv installed; None if none runs."""
    return next((python for python in _candidates(version) if _output(python, "-c", _VERSION) == version), None)


def _candidates(version: str) -> Iterator[str]:
    yield f"python{version}"
    yield _output("uv", "python", "find", "--no-project", version)
    root = _output("pyenv", "root")
    if root:
        yield from sorted(map(str, Path(root, "versions").glob(f"{version}.*/bin/python")), reverse=True)


def _output(*words: str) -> str:
    """Return what a command prints, ``""`` if it fails, as a shim does whose version is not installed."""
    if shutil.which(words[0]) is None:
        return ""
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout.strip() if done.returncode == 0 else ""


def files() -> list[str]:
    """Return the test files that need no framework, which not every version has."""
    found = [path for path in (ROOT / "tests").rglob("test_*.py") if not {"corpus", "ecosystem"} & {*path.parts}]
    return sorted(str(path) for path in found if not _NEEDS_A_FRAMEWORK.search(path.read_text()))


def environment(python: str, version: str) -> str:
    """Return the Python of an environment with the project, which is made if necessary."""
    folder = FOLDER / version
    made = folder / "bin" / "python"
    if not made.exists():
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
    subprocess.run([made, "-m", "pip", "install", "--quiet", "-e", f"{ROOT}[dev]"], check=True)
    return str(made)


def main() -> int:
    """Test with each version; return 1 if a test fails."""
    pythons = {version: find(version) for version in VERSIONS}
    failed = []
    for version, python in pythons.items():
        if python is not None:
            print(f"Python {version}: {python}", flush=True)
            words = [environment(python, version), "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", *files()]
            failed += [version] if subprocess.run(words, cwd=ROOT, check=False).returncode else []
    missing = [version for version, python in pythons.items() if python is None]
    print(f"failed: {', '.join(failed) or 'none'}; not installed: {', '.join(missing) or 'none'}")
    return 1 if failed or len(missing) == len(VERSIONS) else 0


if __name__ == "__main__":
    sys.exit(main())
