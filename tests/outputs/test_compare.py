"""Two runs' files are compared value by value: what decides, what is open, what is only listed."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

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
    RunFacts,
    Unread,
    Value,
)
from detaudit.outputs import compare
from detaudit.outputs.text import text_of
from detaudit.runs import values


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


def test_a_file_in_the_folder_of_another_class_differs() -> None:
    """Sorted by what a model predicts; a folder that only one run has is one of that run."""

    def sides(*paths: str) -> Outputs:
        return Outputs(files=tuple(file(path, value("pixel", path[-1])) for path in paths))

    ours = sides("out/cat/1", "out/dog/2", "out/cat/3")
    (found, *_) = compare.differences(ours, sides("out/cat/1", "out/cat/2", "out/dog/3"))
    assert found.decides
    assert found.at == "name"
    numbered = compare.differences(sides("out/3/img-1", "out/7/img-2"), sides("out/7/img-1", "out/7/img-2"))
    assert [one.values for one in numbered if one.decides] == [("out/3/img-1", "out/7/img-1")]
    assert not compare.differences(sides("brave-fox/1", "brave-fox/2"), sides("calm-owl/1", "calm-owl/2"))
    assert not compare.differences(sides("ckpt-20261122/1"), sides("ckpt-20261123/1"))


def test_the_order_of_lines_in_the_log_of_one_thread() -> None:
    def log(*lines: str, writers: int = 1, time: str = "12:01") -> Outputs:
        read = [
            one
            for number, line in enumerate(lines, 1)
            for one in (value(f"line {number}", line), value(f"line {number}, value", time, Role.MEASUREMENT))
        ]
        facts = RunFacts(started=0.0, ended=1.0, writers=writers)
        return Outputs(files=(file("train.log", *read, by=compare.LOG),), facts=facts)

    one, other = log("cat", "dog", "owl"), log("owl", "dog", "cat", time="12:02")
    (found, *_) = [each for each in compare.differences(one, other) if each.open]
    assert (found.at, found.values) == ("order of lines, from line 1", ("cat", "owl"))
    assert not [each for each in compare.differences(one, log("owl", "dog", "cat", writers=4)) if each.open]
    assert not [each for each in compare.differences(one, log("cat", "dog", "owl", time="12:02")) if each.open]


def test_a_file_of_one_run_decides_and_one_that_cannot_be_read_does_not() -> None:
    a, b = file("a"), file("b", value("x", "1"))
    (only,) = compare.differences(Outputs(files=(a, b)), Outputs(files=(a,)))
    assert (only.path, only.kind, only.only_run) == ("b", OutputKind.ONLY_ONE, 1)
    (broken,) = between(file("c.npz", value("x", "1")), file("c.npz", problem="is cut off"))
    assert broken.open
    assert broken.problem == "is cut off"


def test_how_many_files_a_database_has_that_its_manifest_leads_to_says_nothing() -> None:
    manifest, data = file("db/manifest.ocdbt", value("w", "1"), by="ocdbt"), value("", "is read with manifest.ocdbt")
    more = tuple(file(f"db/d/{name}", data, by="ocdbt-data") for name in ("0" * 32, "1" * 32))
    assert not compare.differences(Outputs(files=(manifest, *more)), Outputs(files=(manifest, more[1])))


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


def test_with_all_what_may_be_a_result_decides_and_measurements_do_not() -> None:
    rules = OutputRules(compare=Compare.ALL)
    ours, theirs = (
        Outputs(files=(file("a", value("o", side, Role.OPEN), value("t", side, Role.MEASUREMENT)),), rules=rules)
        for side in "12"
    )
    found = compare.differences(ours, theirs)
    assert [(one.at, one.decides) for one in found] == [("o", True), ("t", False)]
    unread = Outputs(unread=Unread(budget=FileBudget(), count=1), rules=rules)
    assert not compare.deciding(compare.differences(unread, Outputs(rules=rules)))


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

    def differ(*roles: Role) -> bool:
        one, two = ({(value.name, value.digest) for value in side if value.role in roles} for side in (ours, theirs))
        return one != two

    for pair in ((compare.thinned(a), b), (a, compare.thinned(b)), (compare.thinned(a), compare.thinned(b))):
        found = compare.differences(*pair)
        assert bool(found) == differ(Role.RESULT, Role.OPEN)
        assert (compare.deciding(found) is not None) == (bool(found) and differ(Role.RESULT))


@given(VALUES, VALUES)
def test_a_comparison_says_the_same_from_both_sides(ours: list[Value], theirs: list[Value]) -> None:
    a, b = Outputs(files=(file("f", *ours),)), Outputs(files=(file("f", *theirs),))
    found = [{(one.path, one.kind) for one in compare.differences(*pair)} for pair in ((a, b), (b, a))]
    assert found[0] == found[1]
    assert not compare.differences(a, a)


TABLE = "".join(f"{row},{row / 7}\n" for row in range(1, 501))
LOG = [
    "started worker 417",
    *(f"[{step}/500] loss {step / 7:.3f} | {52.1 + step / 9:.1f} | {step / 90:.3f}s" for step in range(300, 500)),
]


def left(folder: Path, seconds: float, *pids: int, printed: Sequence[str] = LOG) -> Outputs:
    """What a run of so many seconds with these processes leaves."""
    facts = RunFacts(started=1764000000.0, ended=1764000000.0 + seconds, pids=frozenset(pids))
    table = folder / "table.csv"
    table.write_text(TABLE)
    return Outputs(files=(values.read(table, "table.csv", facts),), stdout=text_of(printed), facts=facts)


@pytest.mark.parametrize(("seconds", "pids"), [(5, ()), (500, ()), (5, (417,)), (5, (444, 12)), (50, (417, 444, 9000))])
@pytest.mark.parametrize(("seconds_now", "pids_now"), [(5, ()), (100, (417,)), (20, (333, 444))])
def test_what_a_lock_file_has_of_equal_runs_does_not_depend_on_their_processes_and_time(
    tmp_path: Path, seconds: float, pids: tuple[int, ...], seconds_now: float, pids_now: tuple[int, ...]
) -> None:
    lock, now = compare.thinned(left(tmp_path, seconds, *pids)), left(tmp_path, seconds_now, *pids_now)
    assert not compare.differences(lock, now)
    assert not compare.differences(now, lock)


def test_the_process_that_a_run_prints_is_none_of_its_results(tmp_path: Path) -> None:
    before, now = (left(tmp_path, 5, pid, printed=[f"worker {pid} ready", *LOG[1:]]) for pid in (4711, 9000))
    assert not compare.differences(compare.thinned(before), now)
    other = left(tmp_path, 5, 9001, printed=["worker 9002 ready", *LOG[1:]])
    assert compare.deciding(compare.differences(compare.thinned(before), other))


@pytest.mark.parametrize("pid", [412, 5000])
@pytest.mark.parametrize("count", ["step {}", "[{}/500]", "{} / 500", "epoch 1: {}/500", "/proc/412/stat: {}/500"])
def test_a_step_with_the_number_of_the_process_in_each_line_is_a_step(tmp_path: Path, count: str, pid: int) -> None:
    before, now = (
        left(
            tmp_path,
            5,
            one,
            printed=[f"INFO:{one}: {count.format(step)} loss {step / 7:.3f}" for step in range(300, 500)],
        )
        for one in (6000, pid)
    )
    assert not compare.differences(compare.thinned(before), now)


@pytest.mark.parametrize(
    ("mine", "yours", "kind"),
    [
        ("weights.03-0.5523.npz", "weights.03-0.5611.npz", OutputKind.VALUE),
        ("m-val_loss=0.31.ckpt", "m-val_loss=0.32.ckpt", OutputKind.VALUE),
        ("x-12.5.ckpt", "x-12.25.ckpt", OutputKind.VALUE),
        ("best_acc97.txt", "best_acc96.txt", OutputKind.VALUE),
        ("eval/AUC-09713.json", "eval/AUC-09698.json", OutputKind.VALUE),
        ("e03-f1=81-loss=0.5.pt", "e03-f1=80-loss=0.5.pt", OutputKind.VALUE),
        ("loss_1.png", "loss_2.png", None),  # it may count
        ("tracer_10.json", "tracer_11.json", None),
        ("loss_20251124.csv", "loss_20251125.csv", None),
        ("score_20251124_160001.csv", "score_20251124_160003.csv", None),
        ("run_3.2s/a.csv", "run_3.4s/a.csv", None),
        ("train_time=3.2.json", "train_time=3.4.json", None),
        ("saved_1764000001.25.npz", "saved_1764000003.75.npz", None),
        ("a-2.13.0.whl", "a-2.14.0.whl", None),
        ("2025-11-24T16_00_01.835567/a.npz", "2025-11-24T16_00_03.474801/a.npz", None),
        ("2025-11-24T16_00_01.83/loss_0.5.npz", "2025-11-24T16_00_03.47/loss_0.6.npz", OutputKind.VALUE),
    ],
)
def test_a_result_in_the_name_of_a_file_decides(mine: str, yours: str, kind: OutputKind | None) -> None:
    facts = RunFacts(started=1764000000.0, ended=1764000010.0)
    a, b = (Outputs(files=(file(name, Value("x", "1")),), facts=facts) for name in (mine, yours))
    assert [one.kind for one in compare.differences(a, b)] == ([kind] if kind else [])


def test_rows_of_a_table_of_times_that_is_sorted_by_them_decide_nothing() -> None:
    def table(*rows: str) -> File:
        cells = [(f"line {number}", row) for number, row in enumerate(rows, 1)]
        times = [
            (f"{at}, {name}", f"{row} {name}", Role.MEASUREMENT) for at, row in cells for name in ("self", "total")
        ]
        lines = [(at, row, Role.RESULT) for at, row in cells]
        return file("profile.txt", *(value(*one) for one in (*lines, *times)), by="text")

    found = between(table("conv", "matmul"), table("matmul", "conv"))
    assert [one.kind for one in found if one.at == "line 1"] == [OutputKind.AMBIGUOUS]
    assert not any(one.decides for one in found)
    lines = file("a.txt", value("line 1", "conv"), by="text"), file("a.txt", value("line 1", "matmul"), by="text")
    assert all(one.decides for one in between(*lines))


def test_the_same_rows_sorted_by_a_time_are_the_same_table() -> None:
    def table(*rows: tuple[str, str, str]) -> File:
        cells = []
        for number, (model, score, seconds) in enumerate(rows, 1):
            row = f"row {number}, "
            cells += [value(f"{row}model", model), value(f"{row}score", score)]
            cells.append(value(f"{row}fit_time", seconds, Role.MEASUREMENT))
        return file("board.csv", *cells)

    ours = table(("knn", "0.9", "0.51"), ("svm", "0.8", "0.52"), ("mlp", "0.7", "1.25"))
    theirs = table(("svm", "0.8", "0.49"), ("knn", "0.9", "0.53"), ("mlp", "0.7", "1.31"))
    assert not any(one.decides for one in between(ours, theirs))
    assert any(
        one.decides for one in between(ours, table(("svm", "0.8", "0.6"), ("knn", "0.9", "0.5"), ("mlp", "0.7", "1")))
    )
    assert any(
        one.decides for one in between(ours, table(("svm", "0.8", "0.4"), ("knn", "0.7", "0.5"), ("mlp", "0.7", "1")))
    )
