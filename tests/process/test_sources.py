"""The lines that bring randomness which no seed fixed are named, and no others."""

from tests.process.conftest import Finished, Project

SCRIPT = """
import random, time
import numpy as np
import sklearn.datasets
import torch
import training

random.seed(0)
np.random.seed(1)
torch.manual_seed(SEED)
noise = np.random.default_rng(GENERATOR).normal()
training.train()
w = torch.ones(1, requires_grad=True)
(w * noise).sum().backward()
"""


def audit(project: Project, seed: str, generator: str, *words: str) -> Finished:
    project.write("train.py", SCRIPT.replace("SEED", seed).replace("GENERATOR", generator))
    return project.run("train.py", "--runs", "2", *words)


def sources(done: Finished) -> list[tuple[str, int, str]]:
    return [(s["file"], s["line"], s["what"]) for s in done.json["groups"][0]["sources"]]


def test_a_generator_without_a_seed(project: Project) -> None:
    done = audit(project, "2", "")
    assert done.code == 1
    assert sources(done) == [("train.py", 11, "numpy.random.default_rng() without a seed")]


def test_a_flag_that_mends_a_source_takes_it_off_the_list(project: Project) -> None:
    done = audit(project, "time.time_ns()", "", "--flag", "numpy-default-rng")
    assert sources(done) == [("train.py", 10, "torch.manual_seed() with a seed that follows the clock")]


def test_a_deterministic_training_names_nothing(project: Project) -> None:
    done = audit(project, "2", "3")
    assert (done.code, sources(done)) == (0, [])


def test_in_a_copy_the_file_has_the_name_that_the_user_knows(project: Project) -> None:
    done = audit(project, "2", "", "--isolate")
    assert sources(done) == [("train.py", 11, "numpy.random.default_rng() without a seed")]


MANY = """
import os, random, tempfile, uuid
import detaudit
import numpy as np

tempfile.mkdtemp()
os.makedirs("data", exist_ok=True)
open(f"data/{os.getpid()}", "w").close()
files = os.listdir("data")
tag = uuid.uuid4().int % 2**20
own = random.Random()
random.seed(os.getpid())
words = {"a", "b", "c", "d", "e", "f"}
total = 0
for place, word in enumerate(words):
    total += place * ord(word)
state = np.random.RandomState(0).normal() + np.random.RandomState().normal()
detaudit.record(loss=total + tag + own.random() + random.random() + state, weights=[len(files)])
"""


def test_each_source_with_its_line_and_what_is_certain_first(project: Project) -> None:
    project.write("train.py", MANY)
    done = project.run("train.py", "--runs", "2")
    assert done.code == 1
    assert [(s["line"], s["what"], s["kind"]) for s in done.json["groups"][0]["sources"]] == [
        (12, "random.seed() with the process id as its seed", "process-id"),
        (9, "os.listdir() found other files in each run", "listing-files"),
        (11, "random.Random() without a seed", "unseeded"),
        (10, "uuid.uuid4() gives other values in every run", "entropy"),
        (17, "calls RandomState() without a seed", "candidate"),
        (15, "iterates over a set, whose order changes with PYTHONHASHSEED if it holds strings", "candidate"),
    ]
    shown = project.detaudit("run", "train.py", "--runs", "2", "--flag", "python-hash-seed", "--isolate")
    assert "train.py:12: random.seed() with the process id as its seed" in shown.out
    assert "PYTHONHASHSEED" not in shown.out


def test_a_seed_that_a_library_sets_for_the_user(project: Project) -> None:
    project.write(
        "train.py",
        """
        import time, keras, training
        keras.utils.set_random_seed(time.time_ns() % 2**32)
        training.train()
        """,
    )
    done = project.run("train.py", "--runs", "2", env={"KERAS_BACKEND": "torch"})
    assert ("train.py", 3, "torch.manual_seed() with a seed that follows the clock") in sources(done)
    assert {line for _, line, _ in sources(done)} == {3}


UNSEEDED = """
import multiprocessing, random
import numpy as np
import detaudit

def drawn(_):
    return random.random()

random.seed(3)
first = random.random()
with multiprocessing.get_context("fork").Pool(1) as pool:
    total = first + pool.map(drawn, [0])[0]
total += np.random.rand()
detaudit.record(loss=total, weights=[total])
"""


def test_global_generators_that_nobody_seeded_in_this_process(project: Project) -> None:
    project.write("train.py", UNSEEDED)
    python = ("train.py", 7, "random.random() without a seed: nobody seeded random")
    numpy = ("train.py", 13, "numpy.random.rand() without a seed: nobody seeded numpy.random")
    assert sources(project.run("train.py", "--runs", "2")) == [python, numpy]
    assert sources(project.run("train.py", "--runs", "2", "--flag", "numpy-seed")) == [python]
    flags = ("--flag", "numpy-seed", "--flag", "python-seed-generators")
    assert project.run("train.py", "--runs", "2", *flags).code == 0


ARRIVALS = """
import queue, threading, time
from concurrent.futures import ThreadPoolExecutor, as_completed
import detaudit

def late(seconds):
    time.sleep(seconds)
    return seconds

first = open("first", "a")
once = first.tell() == 0
first.write("x")
first.close()
with ThreadPoolExecutor(2) as pool:
    waits = [0.3, 0.01] if once else [0.01, 0.3]
    took = [f.result() for f in as_completed([pool.submit(late, wait) for wait in waits])]
    same = [f.result() for f in as_completed([pool.submit(late, wait) for wait in (0.01, 0.3)])]
items = queue.Queue()
for place, name in enumerate(("one", "other") if once else ("other", "one")):
    threading.Thread(target=items.put, args=(place,), name=name).start()
    time.sleep(0.1)
got = [items.get(), items.get()]
threading.Thread(target=items.put, args=(2,), name="third").start()
got.append(items.get())
detaudit.record(loss=time.time(), weights=[sum(took + got)])
"""


def test_lines_that_take_results_in_the_order_of_their_arrival(project: Project) -> None:
    project.write("train.py", ARRIVALS)
    assert sources(project.run("train.py", "--runs", "2")) == [
        ("train.py", 16, "concurrent.futures.as_completed() in an order of arrival that differs between runs"),
        ("train.py", 22, "queue.Queue.get() in an order of arrival that differs between runs"),
    ]
