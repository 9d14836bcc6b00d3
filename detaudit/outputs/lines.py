"""Read a line as words and numbers, and say of each number what it is.

A line is words, and slots that may differ though its words agree. A slot is a result, a measurement or an identifier by
its label and its unit (see ``measurements.py``); one in a table has the label of its column. Lines that only differ in
digits are understood once. Of many lines, digests are added up, so that their order does not count.
"""

import hashlib
import itertools
import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter

import msgspec

from detaudit.model.outputs import Role, RunFacts
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

_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+(?:_[0-9]+)*)(?:\.[0-9]*)?|\.[0-9]+"
_CJK = r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]"
_UNITS_OF_CJK = "毫秒|微秒|秒|分钟|分鐘|小时|小時|時間|초|분"
_UNITS = (
    r"ns|nsecs?|nanoseconds?|us|[µμ]s|usecs?|microseconds?|ms|msecs?|millis|milliseconds?|s|secs?|seconds?|mins?"
    r"|minutes?|h|hrs?|hours?|days?"
    "|\u0441|сек|sn"
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
    | (?P<bare_uuid>{_BARE_UUID})  # in any of its digits: see LineParser
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
          (?:d|h|hr|hrs|hours?|m|mins?|minutes?|s|secs?|seconds?|ms)(?:[ ,]{{0,2}}|:)){{2,}}(?![\w:/])
      )
      | (?P<number>
        (?:(?<![\w.])|(?<=[0-9]x)|(?<={_CJK}))(?<![A-Za-z_][-/.@])(?<!\b[A-Za-z][0-9]/)(?P<sign>(?<![\w)\]])[+-])?
        (?:(?P<digits>[0-9]+,[0-9]{{1,2}}(?=\s?(?:{_UNITS}|[KMGT]i?B)(?![\w/]))  # a comma before decimals
            |(?:{_NUMBER})(?:[eE][+-]?[0-9]+)?)(?P<suffix>[kKMGT](?![^\W\d_]))?
          (?P<unit>/\s?(?:{_UNITS})(?![\w/])|\s?(?:(?:[^\W\d_]+[ ])?[^\W\d_]+\s?/\s?(?:{_UNITS})(?![\w/])
              |(?:{_UNITS})/\s?[^\W\d_]+\b|(?<=\s)(?:{_UNITS})\s/\s?[^\W\d_]+\b
              |[^\W\d_]+[ ]per[ ](?:{_UNITS})\b|(?:{_UNITS})[ ]per[ ][^\W\d_]+
              |[KMGTkmgt]?i?[Bb](?:ytes)?(?![\w/])|%)
            |x(?!\w)|(?:{_UNITS}|°?C|[mk]?Wh?|[MG]Hz)(?![\w/^])|\sW(?=\s/\s[0-9])
            |\s(?:{_UNITS}|fps|FPS|[MGTP]FLOPS)(?![\w/^])(?!\s*[:=]?\s*\.?[0-9])|\s?(?:{_UNITS_OF_CJK}))?
          (?:(?![^\W_])|(?<={_CJK}))
        | inf(?![\w]))
      )
    )
    | (?<![A-Za-z0-9])(?=[A-Za-z])(?:
      (?P<own_word>
        (?:ThreadPoolExecutor-[0-9]+_|asyncio_|(?:Fork|ForkServer|Spawn)PoolWorker-|LokyProcess-)[0-9]+\b
        | (?:(?<=[0-9a-f]{{32}}[ ])|(?<=outputs/)|(?<=runs/)|(?<=experiments/)|(?<=checkpoints/)|(?<=logs/))
          [a-z]{{3,}}-[a-z]{{3,}}-[0-9]+\b  # as MLflow and Weights & Biases make them up
        | {_UUID} | (?<=/)version_[0-9]+\b | \bversion_[0-9]+(?=/)
        | (?<=/)(?:tmp|temp)[-_.]?(?=[a-z_]*[0-9])[a-z0-9_]{{6,12}}\b | (?<=/)tmp[a-z0-9_]{{8}}\b
        | (?<!best[ ])(?<!Best[ ])(?:[Rr]uns?|run[ _]name|(?:run|trace|span|correlation|request)[ _]id|wandb)
          [ :=/'"]{{1,4}}
          (?P<run>[a-z]+-[a-z]+-[0-9]+|{_UUID}|(?=[a-f]*[0-9])(?=[0-9]*[a-f])(?:[0-9a-f]{{32}}|[0-9a-f]{{16}})
            |0[0-9A-HJKMNP-TV-Z]{{25}}|(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{{7}}
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
_AMPERSAND, _END_OF_ROW = r"(?<!\S)&(?!\S)", r"\\\\(?:\[\w+\])?(?:\s*\\\w+)*"
"""What LaTeX has between two columns, and at the end of a row, with commands that follow."""

_COLUMN = re.compile(rf"\s{{2,}}|\t|[|│┃┆║,]|{_AMPERSAND}|\s*{_END_OF_ROW}$")
_RULE = re.compile(rf"[|│┃┆║]|{_AMPERSAND}")

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
_HIGH_WATER = re.compile(r"peak|using|high[ -]water(?: mark)?", re.IGNORECASE)
"""What is said of memory alone, if so many bytes follow."""

_OF_WHAT = re.compile(r"\s?of (?!(?:memory|v?ram)\b)", re.IGNORECASE)

_OF_MACHINES = ("power", "temp", "temperature", "fan", "clock", "load")
"""What machines have as data do: beside what only a machine has, it is of that."""

_CAPTION = re.compile(r"[\s\[]*[0-9:.,]+\s*-->\s*[0-9:.,]+")
"""When something is said, as SRT, WebVTT and tools that recognize speech write it."""

_MEMORY = re.compile(r"\b(mem|memory|rss|v?ram|gc|(trace)?malloc)\b", re.IGNORECASE)
_OF_TOTAL, _TOTAL = re.compile(r"\s?/\s?[0-9]"), re.compile(r"(?<![\w.-])[0-9][0-9,_]*\s?/\s?$")
_OF_ALL = re.compile(r"[0-9][MG]iB\s*/\s*[0-9.]+[MG]iB")
_TIMES = re.compile(r"\btime \((ms|s)\) \|")  # time (ms) | fwd: 45.03 | bwd: 90.1, as DeepSpeed prints it
_OF_PASSES = re.compile(r"\b(?:fwd|forward)\b.*\b(?:bwd|backward)\b|\buser [0-9.]+s? sys [0-9.]")
"""What has a time for each pass, or for user code and the system: of a result, there is none for a backward pass."""

_SPLITS = frozenset(("train", "training", "val", "valid", "validation", "test", "eval", "dev"))
"""What the data is split into: a number beside their names may be a score."""

_DIGIT_RUN = re.compile("[0-9]+")
_TIME_COLUMN = re.compile(r"^\[(?:[0-9]{2}/[0-9]{2}/[0-9]{2} )?([0-9]{2}:[0-9]{2}:[0-9]{2})\](?= )")
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
_STATISTICS = frozenset(("mean", "avg", "average", "median", "std", "stdev", "sd", "min", "max"))
_INTERVAL = frozenset(("ci", "confidence", "credible", "interval", "hdi", "hpd"))
"""What an interval is called, which is of what stands before it."""

_OF_TIME = re.compile(
    r"\s?of (?:the )?(?:(?:(?:measured|wall|wall-clock|step|epoch|batch|iteration|training|compute|[CG]PU)[ -]?)+time"
    r"|wall[ -]clock)\b"
)
"""What follows after a share of a time that was measured."""

_OF_PEAK = re.compile(r"\s?of (?:the )?(?:theoretical )?peak\b")
_FASTER = re.compile(r"\s?(?:faster|slower|speed-?up|real[ -]?time)\b", re.IGNORECASE)
_WHERE_TIME_GOES = re.compile(r"\btime (?:goes|went|is spent|spent|breakdown)\b", re.IGNORECASE)

_FINISHED = re.compile(
    r"\b(?:done|finish\w*|complet\w*|train\w*|fit|fitted|ready|load\w*|sav\w*|took|ran|run|compil\w*|built|build"
    r"|evaluat\w*|ended|exited|init\w*|process\w*|generat\w*|comput\w*|execut\w*|prepar\w*|download\w*|succe\w+"
    r"|converged?|epochs?|steps?|iterations?|batch\w*|total|all|everything|start\w*|trees?|tasks?|jobs?|requests?)\b",
    re.IGNORECASE,
)
_WITHIN = re.compile(r"(?:^|\s)(?:in|after)$", re.IGNORECASE)
_SPREAD = re.compile(r"\s?(?:±|\+/?-)\s?")
_COUNTED = re.compile(r"\s(?!(?:in|on|so|for|at|and|to|total|overall)\b)[^\W\d_]{2,}")
MASK_64 = 2**64 - 1
Sums = tuple[int, int, int]
"""Of the digests of lines: of their words, of their results, and of what may be a result."""

MASKED, NUMBERS, DATES, _UUIDS, _UNREAD = "masked", "number", "date", "uuid", "unread"
_blake2b = hashlib.blake2b

_SHORTEST_NAME = 3
_MOST_SHAPES = 20_000
_LONGEST_PARSED = 4096
"""Characters of a line that are read; what follows is one value."""


_KIND_OF = {
    "prefix": MASKED, "own": MASKED, "own_word": MASKED, "bare_uuid": _UUIDS, "date": DATES, "named_date": DATES,
    "clock": "clock", "iso_duration": "clock", "number": NUMBERS, "no_number": NUMBERS,
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


def _shape(line: str, heading: str = "") -> _Shape:
    """Return the shape of a line, which stands below a ``heading`` if there is one; positions are in characters."""
    line = _TIME_COLUMN.sub(lambda match: " " * len(match[0]), line)
    slots: list[_Slot] = []
    between: list[tuple[int, str]] = []
    at, label, depth, summary = 0, "", 0, ""
    group = _GROUP.match(line)
    parents: list[str] = [group[1]] if group and meaning_of(group[1]).is_measured else []
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
        if "." in (token["digits"] or "") and measurements.is_computation(label):
            label += _time_of_part(label, line, start)
        _open(parents, before)
        if parents and label and meaning_of(within := f"{parents[-1]}.{label}").is_measured:
            label = within  # timings = {'load': 1.2, 'fit': 3.4}
        label = _below_heading(label, heading, first=not slots)
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
        of_peak = _OF_PEAK.match(line, end) and any(slot.meaning.is_measured for slot in slots)
        if not label and token["unit"] == "%" and (of_peak or any(slot.meaning.is_of_machine for slot in slots)):
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
    return _Shape(words, spans, tuple(slots), _digest(words), columns_of(line), row_of or len(leading), leading)


def _time_of_part(label: str, line: str, start: int) -> str:
    """Return what a label lacks in a line of numbers that are times of parts of a step, nothing if that is no such."""
    if times := _TIMES.search(line, 0, start):
        return f" time {times[1]}"
    return " time" if label not in _SPLITS and _OF_PASSES.search(line) else ""


def heading_of(line: str) -> str:
    """Return what a line says of those below it, if that is a kind of times, or what is no time: ``Timings (s)``."""
    if not any(part in line for part in _IN_HEADINGS):
        return ""
    heading = line.strip(" #*=-:\t").lower()
    if len(heading) > _LONGEST_HEADING:
        return ""
    unit = _UNIT_IN_BRACKETS.search(heading)
    of_times = unit is not None and unit[1].lower() in measurements.UNITS and meaning_of(heading).is_measured
    return heading if of_times or _OF_RESULTS.search(heading) else ""


def _below_heading(label: str, heading: str, *, first: bool) -> str:
    """Return the label of a number below a heading, which says what the first of each line is, if no label says more.

    And others that have none but ``p95``, or another word that says nothing.
    """
    if not heading or not label or not (first or measurements.says_nothing(label)):
        return label
    if _OF_RESULTS.search(heading):
        return f"{label} {heading}" if len(label.split()) == 1 else label  # the feature importance of a time
    within = f"{_UNIT_IN_BRACKETS.sub('', heading)}.{label}"
    meaning = meaning_of(within)
    return within if meaning.is_measured and meaning.sure and not measurements.is_metric(label) else label


_GROUP = re.compile(r"^\W*((?:[A-Za-z]\w*[ _])?(?:[Tt]imings?|TIMINGS?|[Ss]tage times|[Rr]untimes))\s*:\s+(?=[A-Za-z])")
_LONGEST_HEADING = 60
_OF_RESULTS = re.compile(r"\b(?:importances?|coefficients?|shap|correlations?|(?:odds|hazard) ratios?)\b")
_IN_HEADINGS = ("(s)", "[s]", "(ms)", "[ms]", "(sec", "[sec", "(min", "[min", "mportance", "oefficient", "SHAP", "shap",
                "orrelation", " ratio")  # fmt: skip
"""What is in a line that may be a heading: searching for these is cheap."""

_IN_HEADINGS_IN_BYTES = tuple(map(str.encode, _IN_HEADINGS))


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


def columns_of(line: str) -> tuple[_Cell, ...]:
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
    if (len(_RULE.findall(line)) >= _MANY or _OF_LATEX.search(line)) and any(_alone(line, slot) for slot in slots):
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
    """Return how many vertical rules are before a number in a cell without words, 0 if there is something else."""
    before, after = _RULE.split(line[: slot.start])[-1], _RULE.split(line[slot.end :])[0]
    return len(_RULE.findall(line, 0, slot.start)) if _NUMBERS_ONLY.fullmatch(f"{before}0{after}") else 0


_OF_LATEX = re.compile(rf"{_AMPERSAND}.*{_END_OF_ROW}$")
_NUMBERS_ONLY = re.compile(rf"[\s\d.,;:±+\-\u2013/()\[\]*%]*(?:{_END_OF_ROW})?\s*")
"""What is in a cell with numbers alone, such as an interval or a deviation, and at the end of a row of LaTeX."""


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
    if kind != NUMBERS:
        if match.lastgroup == "named_date" and measurements.is_digest(label):
            label = ""  # (seed=3, Mon Nov 30 16:06:41 2026)
        of_caption = kind == "clock" and _CAPTION.match(line) is not None
        return _Slot(start, end, kind, label, meaning_of(label) if label else NOTHING, result=of_caption)
    if match["digits"] is None:
        return _Slot(start, end, kind, label, meaning_of(label), result=True)
    unit = (match["unit"] or "").strip()
    if not unit and (spread := _SPREAD.match(line, end)) and (deviation := _TOKEN.match(line, spread.end())):
        unit = (deviation["unit"] or "").strip()  # 22.6±9.9 MB/s
    if "/" in unit and measurements.is_processed(unit.partition("/")[0], label):
        label = ""  # scored 400 patients (31.2 patients/s)
    counted = not unit and match["digits"].isdigit() and bool(_COUNTED.match(line, end))
    meaning = with_unit(_meaning(label, counted), unit)
    if _BYTES.fullmatch(unit) and meaning.is_result and measurements.is_of_memory(label):
        meaning = meaning_of("memory")
    if _BYTES.fullmatch(unit) and _EXTREME.fullmatch(label.strip(_OPENERS)) and _MEMORY.search(line):
        meaning = meaning_of("memory")  # memory: 200 MB (max 233.8 MiB)
    if _BYTES.fullmatch(unit) and _HIGH_WATER.fullmatch(label.strip(_OPENERS)) and not _OF_WHAT.match(line, end):
        meaning = meaning_of("memory")
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
    grows = meaning.is_of_machine or (bool(unit) and meaning.shortest_s < math.inf)  # +12.1ms
    result = (bool(match["sign"]) and not (grows and match["sign"] == "+")) or few or meaning.is_result
    count = of_total or measurements.is_count(label)
    scale = measurements.SUFFIXES[match["suffix"] or ""]
    seconds = meaning.shortest_s * scale
    return _Slot(start, end, kind, label, meaning, digits, scale, is_integer, counter, count, result, seconds)


_TOOK = re.compile(r"(?:^|\s)(?:took|takes?)$", re.IGNORECASE)


def _meaning(label: str, counted: bool) -> Meaning:
    """Return what a label says, which may be the end of a sentence; ``counted``: what follows is what there are of."""
    if counted and _TOOK.search(label):
        return RESULT  # took 36 iterations
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
        return " ".join([previous, *words]) if meaning_of(previous).is_result else previous
    if words and previous and all(word.lower() in _STATISTICS for word in words):
        whose = previous.split()
        # latency mean 1 std 2; latency 1 (std 2)
        if whose[-1].lower() in _STATISTICS or before.strip().startswith("("):
            return " ".join([*itertools.takewhile(lambda word: word.lower() not in _STATISTICS, whose), *words])
    if all(word.lower() in _LINKS for word in words):
        follows = before.strip()
        if _AFTER_COUNT.fullmatch(follows):
            return previous
        if follows in ("", ",") and previous.lower().endswith(("load average", "load avg")):
            return previous  # load average: 2.81 2.50 2.11
        inherits = bool(words) or follows in ("±", "+/-", "/", "->", "→", "..", "-") or follows.startswith(("(", "±"))
        return previous if inherits or (depth > 0 and follows in (",", "")) or before in ("", "/") else ""
    return " ".join(words)


def shown_label(slot: _Slot, line: str) -> str:
    """Return a label as it is in its line, with the digits that a shape has not."""
    label = slot.label.strip(_OPENERS)
    at = line.translate(ZEROS).rfind(label, 0, slot.start) if "0" in label else -1
    return line[at : at + len(label)] if at >= 0 else label


def _moves(slot: _Slot) -> bool:
    """Return whether what is drawn beside a value may be of another length in each run: a bar, or a rule around it."""
    return slot.counter or slot.kind != NUMBERS or not (slot.result or slot.meaning is NOTHING)


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
class ParsedLine:
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


class LineParser:
    """Reads lines with what is known of their run. Those that only differ in digits are understood once."""

    def __init__(self, facts: RunFacts, ignored: Sequence[re.Pattern[str]]) -> None:
        self.facts, self._ignored = facts, ignored
        self._shapes: dict[str, _Shape] = {}
        self._roles: dict[tuple[str, str], Role] = {}
        self._names = tuple(
            sorted((name for name in facts.names if len(name) >= _SHORTEST_NAME), key=len, reverse=True)
        ) + tuple(name for name, _ in facts.numbered)
        self._columns: dict[int, tuple[_Cell, ...]] = {}
        self.heading = ""

    def begin(self) -> None:
        """Note that the next line is the first one, or that a table ends."""
        self._columns.clear()
        self.heading = ""

    def line(self, line: str) -> str:
        """Return a line without what is ignored, what only stands for this run, and progress that it was torn from."""
        if "/step" in line:
            line = _PROGRESS.sub("", line, count=1)
        elif "%|" in line:
            line = _BAR.sub(lambda match: match[0] if match[1] == match[2] else "", line, count=1)
        elif "wise" in line:
            line = _CHOSEN.sub("", line)
        elif (time := _TIME_COLUMN.match(line)) and measurements.role("", time[1], self.facts) is not Role.MEASUREMENT:
            line = f"[ {line[1:]}"  # it is none of the run, and so no column of a log
        for pattern in self._ignored:
            line = pattern.sub("", line)
        for name in self._names:
            if name in line:
                line = masked(line, self.facts)
                break
        return line

    def parse(self, line: str, number: int = 0) -> ParsedLine:
        """Return what a line says. It is one that ``line`` returned."""
        if not line:
            self.begin()  # the end of a table
        if len(line) > _LONGEST_PARSED:
            start = self.parse(line[:_LONGEST_PARSED])
            rest = _Slot(_LONGEST_PARSED, len(line), _UNREAD)
            known = start.values and start.values[-1][0] is Role.RESULT
            values = (*start.values, (Role.RESULT if known else Role.OPEN, line[_LONGEST_PARSED:]))
            return ParsedLine(start.words, values, (*start.slots, rest), line, number)
        template = line.translate(ZEROS)
        key = f"{self.heading}\n{template}" if self.heading else template
        shape = self._shapes.get(key)
        if shape is None:
            if len(self._shapes) > _MOST_SHAPES:
                self._shapes.clear()
            shape = self._shapes[key] = _shape(template, self.heading)
        slots = shape.slots
        if not slots:
            self.heading = "" if shape.columns else heading_of(line)
        if shape.columns:
            self._columns[len(shape.columns)] = _named(shape.columns, line)
        elif shape.row_of and (columns := _table(self._columns, shape.row_of, slots, shape.leading)):
            slots = _of_row(slots, shape.leading, columns, len(line))
        elif shape.row_of and (columns := _below(self._columns.values(), slots, len(line))):
            slots = _labeled(slots, columns, len(line))
        words = shape.words
        if shape.spans:
            words = _filled(words.split("\1"), [self._digits(line, start, end) for start, end in shape.spans])
        return ParsedLine(words, tuple(self._value(slot, line) for slot in slots), slots, line, number)

    def sums(self, lines: Iterable[str]) -> Sums:
        """Return the digest of some lines."""
        words = values = unknown = 0
        for line in lines:
            one = _digest_of(self.parse(self.line(line).strip()))
            words, values, unknown = words + one[0], values + one[1], unknown + one[2]
        return words & MASK_64, values & MASK_64, unknown & MASK_64

    def _digits(self, line: str, start: int, end: int) -> str:
        """Return digits of a word, but those of a process of the run in a name: ``exp_4242``."""
        digits = line[start:end]
        in_name = self.facts.pids and measurements.NUMBER_IN_NAME.match(line, start)
        return MASK if in_name and measurements.is_own_number(int(digits), self.facts) else digits

    def _value(self, slot: _Slot, line: str) -> tuple[Role, str]:
        text = line[slot.start : slot.end]
        if self.facts.declared and (role := self.declared(slot, line)) is not None:
            return role, text
        if slot.result:
            value = float(_plain(line, slot) or "nan")
            of_clock = not slot.integer and not slot.meaning.of_data and measurements.is_clock(value, self.facts)
            if of_clock or measurements.is_age(value, self.facts):
                return Role.MEASUREMENT, text
            own = slot.integer and not slot.count and measurements.is_own_number(value, self.facts, slot.label)
            return Role.IDENTIFIER if own else Role.RESULT, text
        if slot.kind == _UUIDS and not measurements.BARE_UUID.fullmatch(text):
            return Role.OPEN, text
        if slot.kind in (MASKED, _UUIDS):
            return Role.RESULT if _is_result(slot.label, text) else Role.IDENTIFIER, text
        if slot.kind == NUMBERS:
            return number_role(slot.meaning, float(_plain(line, slot)) * slot.scale, slot.integer, self.facts), text
        return self.role(slot, text), text

    def declared(self, slot: _Slot, line: str) -> Role | None:
        """Return what its user says that a value is, by its label."""
        return self.facts.declared.role(shown_label(slot, line))

    def role(self, slot: _Slot, text: str) -> Role:
        """Return what a date or a time is."""
        minute = text[:16] if text[:1].isdigit() else text
        key = (slot.label, minute if slot.kind == DATES else text[:8])
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


ZEROS = {ord(digit): "0" for digit in "123456789"}


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


_STAGES = frozenset(("stage", "phase", "step", "part", "task", "section", "component", "op", "operation"))
"""What the first column names if another one, called nothing but ``s``, has its time."""

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
        if cell.name.lower() in measurements.UNITS and columns[0].name.lower() in _STAGES:
            column = f"{columns[0].name} time {cell.name}"
        if slot.label and slot.kind == NUMBERS and slot.digits != (0, 0) and cell.name.lower() in measurements.UNITS:
            meaning = meaning_of(f"{slot.label} {cell.name}")
            slot = replace(slot, meaning=meaning, result=meaning.is_result, seconds=meaning.shortest_s * slot.scale)
        of_row = slot.meaning if slot.label else NOTHING
        has_unit = slot.meaning is not NOTHING and slot.meaning != (meaning_of(slot.label) if slot.label else NOTHING)
        if (len(cells) < len(columns) or slot.rules) and not measurements.says_nothing(column):
            slot = replace(slot, label="")
        if slot.label or slot.kind == MASKED:
            labeled.append(slot)
            continue
        meaning = meaning_of(column)
        known = of_row is not NOTHING and not meaning.is_result  # the name of the row says less than the column
        if has_unit and not slot.meaning.is_result and not known:
            meaning = slot.meaning
        result = slot.kind == NUMBERS and (meaning.is_result or slot.digits == (0, 0))
        seconds = meaning.shortest_s * slot.scale
        count = slot.count or measurements.is_count(column)
        labeled.append(replace(slot, label=column, meaning=meaning, count=count, result=result, seconds=seconds))
    return tuple(labeled)


# Digests of lines


def hex_of(number: int) -> str:
    """Return a digest, or a sum of some, as it is kept."""
    return f"{number & MASK_64:016x}"


_LONGEST_RUN_S = 1e7


def for_digest(facts: RunFacts) -> RunFacts:
    """Return facts by which a number is a result, may be one or is none, however long its run took.

    Two runs whose digests are compared do not take the same time, and a bare ``52.1`` may be the seconds of one of them
    only.
    """
    return msgspec.structs.replace(facts, ended=facts.started + _LONGEST_RUN_S)


def _digest_of(line: ParsedLine) -> Sums:
    if not line.words:
        return 0, 0, 0
    results = [text for role, text in line.values if role is Role.RESULT]
    unknown = [text for role, text in line.values if role is Role.OPEN]
    return (
        _digest(line.words),
        _digest("\0".join((line.words, *results))) if results else 0,
        _digest("\0".join((line.words, *unknown))) if unknown else 0,
    )


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


class BytesParser:
    """Digests lines of bytes as a LineParser does, in less time.

    Most lines of a long output only differ in digits from others, and what they say is known from the first. If too
    many do not, their numbers are taken for what may be results: nobody looked.
    """

    def __init__(self, facts: RunFacts, ignored: Sequence[re.Pattern[str]]) -> None:
        facts = for_digest(facts)
        self._parser, self._ignored = LineParser(facts, ignored), ignored
        self._names = [name.encode() for name in facts.names if len(name) >= _SHORTEST_NAME]
        self._plans: dict[tuple[bytes, tuple[_Cell, ...]] | bytes, _Plan] = {}
        self._columns: dict[int, tuple[_Cell, ...]] = {}
        self._heading = ""
        self._longest, self._declared = measurements.longest(facts), bool(facts.declared)

    def pass_over(self, rows: list[bytes]) -> None:
        """Take the names of columns, and a heading, from lines that are not digested."""
        for row, template in zip(rows, b"\n".join(rows).translate(_DIGITS).split(b"\n"), strict=True):
            if not row:
                self._columns.clear()
                self._heading = ""
            if not row or _DIGIT_ALONE_IN_BYTES.search(template):
                continue
            text = self._parser.line(row.decode("utf-8", "replace")).strip()
            columns = columns_of(text)
            if columns:
                self._columns[len(columns)] = columns
            heading = "" if columns else heading_of(text)
            if heading or (self._heading and not _shape(text).slots):
                self._heading = heading

    def sums(self, rows: list[bytes]) -> Sums:
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
        known, declared = self._plans.get, self._declared
        for row, template in zip(rows, b"\n".join(rows).translate(_DIGITS).split(b"\n"), strict=True):
            key = self._heading.encode() + b"\n" + template if self._heading else template
            plan = known(key)
            if plan is not None and plan.results is not None and not declared:
                words += plan.words
                parts = b"\0".join((plan.prefix, *plan.results(row)))
                plain.append(_blake2b(parts, digest_size=8).digest())
            else:
                one = self._digest(row, template, key, plan)
                words, values, unknown = words + one[0], values + one[1], unknown + one[2]
        values += sum(struct.unpack(f"<{len(plain)}Q", b"".join(plain)))
        return words & MASK_64, values & MASK_64, unknown & MASK_64

    def _digest(self, row: bytes, template: bytes, key: bytes, plan: _Plan | None) -> Sums:
        if not row:
            self._columns.clear()
            self._heading = ""
            return 0, 0, 0
        if len(row) > _LONGEST_PARSED:
            return _digest_of(self._parser.parse(row.decode("utf-8", "surrogateescape")))
        if plan is None:
            if len(self._plans) >= _MOST_SHAPES:  # all after its first digit may be a result
                first = template.find(b"0")
                return _joined([row if first < 0 else row[:first]]), 0, _joined([row]) if first >= 0 else 0
            text = template.decode("utf-8", "surrogateescape")
            plan = self._plans[key] = _plan(_shape(text, self._heading), text)
        if not plan.slots and (self._heading or any(part in row for part in _IN_HEADINGS_IN_BYTES)):
            self._heading = "" if plan.columns else heading_of(row.decode("utf-8", "surrogateescape"))
        if plan.columns:
            self._columns[len(plan.columns)] = _named(plan.columns, row.decode("utf-8", "surrogateescape"))
        elif plan.row_of and (columns := _table(self._columns, plan.row_of, plan.slots, plan.leading)):
            plan = self._of_table(plan, key, len(template), columns)
        if plan.word_spans:
            digits = [row[start:end].decode() for start, end in plan.word_spans]
            words = _filled(plan.prefix.decode("utf-8", "surrogateescape").split("\1"), digits)
            prefix = words.encode("utf-8", "surrogateescape")
            return _digest(words), *(self._values(plan, row, prefix) if plan.slots else (0, 0))
        return plan.words, *(self._values(plan, row, plan.prefix) if plan.slots else (0, 0))

    def _values(self, plan: _Plan, row: bytes, prefix: bytes) -> tuple[int, int]:
        results, unknown = [prefix], list[bytes]()
        facts, longest = self._parser.facts, self._longest
        text = row.decode("utf-8", "surrogateescape") if self._declared else ""
        for slot in plan.slots:
            kind = slot.kind
            if text and (declared := self._parser.declared(slot, text)) is not None:
                if declared is Role.RESULT:
                    results.append(row[slot.start : slot.end])
                continue
            if slot.result:
                results.append(row[slot.start : slot.end])
                continue
            if kind == NUMBERS:
                digits = row[slot.digits[0] : slot.digits[1]]
                value = float(digits if digits.isdigit() else _COMMA.sub(".", digits.decode()).replace(",", ""))
                if value * slot.seconds <= longest:
                    continue
                role = number_role(slot.meaning, value * slot.scale, slot.integer, facts)
            elif kind == MASKED:
                is_result = _is_result(slot.label, row[slot.start : slot.end].decode("utf-8", "surrogateescape"))
                role = Role.RESULT if is_result else Role.IDENTIFIER
            else:
                role = self._parser.role(slot, row[slot.start : slot.end].decode("utf-8", "surrogateescape"))
            if role is Role.RESULT:
                results.append(row[slot.start : slot.end])
            elif role is Role.OPEN:
                unknown.append(row[slot.start : slot.end])
        return _joined(results) if len(results) > 1 else 0, _joined([prefix, *unknown]) if unknown else 0

    def _of_table(self, plan: _Plan, key: bytes, length: int, columns: tuple[_Cell, ...]) -> _Plan:
        labeled = self._plans.get((key, columns))
        if labeled is None:
            slots = _of_row(plan.slots, plan.leading, columns, length)
            labeled = replace(plan, slots=slots)
            self._plans[key, columns] = labeled
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


# Lines of files


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
        self._parser, self._bytes = LineParser(facts, ()), BytesParser(facts, ())

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
            label = "" if slot.kind == MASKED else shown_label(slot, parsed.text)
            if bare and not values and len(parsed.slots) > 1 and _SINCE_1970.match(text):
                role = measurements.role("timestamp", text, self._facts)
            elif bare and not label and slot.kind == NUMBERS:
                role = measurements.role(self._label, text, self._facts)
            values.append((label, role, text.strip()))
        first = parsed.slots[0]
        begins = not any(map(str.isalpha, parsed.text[: first.start])) and (
            first.kind == MASKED
            or ((first.kind != NUMBERS or first.label == "timestamp") and parsed.values[0][0] is Role.MEASUREMENT)
        )
        return FileLine(parsed.words, tuple(values), begins or has_mark)

    def sums(self, lines: Sequence[str], in_order: bool) -> tuple[str, str, str]:
        """Return the digests of the words, of the results, and of what may be results, of many lines."""
        rows = [line.strip().encode("utf-8", "surrogateescape") for line in lines]
        if not in_order:
            words, values, unknown = self._bytes.sums(rows)
            return hex_of(words), hex_of(values), hex_of(unknown)
        each = [self._bytes.sums([row]) for row in rows]
        return tuple(hex_of(_digest(" ".join(map(str, some)))) for some in zip(*each, strict=True))  # type: ignore[return-value]
