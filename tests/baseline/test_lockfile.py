from pathlib import Path
from typing import Any

import msgspec
import pytest

from detaudit import baseline
from detaudit.errors import AuditNotFoundError, ConfigError, StorageError, UnknownNameError
from detaudit.model import LockChange, RankRecord, Stage
from tests import recorded
from tests.baseline.test_gates import recording


def test_a_lock_file_comes_back_as_it_was_written(tmp_path: Path) -> None:
    audits = {"b": recording(0.1), "a": recording("nan")}
    baseline.write_lock(tmp_path / "lock", audits)
    assert baseline.read_lock(tmp_path / "lock") == audits
    assert baseline.find(tmp_path / "lock", "a") == audits["a"]


def test_it_is_the_same_text_whatever_the_order(tmp_path: Path) -> None:
    one, two = recording(), recording(0.25)
    baseline.write_lock(tmp_path / "1", {"a": one, "b": two})
    baseline.write_lock(tmp_path / "2", {"b": two, "a": one})
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_the_only_baseline_needs_no_name(tmp_path: Path) -> None:
    baseline.write_lock(tmp_path / "lock", {"digits": recording()})
    assert baseline.find(tmp_path / "lock", "") == recording()
    with pytest.raises(UnknownNameError, match="unknown baseline 'digit'") as error:
        baseline.find(tmp_path / "lock", "digit")
    assert "'digits'" in error.value.hint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", ":1:2 is not a lock file"),
        ('{\n  "audits": {\n<<<<<<< HEAD\n', ":3:1 is not a lock file"),
        ('{"schema_version": "2.0", "audits": {"a": NaN}}', "is not a lock file"),
        ('{"schema_version": "2.0", "audits": {"a": {"run": 1}}}', r"is not a lock file: .*\$\.audits"),
        ("[]", "is not a lock file"),
        ('{"schema_version": "2.0"}', "audits"),
        ('{"schema_version": 1, "audits": {}}', "has schema version 1; this version of detaudit reads 2.0"),
        ('{"schema_version": "3.0", "audits": {}}', "has schema version 3.0; this version of detaudit reads 2.0"),
        ("{}", "has schema version None"),
        ("<<<<<<< HEAD", "is not a lock file"),
    ],
)
def test_a_broken_lock_file_is_reported(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "lock").write_text(text)
    with pytest.raises(ConfigError, match=words):
        baseline.read_lock(tmp_path / "lock")


def test_a_lock_file_that_is_not_text_is_reported(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(b"\x80\x81")
    with pytest.raises(ConfigError, match="is not a lock file"):
        baseline.read_lock(tmp_path / "lock")


def test_everything_in_a_recording_comes_back(tmp_path: Path) -> None:
    audits = {
        "small": recorded.recording(recorded.trained(weights=(recorded.weight(total="nan"), recorded.weight()))),
        "naïve": baseline.thinned(recorded.recording(recorded.trained(300), recorded.outside(Stage.ARTIFACT))),
        "unrecorded": recorded.recording(recorded.trained(end=None, sum=-0.0, loss="-inf")),
    }
    baseline.write_lock(tmp_path / "lock", audits)
    found = baseline.read_lock(tmp_path / "lock")
    assert repr(found) == repr(dict(sorted(audits.items())))
    assert list(tmp_path.iterdir()) == [tmp_path / "lock"]


def test_a_lock_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        baseline.write_lock(tmp_path / "no" / "folder" / "lock", {})


def test_a_missing_lock_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(AuditNotFoundError, match="no lock file"):
        baseline.read_lock(tmp_path / "lock")


def ranks(digest: str) -> tuple[RankRecord, ...]:
    fields: dict[str, Any] = {"framework": "torch", "steps": 4, "sum_of_weights": 1.0, "final_loss": 0.5}
    return (RankRecord(rank=0, digest=digest, **fields),)


def test_changes() -> None:
    old, new = recording(), msgspec.structs.replace(recording(update="other"), environment={"torch": "2.14.0"})
    assert baseline.changes("a", None, new) == [LockChange(audit="a", new_ranks=ranks("other"))]
    assert baseline.changes("a", new, new) == []
    assert baseline.changes("a", old, new) == [
        LockChange(audit="a", old_ranks=ranks("u"), new_ranks=ranks("other")),
        LockChange(audit="a", name="torch", old="2.13.0", new="2.14.0"),
    ]
    unset = msgspec.structs.replace(old, environment={})
    assert baseline.changes("a", unset, old) == [LockChange(audit="a", name="torch", old=None, new="2.13.0")]


def test_a_baseline_that_only_keeps_different_steps_has_changed() -> None:
    whole = recorded.recording(recorded.trained(300))
    assert baseline.changes("a", whole, baseline.thinned(whole)) == [LockChange(audit="a")]


def test_what_a_key_has_by_default_is_left_out_and_long_lines_have_parts(tmp_path: Path) -> None:
    many = recording()
    environment = {f"package-{number}": f"{number}.0" for number in range(30)}
    many = msgspec.structs.replace(many, environment=environment, command=("train.py", "\udcff"))
    baseline.write_lock(tmp_path / "lock", {"a": many})
    text = (tmp_path / "lock").read_text()
    assert '"unplaced"' not in text
    assert '\n"package-7": "7.0",\n' in text
    found = baseline.find(tmp_path / "lock", "a")
    assert found == msgspec.structs.replace(many, command=("train.py", "\\udcff"))
