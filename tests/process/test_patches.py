"""Patches make differing trainings match, and leave deterministic ones unchanged."""

import os
import tempfile
from pathlib import Path

import pytest

from tests.process.conftest import Finished, Project

GENERATORS = """
import os, random
import detaudit, torch

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
    """Return the exit statuses of two audits: of the script without flags, and with these."""
    bare, patched = (audit(project, *words, script=script, runs=runs) for words in ((), flags))
    return bare.code, patched.code


def audit(project: Project, *flags: str, script: str = "train.py", runs: str = "2") -> Finished:
    done = project.run(script, "--runs", runs, *[word for flag in flags for word in ("--flag", flag)])
    states = {flag["id"]: flag for flag in done.json["groups"][0]["flags"]}
    assert {states[flag]["state"] for flag in flags} <= {"applied"}, states
    return done


@pytest.mark.slow
def test_unseeded_generators_of_python_and_torch(project: Project) -> None:
    project.write("train.py", GENERATORS)
    both = ("python-seed-generators", "torch-seed-generators")
    assert codes(project, *both) == (1, 0)
    for flag, lines in ((both[0], [12]), (both[1], [8, 13])):
        left = audit(project, flag).json["groups"][0]["sources"]
        assert [source["line"] for source in left] == lines


MEASURED = """
import datetime, json, logging, random, sys, threading, time, timeit
import detaudit

logging.basicConfig(stream=sys.stdout, format="%(asctime)s %(relativeCreated)d %(message)s")
began = time.perf_counter()
detaudit.record(loss=0.5, weights=[1.0])
logging.warning("%s", time.perf_counter() - began)
timeit.Timer("pass").autorange()
found = {"a": time.perf_counter() - began, "b": random.Random(int(time.time() * 1e6)).random(), "c": CHANCE}
thread = threading.Thread(target=lambda: found.update(d=time.perf_counter() - began, e=str(datetime.datetime.now())))
thread.start()
thread.join()
json.dump(found, open("found.json", "w"))
"""


def test_what_a_clock_measured_is_the_same_if_the_clock_counts(project: Project) -> None:
    project.write("train.py", MEASURED.replace("CHANCE", "0.5"))
    bare = audit(project)
    assert bare.code == 1
    (step,) = [step["command"] for step in bare.json["next_steps"] if step["purpose"] == "count-clock"]
    assert "--flag python-counted-clock" in step
    done = audit(project, "python-counted-clock")
    assert (done.code, [step for step in done.json["next_steps"] if step["purpose"] == "count-clock"]) == (0, [])


def test_a_seed_from_a_clock_that_counts_is_said(project: Project) -> None:
    project.write(
        "train.py",
        """
        import random, time
        import detaudit
        random.seed(1767220000)
        random.seed(int(time.time() * 1000))
        detaudit.record(loss=0.5, weights=[random.random()])
        """,
    )
    done = audit(project, "python-counted-clock")
    (warning,) = done.json["warnings"]
    assert done.code == 0
    assert (warning["kind"], [one["line"] for one in warning["sources"]]) == ("seeds-from-counted-clock", [5])


def test_what_no_clock_measured_still_differs_if_the_clock_counts(project: Project) -> None:
    project.write("train.py", MEASURED.replace("CHANCE", "random.random()"))
    done = audit(project, "python-counted-clock")
    assert done.code == 1
    (found,) = [one for one in done.json["groups"][0]["output_differences"] if one["kind"] == "value"]
    assert (found["path"], found["at"]) == ("found.json", "c")
    steps = {step["purpose"]: step["command"] for step in done.json["next_steps"]}
    assert "count-clock" not in steps
    assert steps["trace"] == "detaudit trace train.py --flag python-counted-clock"


@pytest.mark.slow
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
    assert [source["kind"] for source in bare.json["groups"][0]["sources"]] == ["listing-order", "unseeded"]
    assert patched.json["groups"][0]["sources"] == []


def test_patches_do_not_change_a_deterministic_training(project: Project) -> None:
    project.write("train.py", "import torch_training\ntorch_training.train(seed=0)\n")
    flags = ("python-seed-generators", "torch-seed-generators", "python-sorted-listings")
    bare, patched = (audit(project, *words, runs="1") for words in ((), flags))
    digests = [done.json["groups"][0]["runs"][0]["ranks"][0]["digest"] for done in (bare, patched)]
    assert digests[0] == digests[1]


LOADER = """
import random, time
import numpy as np, torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

class Items(IterableDataset):
    def __iter__(self):
        own, python = np.random.default_rng(), random.Random()
        for _ in range(4):
            yield torch.tensor(own.normal() + python.random() + random.random() + np.random.normal())

def init(worker):
    np.random.seed(), random.seed()

class Own(DataLoader):
    def __init__(self, method):
        super().__init__(Items(), 2, num_workers=2, worker_init_fn=init, multiprocessing_context=method)

if __name__ == "__main__":
    torch.manual_seed(0)
    w = torch.ones(1, requires_grad=True)
    for x in [*Own("fork"), *Own("METHOD")]:
        (w * x).sum().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
"""


@pytest.mark.slow
def test_workers_of_a_loader_are_seeded_however_they_start(project: Project) -> None:
    project.write("train.py", LOADER.replace("METHOD", "spawn"))
    assert codes(project, "torch-loader-seed-workers") == (1, 0)


@pytest.mark.slow
def test_a_loader_without_workers_and_one_in_order(project: Project) -> None:
    project.write(
        "train.py",
        """
        import os, time
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Items(Dataset):
            def __len__(self):
                return 12
            def __getitem__(self, index):
                time.sleep(os.urandom(1)[0] / 2000)
                return torch.tensor(index / 3)

        torch.manual_seed(0)
        w = torch.ones(1, requires_grad=True)
        for x in DataLoader(Items(), 1, False, None, None, 3, prefetch_factor=2, in_order=False):
            (w * x).exp().sum().backward()
            with torch.no_grad():
                w -= 1e-3 * w.grad
        """,
    )
    assert audit(project, runs="3").code == 1
    assert audit(project, "torch-loader-in-order").code == 0
    assert audit(project, "torch-loader-workers-0").code == 0


@pytest.mark.slow
def test_uninitialized_memory(project: Project) -> None:
    project.write(
        "train.py",
        """
        import os
        import numpy as np, torch
        left = [np.full(4096, os.urandom(1)[0] / 256) for _ in range(8)]
        held = [torch.full((4096,), os.urandom(1)[0] / 256) for _ in range(8)]
        del left, held
        x = torch.empty(4096).nan_to_num(0, 0, 0).clamp(-1, 1)
        y = torch.from_numpy(np.empty(4096)).nan_to_num(0, 0, 0).clamp(-1, 1)
        w = torch.ones(1, requires_grad=True)
        (w * (x.sum() + y.sum())).sum().backward()
        """,
    )
    assert codes(project, "torch-zero-empty", "numpy-zero-empty") == (1, 0)


def test_a_cache_of_compiled_code_for_each_run(project: Project, tmp_path: Path) -> None:
    project.write(
        "train.py",
        """
        import os
        import detaudit
        folder = os.environ.get("TORCHINDUCTOR_CACHE_DIR", "shared")
        os.makedirs(folder, exist_ok=True)
        made = folder + "/first"
        first = not os.path.exists(made)
        open(made, "w").close()
        print(folder, flush=True)
        detaudit.record(loss=float(first), weights=[float(first)])
        """,
    )
    assert codes(project, "torch-compile-cache-per-run") == (1, 0)
    logs = [path.read_text() for path in (project.folder / ".detaudit").glob("*/runs/*cache-per-run*/*/stdout.log")]
    assert len(set(logs)) == 1
    assert not Path(logs[0].strip()).exists()
    assert not [*(project.folder / ".detaudit").glob("**/inductor")]


@pytest.mark.slow
def test_a_flag_with_a_value(project: Project, seeded: str) -> None:
    project.write(
        "train.py",
        """
        import torch
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
        model(torch.ones(2, 4)).sum().backward()
        """,
    )
    bare = audit(project, runs="1")
    flag = audit(project, "torch-on-cpu=1", runs="1")
    assert flag.json["groups"][0]["recipe"]["flags"] == ["torch-on-cpu=1"]
    digests = [done.json["groups"][0]["runs"][0]["ranks"][0]["digest"] for done in (bare, flag)]
    assert digests[0] == digests[1]
    missing = project.run("train.py", "--runs", "1", "--flag", "torch-on-cpu=7").json["groups"][0]["flags"][0]
    assert (missing["state"], "'7'" in missing["reason"]["detail"]) == ("failed", True)
    for wrong, word in (("torch-on-cpu", "torch-on-cpu=MODULE"), ("torch-seed=1", "takes no value")):
        done = project.detaudit("run", "train.py", "--flag", wrong)
        assert done.code == 2
        assert word in done.err


@pytest.mark.slow
def test_tensorflow_data(project: Project) -> None:
    project.write(
        "train.py",
        """
        import tensorflow as tf
        tf.random.set_seed(1)
        data = tf.data.Dataset.range(2048).map(
            lambda i: tf.cast(i, tf.float32) / 2048 + tf.random.normal(()), num_parallel_calls=8
        ).batch(64)
        w = tf.Variable(1.0)
        for x in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((w * x) ** 2)
            w.assign_sub(0.1 * tape.gradient(loss, w))
        """,
    )
    assert codes(project, "tensorflow-data-deterministic") == (1, 0)
