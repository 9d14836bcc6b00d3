"""What results of repetitions mean."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.model.operations import OpCause, SwitchEffect
from detaudit.ops import judge
from detaudit.ops.answers import FILLS, MANY_THREADS, ONE_THREAD, SWITCH, USUAL, Case, Kept, Phase

FIRST, SECOND = FILLS


def case(inputs: str = "i", kept: Kept | None = None, **phases: str) -> Case:
    """Return a case; the phases have one letter for each repetition, or an error in capitals."""
    found = {
        name.replace("_", "-"): Phase(error=letters)
        if letters.isupper()
        else Phase({letter: letters.count(letter) for letter in letters})
        for name, letters in phases.items()
    }
    return Case("put", "float32", 0, "forward", None, inputs, "5x5", found, kept)


def judged(*processes: tuple[Case, int]) -> judge.Evidence:
    (found,) = judge.collected([([one], fill) for one, fill in processes])
    return found


def test_equal_results_match() -> None:
    found = judged(
        (case(usual="aaa", one_thread="a", switch="a"), FIRST), (case(usual="aa", one_thread="a", switch="a"), SECOND)
    )
    assert not found.differs
    assert not found.thread_dependent
    assert found.cause is None


def test_results_that_match_with_one_thread_race() -> None:
    found = judged(
        (case(usual="abc", one_thread="ss", switch="dd"), FIRST), (case(usual="aa", one_thread="s", switch="d"), SECOND)
    )
    result = found.result()
    assert (result.cause, result.switch) == (OpCause.RACE, SwitchEffect.FIXES)
    assert (result.distinct, result.repeats, result.differing_processes) == (3, 5, False)


def test_results_that_follow_the_filling_are_uninitialized_memory() -> None:
    found = judged((case(usual="aa", one_thread="a"), FIRST), (case(usual="bb", one_thread="b"), SECOND))
    assert found.result().cause is OpCause.MEMORY
    assert found.result().differing_processes


def test_results_that_differ_with_one_thread_and_the_same_filling_are_unexplained() -> None:
    assert judged((case(usual="ab", one_thread="xy"), FIRST)).cause is OpCause.UNEXPLAINED
    again = judged((case(usual="ab", one_thread="x"), FIRST), (case(usual="ab", one_thread="y"), FIRST))
    assert again.cause is OpCause.UNEXPLAINED


def test_a_race_among_more_threads_than_usual_counts() -> None:
    found = judged((case(usual="aa", many_threads="ab", one_thread="a"), FIRST))
    assert found.differs
    assert found.result().distinct == 2


def test_another_number_of_threads_may_have_results_of_its_own() -> None:
    found = judged((case(usual="aa", many_threads="bb", one_thread="cc"), FIRST))
    assert not found.differs
    assert found.thread_dependent


def test_what_the_switch_does() -> None:
    assert judged((case(usual="ab", switch="NO DETERMINISTIC KERNEL"), FIRST)).switch is SwitchEffect.RAISES
    assert judged((case(usual="ab", switch="cd"), FIRST)).switch is SwitchEffect.NO_EFFECT
    assert judged((case(usual="ab", switch="c"), FIRST), (case(switch="d"), SECOND)).switch is SwitchEffect.NO_EFFECT
    assert judged((case(usual="ab"), FIRST)).switch is SwitchEffect.UNTRIED


def test_a_process_with_other_inputs_does_not_count() -> None:
    found = judged((case(usual="aa", one_thread="a"), FIRST), (case("j", usual="bb", one_thread="b"), SECOND))
    assert not found.differs


def test_the_farthest_of_the_kept_results_is_reported(tmp_path: Path) -> None:
    paths = []
    for number, values in enumerate([(1.0, 2.0, 3.0), (1.0, 2.5, 3.0), (1.5, 2.0, 4.0)]):
        paths.append(tmp_path / f"{number}.bin")
        paths[-1].write_bytes(struct.pack("=3f", *values))
    kept = Kept("[0]", "float32", (3,), tuple(map(str, paths)))
    apart = judged((case(kept=kept, usual="abc"), FIRST)).result().difference
    assert apart is not None
    assert (apart.mismatched, apart.total, apart.max_abs) == (2, 3, 1.0)


def test_kept_results_that_are_gone_leave_no_distance(tmp_path: Path) -> None:
    kept = Kept("", "float32", (3,), (str(tmp_path / "gone"),))
    assert judged((case(kept=kept, usual="ab"), FIRST)).result().difference is None


@pytest.mark.parametrize("phase", [USUAL, MANY_THREADS, ONE_THREAD, SWITCH])
@given(letters=st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=4))
def test_only_a_phase_with_several_results_differs(phase: str, letters: list[str]) -> None:
    found = judged(*[(case("i", None, **{phase.replace("-", "_"): one}), FIRST) for one in letters])
    assert found.differs == (phase != SWITCH and len(set("".join(letters))) > 1)
    assert sum(found.results[phase].values()) == len("".join(letters))
    assert (found.cause is None) == (not found.differs)
