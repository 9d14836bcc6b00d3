"""What runs on several machines prove."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.judge.conditions import Machines, RunMachine, verdict
from detaudit.model import Verdict


def judged(*runs: tuple[str, str, int]) -> Verdict:
    """Return what runs show: the machine of each, what it is like, and its result."""
    machines = Machines()
    for number, (name, kind, _) in enumerate(runs, 1):
        machines.add(number, RunMachine(name, name, {"cpu": kind}))
    results = {number: result for number, (_, _, result) in enumerate(runs, 1)}
    return verdict(machines.with_results(results), results)[0]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ((("a", "x", 1), ("b", "x", 1)), Verdict.DETERMINISTIC),
        ((("a", "x", 1), ("b", "y", 1)), Verdict.INCONCLUSIVE),
        ((("a", "x", 1), ("b", "y", 1), ("a", "x", 1)), Verdict.DETERMINISTIC),
        ((("a", "x", 1), ("b", "x", 2)), Verdict.NONDETERMINISTIC),
        ((("a", "x", 1), ("b", "y", 2)), Verdict.INCONCLUSIVE),
        ((("a", "x", 1), ("a", "x", 1), ("b", "y", 2)), Verdict.INCONCLUSIVE),
        ((("a", "x", 1), ("a", "x", 1), ("b", "x", 2), ("b", "x", 2)), Verdict.MACHINE_DEPENDENT),
        ((("a", "x", 1), ("a", "x", 1), ("b", "y", 2), ("b", "y", 2)), Verdict.MACHINE_DEPENDENT),
        ((("a", "x", 1), ("a", "x", 2), ("b", "y", 1)), Verdict.NONDETERMINISTIC),
    ],
)
def test_verdicts(runs: tuple[tuple[str, str, int], ...], expected: Verdict) -> None:
    assert judged(*runs) is expected


RUNS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 3)), min_size=2, max_size=12)


@given(found=RUNS, kinds=st.fixed_dictionaries(dict.fromkeys("abcd", st.sampled_from("xy"))))
def test_a_verdict_never_rests_on_a_pair_of_different_machines(
    found: list[tuple[str, int]], kinds: dict[str, str]
) -> None:
    if len({name for name, _ in found}) < 2:
        return
    shown = judged(*((name, kinds[name], result) for name, result in found))
    by_kind: defaultdict[str, list[int]] = defaultdict(list)
    for name, result in found:
        by_kind[kinds[name]].append(result)
    if shown is Verdict.NONDETERMINISTIC:
        assert any(len(set(results)) > 1 for results in by_kind.values()), "two runs on machines that are alike"
    if shown is Verdict.DETERMINISTIC:
        assert len({result for _, result in found}) == 1
        assert any(len(results) > 1 for results in by_kind.values())
    if shown is Verdict.MACHINE_DEPENDENT:
        assert len({result for _, result in found}) > 1


def test_one_machine_is_not_mentioned() -> None:
    machines = Machines()
    machines.add(1, RunMachine("a"))
    machines.add(2, RunMachine("a"))
    assert machines.with_results({1: 1, 2: 2}) == ()
