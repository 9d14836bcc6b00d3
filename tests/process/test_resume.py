"""detaudit resume as a real process: the change that restores what was lost."""

from pathlib import Path

import pytest

from tests.process.conftest import Project
from tests.resume.scripts import SCRIPTS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["momentum", "place-in-the-epoch"])
def test_a_change_is_printed_only_if_the_resumed_run_matches_with_it(tmp_path: Path, name: str) -> None:
    project = Project(tmp_path)
    code = next(script.code for script in SCRIPTS if script.name == name)
    project.write("train.py", code)
    words = ("--stop", "train.py --steps 10", "--resume", "train.py --resume", "--format", "json")
    done = project.detaudit("resume", "train.py", *words)
    assert done.code == 1
    restored = done.json["restored"]
    assert (restored is not None) is (name == "momentum")
    if restored is not None:
        assert (restored["matching"], restored["first_difference"]) == (1, None)
        assert '+    optimizer.load_state_dict(saved["optimizer"])' in restored["diff"]
    assert (tmp_path / "train.py").read_text() == code
