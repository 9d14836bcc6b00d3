"""Record what a run prints as a terminal would leave it, and compare it line by line and token by token.

A line is words and numbers (see ``lines.py``). Words that differ are different words; a number that differs is a
result, a measurement or an identifier. Lines of several writers come in any order, so lines are compared as multisets,
and within those that differ, lines whose words agree are paired in their order.

Of a long output the first lines are kept. All after them are digested: a digest of a block is the sum of those of its
lines, so that their order does not count and blocks can be added up.
"""

import bisect
import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from detaudit import redact
from detaudit.model.outputs import STDERR, STDOUT, OutputDifference, OutputKind, Role, RunFacts, Text, TextBlock
from detaudit.outputs.lines import (
    DATES,
    MASK_64,
    MASKED,
    NUMBERS,
    ZEROS,
    BytesParser,
    LineParser,
    ParsedLine,
    Sums,
    columns_of,
    for_digest,
    heading_of,
    hex_of,
    shown_label,
)
from detaudit.outputs.measurements import MASK, masked
from detaudit.outputs.screen import Screen

NAME = "text.json"
"""The file beside the logs of a run that has its Text."""

MOST_KEPT = 8 * 2**20
"""Bytes of the first lines that are kept."""

BLOCK = 1000
"""Lines of a block, unless there are more than MOST_BLOCKS."""

MOST_BLOCKS = 2048
_PIECE = 2**20


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
    ours, theirs = LineParser(facts_a, ignored), LineParser(facts_b, ignored)
    if not a.blocks and not b.blocks:
        return _Comparison(stream, ours, theirs).lines(a.lines, b.lines)
    digesting = LineParser(for_digest(facts_a), ignored), LineParser(for_digest(facts_b), ignored)
    if _sum(a, digesting[0]) == _sum(b, digesting[1]):
        return []
    kept = min(len(a.lines), len(b.lines))
    differences = _Comparison(stream, ours, theirs).lines(a.lines[:kept], b.lines[:kept])
    return _sorted([*differences, *_blocks_differ(a, b, kept, stream, *digesting)])


def labels(text: Text, facts: RunFacts, ignored: Sequence[re.Pattern[str]] = ()) -> set[str]:
    """Return the labels of the values in the lines that are kept."""
    parser = LineParser(facts, ignored)
    lines = (parser.parse(parser.line(line).strip()) for line in text.lines)
    return {shown_label(slot, line.text) for line in lines for slot in line.slots if slot.kind != MASKED}


def text_of(lines: Iterable[str]) -> Text:
    """Return the Text of lines that are known, such as those of a file."""
    recorder = Recorder()
    for line in lines:
        recorder.feed(line.encode("utf-8", "surrogateescape") + b"\n")
    return recorder.finish()


def digested(text: Text, facts: RunFacts, ignored: Sequence[re.Pattern[str]] = ()) -> Text:
    """Return a text as one block without its lines; ``compare`` says whether another one has the same lines."""
    words, values, unknown = _sum(text, LineParser(for_digest(facts), ignored))
    block = TextBlock(1, text.count, hex_of(words), hex_of(values), hex_of(unknown))
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
    ours: LineParser
    theirs: LineParser
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
        alike: defaultdict[str, tuple[list[ParsedLine], list[ParsedLine]]] = defaultdict(lambda: ([], []))
        for side, lines in enumerate((one, two)):
            for line in lines:
                alike[line.words][side].append(line)
        left: tuple[list[ParsedLine], list[ParsedLine]] = ([], [])
        for ours, theirs in alike.values():
            for side, rest in enumerate(self._pairs(ours, theirs)):
                left[side].extend(rest)
        left = self._marked(*self._unnamed(*left))
        self._words(*(sorted(side, key=lambda line: line.number) for side in left))
        if self.stream == STDOUT and not self.differences.keys() & set(_ORDER):
            self._order(a, b, one, two)
        return _sorted(list(self.differences.values()))

    def _order(self, a: Sequence[str], b: Sequence[str], one: list[ParsedLine], two: list[ParsedLine]) -> None:
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
    def _said(lines: Sequence[str], differing: list[ParsedLine], parser: LineParser) -> list[str | tuple[str, ...]]:
        """Return what each line says; a line that both texts have says itself."""
        known = {line.number: (line.words, *line.results) for line in differing}
        return [known.get(number) or parser.line(text).strip() for number, text in enumerate(lines, 1)]

    def _in_order(self, lines: Sequence[str], parser: LineParser) -> list[tuple[tuple[str, ...], int]]:
        """Return what each line says, and its number.

        Left out are lines of progress, those that only draw, and those with a duration or a rate, as tables are sorted
        by it; a date, or the time at the beginning of a line, is that of a log.
        """
        parser.begin()
        numbered_lines: list[tuple[tuple[str, ...], int]] = []
        for number, text in enumerate(lines, 1):
            line = parser.parse(parser.line(text).strip(), number)
            measured = any(
                role is Role.MEASUREMENT and (slot.kind == NUMBERS or (slot.kind != DATES and slot.start > 1))
                for slot, (role, _) in zip(line.slots, line.values, strict=True)
            )
            says = any(map(str.isalnum, line.words)) or (self._alone and line.results)
            if not measured and not _is_progress(line) and says:
                numbered_lines.append(((line.words, *line.results), number))
        return numbered_lines

    def _differing(self, a: Sequence[str], b: Sequence[str]) -> tuple[list[ParsedLine], list[ParsedLine]]:
        """Return the lines of each that the other does not have in the same words and with the same digits."""
        texts = ([self.ours.line(line).strip() for line in a], [self.theirs.line(line).strip() for line in b])
        counts = (Counter(texts[0]), Counter(texts[1]))
        differing_lines: tuple[list[ParsedLine], list[ParsedLine]] = ([], [])
        for side, parser in enumerate((self.ours, self.theirs)):
            alone = counts[side] - counts[1 - side]
            for number, text in enumerate(texts[side], 1):
                if not text or text in alone or parser.heading or heading_of(text) or columns_of(text):
                    parsed = parser.parse(text, number)
                    if alone[text] > 0 and _says(parsed):
                        differing_lines[side].append(parsed)
                    alone[text] -= 1
        return differing_lines

    def _pairs(self, ours: list[ParsedLine], theirs: list[ParsedLine]) -> tuple[list[ParsedLine], list[ParsedLine]]:
        """Pair lines with the same words, and return those that are left over."""
        if all(map(_is_progress, (*ours, *theirs))) and ours and theirs:
            self._values(ours[-1], theirs[-1])
            return [], []
        equal: defaultdict[tuple[str, ...], list[ParsedLine]] = defaultdict(list)
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

    def _unnamed(self, ours: list[ParsedLine], theirs: list[ParsedLine]) -> tuple[list[ParsedLine], list[ParsedLine]]:
        """Return lines whose words differ without those that only differ in paths, in what stands for their runs."""
        same: defaultdict[tuple[str, ...], list[ParsedLine]] = defaultdict(list)
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

    def _marked(self, ours: list[ParsedLine], theirs: list[ParsedLine]) -> tuple[list[ParsedLine], list[ParsedLine]]:
        """Compare lines that differ in their mark of significance, which follows from a number, and return the others.

        Those with equal numbers are among the others.
        """
        same: defaultdict[str, list[ParsedLine]] = defaultdict(list)
        for line in reversed(theirs):
            same[_MARK.sub("", line.words)].append(line)
        rest = []
        for line in ours:
            others = same[_MARK.sub("", line.words)]
            if others and line.results != others[-1].results:
                self._values(line, others.pop())
            else:
                rest.append(line)
        return rest, [line for lines in same.values() for line in lines]

    def _of_runs(self, a: ParsedLine, b: ParsedLine) -> None:
        if not self._counted(OutputKind.IDENTIFIER):
            self._note(OutputKind.IDENTIFIER, f"line {a.number}", _shown(a.text, b.text))

    @staticmethod
    def _masked(line: ParsedLine, parser: LineParser) -> tuple[str, ...]:
        text = _PATH.sub(lambda match: masked(match[0], parser.facts), line.text)
        parsed = parser.parse(text) if text != line.text else line
        return parsed.words, *parsed.results

    def _values(self, a: ParsedLine, b: ParsedLine) -> None:
        """Note the values in which two lines differ."""
        if a.results != b.results and self._masked(a, self.ours) == self._masked(b, self.theirs):
            self._of_runs(a, b)
            return
        for slot, (role, text), (other_role, other) in zip(a.slots, a.values, b.values, strict=True):
            if text != other:
                kind = _KINDS[min(role, other_role, key=_RANK.index)]
                if self._counted(kind):
                    continue
                label = shown_label(slot, a.text) if slot.kind != MASKED else ""
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

    def _same_pieces(self, a: list[ParsedLine], b: list[ParsedLine]) -> bool:
        return _same_pieces(a, b, self._alone)

    def _same_whole_lines(self, *sides: tuple[Sequence[str], list[ParsedLine], LineParser]) -> bool:
        """Return whether the lines that differ, of all that each text has, are the same lines with ends that come late.

        A line may consist of others if their words are those of lines, and its missing ends are empty lines elsewhere.
        """
        words, counters = set[str](), list[Counter[tuple[str, ...]]]()
        for lines, _, parser in sides:
            of_each_shape = {line.translate(ZEROS): line for line in lines}.values()
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

    def _words(self, a: list[ParsedLine], b: list[ParsedLine]) -> None:
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


_MARK = re.compile(r"(?<=\0)\s*(?:\*{1,4}|†|n\.?\s?s\.?|\.)?\s*$")
"""What stands behind a p-value: ``p = 0.043 *``, ``p = 0.31 n.s.``"""

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


def _says(line: ParsedLine) -> bool:
    """Return whether a line says more than a rule or a bar, which are of one mark: a picture has several runs."""
    drawn = line.words.strip("\0 █-=_*#+|│┃┆║┏┓└┘╭╮╰╯─━═╌.~")
    return bool(drawn or line.results) or len({*line.words} & {*"#.*+"}) > 1


def _is_progress(line: ParsedLine) -> bool:
    """Return whether a line says nothing but how far something is, and how fast it goes."""
    counters = [slot.counter for slot, (role, _) in zip(line.slots, line.values, strict=True) if role is Role.RESULT]
    return bool(counters) and all(counters) and not any(role is Role.OPEN for role, _ in line.values)


def _same_pieces(a: list[ParsedLine], b: list[ParsedLine], alone: bool) -> bool:
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


def _tokens(lines: list[ParsedLine]) -> Counter[str]:
    tokens: Counter[str] = Counter()
    for line in lines:
        tokens.update(line.words.replace("\0", " \0 ").split())
        tokens.update(line.results)
    return tokens


def _lengths(lines: list[ParsedLine]) -> Counter[int]:
    """Return how many lines have how many words and numbers: if it is the same, none was torn apart."""
    return Counter(len(line.words.replace("\0", " \0 ").split()) for line in lines)


def _visible(line: ParsedLine) -> str:
    """Return the words and results of a line without blanks."""
    results = iter(line.values)
    parts = line.words.split("\0")
    shown = parts[0]
    for part, (role, text) in zip(parts[1:], results, strict=False):
        shown += (text.strip() if role in (Role.RESULT, Role.OPEN) else "\0") + part
    return _without_blanks(shown)


def _lines_in(line: ParsedLine, words: set[str]) -> list[tuple[str, ...]]:
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


# Long texts


def _sum(text: Text, parser: LineParser) -> Sums:
    """Return the digest of all lines of a text."""
    parser.begin()
    words, values, unknown = parser.sums(text.lines)
    for block in text.blocks:
        words += int(block.words, 16)
        values += int(block.values, 16)
        unknown += int(block.open, 16)
    return words & MASK_64, values & MASK_64, unknown & MASK_64


def _blocks_differ(
    a: Text, b: Text, kept: int, stream: str, ours: LineParser, theirs: LineParser
) -> Iterator[OutputDifference]:
    """Yield the first block that differs in its words, in its results, and in what may be a result."""
    size = max(_block_size(a), _block_size(b))
    one, two = _by_block(a, kept, size, ours), _by_block(b, kept, size, theirs)
    words = OutputKind.WORDS if stream == STDOUT else OutputKind.STDERR_LINES
    missing: Sums = (0, 0, 0)
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


def _by_block(text: Text, kept: int, size: int, parser: LineParser) -> dict[int, Sums]:
    """Return the digests of all lines that are not compared one by one, by the number of their block."""
    digests: defaultdict[int, Sums] = defaultdict(lambda: (0, 0, 0))

    def add(block: int, sums: Sums) -> None:
        digests[block] = tuple((x + y) & MASK_64 for x, y in zip(digests[block], sums, strict=True))  # type: ignore[assignment]

    for start in range(kept, len(text.lines), size):
        first = start
        while first < min(start + size, len(text.lines)):
            block = first // size
            end = min((block + 1) * size, len(text.lines), start + size)
            add(block, parser.sums(text.lines[first:end]))
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
        self._parser = BytesParser(self._facts, ignored)
        self._screen = Screen(self._final)
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

    def _add(self, first: int, lines: int, sums: Sums) -> None:
        last = self._blocks[-1] if self._blocks else None
        if last is not None and (last.first_line - 1) // self._block == (first - 1) // self._block:
            self._blocks[-1] = _merged(last, TextBlock(first, lines, *map(hex_of, sums)))
            return
        self._blocks.append(TextBlock(first, lines, *map(hex_of, sums)))
        if len(self._blocks) > MOST_BLOCKS:
            self._block *= 2
            blocks, self._blocks = self._blocks, []
            for block in blocks:
                self._add(block.first_line, block.lines, _ints(block))


def _ints(block: TextBlock) -> Sums:
    return int(block.words, 16), int(block.values, 16), int(block.open, 16)


def _merged(a: TextBlock, b: TextBlock) -> TextBlock:
    sums = (hex_of(x + y) for x, y in zip(_ints(a), _ints(b), strict=True))
    return TextBlock(a.first_line, a.lines + b.lines, *sums)
