"""Files that documents name exist: below the repository, or where a document of a room looks for them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "CONTRIBUTING.md", *(path for path in ROOT.glob("docs/**/*.md") if "lab" not in path.parts)]
BASES = (ROOT, ROOT / "detaudit", ROOT / "detaudit" / "recorder")
OF_USERS = {"examples/train.py"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_names_files_that_exist(path: Path) -> None:
    named = set(re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", path.read_text())) - OF_USERS
    assert not [name for name in named if not any((base / name).exists() for base in BASES)]
