"""An archive counts whole, or not at all."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.model.stage import ArchiveFlaw
from detaudit.remote import archive as archives
from detaudit.remote.archive import LINE, ArchiveError, pack, read_attempt, unpack
from tests.remote.attempts import attempt, plan, stored


def flaw(data: bytes, folder: Path) -> ArchiveFlaw:
    path = folder / "changed"
    path.write_bytes(data)
    with pytest.raises(ArchiveError) as caught:
        unpack(path, folder / "out")
    assert not (folder / "out").exists(), "nothing is left of what does not count"
    return caught.value.flaw


def signed(payload: bytes) -> bytes:
    """Return an archive with the right first line for this payload."""
    import hashlib

    return b"detaudit run 1 %s %016d\n" % (hashlib.sha256(payload).hexdigest().encode(), len(payload)) + payload


def tar(*members: tuple[str, bytes, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as found:
        for name, data, kind in members:
            member = tarfile.TarInfo(name)
            member.size, member.type, member.linkname = len(data), kind, "/etc/passwd"
            found.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def test_what_was_packed_comes_back(tmp_path: Path) -> None:
    made = attempt(plan(), 2)
    path = stored(tmp_path, made)
    found = unpack(path, tmp_path / "out")
    assert (found.plan, found.run, found.id) == (made.plan, 2, made.id)
    assert set(found.files) == {"logs/7.0.jsonl", "logs/7.0.rows", "stderr.log", "stdout.log"}
    assert (tmp_path / "out" / "stdout.log").read_text() == "hello\n"
    assert read_attempt(path).files == found.files


@given(cut=st.integers(0, 10**6))
def test_one_that_is_cut_off_anywhere_does_not_count(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("cut")
    data = stored(folder, attempt(plan(), 1)).read_bytes()
    assert flaw(data[: cut % len(data)], folder) in (ArchiveFlaw.CUT, ArchiveFlaw.NO_ARCHIVE)


@given(place=st.integers(0, LINE - 1) | st.integers(0, 10**6), bit=st.integers(0, 7))
def test_one_bit_that_is_flipped_anywhere_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, place: int, bit: int
) -> None:
    folder = tmp_path_factory.mktemp("flip")
    data = bytearray(stored(folder, attempt(plan(), 1)).read_bytes())
    data[place % len(data)] ^= 1 << bit
    flaw(bytes(data), folder)


def test_bytes_after_the_end_are_noticed(tmp_path: Path) -> None:
    assert flaw(stored(tmp_path, attempt(plan(), 1)).read_bytes() + b"x", tmp_path) is ArchiveFlaw.CHANGED


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", ArchiveFlaw.NO_ARCHIVE),
        (b"PK\x03\x04 something else that is longer than the first line of an archive is" * 9, ArchiveFlaw.NO_ARCHIVE),
        (signed(b"no tar"), ArchiveFlaw.UNREADABLE),
        (signed(gzip.compress(b"no tar")), ArchiveFlaw.UNREADABLE),
        (signed(tar(("attempt.json", b"{}", tarfile.REGTYPE))), ArchiveFlaw.OTHER_VERSION),
        (signed(tar(("attempt.json", b'{"schema_version": "9.9"}', tarfile.REGTYPE))), ArchiveFlaw.OTHER_VERSION),
        (signed(tar(("attempt.json", b"[" * 100_000, tarfile.REGTYPE))), ArchiveFlaw.OTHER_VERSION),
        (signed(tar(("other.json", b"{}", tarfile.REGTYPE))), ArchiveFlaw.NO_ARCHIVE),
        (signed(tar(("attempt.json", b"", tarfile.DIRTYPE))), ArchiveFlaw.NO_ARCHIVE),
        (signed(tar(("attempt.json", b"", tarfile.SYMTYPE))), ArchiveFlaw.UNREADABLE),
    ],
)
def test_other_files_are_distinguished(tmp_path: Path, data: bytes, expected: ArchiveFlaw) -> None:
    assert flaw(data, tmp_path) is expected


@pytest.mark.parametrize("name", ["files/../../evil", "files//etc/evil", "evil", "files/logs/extra.jsonl"])
def test_nothing_is_written_that_the_first_member_does_not_name(tmp_path: Path, name: str) -> None:
    from detaudit.model.fact import encode

    facts = encode(attempt(plan(), 1))
    data = signed(tar(("attempt.json", facts, tarfile.REGTYPE), (name, b"x", tarfile.REGTYPE)))
    assert flaw(data, tmp_path) is ArchiveFlaw.CHANGED
    assert not list(tmp_path.rglob("evil"))


def test_a_path_outside_is_refused_although_it_is_named(tmp_path: Path) -> None:
    import msgspec

    from detaudit.model.fact import encode

    listed = {"../evil": archives.FileDigest(1, "0" * 64)}
    facts = encode(msgspec.structs.replace(attempt(plan(), 1), files=listed))
    data = signed(tar(("attempt.json", facts, tarfile.REGTYPE), ("files/../evil", b"x", tarfile.REGTYPE)))
    assert flaw(data, tmp_path) is ArchiveFlaw.CHANGED
    assert not (tmp_path / "evil").exists()


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    import msgspec

    from detaudit.model.fact import encode

    listed = {"big": archives.FileDigest(archives.MOST_BYTES + 1, "0" * 64)}
    facts = encode(msgspec.structs.replace(attempt(plan(), 1), files=listed))
    assert flaw(signed(tar(("attempt.json", facts, tarfile.REGTYPE))), tmp_path) is ArchiveFlaw.UNREADABLE


def test_links_in_the_folder_of_a_run_do_not_travel(tmp_path: Path) -> None:
    work = tmp_path / "run"
    work.mkdir()
    (work / "secret").symlink_to("/etc/hostname")
    pack(attempt(plan(), 1), work, tmp_path / "a.detaudit")
    assert unpack(tmp_path / "a.detaudit", tmp_path / "out").files == {}
    assert (tmp_path / "a.detaudit").stat().st_size > LINE
