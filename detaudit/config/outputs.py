"""The table of what runs write that is only listed, configs/outputs.yaml, and which row a file is of."""

import functools
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase, translate
from pathlib import Path
from typing import Literal

import msgspec

from detaudit.config import yamlfile
from detaudit.errors import ConfigError

MOST_HASHED = 2**31
"""Bytes of a file whose content is checked against its name; a larger one counts as a result."""

_TAG = b"Signature: 8a477f597d28d172789f06886806bc55"
_ELF, _CORE = b"\x7fELF", 4  # elf.h: EI_MAG0 to EI_MAG3, and ET_CORE as e_type at byte 16
_HASH_IN_NAME = re.compile(r"-([a-f0-9]{8,64})(?=\.)")  # torch.hub.HASH_REGEX, and its extension
_MD5_IN_NAME = re.compile(r"_([a-f0-9]{32})\.[a-z0-9]+$")
_HEX = re.compile(r"[0-9a-f]+")
_PIECE = 2**20
_LONGEST_NUMBERS = 2**12

_TRACE = re.compile(rb"\s*\{(?s:.*)\"traceEvents\"\s*:")
_START_OF_TRACE = 2**16
Check = Literal[
    "", "temporary", "cache-tag", "virtual-environment", "core-dump", "content-hash", "empty-or-number", "trace"
]


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is only listed, and why; configs/outputs.yaml explains the fields."""

    id: str
    what: str
    reason: str
    source: str
    folders: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    check: Check = ""
    state: bool = False


class Listed:
    """Decides which row of the table each file of a run is of, if any.

    ``env`` are the variables of the run, which say where its temporary files and its caches are. A file is looked into
    once.
    """

    def __init__(self, env: Mapping[str, str], rows: Sequence[Row] | None = None) -> None:
        self._rows = load_outputs() if rows is None else rows
        self._temporary = _temporary(env)
        self._chosen = [*_chosen(self._rows, env)]
        self._marked: dict[tuple[str, str], bool] = {}
        self._known: dict[tuple[str, str], Row | None] = {}
        self._in_folder: dict[str, tuple[list[Row], list[Row]]] = {}
        last = {name.rpartition("/")[2] for row in self._rows for name in row.names}
        self._named = re.compile("|".join(map(translate, sorted(last))) or r"(?!)")

    def row(self, path: str, cwd: str = "") -> Row | None:
        """Return the row of a file that exists, None if it is compared.

        ``path`` is absolute, without links. What is below ``cwd`` counts by its path there alone: a training may itself
        be in a folder with the name of a cache.
        """
        if (path, cwd) not in self._known and (chosen := self._in_chosen(path, cwd)) is not None:
            self._known[path, cwd] = chosen
        if (path, cwd) not in self._known:
            below = bool(cwd) and _is_below(path, cwd)
            parts = (path[len(cwd.rstrip(os.sep)) :] if below else path).lstrip(os.sep).split(os.sep)
            by_folder, possible = self._rows_in(parts[:-1])
            rows = possible if self._named.match(parts[-1]) else by_folder
            self._known[path, cwd] = next((row for row in rows if self._matches(row, path, parts, below)), None)
        return self._known[path, cwd]

    def _in_chosen(self, path: str, cwd: str) -> Row | None:
        return next((row for folder, row in self._chosen if _is_below(path, folder) and not _holds(folder, cwd)), None)

    def _rows_in(self, folders: Sequence[str]) -> tuple[list[Row], list[Row]]:
        """Return the rows of which a file in such a folder may be whatever its name, and those with names too."""
        key = os.sep.join(folders)
        if key not in self._in_folder:
            by_folder = [row for row in self._rows if not (row.folders or row.names) or _has_folder(row, folders)]
            self._in_folder[key] = by_folder, [row for row in self._rows if row.names or row in by_folder]
        return self._in_folder[key]

    def _matches(self, row: Row, path: str, parts: Sequence[str], below: bool) -> bool:
        if row.names and not _has_folder(row, parts[:-1]) and not _has_name(row, parts):
            return False
        match row.check:
            case "":
                return True
            case "temporary":
                return not below and _is_below(path, self._temporary)
            case "cache-tag" | "virtual-environment":
                return any(self._is_marked(row.check, folder) for folder in _folders(path, parts))
            case "core-dump":
                head = _head(path, 18)
                order: Literal["little", "big"] = "big" if head[5:6] == b"\2" else "little"
                return head.startswith(_ELF) and int.from_bytes(head[16:18], order) == _CORE
            case "content-hash":
                return _names_its_content(path)
            case "trace":
                return bool(_TRACE.match(_head(path, _START_OF_TRACE)))
            case "empty-or-number":
                text = _head(path, _LONGEST_NUMBERS)  # each run may add its own
                return len(text) < _LONGEST_NUMBERS and all(word.isdigit() for word in text.split())

    def _is_marked(self, check: str, folder: str) -> bool:
        key = check, folder
        if key not in self._marked:
            tag = check == "cache-tag"
            name = os.path.join(folder, "CACHEDIR.TAG" if tag else "pyvenv.cfg")
            self._marked[key] = _head(name, len(_TAG)) == _TAG if tag else os.path.isfile(name)
        return self._marked[key]


@functools.cache
def load_outputs(path: Path | None = None) -> tuple[Row, ...]:
    """Read the table. Raises ConfigError for an invalid file, a duplicate id, or a row that matches everything."""
    path = path or yamlfile.configs_dir() / "outputs.yaml"
    rows = tuple(yamlfile.load(path, list[Row]))
    seen: set[str] = set()
    for number, row in enumerate(rows):
        if row.id in seen:
            raise ConfigError(f"{yamlfile.location(path, f'[{number}].id')}: duplicate row {row.id!r}", "Rename one.")
        if not (row.folders or row.names or row.check):
            at = yamlfile.location(path, f"[{number}]")
            raise ConfigError(f"{at}: {row.id!r} needs `folders`, `names` or `check`", "See the head of the file.")
        seen.add(row.id)
    return rows


def folder_parts(rows: Sequence[Row], env: Mapping[str, str], cwd: str) -> tuple[str, ...]:
    """Return parts of paths that only files in such folders have, for the recorder, which reads no YAML.

    ``env`` are the variables of a run in the folder ``cwd``.
    """
    plain = [row for row in rows if row.folders and not row.check and not row.state]
    parts = [f"/{folder}/" for row in plain for folder in row.folders if not re.search(r"[][*?]", folder)]
    parts += [folder + os.sep for folder, row in _chosen(rows, env) if not row.state and not _holds(folder, cwd)]
    return tuple(parts + [f"/{one[:-1]}" for row in plain for one in row.folders if re.fullmatch(r"[^][*?/]+\*", one)])


def _chosen(rows: Sequence[Row], env: Mapping[str, str]) -> Iterator[tuple[str, Row]]:
    """Yield the folders that variables of a run name, each with its row, but for those that hold more than a cache."""
    others = (_temporary(env), os.path.realpath(env.get("HOME", os.sep)))
    for row in rows:
        for folder in [env[name] for name in row.variables if os.path.isabs(env.get(name, ""))]:
            folder = os.path.realpath(folder).rstrip(os.sep)
            if not any(_holds(folder, other) for other in others):
                yield folder, row


def _temporary(env: Mapping[str, str]) -> str:
    chosen = next((env[name] for name in ("TMPDIR", "TEMP", "TMP") if env.get(name)), "")
    return os.path.realpath(chosen or tempfile.gettempdir())


def _holds(folder: str, other: str) -> bool:
    """Return whether a folder is another one, or has it inside."""
    return _is_below(other.rstrip(os.sep) + os.sep, folder)


def _has_name(row: Row, parts: Sequence[str]) -> bool:
    return any(_alike(parts[-len(name) :], name) for name in (one.split("/") for one in row.names))


def _has_folder(row: Row, folders: Sequence[str]) -> bool:
    patterns = [folder.split("/") for folder in row.folders]
    return any(_alike(folders[at : at + len(one)], one) for one in patterns for at in range(len(folders)))


def _alike(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def _folders(path: str, parts: Sequence[str]) -> list[str]:
    """Return the folders above a file, as far as its parts go."""
    folders = [path]
    for _ in parts:
        folders.append(os.path.dirname(folders[-1]))
    return folders[1:]


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _head(path: str, size: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except OSError:
        return b""


def _names_its_content(path: str) -> bool:
    name = os.path.basename(path)
    in_name = _HASH_IN_NAME.search(name) or _MD5_IN_NAME.search(name)
    expected = in_name[1] if in_name else name
    try:
        size = os.path.getsize(path)
        if not _HEX.fullmatch(expected) or size > MOST_HASHED:
            return False
        digest = hashlib.sha256()
        if in_name and in_name.re is _MD5_IN_NAME:
            digest = hashlib.md5(usedforsecurity=False)
        elif len(expected) == 40:
            digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        with open(path, "rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    except OSError:
        return False
    return digest.hexdigest().startswith(expected) and (in_name is not None or len(expected) in (40, 64))
