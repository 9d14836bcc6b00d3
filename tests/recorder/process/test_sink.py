"""An event log is valid JSON lines, and a recorder that cannot write stays silent."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.recorder.process.log import Sink, encode
from detaudit.runs import log_records
from detaudit.runs.log_pages import Piece

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(values)
def test_encoding_is_json(value: Any) -> None:
    assert json.loads(encode(value)) == value


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]


def test_text_that_is_not_unicode_keeps_the_log_readable(tmp_path: Path) -> None:
    sink = Sink(str(tmp_path))
    sink.write({"k": "trouble", "where": "caf\udce9.py", "error": "é 😀"}, {"k": "bye", "how": "exit"})
    (path,) = tmp_path.iterdir()
    _, trouble, bye = Piece(0, path.read_bytes()).lines
    assert trouble == log_records.Trouble("caf\\udce9.py", "é 😀")
    assert isinstance(bye, log_records.Bye)


def test_hello_comes_first_and_lines_are_appended(tmp_path: Path) -> None:
    sink = Sink(str(tmp_path))
    sink.write({"k": "bye", "how": "exit"})
    assert [line["k"] for line in lines(tmp_path)] == ["hello", "bye"]
    assert lines(tmp_path)[0]["pid"] == os.getpid()


def test_a_process_that_calls_exec_gets_a_second_log(tmp_path: Path) -> None:
    for _ in range(2):
        Sink(str(tmp_path)).hello()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_fork_without_hooks_does_not_write_to_the_parents_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Sink(str(tmp_path))
    sink.hello()
    parent = next(tmp_path.iterdir())
    before = parent.read_text()
    monkeypatch.setattr(os, "getpid", lambda: 4_000_000)
    sink.write({"k": "bye", "how": "exit"})
    assert parent.read_text() == before
    assert {line["pid"] for line in lines(tmp_path) if line["k"] == "hello"} > {4_000_000}


def test_failures_of_the_recorder_are_recorded_up_to_a_maximum(tmp_path: Path) -> None:
    sink = Sink(str(tmp_path))
    for _ in range(100):
        sink.guarded("here", lambda: 1 // 0)
    troubles = [line for line in lines(tmp_path) if line["k"] == "trouble"]
    assert troubles[0] == {
        "k": "trouble",
        "where": "here",
        "error": "ZeroDivisionError: integer division or modulo by zero",
    }
    assert len(troubles) == 20


def test_a_missing_folder_is_not_an_error(tmp_path: Path) -> None:
    sink = Sink(str(tmp_path / "gone"))
    sink.write({"k": "bye", "how": "exit"})
    assert not sink.started
