"""A whole bisection over variations, with a fake launcher: what a run records depends on what varies in it."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import msgspec
import pytest

from detaudit import store, wire
from detaudit.audit import Auditor
from detaudit.bisect.variations import VariationBisector, VaryQuestion
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.config.variations import load_variations
from detaudit.launch import RunOutcome, RunSpec
from detaudit.launch.plan import Settings
from detaudit.launch.vary import Varying
from detaudit.model import (
    Cause,
    EffectExample,
    Explanation,
    LikelyCause,
    Purpose,
    Source,
    SourceKind,
    Stage,
    Status,
    VariationBisection,
    VaryOutcome,
    Verdict,
)
from detaudit.model.problems import Failed
from detaudit.model.sources import NoSecondLocale, PinnedByRecipe
from detaudit.model.warnings import SettingsDiffer
from tests.fakes import FakeLauncher, Script, run, settings, training

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

    def __init__(self, *sensitive_to: str, fails: str = "", noisy: bool = False, stop_after: int = 10**6) -> None:
        self._sensitive_to, self._fails, self._noisy, self._stop_after = sensitive_to, fails, noisy, stop_after
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
        seen = [values[name] for name in self._sensitive_to]
        changed = " ".join(seen) if seen and all(seen) else "same"
        return run(training(f"{changed} {number}" if self._noisy else changed))


def varying(folder: Path, *names: str) -> Settings:
    rows = tuple(row for row in load_variations() if row.id in (names or NAMES))
    return settings(folder, runs=1, vary=("all",), varying=Varying(rows, (), (("locale", NoSecondLocale()),)))


def bisect(folder: Path, launcher: Training, recipe: str = "none", **options: float) -> VariationBisection:
    catalogue = load_catalogue()
    question = VaryQuestion(varying(folder), catalogue, load_recipe(recipe, catalogue), **options)  # type: ignore[arg-type]
    return VariationBisector(question, launcher).run()


def test_the_variation_with_an_effect(tmp_path: Path) -> None:
    launcher = Training(HASH)
    audit = bisect(tmp_path, launcher)
    assert (audit.outcome, audit.verdict) == (VaryOutcome.SENSITIVE, Verdict.NONDETERMINISTIC)
    (effect,) = audit.sensitive_to or ()
    (row,) = (row for row in load_variations() if row.id == HASH)
    assert (effect.variation, effect.title, effect.cause, effect.fix) == (HASH, row.title, Cause.HASH, row.fix)
    assert (effect.expected, effect.together_with, effect.suspects) == (False, (), ())
    assert effect.flags == ("python-hash-seed",)
    explanation = Explanation(
        matching=(Stage.FORWARD,), likely=(LikelyCause.BACKWARD_KERNEL, LikelyCause.OPTIMIZER, LikelyCause.RACE)
    )
    (trial,) = (group.recipe.name for group in audit.groups if [one.id for one in group.varied] == [HASH])
    assert effect.example == EffectExample(
        trial=trial,
        runs=(1, 2),
        values=("PYTHONHASHSEED=1",),
        step=2,
        stage=Stage.UPDATE,
        explanation=explanation,
    )
    assert audit.no_effect == tuple(sorted({ORDER, FILL, ADDRESSES}))
    assert audit.not_varied == {"locale": NoSecondLocale()}
    assert audit.controls[HASH] == "PYTHONHASHSEED=0"
    assert audit.total_runs == len(launcher.launched)
    assert audit.next_steps[0].purpose is Purpose.AUDIT_WITH_FLAGS
    assert "--flag python-hash-seed" in audit.next_steps[0].command
    assert launcher.launched[:5] == [set()] * 5
    assert launcher.launched[5] == set(NAMES)


def test_a_line_of_the_users_code_decides_what_is_pinned_first(tmp_path: Path) -> None:
    class Lists(Training):
        def _script(self, values: dict[str, str], number: int) -> Script:
            line = {"k": "source", "kind": "listing-order", "what": "os.listdir", "file": "train.py", "line": 4}
            lines = training(values[ORDER] or "same")
            return run([lines[0], {**line, "value": f"{values[ORDER]}/3:abc"}, *lines[1:]])

    launcher = Lists()
    (effect,) = bisect(tmp_path, launcher).sensitive_to or ()
    assert effect.suspects == (Source(file="train.py", line=4, kind=SourceKind.LISTING_ORDER, call="os.listdir"),)
    assert launcher.launched[6] == {HASH, FILL, ADDRESSES}


def test_two_with_an_effect_each_alone_and_two_with_one_only_together(tmp_path: Path) -> None:
    class Either(Training):
        def _script(self, values: dict[str, str], number: int) -> Script:
            return run(training(values[HASH] + values[FILL] or "same"))

    audit = bisect(tmp_path, Either())
    assert {effect.variation for effect in audit.sensitive_to or ()} == {HASH, FILL}
    other = tmp_path / "other"
    other.mkdir()
    (effect,) = bisect(other, Training(ORDER, ADDRESSES)).sensitive_to or ()
    assert {effect.variation, *effect.together_with} == {ORDER, ADDRESSES}
    assert len(effect.example.values) == 2


def test_no_variation_has_an_effect(tmp_path: Path) -> None:
    launcher = Training()
    audit = bisect(tmp_path, launcher)
    assert (audit.outcome, audit.verdict, audit.sensitive_to) == (VaryOutcome.ROBUST, Verdict.DETERMINISTIC, ())
    assert audit.evidence is not None
    assert audit.evidence.runs - 1 == launcher.launched.count(set(NAMES))
    assert audit.next_steps[0].purpose is Purpose.USE_IN_CI
    assert "--vary all" in audit.next_steps[0].command


def test_a_control_that_differs_is_reported_and_no_variation_is(tmp_path: Path) -> None:
    launcher = Training(noisy=True)
    audit = bisect(tmp_path, launcher)
    assert (audit.outcome, audit.verdict) == (VaryOutcome.CONTROL_DIFFERS, Verdict.INCONCLUSIVE)
    assert audit.sensitive_to is None
    assert launcher.launched == [set(), set()]
    assert audit.next_steps[0].purpose is Purpose.FIX_CONTROL
    assert audit.next_steps[0].command == "detaudit bisect train.py --python python"


def test_a_variation_with_which_it_fails_has_an_effect(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training(fails=FILL))
    (effect,) = audit.sensitive_to or ()
    assert effect.variation == FILL
    example = effect.example
    assert (example.step, example.stage) == (0, Stage.EXIT)
    assert (example.runs, example.values) == ((1, 2), ("MALLOC_PERTURB_=192",))
    assert (example.errors, example.last_line) == ((Failed(exit_code=1),), "UnicodeDecodeError: no such byte")


def test_a_control_that_fails_is_inconclusive(tmp_path: Path) -> None:
    class Broken(Training):
        def _script(self, values: dict[str, str], number: int) -> Script:
            return run(training(), exit_code=3, stderr="boom\n")

    audit = bisect(tmp_path, Broken())
    assert (audit.outcome, audit.verdict) == (VaryOutcome.INCONCLUSIVE, Verdict.INCONCLUSIVE)
    (failed,) = audit.groups[0].runs
    assert (failed.errors, failed.stderr_tail) == ((Failed(exit_code=3),), ("boom",))


def test_runs_without_weights_are_inconclusive(tmp_path: Path) -> None:
    class Blind(Training):
        def _script(self, values: dict[str, str], number: int) -> Script:
            lines = [line for line in training() if line.get("stage") != "update"]
            return run([{**line, "digest": None, "sum": None} if line["k"] == "final" else line for line in lines])

    assert bisect(tmp_path, Blind()).outcome is VaryOutcome.INCONCLUSIVE


def test_what_the_recipe_pins_does_not_vary(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training(HASH), "seeds")
    assert audit.outcome is VaryOutcome.ROBUST
    assert set(audit.not_varied) == {HASH, "locale"}
    assert audit.not_varied[HASH] == PinnedByRecipe(recipe="seeds")
    assert "--recipe seeds" in audit.next_steps[0].command


def test_an_interruption_keeps_what_is_known(tmp_path: Path) -> None:
    catalogue = load_catalogue()
    question = VaryQuestion(varying(tmp_path), catalogue, load_recipe("none", catalogue))
    bisector = VariationBisector(question, Training(HASH, stop_after=6))
    with pytest.raises(KeyboardInterrupt):
        bisector.run()
    kept = bisector.result(interrupted=True)
    assert (kept.outcome, kept.sensitive_to, kept.interrupted) == (VaryOutcome.INCONCLUSIVE, None, True)
    assert len(kept.groups) == 3
    assert kept.groups[1].first_difference is not None
    assert (kept.environment["python"], kept.environment["frameworks"]) == ("3.11.7", {"torch": "2.13.0"})


@pytest.mark.parametrize("stop_after", [1, 6, 9, 20])
def test_a_resumed_one_repeats_no_run(tmp_path: Path, stop_after: int) -> None:
    catalogue = load_catalogue()
    question = VaryQuestion(varying(tmp_path), catalogue, load_recipe("none", catalogue))
    first, second, whole = Training(HASH, stop_after=stop_after), Training(HASH), Training(HASH)
    bisector = VariationBisector(question, first)
    with pytest.raises(KeyboardInterrupt):
        bisector.run()
    kept = bisector.result(interrupted=True)
    assert "--resume" in kept.next_steps[0].command
    assert kept.next_steps[0].purpose is Purpose.RESUME
    audit = VariationBisector(question, second, earlier=kept.groups).run()
    other = tmp_path / "other"
    other.mkdir()
    expected = bisect(other, whole)
    assert audit.sensitive_to == expected.sensitive_to
    assert [group.verdict for group in audit.groups] == [group.verdict for group in expected.groups]
    assert len(first.launched) + len(second.launched) == len(whole.launched) == audit.total_runs


def test_audit_json_has_all_of_it(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training(HASH))
    assert store.load(tmp_path / "out") == audit
    assert msgspec.json.decode(msgspec.json.encode(audit), type=VariationBisection) == audit


def test_the_first_run_of_a_trial_is_the_controls_and_no_setting_that_varies_is_a_warning(tmp_path: Path) -> None:
    audit = bisect(tmp_path, Training())
    control, varied = audit.groups
    assert varied.runs[0] == control.runs[0]
    assert varied.varied[0].id == HASH
    assert varied.varied[0].values[:3] == ("PYTHONHASHSEED=0", "PYTHONHASHSEED=1", "PYTHONHASHSEED=2")
    assert not any(isinstance(warning, SettingsDiffer) for warning in audit.warnings)


def test_a_plain_audit_varies_from_the_second_run_on(tmp_path: Path) -> None:
    launcher = FakeLauncher(run(training()), run(training()), run(training("other")))
    requested = replace(varying(tmp_path, HASH), recipes=(load_recipe("none", load_catalogue()),), runs=3)
    audit = Auditor(requested, launcher).run()
    assert [spec.env["PYTHONHASHSEED"] for spec in launcher.specs] == ["0", "1", "2"]
    assert {run.status for run in audit.groups[0].runs} == {Status.OK}
    assert audit.verdict is Verdict.NONDETERMINISTIC
    assert audit.groups[0].varied[0].values == ("PYTHONHASHSEED=0", "PYTHONHASHSEED=1", "PYTHONHASHSEED=2")
    commands = {step.purpose: step.command for step in audit.next_steps}
    expected = "detaudit bisect train.py --over variations --python python --vary all"
    assert commands[Purpose.FIND_VARIATIONS] == expected
    assert ([one.id for one in audit.groups[0].varied], audit.groups[0].not_varied) == (
        [HASH],
        {"locale": NoSecondLocale()},
    )
