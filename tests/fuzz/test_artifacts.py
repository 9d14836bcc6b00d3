"""Artifacts: no file is loaded, unpacked, believed or followed elsewhere, whatever is in it."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from detaudit.config.outputs import Listed
from detaudit.model.fact import encode
from detaudit.model.outputs import RunFacts
from detaudit.runs import files
from detaudit.runs.formats import UnusableError, apart
from tests.fuzz import artifacts
from tests.fuzz.fuzzing import bent, fuzz, profiles

FACTS = RunFacts(started=0.0, ended=60.0)


def read(kind: str, inputs: int, folder: Path, write: Callable[[Path], dict[str, bytes]]) -> None:
    """Read mutated files both ways: as the files of --artifact, and as files that a run wrote."""
    originals, work = folder / "originals", folder / "work"
    originals.mkdir()
    work.mkdir()
    samples = write(originals)
    slow = "weights.h5"  # it is read in a fork
    names = [name for name in samples if name != slow] * 20 + [name for name in samples if name == slow]
    same_suffix = {name: [one for other, one in samples.items() if other[-3:] == name[-3:]] for name in samples}

    def make(random: Random) -> tuple[str, bytes]:
        name = random.choice(names)
        data = bent(random, samples[name], same_suffix[name])
        name = random.choice(list(samples)) if random.random() < 0.02 else name
        (work / name).write_bytes(data)
        return name, data

    def check(made: tuple[str, bytes]) -> None:
        name, _ = made
        changes = files.Changes((files.Change(str(work / name), existed=False),))
        encode(files.Collector().collect(work, changes, (), listed=Listed({}, ()), facts=FACTS))
        with contextlib.suppress(UnusableError):
            files.read(work / name)
        assert set(os.listdir(folder)) == {"originals", "work"}
        assert set(os.listdir(work)) <= set(samples)

    fuzz(kind, inputs, make, check)


@profiles("archives")
def test_any_archive_is_read(inputs: int, tmp_path: Path) -> None:
    read("archives", inputs, tmp_path, artifacts.archives)


@profiles("arrays")
def test_any_file_of_arrays_is_read(inputs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "SECONDS", 2.0)
    read("arrays", inputs, tmp_path, artifacts.arrays)


@profiles("pickles")
def test_any_pickle_is_read(inputs: int, tmp_path: Path) -> None:
    read("pickles", inputs, tmp_path, artifacts.pickles)
