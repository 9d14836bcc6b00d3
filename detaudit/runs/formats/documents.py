"""Read JSON, JSON lines, property lists, YAML, TOML, INI and plain text value by value; a file's contents say which.

Nothing is constructed from a document but numbers, texts, lists and dictionaries. The order of keys does not count, and
numbers are compared by their digits. YAML's aliases are compared by where they point, and never expanded. Comments of
YAML, TOML and INI are compared too.
"""

import base64
import codecs
import functools
import hashlib
import io
import json
import plistlib
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat

import yaml

from detaudit.outputs.measurements import ANY_RUN, RANDOM_NAME, UUID, masked, says_nothing, words
from detaudit.runs.formats import BROKEN, TEXT, Part, arrays, pickles, unique
from detaudit.runs.formats import values as single
from detaudit.runs.formats.values import BLOCK, LABEL, MOST_SINGLE, folded

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_BYTES = 64 * 2**20
"""Bytes of a document that is read at once; a larger one is a text."""

MOST_VALUES = 4_000_000
"""Values of a document that is read at once: each takes up to a hundred bytes of memory."""

MOST_OF_YAML = 400_000

MOST_LINE = 4 * 2**20
"""Characters of a line that is read at once; a longer line is several."""

MOST_PARSED = 2**20
"""Bytes of a document whose parser is written in Python."""

_HEAD = 64 * 2**10
_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ESCAPED = "backslashreplace"


# ------------------------------------------------------------------------------------------------------------- text


@functools.lru_cache(maxsize=2)  # several formats ask
def encoding_of(head: bytes) -> str:
    """Return the encoding of a text that begins with these bytes, ``""`` if they begin none."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16" if _decodes(head, "utf-16") else ""
    if b"\0" in head or len(_CONTROLS.findall(head)) * 100 > len(head):
        return ""
    if _decodes(head, "utf-8"):
        return "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8"
    return "latin-1" if sum(byte < 0x80 for byte in head) * 20 > len(head) * 17 else ""


_CONTROLS = re.compile(rb"[\x01-\x07\x0b\x0e-\x1a\x1c-\x1f\x7f]")


def _decodes(head: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeError:
        return False
    return True


def opened(path: Path) -> IO[str]:
    """Open a text to be read as it is, with the ends of its lines. Raises ValueError if it is none."""
    with path.open("rb") as file:
        encoding = encoding_of(file.read(_HEAD))
    if not encoding:
        raise ValueError("it is no text")
    errors = "surrogateescape" if encoding.startswith("utf-8") else "strict"
    return path.open(encoding=encoding, errors=errors, newline="\n")


def lines(file: IO[str]) -> Iterator[str]:
    """Yield the lines with their ends, parts of one that is very long."""
    while line := file.readline(MOST_LINE):
        yield line


def is_text(head: bytes, path: Path) -> bool:
    """Return whether this is a text."""
    return bool(head) and bool(encoding_of(head))


def text_parts(path: Path) -> Iterator[Part]:
    """See Format.parts. Each line is one, with what a terminal shows of a line that was written several times."""
    with opened(path) as file:
        states = (_readable(_last_state(line)) for line in lines(file))
        yield from of_lines((_CELL_OF_LATEX.sub(" & ", one) for one in states) if path.suffix == ".tex" else states)


def _readable(line: str) -> str:
    """Return a line, and of one that is too long to be read value by value the form without addresses and UUIDs."""
    return line if len(line) <= _LONGEST_READ else masked(line, ANY_RUN)


_CELL_OF_LATEX = re.compile(r"\s*(?<!\\)&\s*")
"""What is between two cells of a table of LaTeX, which may have no blanks."""


def of_lines(numbered: Iterable[str]) -> Iterator[Part]:
    """Yield each line of a text as a part, those beyond the first ones in blocks of several lines."""
    block: list[str] = []
    count = size = 0
    for count, line in enumerate(numbered, 1):
        if count <= MOST_SINGLE:
            yield single.text(f"line {count}", line)
            continue
        block.append(line)
        size += len(line)
        if len(block) == BLOCK or size > MOST_LINE:
            yield _block(count, block)
            block, size = [], 0
    if block:
        yield _block(count, block)


def _block(last: int, block: list[str]) -> Part:
    text = "\n".join(line.replace("\n", " ") for line in block)
    name = f"lines {last - len(block) + 1:,} to {last:,}"
    return Part(name, iter([text.encode("utf-8", "surrogatepass")]), TEXT, (len(block),), text)


def _last_state(line: str) -> str:
    line = line.rstrip("\r\n")
    if "\r" not in line:
        return line
    state = ""
    for written in line.split("\r"):
        state = written + state[len(written) :]
    return state


def _read(path: Path, most: int = MOST_BYTES) -> str:
    if path.stat().st_size > most:
        raise ValueError("it is too large")
    with opened(path) as file:
        return file.read()


# ------------------------------------------------------------------------------------------------------------- JSON


class _Digits(str):
    """A number as it is written."""

    __slots__ = ()


def is_json(head: bytes, path: Path) -> bool:
    """Return whether all of this is one JSON list or object."""
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return False
    try:
        document = _read(path)
        _check_values(document)
        json.loads(document, parse_int=len, parse_float=len)  # integers of any length
    except (ValueError, RecursionError):
        return False
    return True


def json_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return folded(
        (series, part) for series, name, leaf in _leaves(_loaded(_read(path))) for part in _parts_of(name, leaf)
    )


def is_jsonl(head: bytes, path: Path) -> bool:
    """Return whether each line of this is a JSON list or object, as far as ``head`` goes; one line is none."""
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return False
    try:
        complete = size = 0
        with opened(path) as file:
            for line in lines(file):
                size += len(line)
                if not line.endswith("\n") and complete > 1:  # what a run that ended wrote last
                    return True
                if line.strip():
                    json.loads(line, parse_int=len, parse_float=len)
                    if line.lstrip()[0] not in "[{":
                        return False
                    complete += 1
                if complete > 1 and size > _HEAD:
                    return True
    except (ValueError, RecursionError):
        return False
    return complete > 1


def jsonl_parts(path: Path) -> Iterator[Part]:
    """See Format.parts. A line that is not JSON is one text."""
    return folded(_of_jsonl(path))


def _of_jsonl(path: Path) -> Iterator[tuple[str, Part]]:
    with opened(path) as file:
        for count, line in enumerate(lines(file), 1):
            if not line.strip():
                continue
            try:
                document = _loaded(line)
            except (ValueError, RecursionError):
                yield "line *", single.text(f"line {count}", line.strip())
                continue
            for series, name, leaf in _leaves(document):
                for part in _parts_of(f"line {count}, {name}" if name else f"line {count}", leaf):
                    yield f"line *, {series}", part


def of_text(name: str, value: str) -> Iterator[Part]:
    """Yield what a text in a file holds that may be a number, or a JSON list or object."""
    try:
        document = _loaded(value) if value.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        document = None
    if not document:
        yield single.number_or_text(name, value)
    for _, below, leaf in _leaves(document) if document else ():
        yield _part(f"{name}{below}" if below.startswith("[") else f"{name}.{below}", leaf)


def _loaded(document: str) -> Any:
    _check_values(document)
    return json.loads(
        document, parse_int=_Digits, parse_float=_Digits, parse_constant=_Digits, object_pairs_hook=_with_all_keys
    )


def _check_values(document: str) -> None:
    if sum(document.count(mark) for mark in ",[{") > MOST_VALUES:
        raise ValueError("it holds too many values")


def _with_all_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, also of a key that is there several times."""
    keys = dict(pairs)
    if len(keys) == len(pairs):
        return keys
    keys = {}
    for key, value in pairs:
        name, count = key, 1
        while name in keys:
            count += 1
            name = f"{key} ({count})"
        keys[name] = value
    return keys


_MOST_NAME, _MOST_KEY = 1000, 200
_PLAIN = re.compile(r"[^\s.\[\]\"\x00-\x1f](?:[^.\[\]\"\x00-\x1f]*[^\s.\[\]\"\x00-\x1f])?")


def _below(name: str, key: str) -> str:
    """Return the path of a key of what has the path ``name``; names of any length stay short."""
    if len(name) > _MOST_NAME:
        name = f"…{_short_digest(name)}"
    tail = _quoted(key)
    return f"{name}.{tail}" if name and tail[0] != "[" else name + tail


@functools.lru_cache(1024)
def _quoted(key: str) -> str:
    key = single.printable(key)
    if len(key) > _MOST_KEY:
        key = f"{key[:_MOST_KEY]}…{_short_digest(key)}"
    return key if _PLAIN.fullmatch(key) else f"[{json.dumps(key, ensure_ascii=False)}]"


def _short_digest(name: str) -> str:
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _leaves(document: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield the series, the path and the value of all that is in a document; an empty list or object is a value."""
    rest = [iter([("", "", document)])]
    while rest:
        for series, name, value in rest[-1]:
            if value and isinstance(value, dict):
                rest.append(_items(series, name, value))
                break
            if value and isinstance(value, list):
                rest.append(_elements(series, name, value))
                break
            yield series, name, value
        else:
            rest.pop()


def _items(series: str, name: str, value: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield what is below an object; in ``{"metric": "fit_time", "value": 3.2}``, its name says what the value is."""
    naming = [*(key for key in NAMING if key in value), *(key for key in value if key not in NAMING and is_naming(key))]
    label = next((one for key in naming if isinstance(one := value[key], str) and LABEL.fullmatch(one)), "")
    for key, one in value.items():
        if label and key not in naming and says_nothing(key):
            yield _below(_below(series, label), key), _below(_below(name, label), key), one
        else:
            yield _below(series, key), _below(name, key), one


NAMING = ("metric", "name", "key", "tag", "label", "variable", "measure")
"""What the key or column of a text is called that names the value beside it."""


@functools.lru_cache(1024)
def is_naming(name: str) -> bool:
    """Return whether a key or column is called so: ``metric``, ``Metric_Name``, ``metricName``."""
    named = words(name)
    return bool(named) and all(word in NAMING for word in named)


def _elements(series: str, name: str, value: list[Any]) -> Iterator[tuple[str, str, Any]]:
    series, name = _of_list(series), _of_list(name)
    return ((f"{series}[*]", f"{name}[{index}]", one) for index, one in enumerate(value))


def _of_list(name: str) -> str:
    return f"…{_short_digest(name)}" if len(name) > _MOST_NAME else name


_LITERALS = {True: "true", False: "false", None: "null"}
_PICKLED = ("gASV", "gAWV")
"""How pickles of protocols 4 and 5 begin in base64."""


def _parts_of(name: str, leaf: Any) -> Iterator[Part]:
    """Yield what a value holds: a pickle in base64, as Stable-Baselines3 writes it into JSON, holds several."""
    if isinstance(leaf, str) and leaf.startswith(_PICKLED):
        try:
            pickled = list(arrays.contents(pickles.read(io.BytesIO(base64.b64decode(leaf))), prefix=name))
        except BROKEN:
            pickled = []
        if pickled:
            yield from pickled
            return
    yield _part(name, leaf)


def _part(name: str, leaf: Any) -> Part:
    if isinstance(leaf, _Digits):
        return single.number(name, leaf)
    if isinstance(leaf, str):
        return single.text(name, leaf)
    if leaf is None or isinstance(leaf, bool):
        return single.literal(name, _LITERALS[leaf])
    if isinstance(leaf, int):
        return single.number(name, f"{leaf:#x}" if abs(leaf) >= 10**640 else str(leaf))
    return single.literal(name, json.dumps(leaf) if isinstance(leaf, dict | list) else str(leaf))  # such as a date


def is_plist(head: bytes, path: Path) -> bool:
    """Return whether this is a property list: https://docs.python.org/3/library/plistlib.html."""
    return head.startswith(b"bplist00") or (head.startswith(b"<?xml") and b"<plist" in head[:1024])


def plist_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    if path.stat().st_size > MOST_BYTES:
        raise ValueError("it is too large")
    try:
        document = plistlib.loads(path.read_bytes())
    except (plistlib.InvalidFileException, expat.ExpatError) as error:
        raise ValueError(f"it is no property list: {error}") from error
    return folded((series, _of_plist(name, leaf)) for series, name, leaf in _leaves(document))


def _of_plist(name: str, leaf: Any) -> Part:
    if isinstance(leaf, float):
        return single.number(name, repr(leaf))
    return single.opaque(name, leaf) if isinstance(leaf, bytes) else _part(name, leaf)


# ------------------------------------------------------------------------------------------------------------- YAML


_KEY = r"(?:\"[^\"\n]{1,64}\"|'[^'\n]{1,64}'|[A-Za-z_][\w./+-]*(?: [\w./+-]+){0,3})"
_YAML_LINE = re.compile(rf"(?:\?|-|---|\.\.\.|%\w+ .*|{_KEY}\s*:)(?:\s.*)?|[ \t]+.*|[\]}}].*|#.*|\s*")
_LEVELS = {"debug", "info", "warning", "warn", "error", "critical", "note", "fatal"}
_MOST_WORDS = 4
_MOST_DEPTH = 1000


def is_yaml(head: bytes, path: Path) -> bool:
    """Return whether all of this is YAML with lists or mappings that is no prose, and has each key once."""
    start = head.decode(encoding_of(head) or "latin-1", _ESCAPED).splitlines()
    if not encoding_of(head) or not all(
        _YAML_LINE.fullmatch(line) for line in start[: -1 if len(head) == _HEAD else None]
    ):
        return False
    try:
        leaves = list(_yaml_leaves(path))
    except ValueError:
        return False
    names = {name for _, name, _ in leaves}
    prose = sum(1 for _, name, leaf in leaves if _is_prose(name, leaf))
    return any(names) and len(names) == len(leaves) and 2 * prose < len(leaves)


def _is_prose(name: str, leaf: Any) -> bool:
    """Return whether a value is more than one: ``3.4 s``, ``loss=0.5``, a sentence, what follows the level of a log."""
    if isinstance(leaf, _Digits) or not isinstance(leaf, str):
        return False
    words = leaf.split()
    several = len(words) >= _MOST_WORDS or (len(words) > 1 and any(map(str.isdigit, leaf)))
    return several or "=" in leaf or name.lower() in _LEVELS


def yaml_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""

    def named_parts() -> Iterator[tuple[str, Part]]:
        for series, name, leaf in _yaml_leaves(path):
            yield series, _part(name, leaf)
        yield from _comments(_read(path), "#")

    return folded(named_parts())


def _yaml_leaves(path: Path) -> Iterator[tuple[str, str, Any]]:
    """Yield what _leaves does. Raises ValueError if it is no YAML."""
    document = _read(path, MOST_PARSED if _YAML is yaml.SafeLoader else 4 * MOST_PARSED)
    if sum(document.count(mark) for mark in "\n,[{:") > MOST_OF_YAML:
        raise ValueError("it holds too many values")
    try:
        yield from _Events(yaml.parse(document, Loader=_YAML)).leaves()
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"it is no YAML: {str(error).splitlines()[0]}") from error


class _Events:
    """A YAML stream as the events of its parser, of which nothing is constructed."""

    def __init__(self, events: Iterable[Any]) -> None:
        self._events = events
        self._open: list[_Node] = []
        self._documents = 0

    def leaves(self) -> Iterator[tuple[str, str, Any]]:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._documents += 1
            elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
                series, name = self._next()
                if len(self._open) > _MOST_DEPTH:
                    raise ValueError("it is nested too deeply")
                if event.tag:
                    yield series, _below(name, "tag"), event.tag
                self._open.append(_Node(series, name, isinstance(event, yaml.MappingStartEvent)))
            elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
                node = self._open.pop()
                if not node.count:
                    yield node.series, node.name, {} if node.mapping else []
            elif isinstance(event, yaml.AliasEvent | yaml.ScalarEvent):
                leaf = _yaml_leaf(event)
                if not (self._open and self._open[-1].takes_key(leaf)):
                    yield *self._next(), leaf

    def _next(self) -> tuple[str, str]:
        """Return the series and the path of the node that begins here."""
        if not self._open:
            return "", "" if self._documents == 1 else f"document {self._documents}"
        return self._open[-1].next()


class _Node:
    """A list or a mapping that is being read."""

    def __init__(self, series: str, name: str, mapping: bool) -> None:
        self.series, self.name, self.mapping, self.count = series, name, mapping, 0
        self._key: str | None = None

    def takes_key(self, leaf: Any) -> bool:
        """Return whether a scalar is the next key."""
        if not self.mapping or self._key is not None:
            return False
        self._key, self.count = str(leaf), self.count + 1
        return True

    def next(self) -> tuple[str, str]:
        if not self.mapping:
            self.count += 1
            return f"{_of_list(self.series)}[*]", f"{_of_list(self.name)}[{self.count - 1}]"
        if self._key is None:  # a list or a mapping is the key
            self._key, self.count = f"value of key {self.count + 1}", self.count + 1
            return _below(self.series, "key"), _below(self.name, f"key {self.count}")
        key, self._key = self._key, None
        return _below(self.series, key), _below(self.name, key)


_DOT = re.compile(r"\.(?=[in])", re.IGNORECASE)  # .inf and .nan


def _yaml_leaf(event: Any) -> Any:
    if isinstance(event, yaml.AliasEvent):
        return f"*{event.anchor}"
    value = event.value
    if event.tag:
        return f"{event.tag} {value}"
    if event.style in (None, "") and single.NUMERAL.fullmatch(_DOT.sub("", value.replace("_", ""))):
        return _Digits(value)
    return value


_COMMENT = {"#": re.compile(r"(?:^|(?<=[ \t]))#.*"), "#;": re.compile(r"^[ \t]*[#;].*")}


def _comments(document: str, marks: str) -> Iterator[tuple[str, Part]]:
    count = 0
    for line in document.splitlines():
        if comment := _COMMENT[marks].search(line):
            count += 1
            yield "comment *", single.text(f"comment {count}", comment[0].strip())


# ----------------------------------------------------------------------------------------------------- TOML and INI


_TOML_START = re.compile(r"\[{1,2}[^\[\]\n]+\]{1,2}\s*(?:#.*)?|[\w\"'.-]+(?:\s*\.\s*[\w\"'-]+)*\s*=\s*\S.*")
_SECTION = re.compile(r"\[([^\[\]\n]+)\]\s*")
_OPTION = re.compile(r"([^\s=:\[#;][^=:\n]*?)\s*[=:]\s*(.*)")


def is_toml(head: bytes, path: Path) -> bool:
    """Return whether all of this is TOML with a key."""
    if not _TOML_START.fullmatch(_first_line(head, "#")):
        return False
    try:
        return bool(_toml(path))
    except (ValueError, RecursionError):
        return False


def toml_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""

    def named_parts() -> Iterator[tuple[str, Part]]:
        for series, name, leaf in _leaves(_toml(path)):
            yield series, _part(name, leaf)
        yield from _comments(_read(path), "#")

    return folded(named_parts())


def _toml(path: Path) -> dict[str, Any]:
    document = _read(path, MOST_PARSED).replace("\r\n", "\n")
    loaded: dict[str, Any] = tomllib.loads(document, parse_float=_Digits)
    return loaded


def is_ini(head: bytes, path: Path) -> bool:
    """Return whether this has sections, and in them nothing but options and comments, each once."""
    if not _SECTION.fullmatch(_first_line(head, "#;")):
        return False
    try:
        return bool(list(_ini(path)))
    except ValueError:
        return False


def ini_parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    return folded((part.name, part) for part in _ini(path))


def _ini(path: Path) -> Iterator[Part]:
    document = _read(path, MOST_PARSED)
    section, names = "", set()
    for line in (line.strip() for line in document.splitlines()):
        if match := _SECTION.fullmatch(line):
            section = match[1]
            name = _below("", section)
        elif match := _OPTION.fullmatch(line):
            name = _below(_below("", section), match[1])
            yield single.number_or_text(name, match[2])
        elif line and line[0] not in "#;":
            raise ValueError("a line of it is neither a section nor an option")
        else:
            continue
        if name in names:
            raise ValueError("an option of it is there twice")
        names.add(name)
    yield from (part for _, part in _comments(document, "#;"))


def _first_line(head: bytes, marks: str) -> str:
    encoding = encoding_of(head)
    if not encoding:
        return ""
    for line in head.decode(encoding, _ESCAPED).splitlines():
        if line.strip() and line.strip()[0] not in marks:
            return line.strip()
    return ""


# -------------------------------------------------------------------------------------------------------------- HTML

_RANDOM_ID = re.compile(f"{UUID.pattern}|{RANDOM_NAME.pattern}", re.IGNORECASE)
_ID = re.compile(
    r"(?:\bid=[\"']?|#)(?=[\w-]*(?:\d[A-Za-z]|\d{12}))(?=[\w-]*[A-Za-z0-9]{8})(?![0-9A-Fa-f]{8}\b)([\w-]{8,})(?![\w-])"
)
"""The ID of an element that may be random, such as ``id="top_divTV6VPS2LWY5E355"``, and a link to it; no color."""

_NAME = re.compile(r"(?<![\w-])[\w-]{8,}(?![\w-])")
_LONGEST_READ = 4096
_TAGS = re.compile(r"(?<=>)(?=<)")


def is_html(head: bytes, path: Path) -> bool:
    """Return whether this is a page, or a table of one as pandas writes it."""
    start = head[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype html", b"<html", b"<table", b"<style", b"<div"))


def html_parts(path: Path) -> Iterator[Part]:
    """See Format.parts. The random IDs of plots, tables and elements count by the order in which they appear.

    A cell of a table that pandas wrote, which has a line of its own, begins with the name of its column. A line that is
    too long to be read as one, as programs that make pages small leave it, is one for each tag.
    """
    elements: dict[str, str] = {}
    with opened(path) as file:
        for line in lines(file):
            for element in _ID.findall(line):
                elements.setdefault(element, f"element {len(elements) + 1}")
    ids: dict[str, str] = {}
    with opened(path) as file:
        table = _Table()

        def named(line: str) -> str:
            line = _RANDOM_ID.sub(lambda match: ids.setdefault(match[0].lower(), f"id {len(ids) + 1}"), line)
            return table.named(_NAME.sub(lambda match: elements.get(match[0], match[0]), line) if elements else line)

        yield from unique(of_lines(named(line).rstrip("\r\n") for whole in lines(file) for line in _by_tags(whole)))


def _by_tags(line: str) -> list[str]:
    return [line] if len(line) <= _LONGEST_READ else _TAGS.split(line)


class _Table:
    """The names of the columns of a table of HTML, where it is read, and how many cells its row has so far."""

    _ROW = re.compile(r"\s*<tr\b[^<>]*>\s*((?:<(t[hd])\b[^<>]*>[^<>]*</\2>\s*){2,})</tr>\s*")
    _TAG = re.compile(r"\s*<(?:(/?thead|tr)\b|(t[hd])\b[^<>]*>([^<>]*)</t[hd]>\s*$)")

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._in_head = self._in_names = False
        self._count = 0

    def _row(self, cells: list[str], kind: str) -> str:
        """Return a row; its first cell names those of columns that say nothing, such as ``value``."""
        if kind == "th":
            self._columns = cells
            return " | ".join(cells)
        columns = [*self._columns, *[""] * len(cells)][: len(cells)]
        of_row = cells[0] if LABEL.fullmatch(cells[0]) else ""
        names = [column if index == 0 or not says_nothing(column) else of_row for index, column in enumerate(columns)]
        return " | ".join(f"{name}: {cell}" if name else cell for name, cell in zip(names, cells, strict=True))

    def named(self, line: str) -> str:
        """Return a line, with the name of its column if it is a cell, or of each cell if it is a row."""
        if "<table" in line:
            self._columns, self._in_head, self._in_names = [], False, False
        if row := self._ROW.fullmatch(line):
            return self._row([cell.strip() for cell in re.findall(r"<t[hd]\b[^<>]*>([^<>]*)<", row[1])], row[2])
        match = self._TAG.match(line)
        if "colspan" in line or "rowspan" in line:
            self._columns, self._in_names = [], False  # nobody counts which column is whose
        if match is None:
            return line
        if match[1] == "thead":
            self._columns, self._in_head = [], True
        elif match[1] == "/thead":
            self._in_head = False
        elif match[1] == "tr":
            self._count = 0
            self._in_names = self._in_head and not self._columns  # those in a second row are of the index
        elif self._in_names:
            self._columns.append(match[3].strip())
        elif not self._in_head:
            self._count += 1
            column = self._columns[self._count - 1] if self._count <= len(self._columns) else ""
            return f"{column}: {match[3]}" if column and match[2] == "td" else line
        return line
