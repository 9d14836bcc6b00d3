"""Read workbooks of Excel (``.xlsx``) cell by cell, as tables; what they say of their making is apart.

The layout is ECMA-376, https://ecma-international.org/publications-and-standards/standards/ecma-376/, part 1,
section 18: a zip with a member for each sheet, and one with the texts that cells name by a number. How far entities may
expand is limited by expat, which each Python has from 2.4.1 on: https://docs.python.org/3/library/xml.html#xml-security
"""

import re
import zipfile
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

from detaudit.runs.formats import Part, unique, unzipped, zip_part
from detaudit.runs.formats import values as single
from detaudit.runs.formats.tables import of_texts

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_TEXTS, _BOOK, _RELATIONS = "xl/sharedStrings.xml", "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
_PROPERTIES, _STYLES = "docProps/core.xml", "xl/styles.xml"
_COLUMN = re.compile("[A-Z]{1,3}")
_MOST_COLUMNS = 16384  # of Excel

_DATE_FORMATS = frozenset((*range(14, 23), *range(27, 37), *range(50, 59)))
"""Numbers of formats that every workbook has and that show a number of days as a date: section 18.8.30."""

_NO_DIRECTIVE = re.compile(r'"[^"]*"|\\.|_.|\[[^\]]*\]')
_FIRST_DAY = datetime(1899, 12, 30)
_MOST_DAYS = 2958466  # of Excel: 9999-12-31


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts. Cells are named by the sheet, the row below the names of columns, and the column."""
    return unique(_parts(path))


def _parts(path: Path) -> Iterator[Part]:
    with unzipped(path) as archive:
        texts, dates = list(_texts(archive)), frozenset(_dates(archive))
        sheets = dict(_sheets(archive))
        for member in sorted(archive.namelist()):
            if member in sheets:
                yield from of_texts(_rows(archive, member, texts, dates), f"{sheets[member]}: ")
            elif member == _PROPERTIES:
                for element in _root(archive, member):
                    yield single.text(element.tag.rpartition("}")[2], element.text or "")
            elif not member.endswith("/") and member != _TEXTS:
                yield zip_part(archive, archive.getinfo(member), member)


def _root(archive: zipfile.ZipFile, member: str) -> ElementTree.Element:
    with archive.open(member) as file:
        return ElementTree.parse(file).getroot()  # noqa: S314  # see above


def _texts(archive: zipfile.ZipFile) -> Iterator[str]:
    if _TEXTS in archive.namelist():
        for item in _root(archive, _TEXTS):
            yield _text_of(item)


def _text_of(element: ElementTree.Element) -> str:
    return "".join(one.text or "" for one in element.iter(f"{_MAIN}t"))


def _sheets(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Yield the member of each sheet with its name."""
    targets = {one.get("Id"): one.get("Target", "") for one in _root(archive, _RELATIONS)}
    for sheet in _root(archive, _BOOK).iter(f"{_MAIN}sheet"):
        target = targets.get(sheet.get(_ID), "")
        member = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
        yield member, single.printable(sheet.get("name", ""))


def _dates(archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield the numbers of the styles of cells that show a date."""
    if _STYLES not in archive.namelist():
        return
    styles = _root(archive, _STYLES)
    codes = {one.get("numFmtId"): one.get("formatCode", "") for one in styles.iter(f"{_MAIN}numFmt")}
    for number, style in enumerate(styles.iterfind(f"{_MAIN}cellXfs/{_MAIN}xf")):
        chosen = style.get("numFmtId", "0")
        letters = {*_NO_DIRECTIVE.sub("", codes.get(chosen, "")).lower()}
        if int(chosen) in _DATE_FORMATS or {"y", "m", "d"} <= letters:
            yield str(number)


def _rows(archive: zipfile.ZipFile, member: str, texts: list[str], dates: Collection[str]) -> Iterator[list[str]]:
    """Yield the cells of each row that has any, as texts; a cell that is left out is empty."""
    with archive.open(member) as file:
        for _, element in ElementTree.iterparse(file):  # noqa: S314  # see above
            if element.tag == f"{_MAIN}row":
                cells: list[str] = []
                for cell in element.iter(f"{_MAIN}c"):
                    place = _place(cell.get("r", ""), len(cells))
                    cells += [""] * (place - len(cells))
                    cells.append(_value(cell, texts, dates))
                element.clear()
                if cells:
                    yield cells


def _place(reference: str, following: int) -> int:
    """Return the index of a cell's column: 27 of AB3."""
    letters = _COLUMN.match(reference)
    if letters is None:
        return following
    place = 0
    for letter in letters[0]:
        place = 26 * place + ord(letter) - ord("A") + 1
    if not following < place <= _MOST_COLUMNS:
        raise ValueError("its cells are not in order")
    return place - 1


def _value(cell: ElementTree.Element, texts: list[str], dates: Collection[str]) -> str:
    kind, value = cell.get("t", "n"), cell.findtext(f"{_MAIN}v") or ""
    if kind == "s":
        return texts[int(value)]
    if kind == "n" and value and cell.get("s") in dates and 0 <= float(value) < _MOST_DAYS:
        return str(_FIRST_DAY + timedelta(days=float(value)))
    return _text_of(cell) if kind == "inlineStr" else value
