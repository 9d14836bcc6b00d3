"""The story of a bisection over variations, with a fake launcher: what a run leaves depends on what varies in it."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import click
import msgspec
import pytest

from detaudit import wire
from detaudit.auditor import store
from detaudit.auditor.audit import Auditor
from detaudit.auditor.bisect.variations import VariationBisector, VaryQuestion
from detaudit.launch import RunOutcome, RunSpec
from detaudit.launch.plan import Settings
from detaudit.launch.vary import Varying
from detaudit.model import Status, VariationBisection, Verdict
from detaudit.recipe.flags import load_catalogue
from detaudit.recipe.recipes import load_recipe
from detaudit.recipe.variations import load_variations
from detaudit.report import render
from tests.auditor.fakes import FakeLauncher, Script, run, settings, training

HASH, ORDER, FILL, ADDRESSES = "hash-seed", "listing-order", "memory-fill", "addresses"
NAMES = (HASH, ORDER, FILL, ADDRESSES)


def values_of(spec: RunSpec) -> dict[str, str]:
    """Return the value of each variation in a run; the control's is ``""``."""
    orders = [json.loads(line.split("\t")[1]) for line in spec.env[wire.ENV_FLAGS].splitlines()]
    number = next((order["number"] for order in orders if order["id"] == "vary:listing-order"), 0)
    found = {
        HASH: spec.env.get("PYTHONHASHSEED", "0"),
        ORDER: str(number),
        FILL: spec.env.get("MALLOC_PERTURB_", "255"),
        ADDRESSES: "fixed" if spec.no_aslr else "random",
    }
    return {name: "" if value in ("0", "255", "fixed") else value for name, value in found.items()}


class Training:
    """A launcher whose runs depend on some variations, all of which must vary together."""

    def __init__(self, *matter: str, fails: str = "", noisy: bool = False, stop_after: int = 10**6) -> None:
        self._matter, self._fails, self._noisy, self._stop_after = matter, fails, noisy, stop_after
        self._numbers = count(1)
        self.launched: list[set[str]] = []

    def launch(self, spec: RunSpec, tick: Callable[[], None]) -> RunOutcome:
        number, values = next(self._numbers), values_of(spec)
        if number > self._stop_after:
            raise KeyboardInterrupt
        self.launched.append({name for name, value in values.items() if value})
        return self._script(values, number)(spec)

    def _script(self, values: dict[str, str], number: int) -> Script:
        if self._fails and values[self._fails]:
            return run(training(whole=False), exit_code=1, stderr="UnicodeDecodeError: no such byte\n")
        seen = [values[name] for name in self._matter]
        changed = " ".join(seen) if seen and all(seen) else "same"
        return run(training(f"{changed} {number}" if self._noisy else changed))


def varying(folder: Path, *names: str) -> Settings:
    rows = tuple(row for row in load_variations() if row.id in (names or NAMES))
    return settings(folder, runs=1, vary=("all",), varying=Varying(rows, (), (("locale", "none here"),)))


def bisect(folder: Path, launcher: Training, recipe: str = "none", **options: float) -> VariationBisection:
    catalogue = load_catalogue()
    question = VaryQuestion(varying(folder), catalogue, load_recipe(recipe, catalogue), **options)  # type: ignore[arg-type]
    return VariationBisector(question, launcher).run()


def test_the_variation_that_matters(tmp_path: Path) -> None:
    launcher = Training(HASH)
    audit = bisect(tmp_path, launcher)
    assert (audit.answer, audit.verdict) == ("some-matter", Verdict.NONDETERMINISTIC)
    (told,) = audit.matters or ()
    assert (told.variation, told.beside, told.flags) == (HASH, (), ("python-hash-seed",))
    assert (told.seen.step, told.seen.stage, told.seen.runs) == (2, "update", (1, 2))
    assert told.seen.values == ("PYTHONHASHSEED=1",)
    assert audit.no_matter == tuple(sorted({ORDER, FILL, ADDRESSES}))
    assert audit.left_out == {"locale": "none here"}
    assert audit.launches == len(launcher.launched)
    assert "--flag python-hash-seed" in audit.next_steps[0].command
    assert launcher.launched[:5] == [set()] * 5
    assert launcher.launched[5] == set(NAMES)


def test_a_line_of_the_users_code_says_what_to_hold_still_first(tmp_path: Path) -> None:
    class Lists(Training):
        def _script(self, values: dict[str, str], number: int) -> Script:
            line = {"k": "source", "kind": "listing-order", "what": "os.listdir", "file": "train.py", "line": 4}
            lines = training(values[ORDER] or "same")
            return run([lines[0], {**line, "value": f"{values[ORDER]}/3:abc"}, *lines[1:]])

    launcher = Lists()
    (told,) = bisect(tmp_path, launcher).matters or ()
    assert told.lines == ("train.py:4: os.listdir() in an order that differs between runs",)
    assert launcher.launched[6] == {HASH, FILL, ADDRESSES}


def test_two_that_matter_each_alone_and_two_that_matter_only_together(tmp_path: Path) -> None:
    class Either(Training):
        def _script(self, values: dict[str, str], number: int) -> Script:
            return run(training(values[HASH] + values[FILL] or "same"))

    audit = bisect(tmp_path, Either())
    assert {told.variation for told in audit.matters or ()} == {HASH, FILL}
    other = tmp_path / "other"
    other.mkdir()
    (told,) = bisect(other, Training(ORDER, ADDRESSES)).matters or ()
    assert {told.variation, *told.beside} == {ORDER, ADDRESSES}
    assert len(told.seen.values) == 2


def test_nothing_matters(tmp_path: Path) -> None:
    launcher = Training()
    audit = bisect(tmp_path, launcher)
    assert (audit.answer, audit.verdict, audit.matters) == ("nothing-matters", Verdict.DETERMINISTIC, ())
    assert audit.verified is not None
    assert audit.verified.runs - 1 == launcher.launched.count(set(NAMES))
    assert "--vary all" in audit.next_steps[0].command


def test_a_control_that_differs_is_told_and_nothing_is_blamed(tmp_path: Path) -> None:
    launcher = Training(noisy=True)
    audit = bisect(tmp_path, launcher)
    assert (audit.answer, audit.verdict, audit.matters) == ("control-differs", Verdict.INCONCLUSIVE, None)
    assert launcher.launched == [set(), set()]
    assert audit.next_steps[0].command == "detaudit bisect train.py --python python"


def test_a_variation_under_which_it_fails_matters(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training(fails=FILL))
    (told,) = audit.matters or ()
    assert told.variation == FILL
    assert (told.seen.step, told.seen.failed) == (None, "UnicodeDecodeError: no such byte")


def test_a_control_that_fails_cannot_be_judged(tmp_path: Path) -> None:
    class Broken(Training):
        def _script(self, values: dict[str, str], number: int) -> Script:
            return run(training(), exit_code=3, stderr="boom\n")

    audit = bisect(tmp_path, Broken())
    assert (audit.answer, audit.verdict) == ("unresolved", Verdict.INCONCLUSIVE)
    assert "boom" in render(audit, "table")


def test_what_shows_no_weights_is_not_blamed_on_a_variation(tmp_path: Path) -> None:
    class Blind(Training):
        def _script(self, values: dict[str, str], number: int) -> Script:
            lines = [line for line in training() if line.get("stage") != "update"]
            return run([{**line, "digest": None, "sum": None} if line["k"] == "final" else line for line in lines])

    assert bisect(tmp_path, Blind()).answer == "unresolved"


def test_what_the_recipe_holds_still_is_left_to_it(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training(HASH), "seeds")
    assert audit.answer == "nothing-matters"
    assert audit.left_out[HASH] == "the recipe seeds holds it still"
    assert "--recipe seeds" in audit.next_steps[0].command


def test_an_interruption_keeps_what_is_known(tmp_path: Path) -> None:
    catalogue = load_catalogue()
    question = VaryQuestion(varying(tmp_path), catalogue, load_recipe("none", catalogue))
    bisector = VariationBisector(question, Training(HASH, stop_after=6))
    with pytest.raises(KeyboardInterrupt):
        bisector.run()
    kept = bisector.result(interrupted=True)
    assert (kept.answer, kept.matters) == ("unresolved", None)
    assert len(kept.groups) == 3
    assert kept.groups[1].divergence is not None
    assert "interrupted" in click.unstyle(render(kept, "table"))


@pytest.mark.parametrize("stop_after", [1, 6, 9, 20])
def test_an_interrupted_one_goes_on_without_asking_again(tmp_path: Path, stop_after: int) -> None:
    catalogue = load_catalogue()
    question = VaryQuestion(varying(tmp_path), catalogue, load_recipe("none", catalogue))
    first, second, whole = Training(HASH, stop_after=stop_after), Training(HASH), Training(HASH)
    bisector = VariationBisector(question, first)
    with pytest.raises(KeyboardInterrupt):
        bisector.run()
    kept = bisector.result(interrupted=True)
    assert "--resume" in kept.next_steps[0].command
    audit = VariationBisector(question, second, earlier=kept.groups).run()
    other = tmp_path / "other"
    other.mkdir()
    expected = bisect(other, whole)
    assert audit.matters == expected.matters
    assert [group.verdict for group in audit.groups] == [group.verdict for group in expected.groups]
    assert len(first.launched) + len(second.launched) == len(whole.launched) == audit.launches


def test_audit_json_holds_all_of_it_and_the_formats_for_people_tell_it(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training(HASH))
    assert store.load(tmp_path / "out") == audit
    assert msgspec.json.decode(msgspec.json.encode(audit), type=VariationBisection) == audit
    for format_ in ("table", "markdown", "json"):
        assert "PYTHONHASHSEED=1" in render(audit, format_)
        assert "does not matter: addresses, listing-order, memory-fill" in render(audit, format_) or format_ == "json"


def test_the_first_run_of_a_trial_is_the_controls_and_no_setting_that_varies_is_a_warning(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training())
    control, varied = audit.groups
    assert varied.runs[0] == control.runs[0]
    assert varied.varied[0].id == HASH
    assert varied.varied[0].values[:3] == ("PYTHONHASHSEED=0", "PYTHONHASHSEED=1", "PYTHONHASHSEED=2")
    assert not audit.warnings or "settings" not in " ".join(audit.warnings)


def test_a_plain_audit_varies_from_the_second_run_on(tmp_path: Path) -> None:
    launcher = FakeLauncher(run(training()), run(training()), run(training("other")))
    asked = replace(varying(tmp_path, HASH), recipes=(load_recipe("none", load_catalogue()),), runs=3)
    audit = Auditor(asked, launcher).run()
    assert [spec.env["PYTHONHASHSEED"] for spec in launcher.specs] == ["0", "1", "2"]
    assert {run.status for run in audit.groups[0].runs} == {Status.OK}
    assert audit.verdict is Verdict.NONDETERMINISTIC
    assert audit.groups[0].varied[0].values == ("PYTHONHASHSEED=0", "PYTHONHASHSEED=1", "PYTHONHASHSEED=2")
    commands = [step.command for step in audit.next_steps]
    assert "detaudit bisect train.py --over variations --python python --vary all" in commands
    text = click.unstyle(render(audit, "table"))
    assert "varied from run to run, after the first: hash-seed; not varied: locale (none here)" in text
