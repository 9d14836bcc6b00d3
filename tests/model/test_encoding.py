"""Names that are not UTF-8 can be kept."""

import json
from pathlib import Path

from detaudit.auditor.evidence import saved, written
from detaudit.model.encoding import encode


def test_lone_surrogates_are_escaped_as_text() -> None:
    assert encode({"a": 0.1}) == b'{"a":0.1}'
    name = b"model-\xff.pt".decode("utf-8", "surrogateescape")
    assert json.loads(encode(({name: [name]},))) == [{r"model-\udcff.pt": [r"model-\udcff.pt"]}]


def test_files_with_such_names_are_kept(tmp_path: Path) -> None:
    name = b"model-\xff.pt".decode("utf-8", "surrogateescape")
    written.keep([written.File(name, name, saved.Contents(raw="d"))], tmp_path)
    assert [file.name for file in written.kept(tmp_path)] == [r"model-\udcff.pt"]
    (tmp_path / written.WRITTEN).write_bytes(b"[" * 100_000)
    assert written.kept(tmp_path) == ()
