"""The settings in effect that an event log shows, and what follows from them for the recipe."""

from pathlib import Path
from typing import Any

import pytest

from detaudit.audit import Auditor
from detaudit.config.flags import load_catalogue
from detaudit.model import Audit, FlagOutcome, FlagState, Group, Override, ScriptCall, SourceKind, Warning
from detaudit.model.sources import TooOld, XlaTooOld
from detaudit.model.warnings import FlagNotApplied, FlagOverridden, LeftoversUnchecked, SettingsDiffer, SetTooLate
from detaudit.runs import log
from detaudit.runs import settings as effective_settings
from tests.fakes import FakeLauncher, run, settings, training
from tests.logs import write_log

SWITCH = "torch.backends.cudnn.benchmark"


def in_force(values: dict[str, Any] | None = None, start: dict[str, str] | None = None, **late: str) -> dict[str, Any]:
    start = {"PYTHONHASHSEED": "0"} if start is None else start
    environ = {"start": start, "torch": {**start, **late}, "end": {**start, **late}}
    return {"k": "settings", "values": values or {}, "environ": environ, "files": []}


def source(what: str, value: str, kind: str = "seed", line: int = 5) -> dict[str, Any]:
    return {"k": "source", "kind": kind, "what": what, "file": "/w/train.py", "line": line, "value": value}


def audit(folder: Path, *runs: list[dict[str, Any]], recipe: str = "none") -> Audit:
    lines_of_flags = [
        {"k": "flag", "id": flag, "state": "applied", "detail": ""}
        for flag in ("python-random-seed", "torch-seed", "torch-cudnn-benchmark-off", "tensorflow-op-determinism")
    ]
    scripts = [run([*training()[:1], *lines_of_flags, *lines, *training()[1:]]) for lines in runs]
    return Auditor(settings(folder, recipe, runs=len(runs)), FakeLauncher(*scripts)).run()


def state(group: Group, flag: str) -> FlagState:
    return next(state for state in group.flags if state.id == flag)


def applied(flag: str) -> FlagState:
    return FlagState(id=flag, title=load_catalogue().get(flag).title, state=FlagOutcome.APPLIED)


def overridden(flag: str, override: Override) -> FlagState:
    return FlagState(id=flag, title=load_catalogue().get(flag).title, state=FlagOutcome.OVERRIDDEN, override=override)


def doubts(result: Audit) -> list[Warning]:
    return [warning for warning in result.warnings if not isinstance(warning, LeftoversUnchecked | FlagNotApplied)]


def test_a_switch_that_the_script_set_back(tmp_path: Path) -> None:
    result = audit(tmp_path, *[[in_force({SWITCH: True})]] * 2, recipe="all")
    override = Override(at="end", name=SWITCH, value="True")
    flag = "torch-cudnn-benchmark-off"
    assert state(result.groups[0], flag) == overridden(flag, override)
    assert FlagOverridden(recipe="all", flag=flag, override=override) in doubts(result)
    # Nothing was read of what this flag sets, so nothing contradicts it.
    assert state(result.groups[0], "tensorflow-op-determinism") == applied("tensorflow-op-determinism")


def test_a_switch_that_a_call_of_the_script_set_back(tmp_path: Path) -> None:
    flag, switch = "torch-deterministic-algorithms", "torch.are_deterministic_algorithms_enabled()"
    lines = [
        {"k": "flag", "id": flag, "state": "applied", "detail": ""},
        source("torch.use_deterministic_algorithms", "False", "setting"),
        in_force({switch: False}, start={"PYTHONHASHSEED": "0", **load_catalogue().get(flag).env}),
    ]
    result = audit(tmp_path, lines, lines, recipe="all")
    call = ScriptCall(file="/w/train.py", line=5, call="torch.use_deterministic_algorithms", value="False")
    override = Override(at="end", name=switch, value="False", call=call)
    assert state(result.groups[0], flag) == overridden(flag, override)
    assert FlagOverridden(recipe="all", flag=flag, override=override) in doubts(result)


def seeded(value: str, differs: SourceKind | None = None, function: str = "torch.manual_seed") -> Override:
    call = ScriptCall(file="/w/train.py", line=5, call=function, value=value)
    return Override(at="seed", call=call, differs=differs)


@pytest.mark.parametrize(
    ("kind", "values", "override", "doubtful"),
    [
        ("seed", ("0", "0"), None, False),
        ("seed", ("42", "42"), seeded("42"), False),
        ("seed", ("42", "43"), seeded("43", SourceKind.SEED), True),
        ("clock", ("42", "43"), seeded("43", SourceKind.CLOCK), True),
    ],
)
def test_a_script_with_a_seed_of_its_own(
    tmp_path: Path, kind: str, values: tuple[str, str], override: Override | None, doubtful: bool
) -> None:
    runs = [[source("torch.manual_seed", value, kind), in_force()] for value in values]
    result = audit(tmp_path, *runs, recipe="seeds")
    expected = applied("torch-seed") if override is None else overridden("torch-seed", override)
    assert state(result.groups[0], "torch-seed") == expected
    warnings = [FlagOverridden(recipe="seeds", flag="torch-seed", override=override)] if override and doubtful else []
    assert doubts(result) == warnings


def test_a_constant_seed_that_looks_like_the_clock_in_one_run(tmp_path: Path) -> None:
    in_one, in_other = ([in_force(), source("torch.manual_seed", "42", kind)] for kind in ("clock", "seed"))
    result = audit(tmp_path, in_one, in_other, recipe="seeds")
    assert doubts(result) == []


def test_a_seed_taken_back_without_another(tmp_path: Path) -> None:
    result = audit(tmp_path, *[[source("torch.seed", "", "unseeded"), in_force()]] * 2, recipe="seeds")
    override = seeded("", SourceKind.UNSEEDED, "torch.seed")
    assert state(result.groups[0], "torch-seed") == overridden("torch-seed", override)
    assert doubts(result) == [FlagOverridden(recipe="seeds", flag="torch-seed", override=override)]


def test_a_variable_that_a_launcher_changed_on_the_way(tmp_path: Path) -> None:
    result = audit(tmp_path, *[[in_force(start={"PYTHONHASHSEED": "random"})]] * 2, recipe="seeds")
    override = Override(at="start", name="PYTHONHASHSEED", value="random")
    assert state(result.groups[0], "python-hash-seed") == overridden("python-hash-seed", override)
    assert doubts(result) == [FlagOverridden(recipe="seeds", flag="python-hash-seed", override=override)]


def test_runs_with_different_settings(tmp_path: Path) -> None:
    result = audit(tmp_path, [in_force({SWITCH: True})], [in_force({SWITCH: False})], [in_force({SWITCH: True})])
    differing = ((SWITCH, "False", "True"),)
    assert doubts(result) == [SettingsDiffer(recipe="none", run=2, first=1, settings=differing)]
    assert [(s.name, s.value) for s in result.groups[0].settings] == [(SWITCH, True), ("PYTHONHASHSEED", "0")]


def test_equal_settings_of_runs_are_held_once(tmp_path: Path) -> None:
    """Of a thousand runs of a thousand ranks they would not fit into memory."""
    first = {"PYTHONHASHSEED": "0"}
    found: list[tuple[effective_settings.EffectiveSettings, ...]] = []
    for number, values in enumerate(((first, first), (first, first), (first, {"PYTHONHASHSEED": "1"}), (first,))):
        logs = tmp_path / str(number) / "logs"
        logs.mkdir(parents=True)
        for rank, start in enumerate(values):
            lines = [training()[0] | {"rank": rank, "pid": rank}, in_force(start=start), *training()[1:]]
            write_log(logs / f"{rank}.0.jsonl", lines)
        settings_of_run = effective_settings.in_force(log.read_run(logs.parent), tmp_path)
        held = effective_settings.held_once(settings_of_run, found[0] if found else ())
        assert held == settings_of_run
        found.append(held)
    assert found[1] is found[0]
    assert found[2][0] is found[0][0]
    assert found[2][1] != found[0][1]
    assert found[3][0] is found[0][0]


def test_of_many_different_settings_the_first_are_listed(tmp_path: Path) -> None:
    runs = [[in_force(dict.fromkeys("abcde", value))] for value in (1, 2)]
    differing = tuple((name, "2", "1") for name in "abc")
    assert doubts(audit(tmp_path, *runs)) == [SettingsDiffer(recipe="none", run=2, first=1, settings=differing, more=2)]


def change(name: str, value: str, *after: str) -> dict[str, Any]:
    return {"k": "environ", "name": name, "value": value, "file": "/w/a.py", "line": 3, "after": list(after)}


def too_late(variable: str, module: str = "") -> SetTooLate:
    return SetTooLate(recipe="none", variable=variable, file="/w/a.py", line=3, module=module)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (change("PYTHONHASHSEED", "5"), [too_late("PYTHONHASHSEED")]),
        (change("PYTHONHASHSEED", "0"), []),
        (change("OMP_NUM_THREADS", "2"), []),
        (change("OMP_NUM_THREADS", "2", "torch"), [too_late("OMP_NUM_THREADS", "torch")]),
        (change("NCCL_ALGO", "Ring", "torch"), []),
    ],
)
def test_what_is_set_too_late(tmp_path: Path, line: dict[str, Any], expected: list[Warning]) -> None:
    assert doubts(audit(tmp_path, *[[line, in_force()]] * 2)) == expected


def test_without_files_that_are_left_nobody_must_notice_their_readers(tmp_path: Path) -> None:
    # conftest disables inotify.
    assert not audit(tmp_path, [in_force()], [in_force()]).warnings


def test_a_variable_that_this_version_does_not_read(tmp_path: Path) -> None:
    start = {"PYTHONHASHSEED": "0", "TORCHINDUCTOR_DETERMINISTIC": "1"}
    flag = "torch-inductor-deterministic"
    for number, (torch, expected) in enumerate({"2.9.1": "unavailable", "2.10.0": "applied"}.items()):
        (folder := tmp_path / str(number)).mkdir()
        lines = [{**line, "version": torch} if line["k"] == "framework" else line for line in training()]
        scripts = [run([lines[0], in_force(start=start), *lines[1:]])] * 2
        result = Auditor(settings(folder, "torch-compile", runs=2), FakeLauncher(*scripts)).run()
        found = state(result.groups[0], flag)
        assert found.state == expected
        warnings = [one for one in result.warnings if isinstance(one, FlagNotApplied) and one.flag == flag]
        unavailable = FlagNotApplied(recipe="torch-compile", flag=flag, reason=found.reason)
        assert warnings == ([unavailable] if expected == "unavailable" else [])
        old = TooOld(framework="torch", since="2.10", found="2.9.1")
        assert found.reason == (old if expected == "unavailable" else None)


def test_a_variable_that_has_the_users_settings_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("detaudit.launch.refusals.xla_refusal", lambda *_: None)
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=x")
    both = "--xla_dump_to=x --xla_gpu_deterministic_ops=true"
    start = {"JAX_THREEFRY_PARTITIONABLE": "1", "JAX_DEFAULT_PRNG_IMPL": "threefry2x32", "JAX_RANDOM_SEED_OFFSET": "0"}
    for number, (value, expected) in enumerate({both: "applied", "--xla_dump_to=x": "overridden"}.items()):
        (folder := tmp_path / str(number)).mkdir()
        lines = [in_force(start={**start, "PYTHONHASHSEED": "0", "XLA_FLAGS": value})]
        scripts = [run([*training()[:1], *lines, *training()[1:]])] * 2
        launcher = FakeLauncher(*scripts)
        result = Auditor(settings(folder, "jax", runs=2), launcher).run()
        assert launcher.specs[0].env["XLA_FLAGS"] == both
        assert state(result.groups[0], "jax-xla-deterministic-ops").state == expected
        assert state(result.groups[0], "jax-prng") == applied("jax-prng")


def test_a_flag_that_is_refused_is_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("detaudit.launch.refusals.xla_refusal", lambda *_: XlaTooOld(library="a.so"))
    launcher = FakeLauncher(*[run(training())] * 2)
    result = Auditor(settings(tmp_path, "jax", runs=2), launcher).run()
    assert "XLA_FLAGS" not in launcher.specs[0].env
    flag = "jax-xla-deterministic-ops"
    unavailable = FlagState(
        id=flag, title=load_catalogue().get(flag).title, state=FlagOutcome.UNAVAILABLE, reason=XlaTooOld(library="a.so")
    )
    assert state(result.groups[0], flag) == unavailable
    assert FlagNotApplied(recipe="jax", flag=flag, reason=XlaTooOld(library="a.so")) in result.warnings
