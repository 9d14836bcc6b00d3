from pathlib import Path

import msgspec
import pytest

from detaudit.auditor.baseline import lockfile, recordings
from detaudit.errors import AuditNotFoundError, ConfigError, StorageError, UnknownNameError
from detaudit.model import Stage
from tests.auditor import recorded
from tests.auditor.baseline.test_gates import recording


def test_a_lock_file_comes_back_as_it_was_written(tmp_path: Path) -> None:
    audits = {"b": recording(0.1), "a": recording("nan")}
    lockfile.write_lock(tmp_path / "lock", audits)
    assert lockfile.read_lock(tmp_path / "lock") == audits
    assert lockfile.find(tmp_path / "lock", "a") == audits["a"]


def test_it_is_the_same_text_whatever_the_order(tmp_path: Path) -> None:
    one, two = recording(), recording(0.25)
    lockfile.write_lock(tmp_path / "1", {"a": one, "b": two})
    lockfile.write_lock(tmp_path / "2", {"b": two, "a": one})
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_the_only_baseline_needs_no_name(tmp_path: Path) -> None:
    lockfile.write_lock(tmp_path / "lock", {"digits": recording()})
    assert lockfile.find(tmp_path / "lock", "") == recording()
    with pytest.raises(UnknownNameError, match="no baseline 'digit'") as error:
        lockfile.find(tmp_path / "lock", "digit")
    assert "'digits'" in error.value.cure


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", ":1:2 is no lock file"),
        ('{\n  "audits": {\n<<<<<<< HEAD\n', ":3:1 is no lock file"),
        ('{"schema_version": 1, "audits": {"a": NaN}}', "is no lock file"),
        ('{"schema_version": 1, "audits": {"a": {"run": 1}}}', r"is no lock file: .*\$\.audits"),
        ("[]", "is no lock file"),
        ('{"schema_version": 1}', "audits"),
        ('{"schema_version": 2, "audits": {}}', "has schema version 2"),
        ("{}", "has schema version None"),
        ("<<<<<<< HEAD", "is no lock file"),
    ],
)
def test_a_broken_lock_file_is_said(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "lock").write_text(text)
    with pytest.raises(ConfigError, match=words):
        lockfile.read_lock(tmp_path / "lock")


def test_a_lock_file_that_is_no_text_is_said(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(b"\x80\x81")
    with pytest.raises(ConfigError, match="is no lock file"):
        lockfile.read_lock(tmp_path / "lock")


def test_all_that_a_recording_holds_comes_back(tmp_path: Path) -> None:
    audits = {
        "small": recorded.recording(recorded.trained(weights=(recorded.weight(total="nan"), recorded.weight()))),
        "naïve": recordings.thinned(recorded.recording(recorded.trained(300), recorded.outside(Stage.ARTIFACT))),
        "unseen": recorded.recording(recorded.trained(end=None, sum=-0.0, loss="-inf")),
    }
    lockfile.write_lock(tmp_path / "lock", audits)
    found = lockfile.read_lock(tmp_path / "lock")
    assert repr(found) == repr(dict(sorted(audits.items())))
    assert list(tmp_path.iterdir()) == [tmp_path / "lock"]


def test_a_lock_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        lockfile.write_lock(tmp_path / "no" / "folder" / "lock", {})


def test_no_lock_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(AuditNotFoundError, match="there is no lock file"):
        lockfile.read_lock(tmp_path / "lock")


def test_what_changed_is_told() -> None:
    new = msgspec.structs.replace(recording(update="other"), environment={"torch": "2.14.0"})
    assert lockfile.changed("a", None, new) == ["a: a new baseline, digest other, final loss 0.5, 4 steps"]
    assert lockfile.changed("a", new, new) == []
    assert lockfile.changed("a", recording(), new) == [
        "a: digest u, final loss 0.5, 4 steps → digest other, final loss 0.5, 4 steps",
        "a: torch 2.13.0 → 2.14.0",
    ]
