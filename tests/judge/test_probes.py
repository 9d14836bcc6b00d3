"""Which probe is the first to differ, and what probes may decide."""

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from detaudit.judge import probes
from detaudit.model import Group, Status, Verdict
from detaudit.model.difference import Probe, ProbeDifference
from detaudit.model.problems import OnlyProbes, ProbesIncomplete, RunUnusable
from detaudit.runs.log_records import ProbeLine
from tests.fakes import hello, run, training
from tests.jobs.test_audit import audit

BYE = {"k": "bye", "how": "exit"}


def seen(*values: str, rank: int = 0) -> probes.Seen:
    """Return the probes of a run from texts such as ``a=1``; a gradient is ``a'=1``."""
    found: dict[probes.Key, ProbeLine] = {}
    counts: dict[str, int] = {}
    for value in values:
        name, _, digest = value.partition("=")
        n = counts[name] = counts.get(name, 0) + 1
        kind: Any = "gradient" if name.endswith("'") else "value"
        line = ProbeLine(name=name.rstrip("'"), n=n, step=n, kind=kind, digest=digest, value=digest)
        found[line.name, line.kind, n] = line
    return {rank: found}


def first(a: probes.Seen, b: probes.Seen) -> ProbeDifference:
    found = probes.first_probe_difference(a, b, (1, 2))
    assert found is not None
    return found


def probe(name: str, occurrence: int, gradient: bool = False) -> Probe:
    return Probe(name=name, occurrence=occurrence, step=occurrence, gradient=gradient)


def test_equal_probes_do_not_differ() -> None:
    assert probes.first_probe_difference(seen("a=1", "b=2"), seen("a=1", "b=2"), (1, 2)) is None


def test_the_first_that_differs_and_the_last_that_matches() -> None:
    found = first(seen("a=1", "b=2", "a=3", "b=4"), seen("a=1", "b=2", "a=3", "b=x"))
    assert (found.name, found.occurrence, found.step, found.values) == ("b", 2, 2, ("4", "x"))
    assert (found.last_match, found.missing) == (probe("a", 2), None)


def test_a_gradient_is_not_the_value() -> None:
    found = first(seen("a=1", "b=2", "b'=3", "a'=4"), seen("a=1", "b=2", "b'=3", "a'=x"))
    assert (found.name, found.gradient, found.last_match) == ("a", True, probe("b", 1, gradient=True))


def test_threads_may_interleave_names() -> None:
    assert probes.first_probe_difference(seen("a=1", "b=2", "a=3"), seen("b=2", "a=1", "a=3"), (1, 2)) is None


def test_one_that_a_run_does_not_have() -> None:
    assert first(seen("a=1", "b=2"), seen("a=1")).missing == 2
    longer = first(seen("a=1"), seen("a=1", "b=2"))
    assert (longer.name, longer.missing, longer.last_match) == ("b", 1, probe("a", 1))
    assert first({}, seen("a=1")).last_match is None


def test_a_different_branch_is_named_before_what_follows_from_it() -> None:
    found = first(seen("a=1", "b=2", "c=3"), seen("a=1", "branch=0", "b=2", "c=x"))
    assert (found.name, found.missing, found.last_match) == ("branch", 1, probe("a", 1))


def test_the_earliest_rank() -> None:
    a, b = {**seen("a=1", "a=2"), **seen("a=1", "a=2", rank=1)}, {**seen("a=1", "a=x"), **seen("a=x", "a=2", rank=1)}
    assert first(a, b).rank == 1


@given(st.lists(st.sampled_from("ab"), min_size=1, max_size=6), st.data())
def test_any_single_difference_is_found(names: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(names) - 1))
    ours = [f"{name}={i}" for i, name in enumerate(names)]
    theirs = [*ours[:place], f"{names[place]}=other", *ours[place + 1 :]]
    found = first(seen(*ours), seen(*theirs))
    assert (found.name, found.occurrence) == (names[place], names[: place + 1].count(names[place]))
    assert probes.result_key(seen(*ours)) != probes.result_key(seen(*theirs))


def line(name: str, digest: str, n: int = 1) -> dict[str, Any]:
    return {"k": "probe", "name": name, "n": n, "step": 1, "kind": "value", "digest": digest, "value": None}


def group(folder: Path, *traces: list[dict[str, Any]]) -> Group:
    (only,) = audit(folder, *[run(trace) for trace in traces], runs=len(traces)).groups
    return only


def test_results_decide_and_probes_explain(tmp_path: Path) -> None:
    def trained(update: str, digest: str) -> list[dict[str, Any]]:
        whole = training(update)
        return [*whole[:2], line("a", "1"), line("b", digest), *whole[2:]]

    (tmp_path / "1").mkdir()
    differs = group(tmp_path / "1", trained("same", "2"), trained("other", "3"))
    assert differs.verdict is Verdict.NONDETERMINISTIC
    assert differs.probe_count == 2
    assert differs.first_probe_difference is not None
    assert (differs.first_probe_difference.name, differs.first_probe_difference.runs) == ("b", (1, 2))
    (tmp_path / "2").mkdir()
    matches = group(tmp_path / "2", trained("same", "2"), trained("same", "3"))
    assert matches.verdict is Verdict.DETERMINISTIC
    assert matches.first_probe_difference is not None
    assert matches.first_probe_difference.name == "b"


def test_probes_alone_can_show_a_difference_but_never_a_match(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    differs = group(tmp_path / "1", [hello(), line("a", "1"), BYE], [hello(), line("a", "2"), BYE])
    assert (differs.verdict, differs.distinct_results) == (Verdict.NONDETERMINISTIC, 2)
    (tmp_path / "2").mkdir()
    matches = group(tmp_path / "2", [hello(), line("a", "1"), BYE], [hello(), line("a", "1"), BYE])
    assert matches.verdict is Verdict.INCONCLUSIVE
    assert matches.reason == OnlyProbes()


def test_probes_that_were_cut_off_are_no_record(tmp_path: Path) -> None:
    result = group(tmp_path, [hello(), line("a", "1"), BYE], [hello(), line("a", "2")])
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.runs[1].status is Status.NOT_RECORDED
    assert result.reason == RunUnusable(run=2, errors=(ProbesIncomplete(),))
