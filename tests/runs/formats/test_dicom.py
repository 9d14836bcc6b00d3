"""DICOM files are compared element by element; the UIDs and the time of each file do not count."""

import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given

from detaudit.model.outputs import Role, RunFacts
from detaudit.outputs import measurements
from tests.runs.formats.reading import differing, is_refused_or_read, mutated, mutations, parts, texts, written

EXPLICIT, IMPLICIT, DEFLATED = "1.2.840.10008.1.2.1", "1.2.840.10008.1.2", "1.2.840.10008.1.2.1.99"
UIDS = (
    "1.2.826.0.1.3680043.8.498.63091403682396636888725097985402277196",  # of pydicom
    "2.25.329800735698586629295641978511506172918",  # of a UUID: PS3.5, annex B.2
)
PIXELS = bytes(range(8))


def element(
    tag: tuple[int, int], kind: str, value: bytes, *, implicit: bool = False, any_length: bool = False
) -> bytes:
    value += (b"\0" if kind in ("UI", "OB") else b" ") * (len(value) % 2)
    size = 0xFFFFFFFF if any_length else len(value)
    if implicit:
        return struct.pack("<HHI", *tag, size) + value
    if kind in ("OB", "OW", "SQ", "UN", "UT"):
        return struct.pack("<HH2sHI", *tag, kind.encode(), 0, size) + value
    return struct.pack("<HH2sH", *tag, kind.encode(), len(value)) + value


def item(value: bytes) -> bytes:
    return struct.pack("<HHI", 0xFFFE, 0xE000, len(value)) + value


END = struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)


def image(syntax: str = EXPLICIT, uid: str = UIDS[0], score: str = "0.5", pixels: bytes = PIXELS) -> bytes:
    implicit = syntax == IMPLICIT
    numeric = element((0x0040, 0xA30A), "DS", f"{score}\\2".encode(), implicit=implicit)
    elements = [
        element((0x0008, 0x0018), "UI", uid.encode(), implicit=implicit),
        element((0x0008, 0x0023), "DA", b"20261129", implicit=implicit),
        element((0x0008, 0x0033), "TM", b"101603.332793", implicit=implicit),
        element((0x0010, 0x0010), "PN", "Möller^A".encode(), implicit=implicit),
        element((0x0028, 0x0010), "US", struct.pack("<H", 2), implicit=implicit),
        element((0x0040, 0xA730), "SQ", item(numeric) + item(b"") + END, implicit=implicit, any_length=True),
        element((0x0040, 0xA731), "SQ", item(numeric), implicit=implicit),
        element((0x7FE0, 0x0010), "OW", pixels, implicit=implicit),
    ]
    data = b"".join(elements)
    if syntax == DEFLATED:
        packer = zlib.compressobj(wbits=-15)
        data = packer.compress(data) + packer.flush()
    meta = element((0x0002, 0x0003), "UI", uid.encode()) + element((0x0002, 0x0010), "UI", syntax.encode())
    return bytes(128) + b"DICM" + element((0x0002, 0x0000), "UL", struct.pack("<I", len(meta))) + meta + data


@pytest.mark.parametrize("syntax", [EXPLICIT, IMPLICIT, DEFLATED])
def test_elements_have_names_and_values(tmp_path: Path, syntax: str) -> None:
    by, read = parts(written(tmp_path / "a.dcm", image(syntax)))
    assert by == "dicom"
    assert read["PixelData"] == ("<u2", "", PIXELS)
    shown = {name: text for name, (_, text, _) in read.items()}
    assert shown["SOPInstanceUID"] == UIDS[0]
    assert (shown["ContentDate"], shown["ContentTime"]) == ("2026-11-29", "10:16:03.332793")
    assert shown["(0040,A730).0.NumericValue.0"] == "0.5"
    assert syntax == IMPLICIT or shown["(0040,A731).0.NumericValue.1"] == "2"
    assert syntax == IMPLICIT or shown["(0010,0010)"] == "Möller^A"
    other = image(syntax, UIDS[1])
    assert differing(tmp_path / "a.dcm", written(tmp_path / "b.dcm", other)) == [
        "MediaStorageSOPInstanceUID", "SOPInstanceUID"
    ]  # fmt: skip
    changed = image(syntax, score="0.7", pixels=PIXELS[::-1])
    found = differing(tmp_path / "a.dcm", written(tmp_path / "c.dcm", changed))
    assert {"(0040,A730).0.NumericValue.0", "PixelData"} <= {*found}


def test_what_is_made_up_for_each_file_is_an_identifier() -> None:
    facts = RunFacts(started=0.0, ended=1.0)
    for uid in UIDS:
        assert measurements.role("SOPInstanceUID", uid, facts) is Role.IDENTIFIER
        assert measurements.masked(f"out/{uid}.dcm", facts) == f"out/{measurements.MASK}.dcm"
    for other in (EXPLICIT, "1.2.840.10008.5.1.4.1.1.66.4", "1.2345678901234567", "0.1.2.3"):
        assert measurements.role("x", other, facts) is Role.RESULT


@pytest.mark.parametrize(("one", "other"), [(b"A\0\0\0", b"\0\0A\0"), (b"A\0", b"A "), (b"12\0\0", b"12")])
def test_numbers_without_a_representation_are_apart(tmp_path: Path, one: bytes, other: bytes) -> None:
    numbers = [element((0x0009, 0x0010), "", value, implicit=True) for value in (one, other)]
    a, b = (written(tmp_path / value.hex(), image(IMPLICIT) + value) for value in numbers)
    assert differing(a, b) == ["(0009,0010)"]


def test_compressed_pixels(tmp_path: Path) -> None:
    frames = item(b"") + item(b"jpeg") + END
    data = image(pixels=b"")[: -len(element((0x7FE0, 0x0010), "OW", b""))]
    data += element((0x7FE0, 0x0010), "OB", frames, any_length=True) + element((0xFFFC, 0xFFFC), "OB", b"end.")
    read = parts(written(tmp_path / "a.dcm", data))[1]
    assert read["PixelData.1"][2] == b"jpeg"
    assert read["(FFFC,FFFC)"][2] == b"end."
    assert "NumericValue" in " ".join(texts(tmp_path / "a.dcm"))


@given(mutations())
def test_damaged_files(tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]) -> None:
    is_refused_or_read(written(tmp_path_factory.mktemp("a") / "a", mutated(image(), changes)))
