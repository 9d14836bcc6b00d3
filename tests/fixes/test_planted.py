"""What the rules and the flags would do to each planted bug, without a run: the reference patch, and no harm."""

from pathlib import Path

import pytest

from detaudit.config.flags import load_catalogue
from detaudit.fix.candidates import Training, candidates
from detaudit.fix.tree import Tree
from tests.fixes.measure import bugs, script
from tests.report.traces import TRACES

BUGS = bugs()
VERSIONS = {"torch": "2.13", "tensorflow": "2.21", "keras": "3.15"}

OF_A_TRACE = {"tf_parallel_map", "torch_race"}
"""What only runs show: a flag fixes it that nothing in the code asks for."""

REFUSED_BY_RUNS = {"torch_epochs"}
"""Harm that only batches show: the number of an item is a good seed unless there are several epochs."""


@pytest.mark.parametrize("name", [name for name in BUGS if name not in OF_A_TRACE])
def test_the_reference_patch_is_tried_and_nothing_that_does_harm(name: str, tmp_path: Path) -> None:
    bug = BUGS[name]
    files = {"train.py": script(bug), **bug.get("files", {})}
    for file, code in files.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(code)
    tree = Tree(tmp_path, tmp_path, tmp_path / "results")
    tree.make()
    frameworks = {one: version for one, version in VERSIONS.items() if f"import {one}" in files["train.py"]}
    training = Training("train.py", [*files], {**frameworks, "numpy": "2.4"}, ["cpu"])
    tried = candidates(TRACES["traced-hidden"], load_catalogue(), tree, training, ())
    changes = [change for one in tried for change in one.changes]
    lines = {line.strip() for change in changes for line in (*change.new, *change.needs)}
    for one in bug.get("new", ()):
        assert lines & {line.strip() for line in ([one] if isinstance(one, str) else one)}, one
    added = "\n".join(f"+{line}" for change in changes for line in change.new)
    assert name in REFUSED_BY_RUNS or not [harm for harm in bug.get("harm", ()) if harm in added]
