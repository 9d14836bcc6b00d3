"""Print what a release says about itself, if all its files name one version: ``python -m tests.release v0.1.0``."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNRELEASED = "Unreleased"

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


class ReleaseError(Exception):
    """The files of a release do not fit together; the message says which."""


def package_version(root: Path = ROOT) -> str:
    """Return the version of the package, which that of the wheel is read from."""
    return _found(r'^__version__ = "(.+)"$', root / "detaudit" / "__init__.py")


def cited_version(root: Path = ROOT) -> str:
    """Return the version in CITATION.cff."""
    return _found(r"^version: (.+)$", root / "CITATION.cff")


def _found(pattern: str, path: Path) -> str:
    found = re.search(pattern, path.read_text(), re.MULTILINE)
    if not found:
        raise ReleaseError(f"{path} has no version")
    return found[1]


def changes(root: Path = ROOT) -> dict[str, str]:
    """Return the sections of the changelog by their headings, the newest first."""
    _, *parts = _HEADING.split((root / "CHANGELOG.md").read_text())
    return {heading: text.strip() for heading, text in zip(parts[::2], parts[1::2], strict=True)}


def notes(tag: str, root: Path = ROOT) -> str:
    """Return what the changelog says of the release with this tag.

    Raises ReleaseError unless the tag, the package, CITATION.cff and the newest heading name the same version.
    """
    sections = changes(root)
    newest = next(iter(sections), "")
    named = {
        "the tag": tag.removeprefix("v"),
        "detaudit/__init__.py": package_version(root),
        "CITATION.cff": cited_version(root),
        "the newest heading of CHANGELOG.md": newest,
    }
    if not tag.startswith("v") or len(set(named.values())) > 1:
        raise ReleaseError(", ".join(f"{place} has {version!r}" for place, version in named.items()))
    if not sections[newest]:
        raise ReleaseError(f"CHANGELOG.md says nothing about {newest}")
    return sections[newest]


def main(arguments: list[str]) -> int:
    """Print the notes of the release with the tag that is given; return 1 if its files do not fit together."""
    try:
        print(notes(arguments[0]))
    except ReleaseError as error:
        print(f"no release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
