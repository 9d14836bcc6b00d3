"""Read what a run prints as a terminal would leave it, and compare it line by line and token by token.

A line is words and numbers. Words that differ are different words; a number that differs is a result, a measurement or
an identifier by its label and its unit (see ``measurements.py``). Lines of several writers come in any order, so lines
are compared as multisets, and within those that differ, lines whose words agree are paired in their order.

Of a long output the first lines are kept. All after them are digested: a digest of a block is the sum of those of its
lines, so that their order does not count and blocks can be added up.
"""

import bisect
import hashlib
import math
import os
import re
import struct
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

import msgspec

from detaudit import redact
from detaudit.model.outputs import STDERR, STDOUT, OutputDifference, OutputKind, Role, RunFacts, Text, TextBlock
from detaudit.outputs import measurements
from detaudit.outputs.measurements import (
    MASK,
    NOTHING,
    OID,
    RESULT,
    Meaning,
    masked,
    meaning_of,
    number_role,
    with_unit,
)

NAME = "text.json"
"""The file beside the logs of a run that has its Text."""

MOST_KEPT = 8 * 2**20
"""Bytes of the first lines that are kept."""

BLOCK = 1000
"""Lines of a block, unless there are more than MOST_BLOCKS."""

MOST_BLOCKS = 2048
LONGEST_LINE = 2**16
"""Characters after which a line is taken for several."""

ROWS = 48
"""Rows above the last one that a cursor can go back to."""

_PIECE = 2**20
_LONGEST_ESCAPE = 4096
_MOST_COLUMNS = 4096


# The terminal

_PLAIN = bytes(byte for byte in range(256) if (byte >= 32 and byte != 127) or byte in (9, 10))
_COLOR = re.compile(rb"\x1b\[[0-9;:]*m")
_CONTROL = re.compile(
    r"\x1b\[([0-?]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]+[0-~]|\x1b[^\x1b]"
    r"|[\x00-\x08\x0a-\x1f\x7f]"
)
_UNFINISHED = re.compile(
    rb"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)|\r|\x1b?(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?"
    rb"|[\xf0-\xf4][\x80-\xbf]{0,2}))\Z"
)


class _Screen:
    """The last rows of a terminal, and where its cursor is; rows that leave it at the top are final."""

    def __init__(self, final: Callable[[list[bytes]], None]) -> None:
        self._final = final
        self._rows = [b""]
        self._cursor: tuple[int, int] | None = None  # row and column; None at the end of the last row
        self._first = 0  # row that an absolute position counts from
        self._unfinished = b""

    def feed(self, data: bytes) -> None:
        data = self._unfinished + data
        self._unfinished = b""
        if data[-1:] == b"\r" or data[-1:] >= b"\x80" or b"\x1b" in data[-_LONGEST_ESCAPE:]:
            match = _UNFINISHED.search(data, max(0, len(data) - _LONGEST_ESCAPE))
            if match:
                data, self._unfinished = data[: match.start()], match[0]
        self._take(data)

    def finish(self) -> None:
        self._take(self._unfinished)
        rows = self._rows[:-1] if self._rows[-1] == b"" else self._rows
        self._rows = [b""]
        self._final(rows)

    def _take(self, data: bytes) -> None:
        if b"\r\n" in data:
            data = data.replace(b"\r\n", b"\n")
        if b"\x1b" in data:
            data = _COLOR.sub(b"", data)
        if self._cursor is None and not data.translate(None, _PLAIN):
            self._append(data)
        elif data:
            self._draw(data.decode("utf-8", "replace"))

    def _append(self, data: bytes) -> None:
        pieces = data.split(b"\n")
        pieces[0] = self._rows.pop() + pieces[0]
        if max(map(len, pieces)) > LONGEST_LINE:
            pieces = [part for piece in pieces for part in _parts(piece)]
        self._rows += pieces
        self._scroll()

    def _scroll(self) -> None:
        above = len(self._rows) - ROWS - 1
        if above > 0:
            self._final(self._rows[:above])
            del self._rows[:above]
            self._first = max(0, self._first - above)

    def _draw(self, data: str) -> None:
        """Write with controls. Rows are texts meanwhile, so that columns are characters."""
        rows = [row.decode("utf-8", "replace") for row in self._rows]
        y, x = self._cursor or (len(rows) - 1, len(rows[-1]))
        at = 0
        for match in _CONTROL.finditer(data):
            if match.start() > at:
                x = _write(rows, y, x, data[at : match.start()])
            at = match.end()
            y, x = self._control(rows, y, x, match)
            if len(rows) > 2 * ROWS:
                y -= self._keep(rows)
        x = _write(rows, y, x, data[at:])
        self._keep_cursor(rows, y, x)

    def _keep(self, rows: list[str]) -> int:
        above = len(rows) - ROWS - 1
        self._final([row.encode() for row in rows[:above]])
        del rows[:above]
        self._first = max(0, self._first - above)
        return above

    def _keep_cursor(self, rows: list[str], y: int, x: int) -> None:
        while len(rows[y]) > LONGEST_LINE:  # nothing is drawn that wide
            rows[y : y + 1] = [rows[y][:LONGEST_LINE], rows[y][LONGEST_LINE:]]
            y, x = y + 1, max(0, x - LONGEST_LINE)
        self._cursor = None if (y, x) == (len(rows) - 1, len(rows[-1])) else (y, x)
        self._rows = [row.encode() for row in rows]
        above = min(len(rows) - ROWS - 1, y)
        if above > 0:
            self._final(self._rows[:above])
            del self._rows[:above]
            self._first = max(0, self._first - above)
            if self._cursor is not None:
                self._cursor = (y - above, x)

    def _control(self, rows: list[str], y: int, x: int, match: re.Match[str]) -> tuple[int, int]:
        text = match[0]
        if text == "\n" or text in ("\x0b", "\x0c", "\x1bD", "\x1bE"):
            if y + 1 == len(rows):
                rows.append("")
            return y + 1, 0
        if text == "\r":
            return y, 0
        if text == "\b":
            return y, max(0, x - 1)
        if text == "\x1bM":
            return max(0, y - 1), x
        return self._sequence(rows, y, x, match[1], match[2]) if match[2] else (y, x)

    def _sequence(self, rows: list[str], y: int, x: int, parameters: str, kind: str) -> tuple[int, int]:
        numbers = [min(int(one), _MOST_COLUMNS) if one.isdigit() else 0 for one in parameters.split(";")]
        count = max(1, numbers[0])
        if kind in "AF":
            y, x = max(0, y - count), 0 if kind == "F" else x
        elif kind in "BE":
            y, x = min(y + count, len(rows) - 1), 0 if kind == "E" else x
        elif kind == "C":
            x = min(x + count, _MOST_COLUMNS)
        elif kind == "D":
            x = max(0, x - count)
        elif kind in "G`":
            x = count - 1
        elif kind in "Hf":
            y, x = self._first + min(count, ROWS) - 1, max(1, [*numbers, 1][1]) - 1
            rows.extend("" for _ in range(y + 1 - len(rows)))
        elif kind in "KJ":
            return self._erase(rows, y, x, numbers[0], kind)
        elif kind == "P":
            rows[y] = rows[y][:x] + rows[y][x + count :]
        elif kind == "X":
            rows[y] = rows[y][:x] + " " * min(count, len(rows[y][x:])) + rows[y][x + count :]
        elif kind == "M":
            del rows[y : y + count]
            rows.extend([""] if y >= len(rows) else [])
        elif kind == "L":
            rows[y:y] = [""] * min(count, ROWS)
        return y, x

    def _erase(self, rows: list[str], y: int, x: int, part: int, kind: str) -> tuple[int, int]:
        if kind == "J" and part >= 2:
            # What was printed before the first erasure scrolls away; what is drawn after it is erased by the next.
            if not self._first:
                self._first = len(rows)
                rows.append("")
            del rows[self._first :]
            rows.append("")
            return len(rows) - 1, 0
        if part == 0:
            rows[y] = rows[y][:x]
        else:
            rows[y] = "" if part == 2 else " " * min(x + 1, len(rows[y])) + rows[y][x + 1 :]
        if kind == "J":
            del rows[y + 1 if part == 0 else len(rows) :]
            for above in range(self._first, y if part == 1 else 0):
                rows[above] = ""
        return y, x


def _write(rows: list[str], y: int, x: int, text: str) -> int:
    if not text:
        return x
    row = rows[y]
    if x == len(row):
        rows[y] = row + text
    else:
        rows[y] = row[:x].ljust(x) + text + row[x + len(text) :]
    return x + len(text)


def _parts(piece: bytes) -> Iterator[bytes]:
    if len(piece) <= LONGEST_LINE:
        yield piece
        return
    text = piece.decode("utf-8", "replace")
    for at in range(0, len(text), LONGEST_LINE):
        yield text[at : at + LONGEST_LINE].encode()


# Lines

_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+(?:_[0-9]+)*)(?:\.[0-9]*)?|\.[0-9]+"
_CJK = r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]"
_UNITS_OF_CJK = "毫秒|微秒|秒|分钟|分鐘|小时|小時|時間|초|분"
_UNITS = (
    r"ns|nsecs?|nanoseconds?|us|[µμ]s|usecs?|microseconds?|ms|msecs?|millis|milliseconds?|s|secs?|seconds?|mins?"
    r"|minutes?|h|hrs?|hours?|days?"
    r"|[Ss]ek|[Ss]ekunden?|[Mm]inuten|[Ss]tunden?|secondes?|seconden|heures?|segundos?|minutos?|horas?|secondi"
)
_MONTHS = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_UUID = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_BARE_UUID = "(?<![0-9A-Za-z])[0-9a-f]{12}[0-9][0-9a-f]{3}[0-9ab][0-9a-f]{15}(?![0-9A-Za-z])"
_DAY_TIME = "[0-9]{2}:[0-9]{2}(?::[0-9]{2})?"
_TOKEN = re.compile(
    rf"""
    (?P<prefix>
      ^[IWEFDC][0-9]{{4}}[ ][0-9]{{2}}:[0-9]{{2}}:[0-9]+\.[0-9]+[ ]+[0-9]+(?=[ ]\S+:[0-9]+\])  # glog
      | ^[IWEFDC][0-9]{{10}}\.[0-9]+(?:[ ][0-9]+){{0,3}}(?=\])
      | ^\S+:[0-9]+:[0-9]+[ ]\[[0-9]+\](?=[ ]NCCL)
      | ^\[?\s*[0-9]+(?:\.[0-9]+)?\s*\]?(?=\s*(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)\b)
    )
    | (?P<bare_uuid>{_BARE_UUID})  # in any of its digits: see _Parser
    | (?=[0-9.+\[-])(?:
      (?P<own>
        {_UUID} | {OID.pattern} | \b0x[0-9a-f]{{6,16}}\b  # see measurements.is_address
        | (?:(?<=started[ ])|(?<=daemon[ ]))[0-9]{{9,}}(?=\)>) | (?<![\w.])[0-9]{{12,15}}(?=:[ ]TensorSpec\()
        | (?<=[0-9]\.[0-9]\.[0-9]\.[0-9]',[ ])[0-9]+ | (?<=localhost:)[0-9]+ | (?<=[0-9]\.[0-9]\.[0-9]\.[0-9]:)[0-9]+
        | \[[ ]?[0-9]+:[0-9]{{2}}(?::[0-9]{{2}})?(?=[ ]?[<,])  # tqdm, which rich writes with more blanks
          (?:[ ]?<[ ]?(?:[0-9]+\s?days?,\s?)?[0-9:?]+)?(?:[ ]?,\s*[0-9.,?]+[kKMG]?\s?\w*/\w+)?
      )
      | (?P<date>
        (?<![0-9A-Za-z.])(?<![0-9]-)(?:[0-9]{{2}}[-_.][0-9]{{2}}[-_.][0-9]{{4}}[T_ -]{{1,2}}
          [0-9]{{2}}[-:._][0-9]{{2}}(?:[-:._][0-9]{{2}})?
          | [0-9]{{4}}[-_][0-9]{{2}}[-_][0-9]{{2}}[T_ -]{{1,2}}[0-9]{{6}})(?![0-9A-Za-z])
        | (?:(?<![0-9A-Za-z.])(?<![0-9]-)|(?<=UTC))[0-9]{{4}}[-/._][0-9]{{2}}[-/._][0-9]{{2}}
          (?:[T _/-]{{1,3}}[0-9]{{2}}[-:._][0-9]{{2}}(?:[-:._][0-9]{{2}}(?:[.,][0-9]{{1,9}}){{0,2}})?)?
          (?:Z|[ ]?[+-][0-9]{{2}}:?[0-9]{{2}}|[ ]UTC)?(?![\w])
        | (?<![0-9A-Za-z])[0-9]{{8}}[-_T]?[0-9]{{4,6}}(?:[-_][0-9a-z]{{8}}\b|Z)?(?![0-9A-Za-z])
        | \b[0-9]{{1,2}}[ -]{_MONTHS}[ -][0-9]{{4}}(?:[ ]{_DAY_TIME})?
        | (?<![\w.-])[0-9]{{1,2}}[/.][0-9]{{1,2}}[/.](?:[0-9]{{4}}|[0-9]{{2}})(?:,?[ ]{_DAY_TIME})?(?![\w.])
      )
      | (?P<clock>
        (?:(?<![\w.:/-])|(?<=[0-9][T ])|(?<=-))(?:[0-9]+[ ]days?,[ ])?[0-9]{{1,4}}:[0-9]{{2}}(?::[0-9]{{2}})?
          (?:[.,][0-9]+)?(?:[ ]?[AaPp][Mm])?(?![\w:])
        | (?<![\w.:])(?:[0-9]+(?:\.[0-9]+)?[ ]?
          (?:d|h|hr|hrs|hours?|m|mins?|minutes?|s|secs?|seconds?|ms)[ ,]{{0,2}}){{2,}}(?![\w:/])
      )
      | (?P<number>
        (?:(?<![\w.])|(?<=[0-9]x)|(?<={_CJK}))(?<![A-Za-z_][-/.@])(?<!\b[A-Za-z][0-9]/)(?P<sign>(?<![\w)\]])[+-])?
        (?:(?P<digits>[0-9]+,[0-9]{{1,2}}(?=\s?(?:{_UNITS})(?![\w/]))  # a comma before decimals
            |(?:{_NUMBER})(?:[eE][+-]?[0-9]+)?)(?P<suffix>[kKMGT](?![^\W\d_]))?
          (?P<unit>/\s?(?:{_UNITS})(?![\w/])|\s?(?:(?:[^\W\d_]+[ ])?[^\W\d_]+\s?/\s?(?:{_UNITS})(?![\w/])
              |(?:{_UNITS})/\s?[^\W\d_]+\b|(?<=\s)(?:{_UNITS})\s/\s?[^\W\d_]+\b
              |[^\W\d_]+[ ]per[ ](?:{_UNITS})\b|(?:{_UNITS})[ ]per[ ][^\W\d_]+
              |[KMGTkmgt]?i?[Bb](?:ytes)?(?![\w/])|%)
            |x(?!\w)|(?:{_UNITS}|°?C|[mk]?Wh?|[MG]Hz)(?![\w/^])|\sW(?=\s/\s[0-9])
            |\s(?:{_UNITS}|fps|FPS)(?![\w/^])(?!\s*[:=]?\s*\.?[0-9])|\s?(?:{_UNITS_OF_CJK}))?
          (?:(?![^\W_])|(?<={_CJK}))
        | inf(?![\w]))
      )
    )
    | (?<![A-Za-z0-9])(?=[A-Za-z])(?:
      (?P<own_word>
        (?:ThreadPoolExecutor-[0-9]+_|asyncio_|(?:Fork|ForkServer|Spawn)PoolWorker-|LokyProcess-)[0-9]+\b
        | {_UUID} | (?<=/)version_[0-9]+\b | \bversion_[0-9]+(?=/)
        | (?<=/)(?:tmp|temp)[-_.]?(?=[a-z_]*[0-9])[a-z0-9_]{{6,12}}\b | (?<=/)tmp[a-z0-9_]{{8}}\b
        | (?<!best[ ])(?<!Best[ ])(?:[Rr]uns?|run[ _]name|run[ _]id|wandb)[ :=/'"]{{1,4}}
          (?P<run>[a-z]+-[a-z]+-[0-9]+|{_UUID}|[0-9a-f]{{32}}|(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{{7}}
            |(?=[a-z]*[0-9])(?=[0-9]*[a-z])[a-z0-9]{{8}})\b
      )
      | (?P<iso_duration>PT[0-9.HMS]+(?![\w.]))
      | (?P<named_date>
        datetime\.datetime\([0-9]+(?:,[ ][0-9]+)+(?:,[ ]tzinfo=[\w.]+)?\) |
        (?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?\s+)?(?:
          {_MONTHS}[ .]{{0,2}}[0-9]{{1,2}}(?:,?[ ][0-9]{{4}}[, ]|[ _])[ ]*[0-9]{{2}}[:-][0-9]{{2}}[:-][0-9]{{2}}
            (?:[ ][A-Z]{{3,4}})?(?:[ ][0-9]{{4}})?
          | [0-9]{{1,2}}[ -]{_MONTHS}[ -][0-9]{{4}}(?:[ ]{_DAY_TIME})?)
      )
      | (?P<no_number>(?<![\w.])(?i:nan|inf)(?![\w]))
    )
    """,
    re.VERBOSE,
)
_DIGITS = bytes(48 if 48 <= byte <= 57 else byte for byte in range(256))
_AROUND = re.compile(r" ?\0 ?")
_BLANK = re.compile(r"[ \t\u00a0]+")
_DRAWN = re.compile(r"([-=_*#─━═╌.~+])\1{2,}|[\u2580-\u259f━╸╺▰▱ ]*[\u2580-\u259f━╸╺▰▱]+[\u2580-\u259f━╸╺▰▱ ]*")
_OPENERS = " \t|│┃┆║:=>~≈\"'([{<$@"
_WRAPPER = re.compile(r"(?<![^\W_])(?:tensor|array|np\.\w+|numpy\.\w+|float\w*|int\w*|Decimal)\s*$")
_DELIMITER = re.compile(r"(?<=\w)[\"']\s+|[,;|│┃┆║()\[\]{}<>]|\s[-\u2013\u2014]\s|\s{2,}|\t|\. ")
_SINCE_1970 = re.compile(r"[0-9]{10}(?:[0-9]{3}|\.[0-9]+)$")
_UNIT_IN_BRACKETS = re.compile(r"\s*[(\[](ms|s|secs?|seconds?|min|minutes?|h|hours?|MB|GB|MiB|GiB)[)\]]$")
_LABEL_IN_BRACKETS = re.compile(r"(?<=\w)\s*[(\[]([^()\[\]]{1,20})[)\]]$")
_AFTER_COUNT = re.compile(r"[\])]\s*[:=]\s*[(\[]?")  # eval_runtime [2]: (0.0214, 0.0259)
_COLUMN = re.compile(r"\s{2,}|\t|[|│┃┆║,]")
_RULE = re.compile("[|│┃┆║]")
_TYPE_OF_COLUMN = re.compile(
    r"str|bool(ean)?|date|time|cat(egorical)?|enum|null|object|binary|blob|varchar|float|double|integer|bigint|hugeint"
    r"|(u?int|float|[iuf])[0-9]+|(list|array|struct|datetime|duration|decimal|timestamp)\b.*"
)
"""What polars and DuckDB print below the names of columns."""

_BYTES = re.compile(r"[kmgt]i?b|b|bytes", re.IGNORECASE)
_EXTREME = re.compile(
    r"(max(imum)?|min(imum)?|peak|total|used|free|reserved|allocated|cached|freed|current|now|before|after)?"
    r"( was| is)?",
    re.IGNORECASE,
)
_OF_MACHINES = ("power", "temp", "temperature", "fan", "clock", "load")
"""What machines have as data do: beside what only a machine has, it is of that."""

_CAPTION = re.compile(r"[\s\[]*[0-9:.,]+\s*-->\s*[0-9:.,]+")
"""When something is said, as SRT, WebVTT and tools that recognize speech write it."""

_MEMORY = re.compile(r"\b(mem|memory|rss|v?ram|gc|(trace)?malloc)\b", re.IGNORECASE)
_OF_TOTAL, _TOTAL = re.compile(r"\s?/\s?[0-9]"), re.compile(r"(?<![\w.-])[0-9][0-9,_]*\s?/\s?$")
_OF_ALL = re.compile(r"[0-9][MG]iB\s*/\s*[0-9.]+[MG]iB")
_TIMES = re.compile(r"\btime \((ms|s)\) \|")  # time (ms) | fwd: 45.03 | bwd: 90.1, as DeepSpeed prints it
_DIGIT_RUN = re.compile("[0-9]+")
_TIME_COLUMN = re.compile(r"^\[(?:[0-9]{2}/[0-9]{2}/[0-9]{2} )?[0-9]{2}:[0-9]{2}:[0-9]{2}\](?= )")
"""What rich writes at the left of a line, and leaves out if the line before has the same time."""

_DIGIT_ALONE = re.compile(r"(?<![\w@^.])(?<![A-Za-z]-)[0-9]")
"""A digit that begins a number; those of ``f1``, ``p@10`` and ``f1-score`` do not."""

_DIGIT_ALONE_IN_BYTES = re.compile(_DIGIT_ALONE.pattern.encode())
_PROGRESS = re.compile(
    r"^\s*[0-9]{1,9}/[0-9]{1,9} [━╸╺.=>]+ \S.{0,40}?/step(?: - \w+: [-+]?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)*"
    r"(?=[^\s0-9.-])"
)
"""How far Keras was in an epoch when something else was printed on its line.

It draws again when time has passed, and once more on a line of its own at the end of the epoch.
"""

# https://github.com/microsoft/LightGBM/blob/master/src/io/dataset.cpp: what it times before it trains decides, and it
# says so in two or three lines, always to stdout.
_CHOSEN = re.compile(
    r"^(?:\[LightGBM\] \[Info\] )?(?:Auto-choosing (?:row|col)-wise multi-threading, the overhead of testing was .*"
    r"|You can set `force_(?:row|col)_wise=true` to remove the overhead\."
    r"|And if memory is not enough, you can set `force_col_wise=true`\.)$"
)
_BAR = re.compile(
    r"^[^|\n]{0,80}?[0-9]{1,3}%\|[^|\n]{0,300}\|\s*([0-9.]+[kMG]?)/([0-9.]+[kMG]?) \[[^\]\n]{0,300}\](?=\S)"
)
"""How far a bar of tqdm was when something else was printed on its line."""

_LONGEST_HEADER = 400
_MANY = 3
_LINKS = frozenset(
    ("to", "of", "from", "and", "vs", "at", "is", "or", "by", "was", "are", "be", "the", "a", "an", "versus")
)
_INTERVAL = frozenset(("ci", "confidence", "credible", "interval", "hdi", "hpd"))
"""What an interval is called, which is of what stands before it."""

_OF_TIME = re.compile(
    r"\s?of (?:the )?(?:(?:(?:measured|wall|wall-clock|step|epoch|batch|iteration|training|compute|[CG]PU)[ -]?)+time"
    r"|wall[ -]clock)\b"
)
"""What follows after a share of a time that was measured."""

_FASTER = re.compile(r"\s?(?:faster|slower|speed-?up)\b")
_WHERE_TIME_GOES = re.compile(r"\btime (?:goes|went|is spent|spent|breakdown)\b", re.IGNORECASE)

_FINISHED = re.compile(
    r"\b(?:done|finish\w*|complet\w*|train\w*|fit|fitted|ready|load\w*|sav\w*|took|ran|run|compil\w*|built|build"
    r"|evaluat\w*|ended|exited|init\w*|process\w*|generat\w*|comput\w*|execut\w*|prepar\w*|download\w*|succe\w+"
    r"|converged?|epochs?|steps?|iterations?|batch\w*|total|all|everything|start\w*|trees?|tasks?|jobs?|requests?)\b",
    re.IGNORECASE,
)
_WITHIN = re.compile(r"(?:^|\s)(?:in|after)$", re.IGNORECASE)
_SPREAD = re.compile(r"\s?(?:±|\+/?-)\s?")
_COUNTED = re.compile(r"\s[^\W\d_]{2,}")
_MASKED, _NUMBERS, _DATES, _UUIDS, _UNREAD = "masked", "number", "date", "uuid", "unread"
_blake2b = hashlib.blake2b

_SHORTEST_NAME = 3
_MOST_SHAPES = 20_000
_LONGEST_PARSED = 4096
"""Characters of a line that are read; what follows is one value."""


_KIND_OF = {
    "prefix": _MASKED, "own": _MASKED, "own_word": _MASKED, "bare_uuid": _UUIDS, "date": _DATES, "named_date": _DATES,
    "clock": "clock", "iso_duration": "clock", "number": _NUMBERS, "no_number": _NUMBERS,
}  # fmt: skip


@dataclass(frozen=True)
class _Slot:
    """A part of a line that may differ though its words agree."""

    start: int
    end: int
    kind: str
    label: str = ""
    meaning: Meaning = NOTHING
    digits: tuple[int, int] = (0, 0)
    scale: float = 1.0
    integer: bool = False
    counter: bool = False
    count: bool = False  # which is no process
    result: bool = False
    seconds: float = math.inf  # of one, if it surely is a measurement when it is no longer than the run
    rules: int = 0  # vertical ones before it


@dataclass(frozen=True)
class _Cell:
    """The name of a column, where it is in its line, and how many vertical rules are before it."""

    name: str
    start: int
    end: int
    rules: int = 0


@dataclass(frozen=True)
class _Shape:
    """What lines have in common that only differ in digits: their words, and where their slots are.

    The words have NUL for each slot, and SOH for digits that belong to a word, which are at ``spans``.
    """

    words: str
    spans: tuple[tuple[int, int], ...]
    slots: tuple[_Slot, ...]
    digest: int
    columns: tuple[_Cell, ...] = ()
    row_of: int = 0
    leading: tuple[int, ...] = ()


def _shape(line: str) -> _Shape:
    """Return the shape of a line; positions are in characters."""
    line = _TIME_COLUMN.sub(lambda match: " " * len(match[0]), line)
    slots: list[_Slot] = []
    between: list[tuple[int, str]] = []
    at, label, depth, summary = 0, "", 0, ""
    parents: list[str] = []
    times = _TIMES.search(line)
    for token in _TOKEN.finditer(line):
        start, end = token.span()
        kind = _KIND_OF[token.lastgroup or ""]
        if token["run"]:
            start = token.start("run")
        before = line[at:start]
        depth += sum(map(before.count, "[(")) - sum(map(before.count, "])"))
        label = _label(before, label, depth).strip(_OPENERS)
        if label.lower() == "data" and any(slot.label.lower() == "time" for slot in slots):
            label = "data time"  # as the meters of many training scripts print it
        if label == "maintenance" and any(slot.label == "sec/tick" for slot in slots):
            label = "elapsed"  # between ticks, as the loop of StyleGAN prints it
        if times and times.end() <= start and "." in (token["digits"] or "") and measurements.is_computation(label):
            label += f" time {times[1]}"
        _open(parents, before)
        if parents and label and meaning_of(within := f"{parents[-1]}.{label}").is_measured:
            label = within  # timings = {'load': 1.2, 'fit': 3.4}
        if not slots and label and measurements.says_nothing(label):
            summary = _label(before[: before.rfind(label)], "", 0)
        if summary and measurements.says_nothing(label) and meaning_of(summary).is_measured:
            label = f"{summary} {label}"  # latency ms  p50 3.12  p95 4.80
        else:
            summary = ""
        if before.strip() in (":", "=") and slots and _names_row(slots[-1], bool(token["unit"])):
            label = slots[-1].label  # predicted time of candidate 17: 23.4 ms
        known = any(slot.meaning.is_of_machine and slot.meaning.sure for slot in slots)
        if known and label.lower().split(" ")[-1] in _OF_MACHINES:
            label = f"gpu {label}"
        if not label and token["unit"] == "%" and any(slot.meaning.is_of_machine for slot in slots):
            label = _SHARE
        if (
            not slots
            and not label
            and token["digits"]
            and not before.strip("[(")
            and _SINCE_1970.match(token["digits"])
        ):
            label = "timestamp" if any(map(str.isalpha, line[end:])) else label
        slots.append(_slot(token, start, end, kind, label, line))
        between.append((at, before))
        at = end
    between.append((at, line[at:]))
    spans = tuple((at + one.start(), at + one.end()) for at, text in between for one in _DIGIT_RUN.finditer(text))
    moves = MASK in line or any(_moves(slot) for slot in slots)
    words = "\0".join(_normal(_DIGIT_RUN.sub("\1", text), moves) for _, text in between)
    words = _AROUND.sub("\0", words).strip()
    row_of = _row_of(line, slots)
    if row_of and _RULE.search(line):
        slots = [replace(slot, rules=_alone(line, slot)) for slot in slots]
    leading = () if row_of else _leading(line, slots)
    if not row_of and not leading and (texts := _texts_in_row(line, slots)):
        leading, row_of = tuple(range(1, len(slots))), texts + len(slots) - 1
    return _Shape(words, spans, tuple(slots), _digest(words), _columns(line), row_of or len(leading), leading)


def _names_row(slot: _Slot, has_unit: bool) -> bool:
    """Return whether a whole number belongs to the name of what follows: ``RMSLE site 0: 0.812``, but ``fold 0: 3.1``.

    What has a unit is of the same only if that is of the data.
    """
    if not slot.integer or not slot.label or not slot.meaning.is_result:
        return False
    return slot.meaning.of_data if has_unit else not measurements.may_be_computation(slot.label)


def _open(parents: list[str], before: str) -> None:
    """Add to the names of the dictionaries that are open those that a text opens, and remove what it closes."""
    text = ""
    for part in _BRACE.split(before):
        if part == "{":
            parents.append(_label(text, "", 0).strip(_OPENERS))
        elif part == "}":
            del parents[-1:]
        else:
            text = part


_BRACE = re.compile("([{}])")


def _columns(line: str) -> tuple[_Cell, ...]:
    """Return the names of columns that a line may have for the lines below it, () if it has none."""
    between = _COLUMN
    if line.startswith("||"):  # as Jira draws a header
        line = line.replace("||", "| ")
    if line.startswith("#"):  # as numpy.savetxt writes names, with a blank between
        line = f" {line[1:]}"
        between = _COLUMN if _COLUMN.search(line.strip()) else _BLANK
    if len(line) > _LONGEST_HEADER or not between.search(line) or _DIGIT_ALONE.search(line):
        return ()
    cells, at = [], 0
    for part in (*between.finditer(line), None):
        name = line[at : part.start() if part else len(line)].strip()
        if name:
            start = line.index(name, at)
            cells.append(_Cell(name, start, start + len(name), len(_RULE.findall(line, 0, start))))
        at = part.end() if part else at
    known = all(cell.name in ("%", "#") or any(map(str.isalpha, cell.name)) for cell in cells)
    types = cells and cells[0].rules and all(_TYPE_OF_COLUMN.fullmatch(cell.name) for cell in cells)
    return tuple(cells) if known and len(cells) > 1 and not types else ()


def _named(columns: tuple[_Cell, ...], line: str) -> tuple[_Cell, ...]:
    """Return columns with the digits of their names in a line, of which their shape has none."""
    if not any("0" in cell.name for cell in columns):
        return columns
    return tuple(replace(cell, name=line[cell.start : cell.end]) for cell in columns)


def _row_of(line: str, slots: list[_Slot]) -> int:
    """Return how many columns the table may have that a line is a row of, 0 if it is none.

    It has nothing but numbers, but for a text in the first column.
    """
    if len(_RULE.findall(line)) >= _MANY and any(_alone(line, slot) for slot in slots):
        return sum(1 for cell in _RULE.split(line) if cell.strip())
    if not slots or any(
        map(str.isalpha, "".join(line[a.end : b.start] for a, b in pairwise(slots)) + line[slots[-1].end :])
    ):
        return 0
    first = line[: slots[0].start]
    if not any(map(str.isalpha, first)):
        return len(slots)
    return len(slots) + 1 if line.isascii() and _COLUMN.search(first) else 0


def _alone(line: str, slot: _Slot) -> int:
    """Return how many vertical rules are before a number that is alone in its cell, 0 if there is something else."""
    before, after = _RULE.split(line[: slot.start])[-1], _RULE.split(line[slot.end :])[0]
    return 0 if before.strip() or after.strip() else len(_RULE.findall(line, 0, slot.start))


def _leading(line: str, slots: list[_Slot]) -> tuple[int, ...]:
    """Return which numbers a row of a table begins with that has a text in its last column, () if it is none.

    Of two with a slash between them, as a profile has counts of calls, the first one counts.
    """
    indices: list[int] = []
    end = 0
    for index, slot in enumerate(slots):
        between = line[end : slot.start]
        if between.strip() and (between != "/" or not indices):
            break
        if between != "/":
            indices.append(index)
        end = slot.end
    return tuple(indices) if len(indices) >= _MANY and line[end : end + 1] == " " else ()


def _texts_in_row(line: str, slots: list[_Slot]) -> int:
    """Return how many texts stand between the number of a row, with which it begins, and its values; 0 if it is none.

    So pandas prints a table: ``0  logreg  0.93  3.12``.
    """
    if len(slots) < 2 or slots[0].start or not slots[0].integer or line[slots[-1].end :].strip():
        return 0
    if any(map(str.isalpha, "".join(line[a.end : b.start] for a, b in pairwise(slots[1:])))):
        return 0
    between = line[slots[0].end : slots[1].start]
    texts = _GAP.split(between.strip())
    return len(texts) if texts[0] and _GAP.match(between) and _GAP.search(between[-2:]) else 0


_GAP = re.compile(r"\s{2,}")


def _slot(match: re.Match[str], start: int, end: int, kind: str, label: str, line: str) -> _Slot:
    if kind != _NUMBERS:
        of_caption = kind == "clock" and _CAPTION.match(line) is not None
        return _Slot(start, end, kind, label, meaning_of(label) if label else NOTHING, result=of_caption)
    if match["digits"] is None:
        return _Slot(start, end, kind, label, meaning_of(label), result=True)
    unit = (match["unit"] or "").strip()
    if not unit and (spread := _SPREAD.match(line, end)) and (deviation := _TOKEN.match(line, spread.end())):
        unit = (deviation["unit"] or "").strip()  # 22.6±9.9 MB/s
    counted = not unit and match["digits"].isdigit() and bool(_COUNTED.match(line, end))
    meaning = with_unit(_meaning(label, counted), unit)
    if _BYTES.fullmatch(unit) and meaning.is_result and measurements.is_of_memory(label):
        meaning = meaning_of("memory")
    if _BYTES.fullmatch(unit) and _EXTREME.fullmatch(label.strip(_OPENERS)) and _MEMORY.search(line):
        meaning = meaning_of("memory")  # memory: 200 MB (max 233.8 MiB)
    digits = match.span("digits")
    is_integer = measurements.is_whole(match["digits"]) and not _COMMA.search(match["digits"])
    if unit.lower() in ("mib", "gib") and _OF_ALL.search(line, max(0, start - 12), end + 14):
        meaning = meaning_of("memory")
    counter = (
        (unit == "%" and not measurements.is_quantity(label))
        or line[end : end + 1] == "/"
        or line[start - 1 : start] == "/"
    )
    busy = label.lower().endswith(("busy", "idle")) and measurements.is_computation(label)
    shares = busy or (_WHERE_TIME_GOES.search(line, 0, start) and measurements.is_computation(label.rpartition(":")[2]))
    if unit == "%" and (shares or _OF_TIME.match(line, end)):
        meaning = meaning_of(_SHARE)
    if unit == "x" and _FASTER.match(line, end):
        meaning = meaning_of("speedup")
    of_total = bool(_OF_TOTAL.match(line, end) or _TOTAL.search(line, 0, start))
    few = meaning is NOTHING and is_integer and (of_total or digits[1] - digits[0] < 3)
    if of_total and unit == "W":
        meaning = with_unit(NOTHING, unit)  # P0    52W / 300W, as nvidia-smi prints it
    longer = match["sign"] == "+" and bool(unit) and meaning.shortest_s < math.inf  # +12.1ms
    result = (bool(match["sign"]) and not longer) or few or meaning.is_result
    count = of_total or measurements.is_count(label)
    scale = measurements.SUFFIXES[match["suffix"] or ""]
    seconds = meaning.shortest_s * scale
    return _Slot(start, end, kind, label, meaning, digits, scale, is_integer, counter, count, result, seconds)


def _meaning(label: str, counted: bool) -> Meaning:
    """Return what a label says, which may be the end of a sentence; ``counted``: what follows is what there are of."""
    if match := _WITHIN.search(label):
        if counted:
            return RESULT  # converged after 23 iterations
        if measurements.meaning_of(label[: match.start()]).is_result and not _FINISHED.search(label):
            return NOTHING
        return meaning_of("elapsed")
    words = label.split()
    if words and all(_FINISHED.fullmatch(word) and word.endswith(("ed", "done", "ete", "n")) for word in words):
        return NOTHING
    return meaning_of(label)


def _label(before: str, previous: str, depth: int) -> str:
    """Return the words that a number is labeled with: the last ones before it."""
    text = _UNIT_IN_BRACKETS.sub(
        lambda match: " seconds" if match[1] == "s" else f" {match[1]}", before.rstrip(_OPENERS)
    )
    while match := _WRAPPER.search(text):
        text = text[: match.start()].rstrip(_OPENERS)
    if bracketed := _LABEL_IN_BRACKETS.search(text):
        text = f"{text[: bracketed.start()]} {bracketed[1]}"  # throughput per GPU (TFLOP/s/GPU): 75.1
    label = _DELIMITER.split(text)[-1].strip(" -+*#>")
    words = [word for word in label.split() if any(map(str.isalpha, word)) and word != "N/A"][-6:]
    if words and previous and all(word.lower().strip(_OPENERS) in _INTERVAL for word in words):
        return previous
    if all(word.lower() in _LINKS for word in words):
        follows = before.strip()
        if _AFTER_COUNT.fullmatch(follows):
            return previous
        inherits = bool(words) or follows in ("±", "+/-", "/", "->", "→", "..", "-") or follows.startswith(("(", "±"))
        return previous if inherits or (depth > 0 and follows in (",", "")) or before in ("", "/") else ""
    return " ".join(words)


def _shown_label(slot: _Slot, line: str) -> str:
    """Return a label as it is in its line, with the digits that a shape has not."""
    label = slot.label.strip(_OPENERS)
    at = line.translate(_ZEROS).rfind(label, 0, slot.start) if "0" in label else -1
    return line[at : at + len(label)] if at >= 0 else label


def _moves(slot: _Slot) -> bool:
    """Return whether what is drawn beside a value may be of another length in each run: a bar, or a rule around it."""
    return slot.counter or slot.kind != _NUMBERS or not (slot.result or slot.meaning is NOTHING)


def _normal(text: str, moves: bool) -> str:
    """Return words without what only their layout needs.

    What is drawn beside results, or after the name of one, is a result: the bars of a histogram.
    """
    text = _BLANK.sub(" ", text)

    def shortened(match: re.Match[str]) -> str:
        if not moves and match[1] not in (".", "~"):
            meaning = meaning_of(_label(text[: match.start()], "", 0))
            if meaning is NOTHING or meaning.is_result:
                return match[0]
        return match[1] * 3 if match[1] else "█"

    return _DRAWN.sub(shortened, text)


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little")


@dataclass
class _Parsed:
    """A line: its words, the values of its slots with their roles, and its number."""

    words: str
    values: tuple[tuple[Role, str], ...]
    slots: tuple[_Slot, ...]
    text: str
    number: int = 0

    @property
    def results(self) -> tuple[str, ...]:
        """The values that are no measurement and no identifier."""
        return tuple(text for role, text in self.values if role in (Role.RESULT, Role.OPEN))


class _Parser:
    """Reads lines with what is known of their run. Those that only differ in digits are understood once."""

    def __init__(self, facts: RunFacts, ignored: Sequence[re.Pattern[str]]) -> None:
        self.facts, self._ignored = facts, ignored
        self._shapes: dict[str, _Shape] = {}
        self._roles: dict[tuple[str, str], Role] = {}
        self._names = tuple(
            sorted((name for name in facts.names if len(name) >= _SHORTEST_NAME), key=len, reverse=True)
        ) + tuple(name for name, _ in facts.numbered)
        self._columns: dict[int, tuple[_Cell, ...]] = {}

    def begin(self) -> None:
        """Note that the next line is the first one."""
        self._columns.clear()

    def line(self, line: str) -> str:
        """Return a line without what is ignored, what only stands for this run, and progress that it was torn from."""
        if "/step" in line:
            line = _PROGRESS.sub("", line, count=1)
        elif "%|" in line:
            line = _BAR.sub(lambda match: match[0] if match[1] == match[2] else "", line, count=1)
        elif "wise" in line:
            line = _CHOSEN.sub("", line)
        for pattern in self._ignored:
            line = pattern.sub("", line)
        for name in self._names:
            if name in line:
                line = masked(line, self.facts)
                break
        return line

    def parse(self, line: str, number: int = 0) -> _Parsed:
        """Return what a line says. It is one that ``line`` returned."""
        if not line:
            self._columns.clear()  # the end of a table
        if len(line) > _LONGEST_PARSED:
            start = self.parse(line[:_LONGEST_PARSED])
            rest = _Slot(_LONGEST_PARSED, len(line), _UNREAD)
            known = start.values and start.values[-1][0] is Role.RESULT
            values = (*start.values, (Role.RESULT if known else Role.OPEN, line[_LONGEST_PARSED:]))
            return _Parsed(start.words, values, (*start.slots, rest), line, number)
        template = line.translate(_ZEROS)
        shape = self._shapes.get(template)
        if shape is None:
            if len(self._shapes) > _MOST_SHAPES:
                self._shapes.clear()
            shape = self._shapes[template] = _shape(template)
        slots = shape.slots
        if shape.columns:
            self._columns[len(shape.columns)] = _named(shape.columns, line)
        elif shape.row_of and (columns := _table(self._columns, shape.row_of, slots, shape.leading)):
            slots = _of_row(slots, shape.leading, columns, len(line))
        elif shape.row_of and (columns := _below(self._columns.values(), slots, len(line))):
            slots = _labeled(slots, columns, len(line))
        words = shape.words
        if shape.spans:
            words = _filled(words.split("\1"), [self._digits(line, start, end) for start, end in shape.spans])
        return _Parsed(words, tuple(self._value(slot, line) for slot in slots), slots, line, number)

    def _digits(self, line: str, start: int, end: int) -> str:
        """Return digits of a word, but those of a process of the run in a name: ``exp_4242``."""
        digits = line[start:end]
        in_name = self.facts.pids and measurements.NUMBER_IN_NAME.match(line, start)
        return MASK if in_name and measurements.is_own_number(int(digits), self.facts) else digits

    def _value(self, slot: _Slot, line: str) -> tuple[Role, str]:
        text = line[slot.start : slot.end]
        if slot.result:
            value = float(_plain(line, slot) or "nan")
            of_clock = not slot.integer and not slot.meaning.of_data and measurements.is_clock(value, self.facts)
            if of_clock or measurements.is_age(value, self.facts):
                return Role.MEASUREMENT, text
            own = slot.integer and not slot.count and measurements.is_own_number(value, self.facts, slot.label)
            return Role.IDENTIFIER if own else Role.RESULT, text
        if slot.kind == _UUIDS and not measurements.BARE_UUID.fullmatch(text):
            return Role.OPEN, text
        if slot.kind in (_MASKED, _UUIDS):
            return Role.RESULT if _is_result(slot.label, text) else Role.IDENTIFIER, text
        if slot.kind == _NUMBERS:
            return number_role(slot.meaning, float(_plain(line, slot)) * slot.scale, slot.integer, self.facts), text
        return self.role(slot, text), text

    def role(self, slot: _Slot, text: str) -> Role:
        """Return what a date or a time is."""
        minute = text[:16] if text[:1].isdigit() else text
        key = (slot.label, minute if slot.kind == _DATES else text[:8])
        role = self._roles.get(key)
        if role is None:
            if len(self._roles) > 100_000:
                self._roles.clear()
            role = self._roles[key] = measurements.role(slot.label, text, self.facts)
        return role


def _is_result(label: str, masked_text: str) -> bool:
    """Return whether what has the form of an identifier is none: a digest, or the bits of a number."""
    is_bits = masked_text[:2] == "0x" and not measurements.is_address(masked_text, label)
    return is_bits or measurements.is_digest(label)


_COMMA = re.compile(r",(?=[0-9]{1,2}$)")


def _plain(line: str, slot: _Slot) -> str:
    """Return the digits of a number without what groups them."""
    return _COMMA.sub(".", line[slot.digits[0] : slot.digits[1]]).replace(",", "").replace("_", "")


def _filled(parts: list[str], digits: list[str]) -> str:
    """Return words with their digits."""
    return "".join(one for pair in zip(parts, digits, strict=False) for one in pair) + parts[-1]


_ZEROS = {ord(digit): "0" for digit in "123456789"}


def _table(
    known: Mapping[int, tuple[_Cell, ...]], columns: int, slots: tuple[_Slot, ...], leading: tuple[int, ...]
) -> tuple[_Cell, ...] | None:
    """Return the names of the columns of a row, which may have an index without a name, None if none are known."""
    if leading and leading[0]:  # names of texts may have only one blank between them
        return next((known[count] for count in range(columns, len(slots) - 1, -1) if count in known), None)
    found = known.get(columns) or (known.get(columns - 1) if columns == len(slots) or slots[-1].rules else None)
    if found is None and leading and columns + 1 in known:
        return known[columns + 1][:-1]  # the last one is that of the text
    if found is None and slots[-1].rules:  # and cells that are empty
        wider = [cells for count, cells in known.items() if count > columns]
        found = next(
            (cells for cells in wider if {slot.rules for slot in slots} <= {cell.rules for cell in cells}), None
        )
    return found


def _below(headers: Iterable[tuple[_Cell, ...]], slots: tuple[_Slot, ...], length: int) -> tuple[_Cell, ...] | None:
    """Return the columns that numbers are right below, None if any is below none: other columns may have none."""
    if len(slots) < _MANY:
        return None
    for header in headers:
        for shift in (0, length - header[-1].end) if len(header) > len(slots) else ():
            by_end = {cell.end + shift: cell for cell in header}
            if all(slot.end in by_end for slot in slots):
                return tuple(by_end[slot.end] for slot in slots)
    return None


_SHIFTED = 2
"""Characters by which a column may be shifted, because a name before it is wider than its column."""

_PERCENT = re.compile(r"%|(?:percent(?:age)?|pct|share)\s*(?:%|\(%\))?|increment", re.IGNORECASE)
_SHARE = "utilization"
"""What is said of the percentages beside a column of times, and of the increments of memory."""


_UNBRACKETED = re.compile(r" (?![(\[])")


def _of_row(
    slots: tuple[_Slot, ...], leading: tuple[int, ...], columns: tuple[_Cell, ...], length: int
) -> tuple[_Slot, ...]:
    """Return the slots of a row of a table with the labels of its columns, of its leading ones if there are any."""
    if not leading:
        return _labeled(slots, columns, length)
    # The name of the last column, which is that of the text, may follow after one blank.
    cells = (*columns[:-1], replace(columns[-1], name=_UNBRACKETED.split(columns[-1].name)[0]))
    numbered = leading[0] > 0
    named = _labeled(tuple(slots[index] for index in leading), cells, length, from_right=numbered)
    labeled = dict(zip(leading, named, strict=True))
    return tuple(labeled.get(index, slot) for index, slot in enumerate(slots))


def _labeled(
    slots: tuple[_Slot, ...], columns: tuple[_Cell, ...], length: int, *, from_right: bool = False
) -> tuple[_Slot, ...]:
    """Return the slots of a row of a table with the labels of its columns; ``length`` is that of the row.

    If the first column is a text, or has no name, any line that ends in numbers may look like a row: it is one if they
    are in columns, counted from the left, or if there is an index or there are many, or if asked, ``from_right``.
    """
    index, cells = max(0, len(slots) - len(columns)), columns[max(0, len(columns) - len(slots)) :]
    labeled = list(slots[:index])
    ruled = {cell.rules: cell for cell in columns if cell.rules}
    if ruled and any(slot.rules in ruled for slot in slots):
        unnamed = _Cell("", 0, 0)
        index, labeled, cells = 0, [], tuple(ruled.get(slot.rules, unnamed) for slot in slots)
    elif len(slots) != len(columns) and not any(
        all(
            slot.start < cell.end + shift + _SHIFTED and cell.start + shift < slot.end + _SHIFTED
            for slot, cell in zip(slots[index:], cells, strict=True)
        )
        for shift in ((0, length - columns[-1].end) if index or from_right or len(cells) >= _MANY else (0,))
    ):
        return slots
    column = ""
    for slot, cell in zip(slots[index:], cells, strict=True):
        if not cell.name:
            labeled.append(slot)
            continue
        shares = bool(_PERCENT.fullmatch(cell.name) and column) and not meaning_of(column).is_result
        column = _SHARE if shares else cell.name
        if slot.label and slot.kind == _NUMBERS and slot.digits != (0, 0) and cell.name.lower() in measurements.UNITS:
            meaning = meaning_of(f"{slot.label} {cell.name}")
            slot = replace(slot, meaning=meaning, result=meaning.is_result, seconds=meaning.shortest_s * slot.scale)
        of_row = slot.meaning if slot.label else NOTHING
        has_unit = slot.meaning is not NOTHING and slot.meaning != (meaning_of(slot.label) if slot.label else NOTHING)
        if (len(cells) < len(columns) or slot.rules) and not measurements.says_nothing(column):
            slot = replace(slot, label="")
        if slot.label or slot.kind == _MASKED:
            labeled.append(slot)
            continue
        meaning = meaning_of(column)
        known = of_row is not NOTHING and not meaning.is_result  # the name of the row says less than the column
        if has_unit and not slot.meaning.is_result and not known:
            meaning = slot.meaning
        result = slot.kind == _NUMBERS and (meaning.is_result or slot.digits == (0, 0))
        seconds = meaning.shortest_s * slot.scale
        count = slot.count or measurements.is_count(column)
        labeled.append(replace(slot, label=column, meaning=meaning, count=count, result=result, seconds=seconds))
    return tuple(labeled)


# Comparison


def compare(
    a: Text,
    b: Text,
    stream: str,
    facts_a: RunFacts | None,
    facts_b: RunFacts | None,
    ignored: Sequence[re.Pattern[str]] = (),
) -> list[OutputDifference]:
    """Return in what two texts differ, what decides first: one difference for each kind, with how many more there are.

    The order of lines counts as far as several writers cannot explain it, and unless a text is so long that it is
    digested. Empty lines do not count, nor how numbers are aligned, and how often a line of progress was printed again.
    ``ignored`` matches are removed from the lines that are kept; what is digested only had them removed when it was
    recorded.
    """
    facts_a = facts_a or facts_b or _NO_FACTS
    facts_b = facts_b or facts_a
    if (a.lines, a.blocks, a.count) == (b.lines, b.blocks, b.count):
        return []
    ours, theirs = _Parser(facts_a, ignored), _Parser(facts_b, ignored)
    if not a.blocks and not b.blocks:
        return _Comparison(stream, ours, theirs).lines(a.lines, b.lines)
    digesting = _Parser(for_digest(facts_a), ignored), _Parser(for_digest(facts_b), ignored)
    if _sum(a, digesting[0]) == _sum(b, digesting[1]):
        return []
    kept = min(len(a.lines), len(b.lines))
    differences = _Comparison(stream, ours, theirs).lines(a.lines[:kept], b.lines[:kept])
    return _sorted([*differences, *_blocks_differ(a, b, kept, stream, *digesting)])


def text_of(lines: Iterable[str]) -> Text:
    """Return the Text of lines that are known, such as those of a file."""
    recorder = Recorder()
    for line in lines:
        recorder.feed(line.encode("utf-8", "surrogateescape") + b"\n")
    return recorder.finish()


@dataclass(frozen=True)
class FileLine:
    """What a line of a file says: its ``words``, and its values with their labels and roles.

    It ``has_time`` if it begins with a date or a time of the run, as those of logs do.
    """

    words: str
    values: tuple[tuple[str, Role, str], ...]
    has_time: bool = False


class FileLines:
    """Reads the lines of files as those that a run prints.

    ``label`` is that of numbers with nothing beside them, such as what the name of the file says.
    """

    def __init__(self, facts: RunFacts, label: str = "") -> None:
        self._facts, self._label = facts, label
        self._parser, self._bytes = _Parser(facts, ()), _BytesParser(facts, ())

    def begin(self) -> None:
        """Note that the next line is the first of another text: no table goes on in it."""
        self._parser.begin()

    def read(self, line: str) -> FileLine:
        """Return what a line says; blanks count if it has no values."""
        line = self._parser.line(line)
        parsed = self._parser.parse(line.strip())
        has_mark = parsed.text[:8].lstrip("[(").startswith(MASK)
        if not parsed.slots:
            return FileLine(line, (), has_mark)
        bare = bool(self._label) and not any(map(str.isalpha, parsed.words))
        values: list[tuple[str, Role, str]] = []
        for slot, (role, text) in zip(parsed.slots, parsed.values, strict=True):
            label = "" if slot.kind == _MASKED else _shown_label(slot, parsed.text)
            if bare and not values and len(parsed.slots) > 1 and _SINCE_1970.match(text):
                role = measurements.role("timestamp", text, self._facts)
            elif bare and not label and slot.kind == _NUMBERS:
                role = measurements.role(self._label, text, self._facts)
            values.append((label, role, text.strip()))
        first = parsed.slots[0]
        begins = not any(map(str.isalpha, parsed.text[: first.start])) and (
            first.kind == _MASKED
            or ((first.kind != _NUMBERS or first.label == "timestamp") and parsed.values[0][0] is Role.MEASUREMENT)
        )
        return FileLine(parsed.words, tuple(values), begins or has_mark)

    def sums(self, lines: Sequence[str], in_order: bool) -> tuple[str, str, str]:
        """Return the digests of the words, of the results, and of what may be results, of many lines."""
        rows = [line.strip().encode("utf-8", "surrogateescape") for line in lines]
        if not in_order:
            words, values, unknown = self._bytes.sums(rows)
            return _hex(words), _hex(values), _hex(unknown)
        each = [self._bytes.sums([row]) for row in rows]
        return tuple(_hex(_digest(" ".join(map(str, some)))) for some in zip(*each, strict=True))  # type: ignore[return-value]


_LONGEST_RUN_S = 1e7


def for_digest(facts: RunFacts) -> RunFacts:
    """Return facts by which a number is a result, may be one or is none, however long its run took.

    Two runs whose digests are compared do not take the same time, and a bare ``52.1`` may be the seconds of one of them
    only.
    """
    return msgspec.structs.replace(facts, ended=facts.started + _LONGEST_RUN_S)


def digested(text: Text, facts: RunFacts, ignored: Sequence[re.Pattern[str]] = ()) -> Text:
    """Return a text as one block without its lines; ``compare`` says whether another one has the same lines."""
    words, values, unknown = _sum(text, _Parser(for_digest(facts), ignored))
    block = TextBlock(1, text.count, _hex(words), _hex(values), _hex(unknown))
    return Text(count=text.count, size=text.size, blocks=(block,))


_DECODER = msgspec.json.Decoder(dict[str, Text | None])


def save(folder: Path, stdout: Text | None, stderr: Text | None) -> None:
    """Write the texts of a run to its folder. Raises OSError."""
    data = msgspec.json.encode({STDOUT: stdout, STDERR: stderr})
    with open(folder / NAME, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(data)


def load(folder: Path) -> tuple[Text | None, Text | None]:
    """Return what a run printed to stdout and to stderr; None for what was not recorded or cannot be read."""
    try:
        data = (folder / NAME).read_bytes()
        texts = _DECODER.decode(data)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None, None
    return texts.get(STDOUT), texts.get(STDERR)


_NO_FACTS = RunFacts(started=0.0, ended=0.0)
_KINDS = {
    Role.RESULT: OutputKind.VALUE,
    Role.OPEN: OutputKind.AMBIGUOUS,
    Role.MEASUREMENT: OutputKind.MEASUREMENT,
    Role.IDENTIFIER: OutputKind.IDENTIFIER,
    Role.GENERATOR: OutputKind.GENERATOR,
}
_RANK = list(_KINDS)
_MOST_SHOWN, _BEFORE = 160, 20
_ORDER = [OutputKind.VALUE, OutputKind.AMBIGUOUS, OutputKind.WORDS]


def _sorted(differences: list[OutputDifference]) -> list[OutputDifference]:
    return sorted(differences, key=lambda one: _ORDER.index(one.kind) if one.kind in _ORDER else len(_ORDER))


@dataclass
class _Comparison:
    """Collects the differences between the lines of two texts."""

    stream: str
    ours: _Parser
    theirs: _Parser
    differences: dict[OutputKind, OutputDifference] = field(default_factory=dict)

    def lines(self, a: Sequence[str], b: Sequence[str]) -> list[OutputDifference]:
        self.ours.begin()
        self.theirs.begin()
        one, two = self._differing(a, b)
        other_words = Counter(line.words for line in one) != Counter(line.words for line in two)
        if other_words and self._same_pieces(one, two):
            return []  # several writers tore them apart differently
        if not self._alone and self._same_whole_lines((a, one, self.ours), (b, two, self.theirs)):
            return []
        alike: defaultdict[str, tuple[list[_Parsed], list[_Parsed]]] = defaultdict(lambda: ([], []))
        for side, lines in enumerate((one, two)):
            for line in lines:
                alike[line.words][side].append(line)
        left: tuple[list[_Parsed], list[_Parsed]] = ([], [])
        for ours, theirs in alike.values():
            for side, rest in enumerate(self._pairs(ours, theirs)):
                left[side].extend(rest)
        left = self._unnamed(*left)
        self._words(*(sorted(side, key=lambda line: line.number) for side in left))
        if self.stream == STDOUT and not self.differences.keys() & set(_ORDER):
            self._order(a, b, one, two)
        return _sorted(list(self.differences.values()))

    def _order(self, a: Sequence[str], b: Sequence[str], one: list[_Parsed], two: list[_Parsed]) -> None:
        """Note that lines, which are the same, stand in an order that writers beside each other do not explain.

        Those keep the order of their own lines: of lines that are in reverse, each needs a writer of its own. Several
        have one more, as libraries in C have a buffer of their own; one thread of one process has one order. ``one``
        and ``two`` are the lines that differ.
        """
        writers = [parser.facts.writers for parser in (self.ours, self.theirs)]
        if not all(writers) or self._said(a, one, self.ours) == self._said(b, two, self.theirs):
            return
        lines = (self._in_order(a, self.ours), self._in_order(b, self.theirs))
        places: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        for position, (key, _) in reversed([*enumerate(lines[1])]):
            places[key].append(-position)
        if Counter(key for key, _ in lines[0]) != Counter({key: len(positions) for key, positions in places.items()}):
            return
        reverse: list[int] = []
        for key, _ in lines[0]:
            position = places[key].pop()
            at = bisect.bisect_left(reverse, position)
            reverse[at : at + 1] = [position]
        if len(reverse) <= (1 if self._alone else max(writers) + 1):
            return
        our, their = next(pair for pair in zip(*lines, strict=True) if pair[0][0] != pair[1][0])
        self._note(OutputKind.WORDS, f"order of lines, from line {our[1]}", _shown(a[our[1] - 1], b[their[1] - 1]))

    @staticmethod
    def _said(lines: Sequence[str], differing: list[_Parsed], parser: _Parser) -> list[str | tuple[str, ...]]:
        """Return what each line says; a line that both texts have says itself."""
        known = {line.number: (line.words, *line.results) for line in differing}
        return [known.get(number) or parser.line(text).strip() for number, text in enumerate(lines, 1)]

    def _in_order(self, lines: Sequence[str], parser: _Parser) -> list[tuple[tuple[str, ...], int]]:
        """Return what each line says, and its number.

        Left out are lines of progress, those that only draw, and those with a duration or a rate, as tables are sorted
        by it; a date, or the time at the beginning of a line, is that of a log.
        """
        parser.begin()
        numbered_lines: list[tuple[tuple[str, ...], int]] = []
        for number, text in enumerate(lines, 1):
            line = parser.parse(parser.line(text).strip(), number)
            measured = any(
                role is Role.MEASUREMENT and (slot.kind == _NUMBERS or (slot.kind != _DATES and slot.start > 1))
                for slot, (role, _) in zip(line.slots, line.values, strict=True)
            )
            says = any(map(str.isalnum, line.words)) or (self._alone and line.results)
            if not measured and not _is_progress(line) and says:
                numbered_lines.append(((line.words, *line.results), number))
        return numbered_lines

    def _differing(self, a: Sequence[str], b: Sequence[str]) -> tuple[list[_Parsed], list[_Parsed]]:
        """Return the lines of each that the other does not have in the same words and with the same digits."""
        texts = ([self.ours.line(line).strip() for line in a], [self.theirs.line(line).strip() for line in b])
        counts = (Counter(texts[0]), Counter(texts[1]))
        differing_lines: tuple[list[_Parsed], list[_Parsed]] = ([], [])
        for side, parser in enumerate((self.ours, self.theirs)):
            alone = counts[side] - counts[1 - side]
            for number, text in enumerate(texts[side], 1):
                if not text or text in alone or _columns(text):
                    parsed = parser.parse(text, number)
                    if alone[text] > 0 and _says(parsed):
                        differing_lines[side].append(parsed)
                    alone[text] -= 1
        return differing_lines

    def _pairs(self, ours: list[_Parsed], theirs: list[_Parsed]) -> tuple[list[_Parsed], list[_Parsed]]:
        """Pair lines with the same words, and return those that are left over."""
        if all(map(_is_progress, (*ours, *theirs))) and ours and theirs:
            self._values(ours[-1], theirs[-1])
            return [], []
        equal: defaultdict[tuple[str, ...], list[_Parsed]] = defaultdict(list)
        for line in theirs:
            equal[line.results].append(line)
        for same in equal.values():
            same.reverse()
        rest = []
        for line in ours:
            same = equal[line.results]
            if same:
                self._values(line, same.pop())
            else:
                rest.append(line)
        others = sorted((line for same in equal.values() for line in same), key=lambda line: line.number)
        pairs = min(len(rest), len(others))
        for line, other in zip(rest, others, strict=False):
            self._values(line, other)
        return rest[pairs:], others[pairs:]

    def _unnamed(self, ours: list[_Parsed], theirs: list[_Parsed]) -> tuple[list[_Parsed], list[_Parsed]]:
        """Return lines whose words differ without those that only differ in paths, in what stands for their runs."""
        same: defaultdict[tuple[str, ...], list[_Parsed]] = defaultdict(list)
        for line in reversed(theirs if ours else ()):
            same[self._masked(line, self.theirs)].append(line)
        rest = []
        for line in ours:
            others = same[self._masked(line, self.ours)]
            if not others:
                rest.append(line)
                continue
            self._of_runs(line, others.pop())
        return rest, [line for lines in same.values() for line in lines] if ours else theirs

    def _of_runs(self, a: _Parsed, b: _Parsed) -> None:
        if not self._counted(OutputKind.IDENTIFIER):
            self._note(OutputKind.IDENTIFIER, f"line {a.number}", _shown(a.text, b.text))

    @staticmethod
    def _masked(line: _Parsed, parser: _Parser) -> tuple[str, ...]:
        text = _PATH.sub(lambda match: masked(match[0], parser.facts), line.text)
        parsed = parser.parse(text) if text != line.text else line
        return parsed.words, *parsed.results

    def _values(self, a: _Parsed, b: _Parsed) -> None:
        """Note the values in which two lines differ."""
        if a.results != b.results and self._masked(a, self.ours) == self._masked(b, self.theirs):
            self._of_runs(a, b)
            return
        for slot, (role, text), (other_role, other) in zip(a.slots, a.values, b.values, strict=True):
            if text != other:
                kind = _KINDS[min(role, other_role, key=_RANK.index)]
                if self._counted(kind):
                    continue
                label = _shown_label(slot, a.text) if slot.kind != _MASKED else ""
                at = f"line {a.number}, {label}" if label else f"line {a.number}"
                hidden = redact.is_secret(slot.label)
                shown = (redact.HIDDEN, redact.HIDDEN) if hidden else _shown(text.strip(), other.strip())
                self._note(kind, redact.text(at), shown)

    def _counted(self, kind: OutputKind) -> bool:
        """Count one more difference of a kind, if one is known."""
        known = self.differences.get(kind)
        if known is not None:
            self.differences[kind] = msgspec.structs.replace(known, more=known.more + 1)
        return known is not None

    @property
    def _alone(self) -> bool:
        """Whether one thread of one process printed all lines."""
        return self.ours.facts.writers == self.theirs.facts.writers == 1

    def _same_pieces(self, a: list[_Parsed], b: list[_Parsed]) -> bool:
        return _same_pieces(a, b, self._alone)

    def _same_whole_lines(self, *sides: tuple[Sequence[str], list[_Parsed], _Parser]) -> bool:
        """Return whether the lines that differ, of all that each text has, are the same lines with ends that come late.

        A line may consist of others if their words are those of lines, and its missing ends are empty lines elsewhere.
        """
        words, counters = set[str](), list[Counter[tuple[str, ...]]]()
        for lines, _, parser in sides:
            of_each_shape = {line.translate(_ZEROS): line for line in lines}.values()
            words |= {_without_blanks(parser.parse(parser.line(line).strip()).words) for line in of_each_shape}
        words = {one for one in words if any(map(str.isalpha, one))}
        if len(words) > _MOST_SHAPES_TORN:
            return False
        words = {one for one in words if _untorn(one, words) == [one]}
        for lines, differing, _ in sides:
            in_lines = [_lines_in(line, words) for line in differing]
            if sum(len(one) - 1 for one in in_lines) > sum(not line.strip() for line in lines):
                return False
            counters.append(Counter(piece for one in in_lines for piece in one))
        return counters[0] == counters[1]

    def _words(self, a: list[_Parsed], b: list[_Parsed]) -> None:
        """Note the lines that only one has, unless writers only tore them apart differently."""
        if not (a or b) or self._same_pieces(a, b):
            return
        kind = OutputKind.WORDS if self.stream == STDOUT else OutputKind.STDERR_LINES
        shown = _shown(a[0].text if a else "", b[0].text if b else "")
        at = f"line {(a or b)[0].number}"
        self._note(kind, at, shown, only_run=0 if a and b else 1 if a else 2, more=max(len(a), len(b)) - 1)

    def _note(self, kind: OutputKind, at: str, values: tuple[str, str], only_run: int = 0, more: int = 0) -> None:
        self.differences[kind] = OutputDifference(
            path=self.stream, kind=kind, at=at, values=values, only_run=only_run, more=more
        )


_PATH = re.compile(r"[^\s'\"]*[/\\][^\s'\"]*")


def _shown(a: str, b: str) -> tuple[str, str]:
    """Return two texts without secrets; long ones from shortly before they differ."""
    a, b = (redact.text(one.replace(MASK, "…").encode("utf-8", "replace").decode()) for one in (a, b))
    start = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), 0) - _BEFORE
    if start > 0 and max(len(a), len(b)) > _MOST_SHOWN:
        a, b = f"…{a[start:]}", f"…{b[start:]}"
    return _cut(a), _cut(b)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"


def _says(line: _Parsed) -> bool:
    """Return whether a line says more than a rule or a bar, which are of one mark: a picture has several runs."""
    drawn = line.words.strip("\0 █-=_*#+|│┃┆║┏┓└┘╭╮╰╯─━═╌.~")
    return bool(drawn or line.results) or len({*line.words} & {*"#.*+"}) > 1


def _is_progress(line: _Parsed) -> bool:
    """Return whether a line says nothing but how far something is, and how fast it goes."""
    counters = [slot.counter for slot, (role, _) in zip(line.slots, line.values, strict=True) if role is Role.RESULT]
    return bool(counters) and all(counters) and not any(role is Role.OPEN for role, _ in line.values)


def _same_pieces(a: list[_Parsed], b: list[_Parsed], alone: bool) -> bool:
    """Return whether lines that differ are the same pieces of text, torn apart by several writers.

    One that is ``alone`` tears no line apart, but lines of its buffers may have no end between them.
    """
    if not alone and _tokens(a) == _tokens(b) and _lengths(a) != _lengths(b):
        return True
    texts = tuple([_visible(line) for line in side] for side in (a, b))
    if max(map(len, texts)) > _MOST_TORN:
        return False
    lines = {line for side in texts for line in side if line}
    counters = [Counter(piece for line in side for piece in _untorn(line, lines)) for side in texts]
    return counters[0] == counters[1]


def _tokens(lines: list[_Parsed]) -> Counter[str]:
    tokens: Counter[str] = Counter()
    for line in lines:
        tokens.update(line.words.replace("\0", " \0 ").split())
        tokens.update(line.results)
    return tokens


def _lengths(lines: list[_Parsed]) -> Counter[int]:
    """Return how many lines have how many words and numbers: if it is the same, none was torn apart."""
    return Counter(len(line.words.replace("\0", " \0 ").split()) for line in lines)


def _visible(line: _Parsed) -> str:
    """Return the words and results of a line without blanks."""
    results = iter(line.values)
    parts = line.words.split("\0")
    shown = parts[0]
    for part, (role, text) in zip(parts[1:], results, strict=False):
        shown += (text.strip() if role in (Role.RESULT, Role.OPEN) else "\0") + part
    return _without_blanks(shown)


def _lines_in(line: _Parsed, words: set[str]) -> list[tuple[str, ...]]:
    """Return the words and results of the lines with these ``words`` that a line consists of, or of itself."""
    values = [text if role in (Role.RESULT, Role.OPEN) else "" for role, text in line.values]
    pieces = []
    for piece in _untorn(_without_blanks(line.words), words):
        count = piece.count("\0")
        pieces.append((piece, *values[:count]))
        del values[:count]
    return [*pieces[:-1], (*pieces[-1], *values)] if pieces else [tuple(values)]


def _without_blanks(text: str) -> str:
    return "".join(text.split())


_MOST_TORN = 200
_MOST_SHAPES_TORN = 1000


def _untorn(line: str, lines: set[str]) -> list[str]:
    """Return the other lines that a line consists of, as when line ends come late; the line itself if it is one."""
    ends: dict[int, tuple[int, str]] = {0: (0, "")}  # where a piece ends, with where it begins
    for at in range(len(line)):
        if at in ends:
            for piece in lines:
                if len(piece) < len(line) and line.startswith(piece, at):
                    ends.setdefault(at + len(piece), (at, piece))
    if len(line) not in ends or not line:
        return [line] if line else []
    pieces, at = [], len(line)
    while at:
        at, piece = ends[at]
        pieces.append(piece)
    return pieces


# Digests


def _hex(number: int) -> str:
    return f"{number & _MASK_64:016x}"


_MASK_64 = 2**64 - 1
_Sums = tuple[int, int, int]
"""Of the digests of lines: of their words, of their results, and of what may be a result."""


def _sums(parser: _Parser, lines: Iterable[str]) -> _Sums:
    words = values = unknown = 0
    for line in lines:
        parsed = parser.parse(parser.line(line).strip())
        one = _digest_of(parsed)
        words, values, unknown = words + one[0], values + one[1], unknown + one[2]
    return words & _MASK_64, values & _MASK_64, unknown & _MASK_64


def _digest_of(line: _Parsed) -> _Sums:
    if not line.words:
        return 0, 0, 0
    results = [text for role, text in line.values if role is Role.RESULT]
    unknown = [text for role, text in line.values if role is Role.OPEN]
    return (
        _digest(line.words),
        _digest("\0".join((line.words, *results))) if results else 0,
        _digest("\0".join((line.words, *unknown))) if unknown else 0,
    )


def _sum(text: Text, parser: _Parser) -> _Sums:
    """Return the digest of all lines of a text."""
    parser.begin()
    words, values, unknown = _sums(parser, text.lines)
    for block in text.blocks:
        words += int(block.words, 16)
        values += int(block.values, 16)
        unknown += int(block.open, 16)
    return words & _MASK_64, values & _MASK_64, unknown & _MASK_64


def _blocks_differ(
    a: Text, b: Text, kept: int, stream: str, ours: _Parser, theirs: _Parser
) -> Iterator[OutputDifference]:
    """Yield the first block that differs in its words, in its results, and in what may be a result."""
    size = max(_block_size(a), _block_size(b))
    one, two = _by_block(a, kept, size, ours), _by_block(b, kept, size, theirs)
    words = OutputKind.WORDS if stream == STDOUT else OutputKind.STDERR_LINES
    missing: _Sums = (0, 0, 0)
    blocks = sorted(one.keys() | two.keys())
    for at, kind in ((0, words), (1, OutputKind.VALUE), (2, OutputKind.AMBIGUOUS)):
        differ = [
            block for block in blocks
            if one.get(block, missing)[at] != two.get(block, missing)[at]
            and (at == 0 or one.get(block, missing)[0] == two.get(block, missing)[0])
        ]  # fmt: skip
        if differ:
            first = max(differ[0] * size, kept) + 1
            last = min((differ[0] + 1) * size, max(a.count, b.count))
            only = 0 if differ[0] in one and differ[0] in two else 1 if differ[0] in one else 2
            line_range = f"lines {first:,} to {last:,}"
            yield OutputDifference(path=stream, kind=kind, at=line_range, more=len(differ) - 1, only_run=only)


def _block_size(text: Text) -> int:
    return (
        max((block.lines for block in text.blocks), default=BLOCK) if len(text.blocks) > 1 or text.lines else text.count
    )


def _by_block(text: Text, kept: int, size: int, parser: _Parser) -> dict[int, _Sums]:
    """Return the digests of all lines that are not compared one by one, by the number of their block."""
    digests: defaultdict[int, _Sums] = defaultdict(lambda: (0, 0, 0))

    def add(block: int, sums: _Sums) -> None:
        digests[block] = tuple((x + y) & _MASK_64 for x, y in zip(digests[block], sums, strict=True))  # type: ignore[assignment]

    for start in range(kept, len(text.lines), size):
        first = start
        while first < min(start + size, len(text.lines)):
            block = first // size
            end = min((block + 1) * size, len(text.lines), start + size)
            add(block, _sums(parser, text.lines[first:end]))
            first = end
    for one in text.blocks:
        add((one.first_line - 1) // size, (int(one.words, 16), int(one.values, 16), int(one.open, 16)))
    return dict(digests)


class Recorder:
    """Takes what a run prints to one stream as it comes, and says what a terminal shows of it.

    ``facts`` is what the run is known by as it starts. ``ignored`` is removed from lines before they are digested.
    """

    def __init__(self, facts: RunFacts | None = None, ignored: Sequence[re.Pattern[str]] = ()) -> None:
        self._facts = facts or RunFacts(started=time.time(), ended=time.time())
        self._parser = _BytesParser(self._facts, ignored)
        self._screen = _Screen(self._final)
        self._count = self._size = self._kept_size = 0
        self._kept: list[bytes] = []
        self._is_kept = True
        self._blocks: list[TextBlock] = []
        self._block = BLOCK

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._size += len(data)
        for at in range(0, len(data), _PIECE):
            self._screen.feed(data[at : at + _PIECE])

    def finish(self) -> Text:
        """Return all of it. No more bytes are taken."""
        self._screen.finish()
        return Text(
            count=self._count,
            size=self._size,
            lines=tuple(line.decode("utf-8", "replace") for line in self._kept),
            blocks=tuple(self._blocks),
        )

    def _final(self, rows: list[bytes]) -> None:
        rows = [row.rstrip() for row in rows]
        at = 0
        while self._is_kept and at < len(rows):
            some = rows[at : at + 16]
            at += len(some)
            self._kept += some
            self._kept_size += sum(map(len, some))
            self._is_kept = self._kept_size < MOST_KEPT
            self._count += len(some)
            self._parser.pass_over(some)
        if at < len(rows):
            self._digest(rows[at:] if at else rows)

    def _digest(self, rows: list[bytes]) -> None:
        at = 0
        while at < len(rows):
            room = self._block - self._count % self._block
            some = rows[at : at + room]
            self._add(self._count + 1, len(some), self._parser.sums(some))
            self._count += len(some)
            at += len(some)

    def _add(self, first: int, lines: int, sums: _Sums) -> None:
        last = self._blocks[-1] if self._blocks else None
        if last is not None and (last.first_line - 1) // self._block == (first - 1) // self._block:
            self._blocks[-1] = _merged(last, TextBlock(first, lines, *map(_hex, sums)))
            return
        self._blocks.append(TextBlock(first, lines, *map(_hex, sums)))
        if len(self._blocks) > MOST_BLOCKS:
            self._block *= 2
            blocks, self._blocks = self._blocks, []
            for block in blocks:
                self._add(block.first_line, block.lines, _ints(block))


def _ints(block: TextBlock) -> _Sums:
    return int(block.words, 16), int(block.values, 16), int(block.open, 16)


def _merged(a: TextBlock, b: TextBlock) -> TextBlock:
    sums = (_hex(x + y) for x, y in zip(_ints(a), _ints(b), strict=True))
    return TextBlock(a.first_line, a.lines + b.lines, *sums)


@dataclass(frozen=True)
class _Plan:
    """How lines of bytes are digested that only differ in digits: a shape with its positions in bytes.

    ``results`` reads all its slots if all are results, None if not.
    """

    words: int
    prefix: bytes
    slots: tuple[_Slot, ...]
    word_spans: tuple[tuple[int, int], ...]
    results: Callable[[bytes], Iterable[bytes]] | None
    columns: tuple[_Cell, ...]
    row_of: int
    leading: tuple[int, ...]


class _BytesParser:
    """Digests lines of bytes as a _Parser does, in less time.

    Most lines of a long output only differ in digits from others, and what they say is known from the first. If too
    many do not, their numbers are taken for what may be results: nobody looked.
    """

    def __init__(self, facts: RunFacts, ignored: Sequence[re.Pattern[str]]) -> None:
        facts = for_digest(facts)
        self._parser, self._ignored = _Parser(facts, ignored), ignored
        self._names = [name.encode() for name in facts.names if len(name) >= _SHORTEST_NAME]
        self._plans: dict[tuple[bytes, tuple[_Cell, ...]] | bytes, _Plan] = {}
        self._columns: dict[int, tuple[_Cell, ...]] = {}
        self._longest = measurements.longest(facts)

    def pass_over(self, rows: list[bytes]) -> None:
        """Take the names of columns from lines that are not digested."""
        for row, template in zip(rows, b"\n".join(rows).translate(_DIGITS).split(b"\n"), strict=True):
            if not row:
                self._columns.clear()
            if not row or _DIGIT_ALONE_IN_BYTES.search(template):
                continue
            columns = _columns(self._parser.line(row.decode("utf-8", "replace")).strip())
            if columns:
                self._columns[len(columns)] = columns

    def sums(self, rows: list[bytes]) -> _Sums:
        """Return the digest of some lines."""
        joined = b"\n".join(rows)
        if self._ignored or b"wise" in joined or any(name in joined for name in self._names):
            texts = (self._parser.line(row.decode("utf-8", "surrogateescape")) for row in rows)
            rows = [text.replace("\n", " ").encode("utf-8", "surrogateescape") for text in texts]
        rows = [row.strip() for row in rows]
        try:
            joined.decode()
        except UnicodeDecodeError:
            rows = [row.decode("utf-8", "replace").encode() for row in rows]
        words = values = unknown = 0
        plain: list[bytes] = []
        known = self._plans.get
        for row, template in zip(rows, b"\n".join(rows).translate(_DIGITS).split(b"\n"), strict=True):
            plan = known(template)
            if plan is not None and plan.results is not None:
                words += plan.words
                parts = b"\0".join((plan.prefix, *plan.results(row)))
                plain.append(_blake2b(parts, digest_size=8).digest())
            else:
                one = self._digest(row, template, plan)
                words, values, unknown = words + one[0], values + one[1], unknown + one[2]
        values += sum(struct.unpack(f"<{len(plain)}Q", b"".join(plain)))
        return words & _MASK_64, values & _MASK_64, unknown & _MASK_64

    def _digest(self, row: bytes, template: bytes, plan: _Plan | None) -> _Sums:
        if not row:
            self._columns.clear()
            return 0, 0, 0
        if len(row) > _LONGEST_PARSED:
            return _digest_of(self._parser.parse(row.decode("utf-8", "surrogateescape")))
        if plan is None:
            if len(self._plans) >= _MOST_SHAPES:  # all after its first digit may be a result
                first = template.find(b"0")
                return _joined([row if first < 0 else row[:first]]), 0, _joined([row]) if first >= 0 else 0
            text = template.decode("utf-8", "surrogateescape")
            plan = self._plans[template] = _plan(_shape(text), text)
        if plan.columns:
            self._columns[len(plan.columns)] = _named(plan.columns, row.decode("utf-8", "surrogateescape"))
        elif plan.row_of and (columns := _table(self._columns, plan.row_of, plan.slots, plan.leading)):
            plan = self._of_table(plan, template, columns)
        if plan.word_spans:
            digits = [row[start:end].decode() for start, end in plan.word_spans]
            words = _filled(plan.prefix.decode("utf-8", "surrogateescape").split("\1"), digits)
            prefix = words.encode("utf-8", "surrogateescape")
            return _digest(words), *(self._values(plan, row, prefix) if plan.slots else (0, 0))
        return plan.words, *(self._values(plan, row, plan.prefix) if plan.slots else (0, 0))

    def _values(self, plan: _Plan, row: bytes, prefix: bytes) -> tuple[int, int]:
        results, unknown = [prefix], list[bytes]()
        facts, longest = self._parser.facts, self._longest
        for slot in plan.slots:
            kind = slot.kind
            if slot.result:
                results.append(row[slot.start : slot.end])
                continue
            if kind == _NUMBERS:
                digits = row[slot.digits[0] : slot.digits[1]]
                value = float(digits if digits.isdigit() else _COMMA.sub(".", digits.decode()).replace(",", ""))
                if value * slot.seconds <= longest:
                    continue
                role = number_role(slot.meaning, value * slot.scale, slot.integer, facts)
            elif kind == _MASKED:
                is_result = _is_result(slot.label, row[slot.start : slot.end].decode("utf-8", "surrogateescape"))
                role = Role.RESULT if is_result else Role.IDENTIFIER
            else:
                role = self._parser.role(slot, row[slot.start : slot.end].decode("utf-8", "surrogateescape"))
            if role is Role.RESULT:
                results.append(row[slot.start : slot.end])
            elif role is Role.OPEN:
                unknown.append(row[slot.start : slot.end])
        return _joined(results) if len(results) > 1 else 0, _joined([prefix, *unknown]) if unknown else 0

    def _of_table(self, plan: _Plan, template: bytes, columns: tuple[_Cell, ...]) -> _Plan:
        labeled = self._plans.get((template, columns))
        if labeled is None:
            slots = _of_row(plan.slots, plan.leading, columns, len(template))
            labeled = replace(plan, slots=slots)
            self._plans[template, columns] = labeled
        return labeled


def _joined(parts: list[bytes]) -> int:
    return int.from_bytes(_blake2b(b"\0".join(parts), digest_size=8).digest(), "little")


def _reader(slots: Sequence[_Slot]) -> Callable[[bytes], Iterable[bytes]] | None:
    """Return what reads the slots of a line, with two or more of them in C; None without one."""
    spans = [slice(slot.start, slot.end) for slot in slots]
    if len(spans) == 1:
        return lambda row: (row[spans[0]],)
    return itemgetter(*spans) if spans else None


def _plan(shape: _Shape, text: str) -> _Plan:
    slots, words = shape.slots, shape.spans
    if not text.isascii():
        at = [0]
        for one in text:
            at.append(at[-1] + len(one.encode("utf-8", "surrogateescape")))
        words = tuple((at[start], at[end]) for start, end in words)
        slots = tuple(
            replace(slot, start=at[slot.start], end=at[slot.end], digits=(at[slot.digits[0]], at[slot.digits[1]]))
            for slot in slots
        )
    return _Plan(
        words=shape.digest if shape.words else 0,
        prefix=shape.words.encode("utf-8", "surrogateescape"),
        slots=slots,
        word_spans=words,
        results=_reader(slots) if not shape.row_of and not words and all(slot.result for slot in slots) else None,
        columns=shape.columns,
        row_of=shape.row_of,
        leading=shape.leading,
    )
