"""Two runs' files are compared value by value: what decides, what is open, what is only listed."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.model.outputs import (
    Compare,
    File,
    FileBudget,
    OutputDifference,
    OutputKind,
    OutputRules,
    Outputs,
    Role,
    Unread,
    Value,
)
from detaudit.outputs import compare


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def value(name: str, text: str, role: Role = Role.RESULT, *, tensor: bool = False) -> Value:
    return Value(name, digest(text), role, "" if tensor else text, tensor)


def file(name: str, *values: Value, problem: str = "", by: str = "csv") -> File:
    return File(path=name, name=name, sha256=digest(repr(values)), size=1, by=by, values=values, problem=problem)


def between(ours: File, theirs: File) -> list[OutputDifference]:
    return list(compare.differences(Outputs(files=(ours,)), Outputs(files=(theirs,))))


def test_a_value_that_differs_is_named_by_its_path_inside() -> None:
    ours = file("a.csv", value("row 1, target", "3.41"), value("row 2, target", "1"), value("row 3, target", "7"))
    theirs = file("a.csv", value("row 1, target", "3.39"), value("row 2, target", "1"), value("row 3, target", "8"))
    (found,) = between(ours, theirs)
    assert found == OutputDifference(
        path="a.csv", kind=OutputKind.VALUE, at="row 1, target", values=("3.41", "3.39"), more=1
    )
    assert found.decides


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        (Role.RESULT, Role.RESULT, OutputKind.VALUE),
        (Role.RESULT, Role.IDENTIFIER, OutputKind.VALUE),
        (Role.RESULT, Role.MEASUREMENT, OutputKind.AMBIGUOUS),
        (Role.OPEN, Role.RESULT, OutputKind.AMBIGUOUS),
        (Role.OPEN, Role.MEASUREMENT, OutputKind.AMBIGUOUS),
        (Role.MEASUREMENT, Role.MEASUREMENT, OutputKind.MEASUREMENT),
        (Role.IDENTIFIER, Role.IDENTIFIER, OutputKind.IDENTIFIER),
        (Role.GENERATOR, Role.GENERATOR, OutputKind.GENERATOR),
    ],
)
def test_roles_of_both_sides_say_what_a_difference_is(ours: Role, theirs: Role, kind: OutputKind) -> None:
    (found,) = between(file("a", value("x", "1", ours)), file("a", value("x", "2", theirs)))
    assert found.kind is kind


def test_a_file_of_one_run_decides_and_one_that_cannot_be_read_does_not() -> None:
    a, b = file("a"), file("b", value("x", "1"))
    (only,) = compare.differences(Outputs(files=(a, b)), Outputs(files=(a,)))
    assert (only.path, only.kind, only.only_run) == ("b", OutputKind.ONLY_ONE, 1)
    (broken,) = between(file("c.npz", value("x", "1")), file("c.npz", problem="is cut off"))
    assert broken.open
    assert broken.problem == "is cut off"


def test_names_that_depend_on_the_run_are_matched() -> None:
    assert not between(file("run-20261125/a.csv", value("x", "1")), file("run-20261126/a.csv", value("x", "1")))
    (found,) = between(file("run-20261125/a.csv", value("x", "1")), file("run-20261126/a.csv", value("x", "2")))
    assert (found.path, found.kind) == ("run-20261125/a.csv", OutputKind.VALUE)


def test_what_decides_comes_first_then_what_is_open() -> None:
    ours = file("a", value("t", "1", Role.MEASUREMENT), value("o", "1", Role.OPEN), value("r", "1"))
    theirs = file("a", value("t", "2", Role.MEASUREMENT), value("o", "2", Role.OPEN), value("r", "2"))
    assert [one.at for one in between(ours, theirs)] == ["r", "o", "t"]


def test_with_training_alone_only_tensors_decide() -> None:
    rules = OutputRules(compare=Compare.TRAINING)
    ours = Outputs(files=(file("a", value("w", "1", tensor=True), value("r", "1")),), rules=rules)
    theirs = Outputs(files=(file("a", value("w", "2", tensor=True), value("r", "2")),), rules=rules)
    found = compare.differences(ours, theirs)
    assert [(one.at, one.kind) for one in found] == [("w", OutputKind.VALUE), ("r", OutputKind.UNDECIDED)]


def test_what_the_budget_left_out_is_open() -> None:
    (found,) = compare.differences(Outputs(unread=Unread(budget=FileBudget(), count=1)), Outputs())
    assert found.open


VALUES = st.lists(
    st.builds(value, st.sampled_from("abcd"), st.sampled_from("12"), st.sampled_from(list(Role))),
    max_size=4,
    unique_by=lambda one: one.name,
)


@given(VALUES, VALUES)
def test_a_lock_file_sees_every_difference_that_decides_and_no_other(ours: list[Value], theirs: list[Value]) -> None:
    a, b = Outputs(files=(file("f", *ours),)), Outputs(files=(file("f", *theirs),))
    deciding = [[(one.name, one.digest) for one in side if one.role is Role.RESULT] for side in (ours, theirs)]
    found = compare.deciding(compare.differences(compare.thinned(a), b))
    assert (found is not None) == (sorted(deciding[0]) != sorted(deciding[1]))
    assert compare.deciding(compare.differences(compare.thinned(a), compare.thinned(b))) is None or found is not None


@given(VALUES, VALUES)
def test_a_comparison_says_the_same_from_both_sides(ours: list[Value], theirs: list[Value]) -> None:
    a, b = Outputs(files=(file("f", *ours),)), Outputs(files=(file("f", *theirs),))
    found = [{(one.path, one.kind) for one in compare.differences(*pair)} for pair in ((a, b), (b, a))]
    assert found[0] == found[1]
    assert not compare.differences(a, a)
