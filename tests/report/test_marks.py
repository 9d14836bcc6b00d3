"""Runs with the same result share a letter, in the order of their first and of how often they occur."""

import msgspec

from detaudit.model import Group
from detaudit.report import groups
from tests.report.bisections import a_trial


def of_results(*results: int | None) -> Group:
    """Return a group whose runs have these results."""
    group = a_trial(1, (), 1.5, runs=len(results))
    runs = tuple(msgspec.structs.replace(run, result=found) for run, found in zip(group.runs, results, strict=True))
    return msgspec.structs.replace(group, runs=runs, distinct_results=len({*results} - {None}))


def test_the_first_result_is_a_and_the_others_follow_by_their_number_of_runs() -> None:
    assert list(groups.letters_of(of_results(1, 2, 3, 3, None, 1)).items()) == [
        (1, "A"), (2, "C"), (3, "B"), (4, "B"), (6, "A"),
    ]  # fmt: skip


def test_no_letters_if_all_results_are_equal_or_no_two() -> None:
    for results in ((1, 1, 1), (1, 2, 3, None), (1,)):
        assert groups.letters_of(of_results(*results)) == {}
        assert groups.runs_table(of_results(*results)).note == ""


def test_there_are_letters_for_any_number_of_results() -> None:
    names = list(groups.letters_of(of_results(*range(1, 801), 800)).values())
    assert (names[24:27], names[-2:]) == (["Z", "AA", "AB"], ["B", "B"])
    assert sorted(groups.number(name) for name in names) == [0, 1, 1, *range(2, 800)]


def test_letters_stand_beside_digests() -> None:
    found = groups.runs_table(of_results(1, 2, 1))
    place = list(found.headers).index("DIGEST")
    assert [row[place][-2:] for row in found.rows] == [" A", " B", " A"]
    assert found.note == groups.MARKED
