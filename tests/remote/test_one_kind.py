"""Which machines do the runs of a search: one, or others like it."""

from pathlib import Path
from typing import Any

import pytest

from detaudit.judge.conditions import RunMachine
from detaudit.model import FlagOutcome, FlagState
from detaudit.remote.runner import FILE, SameMachine
from detaudit.runs import environment

FACTS = {"cpu": "x", "microcode": "1", "cpus": 4, "numa_nodes": "0"}


def place(name: str, packages: dict[str, str] | None = None, **facts: Any) -> RunMachine:
    described = {**FACTS, **facts}
    return RunMachine(
        name, f"host-{name}", environment.relevant_of_machine({**described, "packages": packages or {}}), {}, described
    )


@pytest.mark.parametrize(
    ("other", "names"),
    [
        (place("one", microcode="2"), []),
        (place("two", {"torch": "1"}), []),
        (place("two", numa_nodes="0-1"), []),
        (place("two", microcode="2", cpus=8), ["cpus", "microcode"]),
        (place("two", microcode=""), ["microcode"]),
        (place("two"), []),
        (place("two", {"torch": "1", "numpy": "2"}), []),
        (place("two", {"torch": "2"}), ["torch"]),
    ],
    ids=["itself", "a twin", "another layout of memory", "another machine", "one that shows less",
         "a twin that imported less", "a twin that imported more", "another package"],
)  # fmt: skip
def test_what_makes_another_kind_of_a_machine(tmp_path: Path, other: RunMachine, names: list[str]) -> None:
    kept, first = SameMachine(), place("one", {"torch": "1"})
    assert kept.differing(first) == []
    kept.take(first, "a", tmp_path)
    assert kept.differing(other) == names


def test_the_first_machine_is_kept_and_found_again(tmp_path: Path) -> None:
    kept, refused = SameMachine(), {"f": FlagState(id="f", state=FlagOutcome.UNAVAILABLE)}
    first = RunMachine("one", "host", {"cpu": "x"}, refused, {**FACTS})
    assert kept.take(first, "a", tmp_path) == first
    assert (kept.where, kept.refused) == ("a", refused)
    again = SameMachine()
    assert again.restored(tmp_path) == first
    assert (again.where, again.refused) == ("host", refused)
    assert again.differing(place("two", cpu="y")), "also after a resumption"
    assert kept.where == "a"


def test_a_twin_is_of_the_same_kind_whatever_its_run_imported(tmp_path: Path) -> None:
    kept = SameMachine()
    first = kept.take(place("one", {"numpy": "1"}), "a", tmp_path)
    assert kept.take(place("two"), "b", tmp_path).relevant == first.relevant
    assert kept.where == "a"


@pytest.mark.parametrize("text", [None, b"", b"{}"])
def test_a_run_of_which_nothing_is_kept(tmp_path: Path, text: bytes | None) -> None:
    if text is not None:
        (tmp_path / FILE).write_bytes(text)
    assert SameMachine().restored(tmp_path) is None
