"""Names that are not UTF-8 can be kept."""

import json
from pathlib import Path

from detaudit.model.fact import encode
from detaudit.model.outputs import File, Outputs
from detaudit.runs import files


def test_lone_surrogates_are_escaped_as_text() -> None:
    assert encode({"a": 0.1}) == b'{"a":0.1}'
    name = b"model-\xff.pt".decode("utf-8", "surrogateescape")
    assert json.loads(encode(({name: [name]},))) == [{r"model-\udcff.pt": [r"model-\udcff.pt"]}]


def test_files_with_such_names_are_kept(tmp_path: Path) -> None:
    name = b"model-\xff.pt".decode("utf-8", "surrogateescape")
    files.keep(Outputs(files=(File(path=name, name=name, sha256="d", size=1),)), tmp_path)
    kept = files.kept(tmp_path)
    assert kept is not None
    assert [file.name for file in kept.files] == [r"model-\udcff.pt"]
    (tmp_path / files.KEPT).write_bytes(b"[" * 100_000)
    assert files.kept(tmp_path) is None
