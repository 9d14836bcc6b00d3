"""Flags that the system or the environment of the training does not support are left out, with a reason."""

import sys
from pathlib import Path

import pytest

from detaudit.config.flags import load_catalogue
from detaudit.launch import refusals
from detaudit.launch.target import Target
from detaudit.model.sources import NotImported, XlaFlagsInFile, XlaTooOld, XlaUnknown

SCRIPT = Target(arguments=(), script="train.py", python="python")
OPS = "--xla_gpu_deterministic_ops=true"
PARSES = b"\x7fELF\0xla_dump_to\0xla_gpu_deterministic_ops\0"
MENTIONS = b"\x7fELF xla_dump_to xla_gpu_deterministic_ops xla_gpu_old"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that stands for the libraries of the Python that trains."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(refusals, "libraries", lambda python: tuple(sorted(str(path) for path in folder.iterdir())))
    refusals.contains.cache_clear()
    return folder


def test_a_flag_that_every_xla_knows_is_accepted(installed: Path) -> None:
    (installed / "a.so").write_bytes(PARSES)
    (installed / "b.so").write_bytes(MENTIONS)
    assert refusals.xla_refusal(OPS, SCRIPT, {}) is None


def test_a_flag_that_one_xla_does_not_know_is_refused(installed: Path) -> None:
    (installed / "a.so").write_bytes(PARSES)
    (installed / "b.so").write_bytes(PARSES.replace(b"deterministic_ops", b"something"))
    assert refusals.xla_refusal(OPS, SCRIPT, {}) == XlaTooOld(library=str(installed / "b.so"))


def test_a_library_that_only_mentions_a_flag_does_not_know_it(installed: Path) -> None:
    (installed / "a.so").write_bytes(PARSES + MENTIONS)
    assert refusals.xla_refusal("--xla_gpu_old=1", SCRIPT, {}) == XlaTooOld(library=str(installed / "a.so"))


def test_without_an_xla_there_is_no_refusal(installed: Path) -> None:
    (installed / "b.so").write_bytes(MENTIONS)
    (installed / "empty.so").write_bytes(b"")
    assert refusals.xla_refusal(OPS, SCRIPT, {}) == NotImported()


def test_a_file_of_xla_flags_is_not_overwritten(installed: Path) -> None:
    (installed / "a.so").write_bytes(PARSES)
    found = refusals.xla_refusal(OPS, SCRIPT, {"XLA_FLAGS": "flags.txt"})
    assert found == XlaFlagsInFile(file="flags.txt", xla_flag=OPS)
    assert refusals.xla_refusal(OPS, SCRIPT, {"XLA_FLAGS": " --xla_dump_to=x "}) is None


def test_the_python_of_a_command_is_found(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def libraries(python: str) -> tuple[str, ...]:
        asked.append(python)
        return ()

    monkeypatch.setattr(refusals, "libraries", libraries)
    launcher = tmp_path / "torchrun"
    launcher.write_text("#!/opt/python3.11 -E\n")
    launcher.chmod(0o755)
    refusals.xla_refusal(OPS, Target(arguments=(sys.executable, "train.py")), {})
    refusals.xla_refusal(OPS, Target(arguments=(str(launcher), "train.py")), {})
    assert asked == [sys.executable, "/opt/python3.11"]
    launcher.write_text("#!/bin/sh\n")
    assert refusals.xla_refusal(OPS, Target(arguments=(str(launcher),)), {}) == XlaUnknown(xla_flag=OPS)
    assert refusals.xla_refusal(OPS, Target(arguments=("no-such",)), {}) == XlaUnknown(xla_flag=OPS)


def test_refused_flags_have_a_state(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = load_catalogue().select(["jax-xla-deterministic-ops", "system-aslr-off", "torch-seed"])
    monkeypatch.setattr("detaudit.launch.refusals.aslr_refusal", lambda: "")
    found = refusals.refused(flags, SCRIPT, {})
    assert {id_: state.state for id_, state in found.items()} == {"jax-xla-deterministic-ops": "not-imported"}
    (installed / "a.so").write_bytes(PARSES.replace(b"deterministic_ops", b"something"))
    refusals.contains.cache_clear()
    found = refusals.refused(flags, SCRIPT, {})
    assert {id_: state.state for id_, state in found.items()} == {"jax-xla-deterministic-ops": "unavailable"}
    (installed / "a.so").write_bytes(PARSES)
    refusals.contains.cache_clear()
    assert refusals.refused(flags, SCRIPT, {}) == {}
