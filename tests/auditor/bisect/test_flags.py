"""The story of a bisection, with a fake launcher: what a run leaves depends on the flags it was given."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import msgspec
import pytest

from detaudit import wire
from detaudit.auditor import store
from detaudit.auditor.bisect.flags import Bisector, Question
from detaudit.launch import RunOutcome, RunSpec
from detaudit.model import Bisection, Status, Verdict
from detaudit.recipe.flags import load_catalogue
from tests.auditor.fakes import Script, run, settings, training

SEED, KERNEL, HASH = "torch-seed", "torch-deterministic-algorithms", "python-hash-seed"


def flags_of(spec: RunSpec) -> set[str]:
    """Return the flags that a run was given, as far as this test tells them apart."""
    orders = spec.env[wire.ENV_FLAGS]
    inside = {flag for flag in (SEED, KERNEL) if f'"{flag}"' in orders}
    return inside | ({HASH} if "PYTHONHASHSEED" in spec.env else set())


class Training:
    """A launcher whose runs differ until they are given all ``needed`` flags."""

    def __init__(self, *needed: str, fails: str = "", stop_after: int = 10**6) -> None:
        self._needed, self._fails, self._stop_after = set(needed), fails, stop_after
        self._numbers = count(1)
        self.launched: list[set[str]] = []

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        number, flags = next(self._numbers), flags_of(spec)
        if number > self._stop_after:
            raise KeyboardInterrupt
        self.launched.append(flags)
        return self._script(flags, number)(spec)

    def _script(self, flags: set[str], number: int) -> Script:
        if self._fails in flags:
            return run(training(whole=False), exit_code=1, stderr="RuntimeError: put_ has no deterministic kernel\n")
        return run(training("same" if self._needed <= flags else f"other {number}"))


def question(folder: Path, **options: object) -> Question:
    catalogue = load_catalogue()
    return Question(
        settings=settings(folder, runs=1),
        catalogue=catalogue,
        candidates=catalogue.select([SEED, KERNEL, HASH]),
        seed=0,
        **options,  # type: ignore[arg-type]
    )


def bisect(folder: Path, launcher: Training, **options: object) -> Bisection:
    return Bisector(question(folder, **options), launcher).run()


def test_the_flag_that_is_needed(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training(KERNEL))
    assert audit.outcome == "mended"
    assert audit.verdict is Verdict.DETERMINISTIC
    (told,) = audit.needed or ()
    assert told.flag == KERNEL
    assert told.without is not None
    assert (told.without.trial, told.without.step, told.without.stage) == ("trial-1", 2, "update")
    assert told.cost == pytest.approx(1.0)
    assert audit.verified is not None
    assert audit.verified.runs >= 16
    assert audit.launches == sum(len(group.runs) for group in audit.groups)


def test_a_late_difference_has_kernels_tried_before_seeds(tmp_path: Path) -> None:
    launcher = Training(KERNEL)
    bisect(tmp_path, launcher)
    assert launcher.launched[2] == {KERNEL}


def test_two_flags_that_are_needed_together(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training(KERNEL, HASH))
    assert {told.flag for told in audit.needed or ()} == {KERNEL, HASH}
    assert audit.recipe_file is not None
    text = (tmp_path / "out" / "detaudit-recipe.yaml").read_text()
    assert KERNEL in text
    assert HASH in text


def test_it_is_deterministic_already(tmp_path: Path) -> None:
    launcher = Training()
    audit = bisect(tmp_path, launcher)
    assert audit.outcome == "already-deterministic"
    assert audit.needed == ()
    assert len(launcher.launched) == 16
    assert audit.recipe_file is None


def test_nothing_helps(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training("a flag that does not exist"))
    assert audit.outcome == "not-mended"
    assert audit.verdict is Verdict.NONDETERMINISTIC
    assert audit.needed is None


def test_a_flag_under_which_it_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training(SEED, fails=KERNEL))
    assert [told.flag for told in audit.needed or ()] == [SEED]
    (failing,) = audit.failing
    assert failing.flag == KERNEL
    assert "put_ has no deterministic kernel" in failing.message


def test_an_interrupted_bisection_that_compares_artifacts_offers_no_resume(tmp_path: Path) -> None:
    asked = question(tmp_path)
    asked = replace(asked, settings=replace(asked.settings, artifacts=("model.pt",)))
    assert Bisector(asked, Training(KERNEL)).result(interrupted=True).next_steps == ()


def test_an_interrupted_bisection_goes_on_without_asking_again(tmp_path: Path) -> None:
    asked = question(tmp_path)
    first = Training(KERNEL, HASH, stop_after=5)
    bisector = Bisector(asked, first)
    with pytest.raises(KeyboardInterrupt):
        bisector.run()
    kept = bisector.result(interrupted=True)
    store.save(asked.settings.out, kept)
    assert kept.outcome == "unresolved"
    assert "--resume" in kept.next_steps[0].command

    again = store.load(asked.settings.out)
    assert isinstance(again, Bisection)
    second = Training(KERNEL, HASH)
    audit = Bisector(asked, second, earlier=again.groups).run()
    assert {told.flag for told in audit.needed or ()} == {KERNEL, HASH}
    whole = Training(KERNEL, HASH)
    other = tmp_path / "other"
    other.mkdir()
    bisect(other, whole)
    assert len(first.launched) + len(second.launched) == len(whole.launched)


def test_audit_json_holds_all_of_it(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training(KERNEL))
    assert store.load(tmp_path / "out") == audit
    assert msgspec.json.decode(msgspec.json.encode(audit), type=Bisection) == audit


def test_a_stand_in_is_tried_where_that_is_asked_for(tmp_path: Path) -> None:
    asked = question(tmp_path, alternatives=True)
    rows = [msgspec.structs.replace(f, instead=(HASH,)) if f.id == KERNEL else f for f in asked.catalogue]
    catalogue = type(asked.catalogue)(rows)
    asked = replace(asked, catalogue=catalogue, candidates=catalogue.select([SEED, KERNEL, HASH]))

    class Either(Training):
        def _script(self, flags: set[str], number: int) -> Script:
            return run(training("same" if flags & {KERNEL, HASH} else f"other {number}"))

    (told,) = Bisector(asked, Either()).run().needed or ()
    (other,) = told.instead
    assert (other.flag, other.matching) == (HASH, 5)


def test_a_run_that_fails_is_no_match(tmp_path: Path) -> None:
    class Fails(Training):
        def _script(self, flags: set[str], number: int) -> Script:
            return run(training(), exit_code=3, stderr="boom\n")

    audit = bisect(tmp_path, Fails())
    assert audit.outcome == "unresolved"
    assert audit.verdict is Verdict.INCONCLUSIVE
    assert audit.groups[0].runs[0].status is Status.FAILED
