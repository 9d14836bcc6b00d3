"""The lock file: the same text for the same recordings, and clear words for one that cannot be read."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.auditor.baseline import changed, find, read_lock, write_lock
from detaudit.auditor.recordings import thinned
from detaudit.errors import BaselineError, StorageError, UnknownNameError, UsageError
from detaudit.model import Stage
from tests.auditor.recorded import outside, recording, trained, weight
from tests.auditor.test_gates import recording as gates_recording


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "detaudit.lock.json"
    audits = {
        "small": recording(trained(weights=(weight(total="nan"), weight(total=-0.0, shape=())))),
        "naïve": thinned(recording(trained(300), outside(Stage.ARTIFACT), environment={"torch": "2.13.0"})),
        "unseen": recording(trained(end=None, sum_of_weights=None, final_loss="-inf")),
    }
    write_lock(path, audits)
    assert read_lock(path) == audits
    assert list(tmp_path.iterdir()) == [path]


def test_the_text_is_in_order_whatever_order_the_audits_came_in(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    audits = {"b": recording(trained(12)), "a": recording(environment={"z": "1", "c": "2"})}
    write_lock(a, audits)
    write_lock(b, dict(reversed(audits.items())))
    assert a.read_bytes() == b.read_bytes()
    text = a.read_text()
    assert text.endswith("}\n")
    raw = json.loads(text)
    assert list(raw) == ["audits", "schema_version"]
    assert list(raw["audits"]) == ["a", "b"]
    assert list(raw["audits"]["a"]["environment"]) == ["c", "z"]
    steps = list(raw["audits"]["b"]["ranks"][0]["marks"]["update"])
    assert steps == [str(step) for step in range(1, 13)]  # 2 before 10


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{\n  "audits": {\n<<<<<<< HEAD\n', r"lock:3:1 is no JSON"),
        ("", r"lock:1:1 is no JSON"),
        ("[1]", "it has no audits"),
        ('{"schema_version": 1, "groups": []}', "it has no audits"),
        ('{"schema_version": 9, "audits": {}}', "schema version 9, this detaudit reads 1"),
        ('{"audits": {}}', "schema version None"),
        ('{"schema_version": 1, "audits": {"a": {"ranks": 1}}}', r"no lock file of detaudit: .*\$\.audits"),
        ('{"schema_version": 1, "audits": {"a": NaN}}', "no lock file of detaudit"),
    ],
)
def test_a_lock_file_that_cannot_be_read(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "lock"
    path.write_text(text)
    with pytest.raises(BaselineError, match=words) as caught:
        read_lock(path)
    assert "check --update" in caught.value.cure


def test_a_lock_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match=r"there is no baseline at .*gone: No such file"):
        read_lock(tmp_path / "gone")


def test_one_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(b"\x80\x81")
    with pytest.raises(BaselineError, match="is no text"):
        read_lock(tmp_path / "lock")


def test_one_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        write_lock(tmp_path / "no" / "folder" / "lock", {})


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_whatever_stands_there_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "lock"
    path.write_text(json.dumps({"schema_version": 1, "audits": value}))
    if value == {}:
        assert read_lock(path) == {}
        return
    with pytest.raises(BaselineError) as caught:
        read_lock(path)
    assert str(path) in caught.value.message


def test_what_changed_is_told() -> None:
    old, new = gates_recording(), msgspec.structs.replace(gates_recording(update="x"), environment={"torch": "2.14.0"})
    assert changed("a", None, new) == ["a: a new baseline, digest x, final loss 0.5, 4 steps"]
    assert changed("a", new, new) == []
    assert changed("a", old, new) == [
        "a: digest u, final loss 0.5, 4 steps → digest x, final loss 0.5, 4 steps",
        "a: torch 2.13.0 → 2.14.0",
    ]


def test_the_only_baseline_needs_no_name(tmp_path: Path) -> None:
    write_lock(tmp_path / "lock", {"digits": recording()})
    assert find(tmp_path / "lock", "") == find(tmp_path / "lock", "digits") == recording()
    with pytest.raises(UnknownNameError, match="no baseline 'digit'") as error:
        find(tmp_path / "lock", "digit")
    assert "'digits'" in error.value.cure
    write_lock(tmp_path / "lock", {"digits": recording(), "other": recording()})
    with pytest.raises(UsageError, match="holds 2 baselines"):
        find(tmp_path / "lock", "")
