"""Earlier audits as evidence: which are of the same training, and what they add. No process is started."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from detaudit import history, store
from detaudit.audit import Auditor
from detaudit.judge import verdict
from detaudit.launch.plan import Settings
from detaudit.model import SCHEMA_VERSION, Audit, Check, CheckedAudit, CheckVerdict, Group, Trace, Varied, Verdict
from detaudit.model.problems import EarlierRunsDiffer
from detaudit.model.warnings import EarlierResultDiffers
from detaudit.report import groups
from detaudit.runs.inputs import WRITTEN
from tests.fakes import FakeLauncher, Script, run, settings, training

Change = Callable[[Audit], Audit]


class Project:
    """A folder with a script, data and packages, and audits whose runs end with the given weights."""

    def __init__(self, folder: Path) -> None:
        self._numbers = itertools.count()
        self.folder, self.cwd, self.packages = folder, folder / "cwd", folder / "site-packages"
        (self.packages / "numpy-2.0.dist-info").mkdir(parents=True)
        self.cwd.mkdir()
        self.script, self.data = self.cwd / "train.py", self.cwd / "data.csv"
        self.script.write_text("train()")
        self.data.write_text("1,2")

    def script_of(self, end: str, **data: Any) -> Script:
        lines = training(end)
        files = {"files": [str(self.script)], "packages": [str(self.packages)]}
        read = {"k": "data", "paths": [str(self.data)], **data}
        lines[2:2] = [{"k": "settings", "values": {}, "environ": {}, **files}, read]
        return run(lines)

    def settings(self, **options: Any) -> Settings:
        number = next(self._numbers)
        made = settings(self.folder, *options.pop("recipes", ()), **options)
        out = self.cwd / ".detaudit" / f"{number}"
        return replace(made, out=out, started=f"2026-11-23T15:03:{number:02}+00:00")

    def audit(self, *ends: str, data: dict[str, Any] | None = None, **options: Any) -> Audit:
        scripts = [self.script_of(end, **(data or {})) for end in ends]
        requested = self.settings(runs=options.pop("runs", len(ends)), **options)
        audit = Auditor(requested, FakeLauncher(*scripts)).run()
        store.save(requested.out, audit)
        return audit

    @property
    def newest(self) -> Path:
        return store.all_results(self.cwd / ".detaudit")[0]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def only(audit: Audit) -> Group:
    (group,) = audit.groups
    return group


def test_matches_after_a_difference_are_inconclusive_and_name_the_audit(project: Project) -> None:
    project.audit("a", "a", "a")
    project.audit("a", "b", "a")
    differing = str(project.newest)
    assert project.audit("a", "a").verdict is Verdict.INCONCLUSIVE
    found = project.audit("a", "a")  # the matches of an audit that was inconclusive for it count like others
    assert (found.verdict, only(found).distinct_results) == (Verdict.INCONCLUSIVE, 1)
    reason = only(found).reason
    assert reason == EarlierRunsDiffer(runs=8, differing=1, folders=(differing,))
    assert {one.folder: one.runs for one in only(found).earlier if one.differing} == {differing: 3}
    assert groups.verdict_sentence(only(found)).startswith("of 8 earlier runs with the same code, data, environment")
    assert only(project.audit("a", "a", history=False)).verdict is Verdict.DETERMINISTIC


def test_runs_that_differ_now_are_proof_whatever_was_before(project: Project) -> None:
    project.audit("a", "a")
    found = project.audit("a", "b")
    assert (found.verdict, only(found).earlier) == (Verdict.NONDETERMINISTIC, ())


def test_matching_runs_of_earlier_audits_add_to_the_evidence(project: Project) -> None:
    project.audit("a", "a", "a")
    project.audit("a", "a")
    found = only(project.audit("a", "a"))
    assert (found.verdict, found.confidence) == (Verdict.DETERMINISTIC, verdict.confidence(7))
    assert [one.runs for one in found.earlier] == [2, 3]
    assert groups.evidence_line(found).startswith("7 runs, 5 of them in earlier audits, would catch a difference")
    assert groups.notes(found)[-1].startswith("matching earlier audits: ")


def test_an_earlier_audit_with_a_different_result_is_a_warning(project: Project) -> None:
    project.audit("a", "a")
    found = only(project.audit("b", "b"))
    assert (found.verdict, found.earlier, found.confidence) == (Verdict.DETERMINISTIC, (), verdict.confidence(2))
    assert found.warnings == (EarlierResultDiffers(folders=(str(project.cwd / ".detaudit" / "0"),)),)


def test_a_copy_of_a_results_folder_is_no_more_evidence(project: Project) -> None:
    project.audit("a", "a")
    shutil.copytree(project.newest, project.newest.with_name("copy"))
    assert only(project.audit("a", "a")).confidence == verdict.confidence(4)


def test_runs_whose_logs_are_gone_cannot_be_compared(project: Project) -> None:
    project.audit("a", "a")
    shutil.rmtree(project.newest / "runs")
    assert only(project.audit("a", "a")).earlier == ()


def test_what_an_audit_says_of_earlier_ones_is_kept_in_its_folder(project: Project) -> None:
    project.audit("a", "b")
    requested = project.settings(runs=2)
    found = Auditor(requested, FakeLauncher(*[project.script_of("a")] * 2)).run()
    assert store.load(requested.out).verdict is found.verdict is Verdict.INCONCLUSIVE


def test_a_long_training_is_compared_for_some_seconds_only(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.audit("a", "a")
    monkeypatch.setattr(history, "MOST_S", 0.0)
    assert only(project.audit("a", "a")).earlier == ()
    project.audit("a", "b")
    assert only(project.audit("a", "a")).verdict is Verdict.INCONCLUSIVE


def test_a_run_that_failed_is_no_difference_of_results(project: Project) -> None:
    requested = project.settings(runs=3)
    scripts = [project.script_of("a"), project.script_of("a"), run([], exit_code=1)]
    before = Auditor(requested, FakeLauncher(*scripts)).run()
    store.save(requested.out, before)
    found = only(project.audit("a", "a"))
    assert (before.verdict is not Verdict.DETERMINISTIC, found.verdict) == (True, Verdict.DETERMINISTIC)


def test_an_audit_that_was_interrupted_has_differences_but_no_matches(project: Project) -> None:
    project.audit("a", "a")
    folder = project.newest
    before = store.load(folder)
    unfinished = msgspec.structs.replace(only(before), verdict=Verdict.INCONCLUSIVE)
    store.save(folder, msgspec.structs.replace(before, interrupted=True, groups=(unfinished,)))
    assert only(project.audit("a", "a")).earlier == ()
    shutil.rmtree(folder)
    shutil.rmtree(project.newest)
    project.audit("a", "b")
    folder = project.newest
    store.save(folder, msgspec.structs.replace(store.load(folder), interrupted=True))
    assert only(project.audit("a", "a")).verdict is Verdict.INCONCLUSIVE


def test_audits_of_checks_count_and_reports_of_other_jobs_do_not(project: Project) -> None:
    before = project.audit("a", "b")
    folder = project.newest
    check = Check(
        schema_version=SCHEMA_VERSION,
        command=("detaudit", "check"),
        verdict=CheckVerdict.FAILED,
        audits=(CheckedAudit(name="small", audit=before, gates=()),),
        lock_file="detaudit.lock.json",
    )
    (folder / store.FILE).unlink()
    store.write(folder / store.CHECK, msgspec.json.encode(check))
    found = only(project.audit("a", "a"))
    assert isinstance(found.reason, EarlierRunsDiffer)
    assert found.reason.folders == (str(folder / "small"),)


def test_trials_of_other_jobs_are_no_audits(project: Project) -> None:
    before = project.audit("a", "b")
    values = {name: getattr(before, name) for name in before.__struct_fields__}
    store.save(
        project.newest, Trace(**values, culprit=None, narrowed_to=None, observer_effect=False, passes=(), total_runs=2)
    )
    assert only(project.audit("a", "a")).verdict is Verdict.DETERMINISTIC


def test_runs_that_were_ended_elsewhere_are_not_counted(project: Project) -> None:
    before = project.audit("a", "a")
    ended = msgspec.structs.replace(only(before), through=1)
    store.save(project.newest, msgspec.structs.replace(before, groups=(ended,)))
    assert only(project.audit("a", "a")).earlier == ()


def edited(project: Project) -> None:
    project.script.write_text("train(faster=True)")


def other_data(project: Project) -> None:
    project.data.write_text("1,3")


def upgraded(project: Project) -> None:
    (project.packages / "numpy-2.0.dist-info").rename(project.packages / "numpy-2.1.dist-info")


def without_packages(project: Project) -> None:
    shutil.rmtree(project.packages)


@pytest.mark.parametrize("change", [edited, other_data, upgraded, without_packages])
def test_what_changed_since_is_another_training(project: Project, change: Callable[[Project], None]) -> None:
    project.audit("a", "b")
    change(project)
    assert only(project.audit("a", "a")).verdict is Verdict.DETERMINISTIC


@pytest.mark.parametrize(
    "options",
    [{"recipes": ("seeds",)}, {"ignore": ("log.txt",)}, {"env": {"RATE": "0.1"}}, {"isolate": True}],
    ids=str,
)
def test_other_options_are_another_training(project: Project, options: dict[str, Any]) -> None:
    project.audit("a", "b")
    assert only(project.audit("a", "a", **options)).verdict is Verdict.DETERMINISTIC
    assert only(project.audit("a", "a", timeout=60.0)).verdict is Verdict.INCONCLUSIVE


def test_data_that_is_not_known_is_not_surely_the_same(project: Project) -> None:
    project.audit("a", "b", data={"spent": True})
    assert only(project.audit("a", "a")).verdict is Verdict.DETERMINISTIC
    project.audit("a", "b")
    assert only(project.audit("a", "a", data={"spent": True})).verdict is Verdict.DETERMINISTIC


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    return Project(tmp_path_factory.mktemp("known")).audit("a", "a")


def test_an_audit_is_surely_the_same_as_itself(known: Audit) -> None:
    assert history.is_same(known, msgspec.convert(msgspec.to_builtins(known), Audit))


@pytest.mark.parametrize("missing", ["data", "installed", "options", "code"])
def test_an_audit_of_an_older_version_is_not_surely_the_same(known: Audit, missing: str) -> None:
    older = msgspec.structs.replace(known, **{missing: {} if missing == "code" else None})
    assert not any(history.is_same(*pair) for pair in itertools.permutations((known, older)))
    assert not history.is_same(older, older)


def changes(known: Audit) -> Iterator[Audit]:
    """Yield audits of another training: each fact of the identity changed, one at a time."""
    replaced = msgspec.structs.replace
    yield replaced(known, target=(*known.target, "--lr", "0.1"))
    yield replaced(known, options={**(known.options or {}), "ignore": ["x"]})
    yield replaced(known, installed="other")
    yield from (replaced(known, code={**known.code, name: "other"}) for name in known.code)
    for name in known.data or {}:
        yield from (replaced(known, data={**(known.data or {}), name: text}) for text in ("other", WRITTEN))
    for name, value in known.environment.items():
        known_later = dict.fromkeys(value, "other") if isinstance(value, dict) else "other"
        changed = {**value, "OMP_NUM_THREADS": "1"} if name == "variables" else known_later
        if changed != value:
            yield replaced(known, environment={**known.environment, name: changed})


def test_each_fact_makes_another_training(known: Audit) -> None:
    others = [*changes(known)]
    assert len(others) > 12
    for other in others:
        assert not history.is_same(known, other)
        assert not history.is_same(other, known)


FILES = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["1", "2", WRITTEN]), max_size=4)


@given(a=FILES, b=FILES)
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_data_is_the_same_if_one_read_all_that_the_other_did(
    known: Audit, a: dict[str, str], b: dict[str, str]
) -> None:
    one, other = (msgspec.structs.replace(known, data=data) for data in (a, b))
    both = {*a} & {*b}
    assert history.is_same(one, other) is history.is_same(other, one)
    assert history.is_same(one, other) is (both in ({*a}, {*b}) and all(a[name] == b[name] != WRITTEN for name in both))


@given(
    flags=st.lists(st.sampled_from(["torch-seed", "numpy-seed", "tf32-off"]), unique=True),
    seeds=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    varied=st.tuples(st.booleans(), st.booleans()),
)
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_recipes_are_the_same_by_their_flags_seed_and_variations(
    known: Audit, flags: list[str], seeds: tuple[int, int], varied: tuple[bool, bool]
) -> None:
    def group(seed: int, varies: bool, order: list[str]) -> Group:
        recipe = msgspec.structs.replace(only(known).recipe, name=str(seed), flags=tuple(order), seed=seed)
        values = (Varied(id="hash-seed", values=("a", "b")),) if varies else ()
        return msgspec.structs.replace(only(known), recipe=recipe, varied=values)

    a, b = group(seeds[0], varied[0], flags), group(seeds[1], varied[1], flags[::-1])
    expected = (seeds[0] == seeds[1] or not flags) and varied[0] == varied[1]
    assert history.is_same_recipe(a, b) is history.is_same_recipe(b, a) is expected
    assert not history.is_same_recipe(a, group(seeds[0], varied[0], [*flags, "jax-seed"]))


def test_only_the_newest_audits_are_read(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.audit("a", "b")
    for _ in range(3):
        project.audit("a", "a", history=False)
    assert only(project.audit("a", "a")).verdict is Verdict.INCONCLUSIVE
    monkeypatch.setattr(history, "MOST", 3)
    assert only(project.audit("a", "a")).verdict is Verdict.DETERMINISTIC
