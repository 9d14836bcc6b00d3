"""The packages of an interpreter: asked of itself, in a process of its own; none of them is imported."""

import subprocess
from typing import TypeVar

import msgspec

from detaudit.errors import UnknownNameError
from detaudit.launch.target import outer_environment
from detaudit.wire import FRAMEWORKS

Answer = TypeVar("Answer")

MOST_S = 120.0
"""What an interpreter may take to answer, in seconds."""

_ASK = r"""
import sys
sys.path[:] = [folder for folder in sys.path if folder]
import hashlib, importlib.metadata as metadata, json, platform, re
notes = ("INSTALLER", "REQUESTED", "direct_url.json", "RECORD")
packages, plain = {}, lambda name: re.sub(r"[-_.]+", "-", name).lower()
digest = lambda lines: hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest() if lines else ""
for one in metadata.distributions():
    name = plain(one.metadata["Name"] or "")
    if not name or name in packages:
        continue  # the first on the path is the one that is imported
    listed = {line.rsplit(",", 2)[0].strip('"'): line for line in (one.read_text("RECORD") or "").splitlines()}
    inside = {file: listed[file] for file in listed if not file.startswith(("../", "/")) and not file.endswith(".pyc")}
    own = [file for file in inside if ".dist-info/" not in file and ".data/" not in file]
    requires = [re.match(r"[\w.-]+", text) for text in one.requires or () if not re.search(r"\bextra\b", text)]
    packages[name] = {
        "version": one.version,
        "record": digest([inside[file] for file in inside if file.rpartition("/")[2] not in notes]),
        "build": digest([inside[file] for file in own])[:8],
        "modules": sorted({file.split("/")[0].split(".")[0] for file in own}),
        "requires": sorted({plain(name[0]) for name in requires if name}),
    }
print(json.dumps({"version": platform.python_version(), "prefix": sys.prefix, "packages": packages}))
"""


class Package(msgspec.Struct, frozen=True):
    """A package: its version, its modules at the top, and the packages that it requires.

    ``record`` is the SHA-256 of its RECORD without what differs from place to place: files outside of its folder, such
    as scripts that name their interpreter, compiled files, and the notes of the installer. ``build`` begins that of
    its own files alone. Both are ``""`` for what has no RECORD, such as what a system installed.
    """

    version: str
    record: str = ""
    build: str = ""
    modules: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()


class Packages(msgspec.Struct, frozen=True):
    """The packages of an interpreter by their normalized names, its version, and the folder of its environment."""

    version: str
    prefix: str
    packages: dict[str, Package]

    def name_of(self, module: str) -> str:
        """Return the name of the package that has a module, ``""`` if none has, or if several do."""
        names = [name for name, one in self.packages.items() if module.partition(".")[0] in one.modules]
        return names[0] if len(names) == 1 else ""

    def required_by(self, name: str) -> set[str]:
        """Return the packages that one requires, and those that these require."""
        known: set[str] = set()
        waiting = [name]
        while waiting:
            one = self.packages.get(waiting.pop())
            more = {*(one.requires if one else ())} - known
            known |= more
            waiting += more
        return known - {name}


_DECODER = msgspec.json.Decoder(Packages)
_VERSIONS = msgspec.json.Decoder(tuple[str, dict[str, str]])


def of_python(python: str) -> Packages:
    """Return the packages that an interpreter has in the environment of runs.

    Raises UnknownNameError if it is no Python that runs.
    """
    return _answer(_DECODER, python, "-c", _ASK)


KNOWN = (
    *(one for name, framework in FRAMEWORKS.items() for one in framework.distributions or (name,)),
    *("numpy", "scipy", "pandas", "pillow", "opencv-python", "horovod", "lightning", "transformers", "accelerate"),
    *("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"),
)
"""Distributions whose version may change the result of a training."""

_ASK_VERSIONS = """
import importlib.metadata as metadata, json, platform, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps([platform.python_version(), found]))
"""


def installed(python: str) -> tuple[str, dict[str, str]]:
    """Return the version of an interpreter, and the versions of the KNOWN packages that it has by itself: no more.

    Raises UnknownNameError if it is no Python that runs.
    """
    return _answer(_VERSIONS, python, "-I", "-c", _ASK_VERSIONS, *KNOWN)


def _answer(decoder: msgspec.json.Decoder[Answer], python: str, *words: str) -> Answer:
    try:
        done = subprocess.run(
            [python, *words], env=outer_environment(), capture_output=True, text=True, timeout=MOST_S, check=True
        )
        return decoder.decode(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError, IndexError) as error:
        lines = (getattr(error, "stderr", None) or "").strip().splitlines()
        reason = lines[-1] if lines else getattr(error, "strerror", None) or "it does not list its packages"
        raise UnknownNameError(f"{python} is not a working Python interpreter: {reason}", "Check --python.") from error
