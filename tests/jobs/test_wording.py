"""No answer depends on wording: with every message and every description replaced, bisect and trace answer the same."""

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from detaudit.bisect import flags
from detaudit.config.flags import Catalogue, load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.launch import RunOutcome, RunSpec
from detaudit.model import (
    Bisection,
    Difference,
    Explanation,
    NextStep,
    OutputDifference,
    Override,
    Source,
    Stage,
    Trace,
    evidence,
)
from detaudit.model.fact import Fact, kinds
from detaudit.model.files import LeftState
from detaudit.report import traces
from detaudit.report.html import captions
from detaudit.trace import tracer
from tests.bisect.test_flags import HASH, KERNEL, SEED
from tests.fakes import Script, run, settings, training
from tests.trace import test_tracer

ENTROPY = "numpy-default-rng"
LINES = [
    {"k": "source", "kind": "unseeded", "what": "numpy.random.default_rng", "file": "train.py", "line": 2, "value": ""},
    {"k": "source", "kind": "seed", "what": "random.seed", "file": "train.py", "line": 3, "value": "1"},
]


class Training:
    """A launcher whose runs draw from an unseeded generator, and differ until its flag is set."""

    def __init__(self) -> None:
        self.launched: list[frozenset[str]] = []

    def launch(self, spec: RunSpec, tick: object) -> RunOutcome:
        orders = str(spec.env)
        self.launched.append(frozenset(flag for flag in (SEED, KERNEL, ENTROPY) if f'"{flag}"' in orders))
        end = "same" if ENTROPY in self.launched[-1] else f"other {len(self.launched)}"
        lines = training(end)
        script: Script = run([lines[0], *LINES, {"k": "framework", "name": "numpy", "version": "2.4.6"}, *lines[1:]])
        return script(spec)


def reworded(monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """Replace every sentence of a fact and every function that writes one, and return other descriptions of flags."""
    replaced = 0
    for fact in kinds(Fact):
        monkeypatch.setattr(fact, "text", lambda *_, **__: "lorem ipsum")
    for struct in (Difference, Explanation, LeftState, NextStep, Override, OutputDifference, Source, Stage):
        for name, value in list(vars(struct).items()):
            if inspect.isfunction(value) and inspect.signature(value).return_annotation is str and name[0] != "_":
                monkeypatch.setattr(struct, name, lambda *_, **__: "lorem ipsum")
    for module in (captions, evidence, traces):
        for name, value in list(vars(module).items()):
            if inspect.isfunction(value) and inspect.signature(value).return_annotation in (str, Iterator[str]):
                monkeypatch.setattr(module, name, lambda *_, **__: "lorem ipsum")
                replaced += 1
    assert replaced > 50
    words = {"title": "lorem", "note": "ipsum", "by_hand": "dolor", "cost": "sit", "source": "amet"}
    return Catalogue(replace(flag, **words) for flag in load_catalogue())


def bisect(folder: Path, catalogue: Catalogue) -> tuple[Bisection, list[frozenset[str]]]:
    folder.mkdir()
    launcher = Training()
    candidates = catalogue.select([SEED, KERNEL, HASH, ENTROPY])
    question = flags.Question(settings(folder, runs=1), catalogue, candidates, seed=0)
    return flags.Bisector(question, launcher).run(), launcher.launched


def trace(folder: Path, catalogue: Catalogue) -> Trace:
    folder.mkdir()
    found = settings(folder)
    (found.cwd / "train.py").write_text(test_tracer.CODE)
    request = tracer.TraceRequest(found, load_recipe("none", catalogue), catalogue)
    return tracer.Tracer(request, test_tracer.Training()).run()


def test_bisect_tries_the_same_flags_and_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit, tried = bisect(tmp_path / "a", load_catalogue())
    other, also_tried = bisect(tmp_path / "b", reworded(monkeypatch))
    assert [one.flag for one in audit.needed or ()] == [ENTROPY]
    assert tried == also_tried
    assert [one.flag for one in other.needed or ()] == [ENTROPY]
    assert other.groups[0].sources == audit.groups[0].sources


def test_trace_names_the_same_culprit_and_the_same_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = trace(tmp_path / "a", load_catalogue()).culprit
    other = trace(tmp_path / "b", reworded(monkeypatch)).culprit
    assert found is not None
    assert other is not None
    assert [one.flag for one in other.flags] == [one.flag for one in found.flags] != []
    assert replace(other, flags=()) == replace(found, flags=())
