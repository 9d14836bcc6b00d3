"""The weights of a training, one by one: their sets, steps, names and ends, as an event log has them."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from detaudit.baseline import thinned
from detaudit.model import AppliedRecipe, Recording, Training, record_of
from detaudit.model.record import WeightKind
from detaudit.runs.log import read_run
from tests.fakes import training as a_log
from tests.logs import row, write_log
from tests.runs.test_event_logs import HELLO

Tensor = tuple[str, list[int], str, str]


def tensor(digest: str, shape: int = 3, dtype: str = "torch.float32", total: float = 1.0) -> Tensor:
    return dtype, [shape], digest, total.hex()


def listed(
    step: int, *tensors: Tensor, number: int = 0, count: int = 0, names: tuple[str | None, ...] = ()
) -> dict[str, Any]:
    line = {"k": "weights", "fw": "torch", "lane": 0, "step": step, "set": number, "count": count or len(tensors)}
    return {**line, "tensors": tensors, **({"names": names} if names else {})}


def update(step: int) -> dict[str, Any]:
    return row(step, "update", f"u{step}")


def final(*tensors: Tensor, steps: int = 2, **changed: Any) -> dict[str, Any]:
    line = {"k": "final", "fw": "torch", "lane": 0, "steps": steps, "digest": "d", "sum": "0x1p+0", "loss": "0x1p-1"}
    more = {"params": len(tensors), "sparse": False, "devices": ["cpu"], "weights": tensors, "outputs": None}
    return {**line, **more, **changed}


def read(folder: Path, *lines: dict[str, Any]) -> Training:
    write_log(folder / "logs" / "7.0.jsonl", (HELLO, *lines))
    (process,) = read_run(folder)
    (found,) = process.trainings
    assert not process.torn
    return found


def test_each_weight_has_its_digest_and_sum_at_each_step_and_at_the_end(tmp_path: Path) -> None:
    lines = listed(1, tensor("a"), tensor("b", 4, total=2.0)), listed(2, tensor("c"), tensor("d", 4))
    found = read(tmp_path, update(1), lines[0], update(2), lines[1], final(tensor("e"), tensor("f", 4, total=0.5)))
    (one,) = found.weight_sets
    assert one.kinds == (WeightKind(dtype="float32", shape=(3,)), WeightKind(dtype="float32", shape=(4,)))
    assert one.steps == {1: (("a", 1.0), ("b", 2.0)), 2: (("c", 1.0), ("d", 1.0))}
    assert one.final == (("e", 1.0), ("f", 0.5))
    assert found.steps == 2


def test_names_are_those_of_the_first_line(tmp_path: Path) -> None:
    tensors = tensor("a"), tensor("b"), tensor("c")
    first, second = listed(1, *tensors, names=("net.weight", None)), listed(2, *tensors)
    (one,) = read(tmp_path, update(1), first, update(2), second).weight_sets
    assert [kind.name for kind in one.kinds] == ["net.weight", None, None]


def test_sets_of_two_optimizers_are_the_final_weights_one_after_the_other(tmp_path: Path) -> None:
    lines = listed(1, tensor("a"), number=0), listed(2, tensor("b"), tensor("c"), number=1)
    found = read(tmp_path, update(1), lines[0], update(2), lines[1], final(tensor("x"), tensor("y"), tensor("z")))
    assert [[*one.steps] for one in found.weight_sets] == [[1], [2]]
    assert [one.final for one in found.weight_sets] == [(("x", 1.0),), (("y", 1.0), ("z", 1.0))]


def test_tensors_that_are_not_listed_are_passed_over_at_the_end(tmp_path: Path) -> None:
    lines = listed(1, tensor("a"), count=2), listed(2, tensor("b"), number=1)
    found = read(tmp_path, update(1), *lines, final(tensor("x"), tensor("y"), tensor("z")))
    assert [(one.count, one.final) for one in found.weight_sets] == [(2, (("x", 1.0),)), (1, (("z", 1.0),))]


def test_final_weights_of_a_different_layout_are_not_assigned_to_sets(tmp_path: Path) -> None:
    for ends in ([tensor("a", 4)], [], [tensor("a"), tensor("b")], [tensor("a", dtype="torch.float64")]):
        found = read(tmp_path, update(1), listed(1, tensor("a")), final(*ends, steps=1))
        (one,) = found.weight_sets
        assert one.final == ()


def test_a_set_whose_tensors_change_is_a_new_one(tmp_path: Path) -> None:
    found = read(tmp_path, update(1), listed(1, tensor("a")), update(2), listed(2, tensor("a"), tensor("b")))
    assert [[*one.steps] for one in found.weight_sets] == [[1], [2]]


def test_a_run_that_was_killed_has_what_it_listed(tmp_path: Path) -> None:
    found = read(tmp_path, update(1), listed(1, tensor("a", total=float("nan"))))
    (one,) = found.weight_sets
    assert (one.steps, one.final) == ({1: (("a", "nan"),)}, ())


def test_a_run_that_was_ended_has_the_steps_through_there(tmp_path: Path) -> None:
    lines = [line for step in (1, 2, 4) for line in (update(step), listed(step, tensor("a")))]
    (one,) = read(tmp_path, *lines, final(tensor("b"), steps=4)).through(2).weight_sets
    assert ([*one.steps], one.final) == ([1, 2], ())


def test_a_log_of_an_older_recorder_has_no_sets_and_no_type_of_losses(tmp_path: Path) -> None:
    found = read(tmp_path, *a_log()[1:])
    assert found.weight_sets == ()
    assert found.final is not None
    assert found.final.loss_dtype is None
    assert found.fingerprint(0).loss_dtype is None


def test_the_type_of_the_loss_is_written_alike_for_all_frameworks(tmp_path: Path) -> None:
    for dtype in ("torch.float32", "float32"):
        found = read(tmp_path, update(1), final(tensor("a"), steps=1, loss_dtype=dtype))
        assert found.fingerprint(0).loss_dtype == "float32"


def test_a_baseline_has_no_weights_one_by_one(tmp_path: Path) -> None:
    found = read(tmp_path, update(1), listed(1, tensor("a")), final(tensor("a"), steps=1))
    recipe = AppliedRecipe(name="none", seed=0, flags=())
    (part,) = thinned(Recording(command=(), recipe=recipe, environment={}, run=record_of((found,)))).run.parts
    assert part.weight_sets == ()
    assert part.final == found.final


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(0, 2)), max_size=8))
def test_any_lines_and_any_end_give_sets_of_which_each_value_has_a_kind(found: list[tuple[int, int, int]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        lines = [
            listed(step, *[tensor(f"{step}", shape)] * size, number=number, names=("w",))
            for step, (number, shape, size) in enumerate(found, 1)
        ]
        ends = [one for line in lines for one in line["tensors"]]
        for one in read(Path(folder), update(1), *lines, final(*ends, steps=1)).weight_sets:
            assert {len(values) for values in one.steps.values()} == {len(one.kinds)}
            assert len(one.final) in (0, len(one.kinds))
