"""Compare what left two runs: files value by value, text line by line."""

import hashlib
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from detaudit.model.outputs import (
    FURTHER,
    STDERR,
    STDOUT,
    Compare,
    Declared,
    File,
    OutputDifference,
    OutputKind,
    Outputs,
    Role,
    RunFacts,
    Text,
    Value,
)
from detaudit.outputs import text
from detaudit.outputs.file_names import matched
from detaudit.outputs.measurements import is_count, is_digest, is_since_start, masked, role

_ALL_OF_IT, _WITH_OPEN = "", "with what may be a result"
"""The names of the values of a file of which only digests are kept; the second one is left out if it is the first."""

LOG = "log"
"""How a text is read whose lines count as those of stdout do: in any order, and with words that may differ."""

OCDBT_DATA = "ocdbt-data"
"""The format of the files of a database, which is compared by its manifest: how many there are is a matter of time."""

_LISTED = {
    Role.MEASUREMENT: OutputKind.MEASUREMENT,
    Role.IDENTIFIER: OutputKind.IDENTIFIER,
    Role.GENERATOR: OutputKind.GENERATOR,
}


def differences(a: Outputs, b: Outputs) -> tuple[OutputDifference, ...]:
    """Return in what two runs differ, what decides first, then what is open, then what is only listed."""
    guesses = [*dict.fromkeys(_own_numbers(a, b))] if a.digests_only or b.digests_only else []
    output_differences = [*_files(a, b, guesses), *_streams(a, b, guesses)]
    if a.unread or b.unread:
        output_differences.append(OutputDifference(path="", kind=OutputKind.UNREAD, unread=a.unread or b.unread))
    compare = {a.rules.compare, b.rules.compare}
    if Compare.TRAINING in compare:
        output_differences = [one if one.tensor else _undecided(one) for one in output_differences]
    elif Compare.ALL in compare:
        output_differences = list(map(_decided, output_differences))
    return tuple(sorted(output_differences, key=lambda one: (not one.decides, not one.open)))


def deciding(output_differences: Iterable[OutputDifference]) -> OutputDifference | None:
    """Return the first difference that decides, None if there is none."""
    return next((one for one in output_differences if one.decides), None)


def _undecided(one: OutputDifference) -> OutputDifference:
    return replace(one, kind=OutputKind.UNDECIDED) if one.decides or one.open else one


def _decided(one: OutputDifference) -> OutputDifference:
    return replace(one, kind=OutputKind.VALUE) if one.may_decide else one


def _files(a: Outputs, b: Outputs, guesses: Sequence[frozenset[int]]) -> Iterator[OutputDifference]:
    ours, theirs = ({file.name: file for file in one.files if file.by != OCDBT_DATA} for one in (a, b))
    names = matched({name: digest(file) for name, file in ours.items()}, {n: digest(f) for n, f in theirs.items()})
    pairs = {names[name]: file for name, file in theirs.items()}
    parts = [frozenset(part for file in side.values() for part in PurePath(file.path).parts) for side in (ours, theirs)]
    for name, mine in ours.items():
        yours = pairs.pop(name, None)
        if yours is None:
            yield OutputDifference(path=name, kind=OutputKind.ONLY_ONE, only_run=1, tensor=_has_tensors(mine))
            continue
        yield from _by_name((mine.path, a.facts), (yours.path, b.facts))
        if _has_moved(mine.path, yours.path, *parts):
            yield OutputDifference(path=name, kind=OutputKind.VALUE, at="name", values=(mine.path, yours.path))
        if guesses:
            yield from _by_digests(name, (mine, a), (yours, b), guesses)
        else:
            yield from _within(name, mine, yours)
            if LOG in (mine.by, yours.by) and all(one.facts and one.facts.writers == 1 for one in (a, b)):
                yield from _order_of_lines(name, mine, yours)
    for name, yours in pairs.items():
        yield OutputDifference(path=name, kind=OutputKind.ONLY_ONE, only_run=2, tensor=_has_tensors(yours))


_DECIMAL = re.compile(r"(?<![\d.])\d+\.\d+(?!\.?\d)(?:(?:ms|s|secs?|min|h)(?![A-Za-z]))?")
_SCORE = re.compile(  # two digits at least, as fewer may count files; eight may be a date
    r"(?<![a-z])(?:acc|accuracy|au?roc|auc|m?iou|dice|f1|precision|recall|loss|score|[rm]+se|mae|mape|r2|ppl|perplexity"
    r"|[wc]er|bleu|psnr|ssim|fid|reward)[-_=@]?(\d{2,6})(?![\d.]*\d)",
    re.IGNORECASE,
)


def _numbers(name: str) -> list[tuple[str, int]]:
    """Return the decimals in a name, then its scores, each with where it starts."""
    decimals = [(match[0], match.start()) for match in _DECIMAL.finditer(name)]
    return decimals + [(match[1], match.start(1)) for match in _SCORE.finditer(name)]


def _by_name(a: tuple[str, RunFacts | None], b: tuple[str, RunFacts | None]) -> Iterator[OutputDifference]:
    """Yield that two files, which are compared, have different results in their names: m.03-0.5523.npz, acc_97.pt.

    Each file is its name, and what is known of its run: nothing of that of a lock file.
    """
    (name, ours), (_, theirs) = a, b
    first, second = (path if facts is None else masked(path, facts) for path, facts in (a, b))
    for (mine, start), (yours, _) in zip(_numbers(first), _numbers(second), strict=False):
        if mine != yours:
            label = first[:start]
            roles = {role(label, one, facts) for one, facts in ((mine, ours), (yours, theirs)) if facts is not None}
            if roles & {Role.RESULT, Role.OPEN}:
                kind = OutputKind.AMBIGUOUS if Role.OPEN in roles else OutputKind.VALUE
                yield OutputDifference(path=name, kind=kind, at="name", values=(mine, yours))
                return


def _has_moved(mine: str, yours: str, ours: frozenset[str], theirs: frozenset[str]) -> bool:
    """Return whether two files, which are compared, are in folders or have names that each run gave to another file.

    So are those that are sorted by what a model predicts. A name that only one run has is one of that run.
    """
    parts = PurePath(mine).parts, PurePath(yours).parts
    pairs = zip(*parts, strict=True) if len(parts[0]) == len(parts[1]) else ()
    return any(x != y and (x in theirs or y in ours) for x, y in pairs)


def _has_tensors(file: File) -> bool:
    return any(value.tensor for value in file.values)


def _within(name: str, a: File, b: File) -> Iterator[OutputDifference]:
    if a.sha256 and a.sha256 == b.sha256:
        return
    if a.problem or b.problem:
        yield OutputDifference(path=name, kind=OutputKind.UNREADABLE, problem=a.problem or b.problem)
        return
    if not a.values and not b.values:
        yield OutputDifference(path=name, kind=OutputKind.VALUE)
        return
    ours = {value.name: value for value in a.values}
    theirs = {value.name: value for value in b.values}
    theirs = _renumbered(ours, theirs) if LOG in (a.by, b.by) else _as_sorted(ours, theirs)
    rows = _rows_of_times(ours, theirs)
    first: dict[tuple[OutputKind, bool], OutputDifference] = {}
    for at in {**ours, **theirs}:
        mine, yours = ours.get(at), theirs.get(at)
        if mine is not None and yours is not None and mine.digest == yours.digest:
            continue
        values = (mine.shown if mine else "", yours.shown if yours else "")
        only = 0 if mine and yours else 1 if mine else 2
        tensor = any(value is not None and value.tensor for value in (mine, yours))
        kind = OutputKind.AMBIGUOUS if at.partition(", ")[0] in rows else _kind(mine, yours)
        one = OutputDifference(path=name, kind=kind, at=at, values=values, only_run=only, tensor=tensor)
        known = first.setdefault((one.kind, tensor), one)
        if known is not one:
            first[one.kind, tensor] = replace(known, more=known.more + 1)
    yield from first.values()


def _by_digests(
    name: str, a: tuple[File, Outputs], b: tuple[File, Outputs], guesses: Sequence[frozenset[int]]
) -> Iterator[OutputDifference]:
    """Yield whether a file differs from the digests of one that a lock file keeps; each with what it belongs to."""
    if a[0].problem or b[0].problem:
        yield from _within(name, a[0], b[0])
        return
    same = False
    for numbers in guesses:
        ours, theirs = _digests(*a, numbers), _digests(*b, numbers)
        if ours.with_open == theirs.with_open:
            return
        same = same or ours.results == theirs.results
    yield OutputDifference(path=name, kind=OutputKind.AMBIGUOUS if same else OutputKind.VALUE)


class _Digests(NamedTuple):
    """Of the results in a file, and of these with what may be one."""

    results: str
    with_open: str


def _digests(file: File, outputs: Outputs, numbers: frozenset[int]) -> _Digests:
    if outputs.digests_only:
        known = {value.name: value.digest for value in file.values}
        return _Digests(known[_ALL_OF_IT], known.get(_WITH_OPEN, known[_ALL_OF_IT]))
    own = outputs.facts.pids if outputs.facts is not None else frozenset[int]()
    values = tuple(_told(value, own | numbers, numbers) for value in file.values)
    told = replace(file, values=values)
    return _Digests(digest(told), digest(told, Role.RESULT, Role.OPEN))


def _told(value: Value, possible: frozenset[int], numbers: frozenset[int]) -> Value:
    """Return a value that may be the number of a process as one if that is among ``numbers``, else as a result."""
    if value.role not in (Role.RESULT, Role.IDENTIFIER) or not value.shown.isdecimal():
        return value
    number = int(value.shown)
    if number not in possible or is_digest(value.name) or is_count(value.name):
        return value
    return replace(value, role=Role.IDENTIFIER if number in numbers else Role.RESULT)


def _own_numbers(a: Outputs, b: Outputs) -> Iterator[frozenset[int]]:
    """Yield what may be taken for the numbers of runs, so that a result is not one in one of them only.

    A lock file has no digest of what is the number of a process of its run, and a result of the other run may be that
    number by chance, or the number of a process of that run: a row, a count of steps.
    """
    known, run = (a, b) if a.digests_only else (b, a)
    own = run.facts.pids if run.facts is not None else frozenset[int]()
    yield own.union(known.own_numbers)
    if printed := _numbers_in(run):
        yield frozenset(known.own_numbers)
        yield from ((own - {number}).union(known.own_numbers) for number in printed[:_MOST_GUESSED])


_MOST_GUESSED = 8


def _numbers_in(outputs: Outputs) -> tuple[int, ...]:
    """Return the processes of a run whose numbers are in what left it."""
    own = outputs.facts.pids if outputs.facts is not None else ()
    words = {value.shown for file in outputs.files for value in file.values if value.role is Role.IDENTIFIER}
    for printed in (outputs.stdout, outputs.stderr):
        words.update(word for line in (printed.lines if printed else ()) for word in _DIGITS.findall(line))
    return tuple(sorted(number for number in own if str(number) in words))


_DIGITS = re.compile(r"\d+")


_Line: TypeAlias = tuple[Value | None, list[Value]]
"""Of a line of a log: the value that is its words, and the values in it."""


def _by_line(values: Iterable[Value]) -> dict[str, _Line]:
    """Return for each line of a log, by its name, the value that is its words, and the values in it."""
    words: dict[str, Value | None] = {}
    inside: defaultdict[str, list[Value]] = defaultdict(list)
    for value in values:
        line, _, rest = value.name.partition(", ")
        words.setdefault(line, None)
        if rest:
            inside[line].append(value)
        else:
            words[line] = value
    return {line: (value, inside[line]) for line, value in words.items()}


def _renamed(values: Iterable[Value], names: Mapping[str, str]) -> dict[str, Value]:
    """Return values by the names that their lines have among ``names``; other lines keep theirs."""
    lines = ((value.name.partition(", ")[0], value) for value in values)
    return {names.get(line, line) + value.name[len(line) :]: value for line, value in lines}


def _as_sorted(ours: Mapping[str, Value], theirs: Mapping[str, Value]) -> dict[str, Value]:
    """Return values by the rows of another table that they belong to, if both are sorted by the same measurement.

    Then the order of the same rows says no more than that does.
    """
    mine, yours = _measured_rows(ours), _measured_rows(theirs)
    if not mine or mine.keys() != yours.keys() or not _orders(mine) & _orders(yours):
        return dict(theirs)
    if Counter(map(_results, mine.values())) != Counter(map(_results, yours.values())):
        return dict(theirs)
    return _renamed(theirs.values(), _partners(mine, yours))


def _measured_rows(values: Mapping[str, Value]) -> dict[str, _Line]:
    """Return the lines that have the most common columns of measurements."""
    columns: defaultdict[tuple[str, ...], dict[str, _Line]] = defaultdict(dict)
    for at, line in _by_line(values.values()).items():
        names = tuple(value.name.rpartition(", ")[2] for value in line[1] if value.role is Role.MEASUREMENT)
        if names:
            columns[names][at] = line
    return max(columns.values(), key=len, default={})


def _orders(lines: Mapping[str, _Line]) -> set[tuple[str, bool]]:
    """Return the measurements, by their columns, that all these lines are sorted by, and whether descending.

    A time since a start, or a date, grows in any table that is written line by line.
    """
    columns: defaultdict[str, list[float]] = defaultdict(list)
    for at in sorted(lines, key=_place):
        for value in lines[at][1]:
            column = value.name.rpartition(", ")[2]
            measured = value.role is Role.MEASUREMENT and not is_since_start(column)
            if measured and (number := _NUMBER.fullmatch(value.shown)):
                columns[column].append(float(number[1]))
    return {
        (column, descending)
        for column, numbers in columns.items()
        for descending in (False, True)
        if len(numbers) == len(lines) and len(set(numbers)) > 1 and numbers == sorted(numbers, reverse=descending)
    }


_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s?[a-zµ%]{0,12}")


def _rows_of_times(ours: Mapping[str, Value], theirs: Mapping[str, Value]) -> frozenset[str]:
    """Return the lines whose words differ though both are rows of several times, by which a table may be sorted."""
    differing = {at for at, one in ours.items() if ", " not in at and at in theirs and one.digest != theirs[at].digest}
    if not differing:
        return frozenset()
    mine, yours = _by_line(ours.values()), _by_line(theirs.values())
    return frozenset(at for at in differing if all(_times(side[at]) > 1 for side in (mine, yours)))


def _times(line: _Line) -> int:
    return sum(1 for value in line[1] if value.role is Role.MEASUREMENT)


def _results(line: _Line) -> tuple[str, ...]:
    """Return the digests of what must agree for two lines of a log to be the same."""
    words, values = line
    return (words.digest if words else "", *(one.digest for one in values if one.role in (Role.RESULT, Role.OPEN)))


def _decides(line: _Line, roles: Sequence[Role]) -> str:
    """Return what of a line of a log has one of these roles, with its words, "" if nothing has."""
    words, values = line
    results = [one.digest for one in values if one.role in roles]
    return " ".join([words.digest if words else "", *results]) if results else ""


def _renumbered(ours: Mapping[str, Value], theirs: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values of a log by the names of the lines of another one that they belong to.

    Lines belong together if their results agree, then if their words do, each in their order.
    """
    mine, yours = _by_line(ours.values()), _by_line(theirs.values())
    names = _partners(mine, yours)
    # What is left has no partner.
    left = deque(sorted(mine.keys() - set(names.values()), key=_place))
    for name in sorted(yours.keys() - names.keys(), key=_place):
        names[name] = left.popleft() if left else name if name not in mine else f"{name} of the other"
    return _renamed(theirs.values(), names)


def _partners(mine: Mapping[str, _Line], yours: Mapping[str, _Line]) -> dict[str, str]:
    """Return for the names of lines of a log those of the lines of another one that they belong to."""
    names: dict[str, str] = {}
    for key in (_results, lambda line: _results(line)[:1]):
        free: defaultdict[tuple[str, ...], deque[str]] = defaultdict(deque)
        taken = set(names.values())
        for name in sorted(mine.keys() - taken, key=_place):
            free[key(mine[name])].append(name)
        for name in sorted(yours.keys() - names.keys(), key=_place):
            if free[key(yours[name])]:
                names[name] = free[key(yours[name])].popleft()
    return names


def _order_of_lines(name: str, a: File, b: File) -> Iterator[OutputDifference]:
    """Yield that the same lines stand in another order in the log of one thread.

    Lines with a measurement beyond the time at their beginning are left out, as tables are sorted by it.
    """
    mine, yours = _by_line(a.values), _by_line(b.values)
    partners = _partners(mine, yours)
    if not len(mine) == len(yours) == len(partners):
        return
    order = [(partners[line], line) for line in sorted(yours, key=_place) if not _is_measured(yours[line])]
    in_order = sorted((own for own, _ in order), key=_place)
    for own, (partner, line) in zip(in_order, order, strict=True):
        if own != partner:
            at, shown = f"order of lines, from {own}", (_shown_words(mine[own]), _shown_words(yours[line]))
            yield OutputDifference(path=name, kind=OutputKind.AMBIGUOUS, at=at, values=shown)
            return


def _is_measured(line: _Line) -> bool:
    """Return whether a line of a log has a measurement that has a name, as the time at its beginning has not."""
    return any(
        value.role is Role.MEASUREMENT and not value.name.endswith((", value", ", timestamp")) for value in line[1]
    )


def _shown_words(line: _Line) -> str:
    return line[0].shown if line[0] is not None else ""


def _place(name: str) -> tuple[int, str]:
    return len(name), name


def _kind(a: Value | None, b: Value | None) -> OutputKind:
    roles = {value.role for value in (a, b) if value is not None}
    if Role.OPEN in roles or roles == {Role.RESULT, Role.MEASUREMENT}:
        return OutputKind.AMBIGUOUS
    if Role.RESULT in roles:
        return OutputKind.VALUE
    return _LISTED[min(roles)]


def _streams(a: Outputs, b: Outputs, guesses: Sequence[frozenset[int]]) -> Iterator[OutputDifference]:
    ignored, facts = [*_ignored(a), *_ignored(b)], a.facts or b.facts
    for stream in (STDOUT, STDERR):
        ours: Text | None = getattr(a, stream)
        theirs: Text | None = getattr(b, stream)
        if ours is None or theirs is None:
            continue
        if facts is None or not guesses:
            yield from text.compare(ours, theirs, stream, a.facts, b.facts, ignored)
            continue
        first: list[OutputDifference] | None = None
        for numbers in guesses:
            known = replace(facts, pids=numbers)
            stream_differences = text.compare(ours, theirs, stream, known, known, ignored)
            first = stream_differences if first is None else first
            if not stream_differences:
                break
        else:
            yield from first or ()


def unused(outputs: Outputs) -> tuple[str, ...]:
    """Return the names by which values were declared and that none has; () where not all names are known."""
    declared, facts = outputs.rules.declared, outputs.facts
    streams = [one for one in (outputs.stdout, outputs.stderr) if one is not None]
    folded = any(value.name.endswith(FURTHER) for file in outputs.files for value in file.values)
    if not declared or facts is None or outputs.unread or folded or any(one.blocks for one in streams):
        return ()
    names = {value.name for file in outputs.files for value in file.values}
    names.update(*(text.labels(one, facts, _ignored(outputs)) for one in streams))
    given = (*declared.measured, *declared.results)
    return tuple(one for one in given if all(Declared((one,)).role(name) is None for name in names))


def digest(file: File, *roles: Role) -> str:
    """Return one digest of all values of a file that decide, or have one of ``roles``.

    If the file could not be read, that is the one of its bytes.
    """
    roles = roles or (Role.RESULT,)
    if file.problem:
        return file.sha256
    if file.by == LOG:
        lines = _by_line(file.values).values()
        return _digest(sorted(filter(None, (_decides(line, roles) for line in lines))))
    deciding = sorted((value.name, value.digest) for value in file.values if value.role in roles)
    if len(deciding) == 1 and deciding[0][0] == _ALL_OF_IT:
        return deciding[0][1]
    return _digest(f"{name}\0{one}" for name, one in deciding)


def thinned(outputs: Outputs) -> Outputs:
    """Return outputs as a lock file keeps them: digests of each file and stream, and nothing that only a run has."""
    if outputs.digests_only:
        return outputs
    return Outputs(
        files=tuple(map(_thin, outputs.files)),
        stdout=_digested(outputs.stdout, outputs),
        stderr=_digested(outputs.stderr, outputs),
        exit_code=outputs.exit_code,
        own_numbers=_numbers_in(outputs),
        digests_only=True,
    )


def _digested(printed: Text | None, outputs: Outputs) -> Text | None:
    if printed is None or outputs.facts is None:
        return None
    return text.digested(printed, outputs.facts, _ignored(outputs))


def _ignored(outputs: Outputs) -> list[re.Pattern[str]]:
    return [re.compile(pattern) for pattern in outputs.rules.ignore_text]


def _thin(file: File) -> File:
    results, with_open = digest(file), digest(file, Role.RESULT, Role.OPEN)
    values = (Value(_ALL_OF_IT, results), Value(_WITH_OPEN, with_open, Role.OPEN))
    return File(
        path=file.name,
        name=file.name,
        sha256=file.sha256 if file.problem else "",
        size=0,
        by=file.by,
        problem=file.problem,
        values=values if with_open != results else values[:1],
    )


def _digest(parts: Iterable[str]) -> str:
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        hasher.update(part.encode(errors="surrogateescape") + b"\1")
    return hasher.hexdigest()
