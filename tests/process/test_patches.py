"""A training that differs without a patch matches with it, and one that needs none is left as it was."""

import os
import tempfile
from pathlib import Path

import pytest

from tests.process.conftest import Finished, Project

GENERATORS = """
import os, random
import detaudit, torch, training

random.seed(0)
pipe = os.pipe()
if os.fork() == 0:
    os.write(pipe[1], b"%d" % random.getrandbits(20))
    os._exit(0)
os.wait()
own = torch.Generator()
own.seed()
drawn = random.Random().random() + int(os.read(pipe[0], 9)) + torch.rand(1, generator=own).item()
detaudit.record(loss=drawn, weights=[drawn])
"""


def codes(project: Project, *flags: str, script: str = "train.py", runs: str = "2") -> tuple[int, int]:
    """Return the exit statuses of two audits: of the script as it stands, and with the flags."""
    bare, patched = (audit(project, *words, script=script, runs=runs) for words in ((), flags))
    return bare.code, patched.code


def audit(project: Project, *flags: str, script: str = "train.py", runs: str = "2") -> Finished:
    done = project.run(script, "--runs", runs, *[word for flag in flags for word in ("--flag", flag)])
    states = {flag["id"]: flag for flag in done.json["groups"][0]["flags"]}
    assert {states[flag]["state"] for flag in flags} <= {"applied"}, states
    return done


def test_generators_of_python_and_torch_without_a_seed(project: Project) -> None:
    project.write("train.py", GENERATORS)
    both = ("python-seed-generators", "torch-seed-generators")
    assert codes(project, *both) == (1, 0)
    for flag, line in ((both[0], 12), (both[1], 13)):
        left = audit(project, flag).json["groups"][0]["sources"]
        assert line in {source["line"] for source in left}
        assert len(left) == 1, left


def test_listings(project: Project) -> None:
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        pytest.skip("no file system that lists files in the order of their creation")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        project.write(
            "train.py",
            f"""
            import os, random, shutil
            import detaudit
            folder = {folder!r} + "/data"
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
            names = [str(number) for number in range(20)]
            random.shuffle(names)
            for name in names:
                open(os.path.join(folder, name), "w").close()
            total = sum(place * int(name) for place, name in enumerate(os.listdir(folder)))
            detaudit.record(loss=total, weights=[total])
            """,
        )
        bare, patched = (audit(project, *flags) for flags in ((), ("python-sorted-listings",)))
    assert (bare.code, patched.code) == (1, 0)
    assert [source["kind"] for source in bare.json["groups"][0]["sources"]] == ["order"]
    assert patched.json["groups"][0]["sources"] == []


def test_a_training_that_needs_no_patch_trains_the_same_weights(project: Project, seeded: str) -> None:
    flags = ("python-seed-generators", "torch-seed-generators", "python-sorted-listings")
    bare, patched = (audit(project, *words, runs="1") for words in ((), flags))
    digests = [done.json["groups"][0]["runs"][0]["ranks"][0]["digest"] for done in (bare, patched)]
    assert digests[0] == digests[1]
