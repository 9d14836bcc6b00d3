"""Archives are read member by member, and never written under the names in them."""

import bz2
import gzip
import io
import json
import lzma
import sys
import tarfile
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.runs import formats
from detaudit.runs.formats import UnusableError, npy
from tests.runs.formats.reading import differing, is_refused_or_read, mutated, mutations, parts, texts, written

TABLE = b"id,target\n1,3.41\n2,0.5\n"
MEMBERS = {"b/config.json": b'{"threshold": 0.5}', "a.csv": TABLE, "empty": b""}


def zipped(members: dict[str, bytes], day: int = 1) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, day, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def tarred(members: dict[str, bytes], day: int = 1) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.uid, info.uname = len(data), day, day, f"user{day}"
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def gzipped(data: bytes, day: int = 1) -> bytes:
    return gzip.compress(data, mtime=day)


Pack = Callable[[dict[str, bytes], int], bytes]
PACKS: dict[str, Pack] = {
    "zip": zipped,
    "tar": tarred,
    "gzip": lambda members, day: gzipped(tarred(members, day), day),
    "bz2": lambda members, day: bz2.compress(tarred(members, day)),
    "xz": lambda members, day: lzma.compress(tarred(members, day)),
}


@pytest.mark.parametrize("kind", PACKS)
def test_members_are_read_as_the_files_that_they_are(kind: str, tmp_path: Path) -> None:
    by, found = parts(written(tmp_path / "a", PACKS[kind](MEMBERS, 1)))
    assert by == kind
    assert found["a.csv: row 1, target"] == ("number", "3.41", b"3.41")
    assert found["b/config.json: threshold"] == ("number", "0.5", b"0.5")
    assert found["empty"] == ("", "", b"")


@pytest.mark.parametrize("kind", PACKS)
def test_a_change_is_named_and_times_and_order_do_not_count(kind: str, tmp_path: Path) -> None:
    one = written(tmp_path / "1", PACKS[kind](MEMBERS, 1))
    turned = dict(reversed(MEMBERS.items()))
    assert differing(one, written(tmp_path / "2", PACKS[kind](turned, 2))) == []
    changed = MEMBERS | {"a.csv": TABLE.replace(b"0.5", b"0.6")}
    assert differing(one, written(tmp_path / "3", PACKS[kind](changed, 1))) == ["a.csv: row 2, target"]
    renamed = {name.replace("empty", "void"): data for name, data in MEMBERS.items()}
    assert differing(one, written(tmp_path / "4", PACKS[kind](renamed, 1))) == ["empty", "void"]


@pytest.mark.parametrize("pack", [gzipped, bz2.compress, lzma.compress])
def test_a_compressed_file_is_read_as_what_it_is(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    assert texts(written(tmp_path / "a", pack(TABLE)))["row 1, target"] == "3.41"


def test_zstandard_needs_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a", b"\x28\xb5\x2f\xfd" + TABLE)
    for name in ("compression.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError) as error:
        parts(path)
    assert error.value.name == "zstandard"
    library = types.ModuleType("zstandard")
    library.__dict__["open"] = lambda path, mode: io.BytesIO(path.read_bytes()[4:])
    monkeypatch.setitem(sys.modules, "zstandard", library)
    assert texts(path)["row 1, target"] == "3.41"


def test_links_count_by_where_they_point(tmp_path: Path) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        link = tarfile.TarInfo("last")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert texts(written(tmp_path / "a", file.getvalue())) == {"last": "link to /etc/passwd"}


def test_nothing_is_written_under_a_members_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"../evil": b"a\n", str(tmp_path / "evil"): b"b\n", "evil": b"c\n"}
    for pack in (zipped, tarred):
        path = written(tmp_path / "a", pack(names))
        assert len(parts(path)[1]) == 3
        assert list(tmp_path.iterdir()) == [path]


def test_archives_in_archives_end(tmp_path: Path) -> None:
    three = zipped({"a": gzipped(zipped({"b": TABLE}))})
    assert texts(written(tmp_path / "3", three))["a: b: row 1, target"] == "3.41"
    with pytest.raises(UnusableError, match="more than 3 archives in each other"):
        parts(written(tmp_path / "4", gzipped(three)))


ZEROS = bytes(4 * 2**20)


@pytest.mark.parametrize(
    "data",
    [
        zipped({"a": ZEROS}),
        gzipped(ZEROS),
        bz2.compress(ZEROS),
        lzma.compress(ZEROS),
        gzipped(tarred({"a": ZEROS})),
        zipped({"a": gzipped(ZEROS)}),
        tarred({f"{n}": gzipped(ZEROS[: 2**20]) for n in range(8)}),
    ],
)
def test_bombs_are_refused(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a", data)
    parts(path)
    monkeypatch.setattr("detaudit.runs.formats.MOST_UNPACKED", 2**20)
    with pytest.raises(ValueError, match="it unpacks to 100 times its size or more"):
        parts(path)


@pytest.mark.parametrize("kind", PACKS)
def test_an_archive_that_was_cut_off_is_refused(kind: str, tmp_path: Path) -> None:
    data = PACKS[kind](MEMBERS | {"large": bytes(range(256)) * 99}, 1)
    assert not is_refused_or_read(written(tmp_path / "a", data[: len(data) // 2]))


@given(st.sampled_from(sorted(PACKS)), mutations())
def test_a_damaged_archive_is_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, kind: str, changes: list[tuple[int, int]]
) -> None:
    is_refused_or_read(written(tmp_path_factory.mktemp("a") / "a", mutated(PACKS[kind](MEMBERS, 1), changes)))


def saved_by_skops(first: int, mean: bytes = bytes(8), state: int = 1) -> bytes:
    """Return what skops saves, with objects from the address ``first`` on."""

    def node(loader: str, number: int, **fields: Any) -> dict[str, Any]:
        return {"__class__": "C", "__module__": "m", "__loader__": loader, "__id__": first + number, **fields}

    array = node("NdArrayNode", 16, type="numpy", file=f"{first + 16}.npy")
    generator = node("RandomStateNode", 32, content={"pos": node("JsonNode", 48, content=str(state), is_json=True)})
    fields = {"mean_": array, "random_state": generator, "again": array}
    schema = node("ObjectNode", 0, content=node("DictNode", 64, content=fields, key_types=[]), protocol=2)
    return zipped({"schema.json": json.dumps(schema).encode(), f"{first + 16}.npy": npy.written("float64", (1,), mean)})


def test_what_skops_saves_has_no_addresses(tmp_path: Path) -> None:
    one = written(tmp_path / "a", saved_by_skops(140020595367088))
    by, read = parts(one)
    assert by == "skops"
    assert read["mean_"][0] == "<f8"
    assert read["protocol"][1] == "2"
    assert differing(one, written(tmp_path / "b", saved_by_skops(140381247398480))) == []
    assert differing(one, written(tmp_path / "c", saved_by_skops(140381247398480, mean=b"\1" * 8))) == ["mean_"]
    assert differing(one, written(tmp_path / "d", saved_by_skops(140020595367088, state=2))) == ["random_state.pos"]
    states = {part.name: (part.generator, [*part.pieces]) for part in formats.parts(one)[1]}
    assert [name for name, (generator, _) in states.items() if generator] == ["random_state.pos"]
