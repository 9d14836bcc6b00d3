"""Images and documents are compared without dates, programs and random IDs."""

import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from detaudit.model.outputs import Role, RunFacts
from detaudit.runs.values import read
from tests.runs.formats.reading import SAMPLES, differing, is_refused_or_read, mutated, mutations, parts, written


def png(pixels: bytes, *texts: tuple[bytes, bytes], level: int = 9) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    packed = zlib.compress(pixels, level)
    header = struct.pack(">IIBBBBB", 2, 1, 8, 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    data += b"".join(chunk(b"tEXt", keyword + b"\0" + text) for keyword, text in texts)
    return (
        data
        + chunk(b"tIME", texts[0][1][:7])
        + chunk(b"IDAT", packed[:5])
        + chunk(b"IDAT", packed[5:])
        + chunk(b"IEND", b"")
    )


def jpeg(pixels: bytes, date: bytes) -> bytes:
    def segment(mark: int, data: bytes) -> bytes:
        return bytes([0xFF, mark]) + (len(data) + 2).to_bytes(2, "big") + data

    exif = b"Exif\0\0II*\0" + date
    return b"\xff\xd8" + segment(0xE1, exif) + segment(0xFE, date) + segment(0xDB, bytes(65)) + segment(0xDA, pixels)


def gif(pixels: bytes, date: bytes) -> bytes:
    comment = b"\x21\xfe" + bytes([len(date)]) + date + b"\0"
    frame = b"\x2c" + bytes(9) + b"\2" + bytes([len(pixels)]) + pixels + b"\0"
    return b"GIF89a" + bytes(7) + comment + frame + frame + b"\x3b"


def bmp(pixels: bytes, date: bytes) -> bytes:
    return b"BM" + (54 + len(pixels)).to_bytes(4, "little") + bytes(48) + pixels


def tiff(pixels: bytes, date: bytes) -> bytes:
    return b"II*\0" + date + pixels


def webp(pixels: bytes, date: bytes) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return kind + len(data).to_bytes(4, "little") + data + bytes(len(data) % 2)

    chunks = chunk(b"VP8 ", pixels) + chunk(b"EXIF", date)
    return b"RIFF" + (len(chunks) + 4).to_bytes(4, "little") + b"WEBP" + chunks


def pdf(pixels: bytes, date: bytes) -> bytes:
    info = b"1 0 obj\n<< /CreationDate (D:%b) /ModDate (D:%b) >>\nendobj\n" % (date, date)
    stream = b"2 0 obj\n<< >>\nstream\n%b\nendstream\nendobj\n" % pixels
    end = b"xref\n0 1\n%010d 00000 n \ntrailer\n<< /ID [<%b> <00>] >>\nstartxref\n%d\n%%%%EOF\n"
    return b"%PDF-1.4\n" + info + stream + end % (len(date), date.hex().encode(), len(date))


DATES = (b"2024:01:01 10:00:00", b"2025:02:03 04:05:06")
MADE = {
    "png": lambda pixels, date: png(pixels, (b"Creation Time", date), (b"Software", date), (b"Title", b"a")),
    "jpeg": jpeg,
    "gif": gif,
    "bmp": bmp,
    "tiff": tiff,
    "webp": webp,
    "pdf": pdf,
}
CHANGED = {
    "gif": ["frame 1", "frame 2"],
    "tiff": [""],
    "webp": ["chunk VP8"],
    "pdf": ["object 2"],
}


@pytest.mark.parametrize("kind", MADE)
def test_pixels_count_and_dates_do_not(kind: str, tmp_path: Path) -> None:
    one = written(tmp_path / "1", MADE[kind](b"\0\1\2", DATES[0]))
    assert parts(one)[0] == kind
    assert differing(one, written(tmp_path / "2", MADE[kind](b"\0\1\2", DATES[1]))) == []
    assert differing(one, written(tmp_path / "3", MADE[kind](b"\0\1\3", DATES[0]))) == CHANGED.get(kind, ["pixels"])


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_plots_of_matplotlib_are_equal_on_another_day(kind: str) -> None:
    first, second, other = (SAMPLES / f"{name}.{kind}" for name in ("first", "second", "other"))
    assert parts(first)[0] == kind
    assert first.read_bytes() != second.read_bytes() or kind == "png"
    assert differing(first, second) == []
    assert 0 < len(differing(first, other)) < 5


def test_ids_in_an_svg_are_told_apart(tmp_path: Path) -> None:
    image = '<svg>\n<path id="{0}"/>\n<path id="{1}"/>\n<use xlink:href="#{0}" clip-path="url(#{1})"/>\n</svg>\n'
    one = written(tmp_path / "1", image.format("m8a3f0123ab", "p0123456789"))
    assert differing(one, written(tmp_path / "2", image.format("mffff012345", "p8a3f0123ab"))) == []
    crossed = image.replace("url(#{1})", "url(#{0})").format("m8a3f0123ab", "p0123456789")
    assert differing(one, written(tmp_path / "3", crossed)) == ["line 4"]
    named = image.format("legend", "p0123456789")
    assert differing(one, written(tmp_path / "4", named)) == ["line 2", "line 3", "line 4"]


def test_a_plot_that_is_named_after_a_time_may_be_one_of_measurements(tmp_path: Path) -> None:
    path = written(tmp_path / "a.png", MADE["png"](b"\0\1\2", DATES[0]))
    for name, role in (("step_time.png", Role.OPEN), ("throughput.png", Role.OPEN), ("survival_time.png", Role.RESULT)):
        shown = path.rename(tmp_path / name)
        roles = {one.name: one.role for one in read(shown, name, RunFacts(started=0.0, ended=1.0)).values}
        assert roles["pixels"] is role
        path = shown


def test_pixels_count_however_they_are_compressed(tmp_path: Path) -> None:
    pixels = bytes(range(64)) * 4
    one = written(tmp_path / "1", png(pixels, (b"Title", b"a" * 7), level=9))
    assert differing(one, written(tmp_path / "2", png(pixels, (b"Title", b"a" * 7), level=0))) == []
    assert differing(one, written(tmp_path / "3", png(pixels, (b"Title", b"b" * 7)))) == ["text Title"]
    assert differing(one, written(tmp_path / "4", one.read_bytes() + b"x")) == ["after the image"]


@given(st.sampled_from(sorted(MADE)), mutations())
@example("png", [(3, 162), (21, 256)])  # MessagePack, by its bytes, with a key that ends a line
def test_a_damaged_image_is_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, kind: str, changes: list[tuple[int, int]]
) -> None:
    data = mutated(MADE[kind](bytes(range(99)), DATES[0]), changes)
    is_refused_or_read(written(tmp_path_factory.mktemp("a") / "a", data))


@given(st.sampled_from(["png", "svg", "pdf"]), mutations())
def test_a_damaged_plot_is_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, kind: str, changes: list[tuple[int, int]]
) -> None:
    data = mutated((SAMPLES / f"first.{kind}").read_bytes(), changes)
    is_refused_or_read(written(tmp_path_factory.mktemp("a") / "a", data))
