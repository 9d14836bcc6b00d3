"""Recipes, the audits of a project, lock files and audits: whatever is in one, errors are for the user."""

import json
import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import yaml

from detaudit import baseline, store
from detaudit.config import project
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.errors import DetauditError
from detaudit.judge import comparer
from detaudit.model import Stage, to_json
from detaudit.report import render
from tests.fuzz.fuzzing import bent, changed, fuzz, profiles
from tests.recorded import outside, recording, trained, weight
from tests.report.test_reporters import ALL

ROOT = Path(__file__).parents[2]
catalogue = cache(load_catalogue)

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
YAML = ("[" * 100_000, "- " * 100_000, BOMB, "x: 2020-13-45", "x: 0x_", "x: !!timestamp y", "x: &a [*a]", "<<: 1", "=")
"""Texts that a loader of YAML should not be trusted with."""


def checked(read: Callable[[], Any]) -> Any:
    """Return what is read, None if an error for the user is raised."""
    try:
        return read()
    except DetauditError:
        return None


def texts(samples: list[bytes], random: Random, dump: Callable[[Any], str], parse: Callable[[bytes], Any]) -> bytes:
    data = random.choice(samples)
    if random.random() < 0.5:
        return bent(random, data, samples)
    return dump(changed(random, parse(data))).encode(errors="surrogatepass")


@cache
def recipes() -> list[bytes]:
    return [path.read_bytes() for path in sorted((ROOT / "configs" / "recipes").glob("*.yaml"))]


@profiles("recipes")
def test_any_recipe_is_read(inputs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.yaml"

    def make(random: Random) -> bytes:
        data = texts(recipes(), random, lambda tree: yaml.safe_dump(tree, allow_unicode=True), yaml.safe_load)
        if random.random() < 0.02:
            data += random.choice(YAML).encode()
        file.write_bytes(data)
        return data

    fuzz("recipes", inputs, make, lambda _: checked(lambda: load_recipe("mine.yaml", catalogue())))


PROJECT = """
audits:
  digits: {command: "train.py --lr 0.1", runs: 2, recipe: all, policy: warn, timeout: 5.5, env: {A: "1"}}
  two: {command: [-m, train], flags: [torch-seed], baseline: false, loss_tolerance: 0.1}
"""
TOML = """
[project]
name = "x"
[tool.detaudit.audits.digits]
command = "train.py"
runs = 2
env = {A = "1"}
[tool.detaudit.audits.two]
command = ["-m", "train"]
loss-tolerance = 0.1
"""


@profiles("project files")
def test_the_audits_of_any_project_are_read(inputs: int, tmp_path: Path) -> None:
    def make(random: Random) -> bytes:
        for name in os.listdir(tmp_path):
            os.unlink(tmp_path / name)
        if random.random() < 0.5:
            data = texts([PROJECT.encode()], random, yaml.safe_dump, yaml.safe_load)
            data += random.choice(YAML).encode() if random.random() < 0.02 else b""
            (tmp_path / "detaudit.yaml").write_bytes(data)
        else:
            data = bent(random, TOML.encode())
            (tmp_path / "pyproject.toml").write_bytes(data)
        return data

    def check(_: bytes) -> None:
        for audit in (checked(lambda: project.read(project.find(tmp_path))) or {}).values():
            for command in filter(None, (audit.command, audit.resume, audit.stop)):
                checked(partial(project.words, command))

    fuzz("project files", inputs, make, check)


@cache
def locks() -> list[bytes]:
    full = recording(trained(weights=(weight(), weight(shape=()))), outside(Stage.ARTIFACT))
    lock = baseline.Lock(schema_version=baseline.SCHEMA_VERSION, audits={"digits": full, "b": recording()})
    return [(ROOT / "detaudit.lock.json").read_bytes(), msgspec.json.encode(lock)]


def dumped(tree: Any) -> str:
    return json.dumps(tree)


@profiles("lock files")
def test_any_lock_file_is_read_and_compared(inputs: int, tmp_path: Path) -> None:
    file = tmp_path / "x.lock.json"
    whole = msgspec.json.decode(locks()[1], type=baseline.Lock).audits["digits"]

    def make(random: Random) -> bytes:
        data = texts(locks()[1:] if random.random() < 0.9 else locks(), random, dumped, json.loads)
        file.write_bytes(data)
        return data

    def check(_: bytes) -> None:
        for one in (checked(lambda: baseline.read_lock(file)) or {}).values():
            for a, b in ((one.run, whole.run), (whole.run, one.run)):
                comparer.first_difference(a, b, shared=True)
            baseline.thinned(one)
        checked(lambda: baseline.load(f"{file}#digits"))

    fuzz("lock files", inputs, make, check)


@cache
def audits() -> list[bytes]:
    return [to_json(report) for report in ALL.values() if not type(report).__name__.startswith("Comparison")]


@profiles("audits")
def test_any_audit_is_read(inputs: int, tmp_path: Path) -> None:
    file = tmp_path / "audit.json"

    def make(random: Random) -> bytes:
        data = texts(audits(), random, dumped, json.loads)
        file.write_bytes(data)
        return data

    def check(_: bytes) -> None:
        report = checked(lambda: store.load_report(tmp_path))
        if report is not None:
            render(report, "table")
        checked(lambda: baseline.load(str(tmp_path)))

    fuzz("audits", inputs, make, check)
