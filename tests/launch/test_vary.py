"""Variations in runs: the values of each run, environments of the same size, what a system does not support."""

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from detaudit import wire
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.config.variations import Variation, load_variations
from detaudit.launch import RunSpec, local, vary
from detaudit.launch.vary import Varying
from detaudit.launch.workspace import IsolatedWorkspace
from detaudit.model.sources import AddressesRandom, NeedsIsolate, NoAvx2, NoGlibc, NoSecondLocale, PinnedByRecipe

TABLE = {row.id: row for row in load_variations()}
SPEC = RunSpec(
    argv=("python", "train.py"),
    cwd=Path("/x"),
    env={wire.ENV_FLAGS: "", "HOME": "/x"},
    folder=Path("/x/1"),
    live=Path("/x/live"),
    mark="m",
)


def varying(*names: str) -> Varying:
    return Varying(tuple(TABLE[name] for name in names))


def test_only_the_first_run_has_the_control_values() -> None:
    runs = [varying("hash-seed", "addresses", "background-load").apply(SPEC, number) for number in (1, 2, 3)]
    assert [run.env["PYTHONHASHSEED"] for run in runs] == ["0", "1", "2"]
    assert [run.no_aslr for run in runs] == [True, False, False]
    assert runs[0].load == 0
    assert 0 < runs[1].load < runs[2].load


def test_all_environments_have_the_same_size() -> None:
    everything = Varying(tuple(row for row in TABLE.values()))
    sizes = {
        sum(len(name) + len(value) for name, value in everything.apply(SPEC, number).env.items())
        for number in range(1, 30)
    }
    assert len(sizes) == 1
    assert {len(everything.apply(SPEC, number).env) for number in range(1, 30)} == {len(everything.apply(SPEC, 1).env)}
    assert Varying().apply(SPEC, 2) == SPEC


def test_a_pinned_variation_has_its_control_value_in_every_run() -> None:
    some = varying("hash-seed", "listing-order").under(load_recipe("none", load_catalogue()), {"hash-seed"})
    spec = some.apply(SPEC, 5)
    assert spec.env["PYTHONHASHSEED"] == "4"
    module, order = spec.env[wire.ENV_FLAGS].split("\t")
    assert (module, json.loads(order)["number"]) == ("os", 0)


def test_a_variation_that_the_recipe_pins_does_not_vary() -> None:
    some = varying("hash-seed", "memory-fill").under(load_recipe("seeds", load_catalogue()))
    assert [one.id for one in some.varying] == ["memory-fill"]
    assert some.not_varied == (("hash-seed", PinnedByRecipe(recipe="seeds")),)


def test_what_this_system_does_not_support_is_left_out_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cpuinfo").write_text("flags : sse4_2 avx\n")
    monkeypatch.setattr(vary, "CPU", tmp_path / "cpuinfo")
    monkeypatch.setattr("detaudit.launch.refusals.aslr_refusal", lambda: "forbidden here")
    monkeypatch.setattr("detaudit.launch.vary._has_glibc", lambda: False)
    monkeypatch.setattr("detaudit.launch.vary._is_installed", lambda name: False)
    found = vary.offered(TABLE.values(), isolate=False)
    assert dict(found.not_varied) == {
        "addresses": AddressesRandom(detail="forbidden here"),
        "memory-fill": NoGlibc(),
        "locale": NoSecondLocale(),
        "instruction-set": NoAvx2(),
        "working-directory": NeedsIsolate(),
    }
    assert {one.id for one in found.varying} == set(TABLE) - set(dict(found.not_varied))


def test_only_installed_locales_vary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("detaudit.launch.vary._is_installed", lambda name: name.startswith("de"))
    (found,) = vary.offered([TABLE["locale"]], isolate=False).varying
    assert {found.environment(number)["LC_ALL"] for number in range(1, 9)} == {"de_DE.UTF-8"}
    assert isinstance(found, Variation)


def test_a_copy_may_have_a_different_name(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    space = IsolatedWorkspace(tmp_path / "repo", tmp_path / "repo", tmp_path / "results")
    other = space.with_copy("other-name")
    assert other.workspace.cwd == tmp_path / "results" / "work" / "other-name"
    assert other.inside(str(tmp_path / "repo" / "a.txt")).endswith("other-name/a.txt")
    assert space.with_copy("") is space


@pytest.mark.launches
def test_busy_processes_end_with_the_run_even_after_an_error() -> None:
    busy: list[psutil.Process] = []

    def fail() -> None:
        with local.busy(1):
            busy.extend(child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(busy) == 1
    assert not busy[0].is_running()


@pytest.mark.launches
def test_busy_processes_end_when_the_audit_is_killed() -> None:
    code = (
        "import sys; from detaudit.launch import local\nwith local.busy(1): print('up', flush=True); sys.stdin.read()"
    )
    audit = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert audit.stdout is not None
    assert audit.stdout.readline() == b"up\n"
    (busy,) = psutil.Process(audit.pid).children()
    audit.kill()
    audit.communicate()
    deadline = time.monotonic() + 120
    while busy.is_running() and busy.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not busy.is_running() or busy.status() == psutil.STATUS_ZOMBIE
