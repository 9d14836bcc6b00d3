"""Which files of a results folder are archived, and what later hashing says of itself."""

import json
import os
from pathlib import Path

import pytest

from detaudit.evidence import materials, pack
from detaudit.model.outputs import FileBudget
from tests.evidence.conftest import Kept


def test_copies_of_the_user_s_files_and_links_are_left_out(tmp_path: Path) -> None:
    for name in ("audit.json", "runs/.detaudit", "runs/tree/1/stdout.log", "runs/none/1/known-files", "half.part"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for name in ("tree/project/secret.csv", "work-1/project/secret.csv", "live/logs/1.0.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.touch()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "audit.json").touch()  # an audit of a check that has this name
    (tmp_path / "link").symlink_to("/etc/passwd")
    names = {"results/audit.json", "results/runs/tree/1/stdout.log", "results/work/audit.json"}
    assert {*pack.files_of(tmp_path, "results")} == names


def test_what_cannot_be_hashed_is_named_with_the_reason(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(materials, "packages_of", lambda python: ("", (), "python does not list them"))
    monkeypatch.setattr(materials, "git_state", lambda cwd, results: (None, b"", "no repository"))
    logs = kept.out / "runs" / "none" / "1" / "logs" / "7.0.jsonl"
    small, large, new = (kept.cwd / name for name in ("small", "large", "new"))
    for path, size in ((small, 10), (large, 2000), (new, 10)):
        path.write_bytes(bytes(size))
        os.utime(path, (0, 0))
    os.utime(new)
    monkeypatch.setattr(materials, "_started", lambda report: 1000.0)
    read = [str(path) for path in (small, large, new, kept.cwd / "gone")]
    logs.write_text(logs.read_text() + json.dumps({"k": "data", "paths": read, "spent": True}) + "\n")
    used, _ = materials.collect(kept.report, kept.out, kept.cwd, budget=FileBudget(60, 1000))
    assert [(one.name, one.size, one.later) for one in used.data] == [("small", 10, False)]
    why = {one.name: one.why for one in used.unhashed}
    assert "the budget of 1 min 00 s or 1000 bytes was spent" in why["large"]
    assert why["new"] == "it changed after the audit began"
    assert why["gone"] == "it cannot be read: No such file or directory"
    assert why["more data files"] == "a process read more files than it noted"
    assert why["packages"] == "python does not list them"
    assert why["git"] == "no repository"
