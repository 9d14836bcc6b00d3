"""Workbooks of Excel are read cell by cell."""

import zipfile
from pathlib import Path

import pytest

from detaudit.runs.formats import BROKEN
from tests.runs.formats.reading import differing, parts, texts, written

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATION = '<Relationships><Relationship Id="r1" Target="{}"/></Relationships>'
BOOK = f'<workbook {MAIN} xmlns:r="{OFFICE}"><sheets><sheet name="Scores" r:id="r1"/></sheets></workbook>'
STRINGS = f"<sst {MAIN}><si><t>model</t></si><si><r><t>fit</t></r><r><t>_time</t></r></si></sst>"
ROWS = """<row><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c>
<c r="C1" t="inlineStr"><is><t>auc</t></is></c></row>
<row><c r="A2" t="str"><v>svm</v></c><c r="C2"><v>{auc}</v></c></row>
<row><c r="A3" t="str"><v>mlp</v></c><c r="B3"><v>{time}</v></c><c r="C3"><v>0.75</v></c></row>"""


def workbook(
    path: Path, auc: str = "0.5", time: str = "3.25", date: str = "2026-11-28", target: str = "s/1.xml"
) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", BOOK)
        archive.writestr("xl/_rels/workbook.xml.rels", RELATION.format(target))
        archive.writestr("xl/sharedStrings.xml", STRINGS)
        archive.writestr(
            "xl/s/1.xml", f"<worksheet {MAIN}><sheetData>{ROWS.format(auc=auc, time=time)}</sheetData></worksheet>"
        )
        archive.writestr("docProps/core.xml", f"<core><created>{date}</created></core>")
        archive.writestr("xl/styles.xml", "<styles/>")
    return path


@pytest.mark.parametrize("target", ["s/1.xml", "/xl/s/1.xml"])
def test_cells_are_named_by_sheet_row_and_column(tmp_path: Path, target: str) -> None:
    path = workbook(tmp_path / "a.bin", target=target)
    assert parts(path)[0] == "xlsx"
    read = texts(path)
    assert {name: text for name, text in read.items() if name.startswith("Scores: row")} == {
        "Scores: row 1, model": "svm",
        "Scores: row 1, fit_time": "",
        "Scores: row 1, auc": "0.5",
        "Scores: row 2, model": "mlp",
        "Scores: row 2, fit_time": "3.25",
        "Scores: row 2, auc": "0.75",
    }
    assert read["created"] == "2026-11-28"


def test_a_change_is_named(tmp_path: Path) -> None:
    first = workbook(tmp_path / "a.xlsx")
    assert differing(first, workbook(tmp_path / "b.xlsx", auc="0.25")) == ["Scores: row 1, auc"]
    assert differing(first, workbook(tmp_path / "c.xlsx", date="2026-11-29")) == ["created"]


def test_a_broken_workbook_is_refused(tmp_path: Path) -> None:
    data = workbook(tmp_path / "a.xlsx").read_bytes()
    cut = written(tmp_path / "b.xlsx", data.replace(b"</sst>", b"</ss>>"))
    with pytest.raises(BROKEN):
        parts(cut)


def test_a_cell_with_the_format_of_a_date_is_one(tmp_path: Path) -> None:
    formats = (
        '<numFmt numFmtId="164" formatCode="YYYY-MM-DD"/>',
        '<numFmt numFmtId="165" formatCode="0.00&quot;dmy&quot;"/>',
    )
    styles = "".join(f'<xf numFmtId="{number}"/>' for number in (0, 164, 165, 22))
    cells = "".join(f'<c s="{style}"><v>46355.25</v></c>' for style in range(4))
    path = workbook(tmp_path / "a.xlsx")
    with zipfile.ZipFile(tmp_path / "b.xlsx", "w") as archive, zipfile.ZipFile(path) as other:
        for name in other.namelist():
            data = other.read(name)
            if name == "xl/styles.xml":
                data = f"<x {MAIN}><numFmts>{''.join(formats)}</numFmts><cellXfs>{styles}</cellXfs></x>".encode()
            elif name == "xl/s/1.xml":
                data = f"<x {MAIN}><sheetData><row>{cells}</row></sheetData></x>".encode()
            archive.writestr(name, data)
    shown = [text for name, text in texts(tmp_path / "b.xlsx").items() if name.startswith("Scores: row")]
    assert shown == ["46355.25", "2026-11-29 06:00:00", "46355.25", "2026-11-29 06:00:00"]
