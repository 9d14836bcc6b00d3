"""What reports say about machines."""

import msgspec

from detaudit.model import Across, Audit, Group, Machine, Stage, Verdict
from detaudit.report import groups, render
from tests.report.checks import an_audit

UNLIKE = (
    Machine(id=1, host="n1", kind=1, runs=(1, 4), results=(1,), facts={"cpu": "x", "microcode": "1"}),
    Machine(id=2, host="n2", kind=1, runs=(2, 5), results=(1,), facts={"cpu": "x", "microcode": "2"}),
    Machine(id=3, host="n3", kind=2, runs=(3, 6, 7), results=(2,), facts={"cpu": "y", "microcode": "2"}),
)


def shown(found: tuple[Machine, ...], verdict: Verdict, across: Across = Across.FAIL) -> Audit:
    made = an_audit("train.py", Stage.UPDATE)
    group = msgspec.structs.replace(made.groups[0], machines=found, verdict=verdict)
    return msgspec.structs.replace(made, groups=(group,), verdict=verdict, across=across)


def group(found: tuple[Machine, ...]) -> Group:
    return shown(found, Verdict.MACHINE_DEPENDENT).groups[0]


def test_groups_of_machines_are_named() -> None:
    assert groups.machines_sentence(group(UNLIKE)) == (
        "the same on each machine, 2 groups across: machines 1-2 (n1, n2) and machine 3 (n3)"
    )


def test_what_goes_along_with_the_results_comes_first() -> None:
    assert groups.machine_differences(UNLIKE) == [
        "cpu: x (machines 1-2); y (machine 3)",
        "microcode: 1 (machine 1); 2 (machines 2-3)",
    ]


def test_a_machine_that_disagrees_with_itself_is_named() -> None:
    one = msgspec.structs.replace(UNLIKE[0], results=(1, 2))
    assert groups.disagreeing(group((one, UNLIKE[1]))) == "machine 1 (n1) disagrees with itself"


def test_every_format_has_the_verdict() -> None:
    for name in ("table", "markdown", "html", "github", "junit", "sarif", "gitlab", "json"):
        text = render(shown(UNLIKE, Verdict.MACHINE_DEPENDENT), name)
        assert "machine-dependent" in text.lower() or "the same on each machine" in text, name


def test_a_warning_is_no_failure() -> None:
    fails = render(shown(UNLIKE, Verdict.MACHINE_DEPENDENT), "junit")
    warns = render(shown(UNLIKE, Verdict.MACHINE_DEPENDENT, Across.WARN), "junit")
    assert "<failure" in fails
    assert "<failure" not in warns
