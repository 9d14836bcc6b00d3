"""What a terminal shows of bytes that a program prints: control sequences move a cursor, and draw over rows."""

import re
from collections.abc import Callable, Iterator

LONGEST_LINE = 2**16
"""Characters after which a line is taken for several."""

ROWS = 48
"""Rows above the last one that a cursor can go back to."""

_LONGEST_ESCAPE = 4096
_MOST_COLUMNS = 4096

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


class Screen:
    """The last rows of a terminal, and where its cursor is; rows that leave it at the top are final."""

    def __init__(self, final: Callable[[list[bytes]], None]) -> None:
        self._final = final
        self._rows = [b""]
        self._cursor: tuple[int, int] | None = None  # row and column; None at the end of the last row
        self._first = 0  # row that an absolute position counts from, unless it left the screen
        self._erased = False
        self._unfinished = b""

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        data = self._unfinished + data
        self._unfinished = b""
        if data[-1:] == b"\r" or data[-1:] >= b"\x80" or b"\x1b" in data[-_LONGEST_ESCAPE:]:
            match = _UNFINISHED.search(data, max(0, len(data) - _LONGEST_ESCAPE))
            if match:
                data, self._unfinished = data[: match.start()], match[0]
        self._take(data)

    def finish(self) -> None:
        """Take no more: all rows are final."""
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
            y, x = _write(rows, y, x, data[at : match.start()])
            at = match.end()
            y, x = self._control(rows, y, x, match)
            if len(rows) > 2 * ROWS:
                y -= self._keep(rows)
        y, x = _write(rows, y, x, data[at:])
        self._keep_cursor(rows, y, x)

    def _top(self, rows: list[str]) -> int:
        """Return the first row of the screen. How output is cut into pieces decides when rows above it are final."""
        return max(self._first, len(rows) - ROWS - 1)

    def _keep(self, rows: list[str]) -> int:
        above = len(rows) - ROWS - 1
        self._final([row.encode() for row in rows[:above]])
        del rows[:above]
        self._first = max(0, self._first - above)
        return above

    def _keep_cursor(self, rows: list[str], y: int, x: int) -> None:
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
            y, x = self._top(rows) + min(count, ROWS) - 1, max(1, [*numbers, 1][1]) - 1
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
            self._first = self._top(rows) if self._erased else len(rows)
            self._erased = True
            del rows[self._first :]
            rows.append("")
            return len(rows) - 1, 0
        if part == 0:
            rows[y] = rows[y][:x]
        else:
            rows[y] = "" if part == 2 else " " * min(x + 1, len(rows[y])) + rows[y][x + 1 :]
        if kind == "J":
            del rows[y + 1 if part == 0 else len(rows) :]
            for above in range(self._top(rows), y if part == 1 else 0):
                rows[above] = ""
        return y, x


def _write(rows: list[str], y: int, x: int, text: str) -> tuple[int, int]:
    """Write over what is at a place, and return where the text ends: a row that is too long is several."""
    if not text:
        return y, x
    row = rows[y]
    if x == len(row):
        rows[y] = row + text
    else:
        rows[y] = row[:x].ljust(x) + text + row[x + len(text) :]
    x += len(text)
    while len(rows[y]) > LONGEST_LINE:
        rows[y : y + 1] = [rows[y][:LONGEST_LINE], rows[y][LONGEST_LINE:]]
        y, x = y + 1, max(0, x - LONGEST_LINE)
    return y, x


def _parts(piece: bytes) -> Iterator[bytes]:
    if len(piece) <= LONGEST_LINE:
        yield piece
        return
    text = piece.decode("utf-8", "replace")
    for at in range(0, len(text), LONGEST_LINE):
        yield text[at : at + LONGEST_LINE].encode()
