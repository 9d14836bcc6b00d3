"""Environments that tests of an installed detaudit need: of a tool, and of a training beside it."""

import contextlib
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterable, Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

_TORCH = find_spec("torch")
PACKAGES = Path(_TORCH.origin).parents[1] if _TORCH and _TORCH.origin else Path(sysconfig.get_path("purelib"))
"""Where torch is, with what else is installed for these tests."""

TRAIN = """
    import importlib.util
    import sys
    import torch_training

    # Its configs may be there: an editable installation leaves them among the packages.
    assert getattr(importlib.util.find_spec("detaudit"), "loader", None) is None
    print(sys.prefix)
    torch_training.train(seed=0)
"""
"""A training that needs torch, and in whose environment detaudit is not installed."""


def outside(**changes: str) -> dict[str, str]:
    """Return the environment variables of a user in whose shell no environment is active."""
    ours = ("PYTHON", "PYTEST", "COV", "VIRTUAL_ENV", "CONDA_")
    return {**{name: value for name, value in os.environ.items() if not name.startswith(ours)}, **changes}


def environment(folder: Path, *, python: str = sys.executable, see: Path | None = PACKAGES) -> Path:
    """Make a virtual environment that sees the packages in ``see``, and return its Python."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    if see is not None:
        (site_packages(folder) / "seen.pth").write_text(str(see))
    return folder / "bin" / "python"


def site_packages(folder: Path) -> Path:
    return next(folder.glob("lib/*/site-packages"))


def tool(folder: Path, wheel: Path) -> Path:
    """Install a wheel with its dependencies alone, as tools are installed, and return its command."""
    python = environment(folder, see=None)
    packages = site_packages(folder)
    zipfile.ZipFile(wheel).extractall(packages)
    own = metadata.Distribution.at(next(packages.glob("*.dist-info")))
    for name in dependencies(own.requires or []):
        for entry in top_level(name):
            (packages / entry.name).symlink_to(entry)
    command = folder / "bin" / "detaudit"
    command.write_text(f"#!{python}\nimport sys\nfrom detaudit.__main__ import main\nsys.exit(main())\n")
    command.chmod(0o755)
    return command


def dependencies(wanted: Iterable[str]) -> set[str]:
    """Return the names of distributions that these requirements bring, without extras."""
    found = {re.split(r"[^\w.-]", one)[0] for one in wanted if "extra ==" not in one}
    for name in tuple(found):
        with contextlib.suppress(metadata.PackageNotFoundError):  # it is for a different Python
            found |= dependencies(metadata.requires(name) or [])
    return found


def top_level(name: str) -> Iterator[Path]:
    """Yield the folders and files that a distribution has among the installed packages."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        first = {file.parts[0] for file in metadata.files(name) or []} - {"..", "__pycache__"}
        yield from (PACKAGES / entry for entry in sorted(first))
