"""The zip file: one layout, and nothing of a hostile one is unpacked."""

import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from detaudit.errors import ExitCode
from detaudit.evidence import archive
from detaudit.evidence.archive import NotAnArchiveError, Source, measured, unpack, write


def written(path: Path, sources: dict[str, Source]) -> Path:
    write(path, sources, {name: measured(source) for name, source in sources.items()})
    return path


def test_other_programs_read_what_is_written(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"2" * 3_000_000)
    path = written(tmp_path / "a.zip", {"z/é.txt": b"1", "b": tmp_path / "b", "empty": b""})
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        assert file.namelist() == ["b", "empty", "z/é.txt"]
        assert file.read("b") == b"2" * 3_000_000
        assert {one.date_time for one in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    members, damaged = unpack(path, tmp_path / "out")
    assert not damaged
    assert members["z/é.txt"] == measured(b"1")
    assert (tmp_path / "out" / "z" / "é.txt").read_bytes() == b"1"
    assert stat.S_IMODE((tmp_path / "out" / "b").stat().st_mode) == 0o600


def test_large_members_and_many_have_the_fields_that_others_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_MOST32", 100)  # so that a small file needs what one of 4 GiB needs
    sources: dict[str, Source] = {f"{number:03}": bytes(number) for number in range(150)}
    parts = b"".join(archive.layout(sources, {name: measured(one) for name, one in sources.items()}))
    assert b"PK\6\6" in parts
    assert b"PK\6\7" in parts
    monkeypatch.undo()
    monkeypatch.setattr(archive, "_MOST16", 100)
    path = written(tmp_path / "many.zip", sources)
    with zipfile.ZipFile(path) as file:
        assert len(file.namelist()) == 150


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("../out.txt", "no plain file"),
        ("/etc/passwd", "no plain file"),
        ("a//b", "no plain file"),
        ("a/./b", "no plain file"),
        ("a\\..\\b", "no plain file"),
        ("folder/", "no plain file"),
        ("line\nbreak", "no plain file"),
        ("c:evil", "no plain file"),
    ],
)
def test_a_member_with_a_path_out_of_the_archive_is_refused(name: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "slip.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(zipfile.ZipInfo(name), "x")
    with pytest.raises(NotAnArchiveError, match=said) as refused:
        unpack(path, tmp_path / "out")
    assert refused.value.exit_code is ExitCode.USAGE
    assert not (tmp_path / "out").exists()


@pytest.mark.full
def test_links_bombs_twins_and_files_that_are_folders_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = tmp_path / "hostile.zip"
    hostile: dict[str, list[tuple[Any, bytes]]] = {
        "no plain file": [(link, b"/etc/passwd")],
        "one name": [("a", b"1"), ("A", b"2")],
        "folder of another": [("a", b"1"), ("a/b", b"2")],
    }
    for said, members in hostile.items():
        with zipfile.ZipFile(path, "w") as file:
            for name, data in members:
                file.writestr(name, data)
        with pytest.raises(NotAnArchiveError, match=said):
            unpack(path, tmp_path / "out")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open("bomb", "w") as member:
        for _ in range(1100):
            member.write(bytes(2**20))
    with pytest.raises(NotAnArchiveError, match="unpack to"):
        unpack(path, tmp_path / "out")


def test_what_is_no_zip_file_is_refused_with_a_cure(tmp_path: Path) -> None:
    (tmp_path / "text.zip").write_text("no zip")
    for path in (tmp_path / "text.zip", tmp_path / "missing.zip", tmp_path):
        with pytest.raises(NotAnArchiveError) as refused:
            unpack(path, tmp_path / "out")
        assert "--evidence" in refused.value.hint
