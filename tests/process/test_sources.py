"""The lines that introduce unseeded randomness are named, and no others."""

import sys
from typing import Any

import pytest

from tests.process.conftest import Finished, Project

SCRIPT = """
import random, time
import numpy as np
import sklearn.datasets
import torch
import torch_training

random.seed(0)
np.random.seed(1)
torch.manual_seed(SEED)
noise = np.random.default_rng(GENERATOR).normal()
torch_training.train()
w = torch.ones(1, requires_grad=True)
(w * noise).sum().backward()
"""


def audit(project: Project, seed: str, generator: str, *words: str) -> Finished:
    project.write("train.py", SCRIPT.replace("SEED", seed).replace("GENERATOR", generator))
    return project.run("train.py", "--runs", "2", *words)


def sources(done: Finished) -> list[dict[str, Any]]:
    found = done.json["groups"][0]["sources"]
    assert isinstance(found, list)
    return found


def source(line: int, kind: str, call: str = "", generators: tuple[str, ...] = (), suspect: bool = False) -> Any:
    """Return a line of train.py as it is in audit.json."""
    found = {"file": "train.py", "line": line, "kind": kind, "call": call}
    return {**found, "generators": [*generators], "suspect": suspect, "condition": "", "takes": []}


@pytest.mark.slow
def test_a_generator_without_a_seed(project: Project) -> None:
    done = audit(project, "2", "")
    assert done.code == 1
    assert sources(done) == [source(11, "unseeded", "numpy.random.default_rng")]


@pytest.mark.slow
def test_a_flag_removes_the_source_that_it_fixes(project: Project) -> None:
    done = audit(project, "time.time_ns()", "", "--flag", "numpy-default-rng")
    assert sources(done) == [source(10, "clock", "torch.manual_seed")]


@pytest.mark.slow
def test_a_deterministic_training_names_nothing(project: Project) -> None:
    done = audit(project, "2", "3")
    assert (done.code, sources(done)) == (0, [])


@pytest.mark.slow
def test_a_file_in_a_copy_has_its_original_name(project: Project) -> None:
    done = audit(project, "2", "", "--isolate")
    assert sources(done) == [source(11, "unseeded", "numpy.random.default_rng")]


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


def test_each_source_with_its_line_observed_ones_first_and_names_last(project: Project) -> None:
    project.write("train.py", MANY)
    done = project.run("train.py", "--runs", "2")
    assert done.code == 1
    assert sources(done) == [
        source(12, "process-id", "random.seed"),
        source(9, "listing-files", "os.listdir"),
        source(11, "unseeded", "random.Random"),
        source(17, "unseeded", "RandomState", suspect=True),
        source(15, "set-order", suspect=True),
        source(10, "entropy", "uuid.uuid4"),
    ]
    shown = project.detaudit("run", "train.py", "--runs", "2", "--flag", "python-hash-seed", "--isolate")
    assert "train.py:12: random.seed() is seeded from the process ID\n" in shown.out
    assert "PYTHONHASHSEED" not in shown.out


def test_a_set_of_weights_is_named_where_only_their_update_differs(project: Project) -> None:
    project.write(
        "train.py",
        """
        import os
        import torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        texts = list({"a", "b"})
        weights = set(model.parameters())
        optimizer = torch.optim.SGD(list(weights), 0.1)
        for _ in range(2):
            model(torch.ones(3, 4)).sum().backward()
            with torch.no_grad():
                model.bias.grad += os.getpid()
            optimizer.step()
        """,
    )
    done = project.run("train.py", "--runs", "2")
    assert done.json["groups"][0]["first_difference"]["stage"] == "update"
    assert sources(done) == [source(8, "object-set-order", suspect=True)]


@pytest.mark.slow
def test_a_seed_that_a_library_sets_for_the_user(project: Project) -> None:
    project.write(
        "train.py",
        """
        import time, keras, torch_training
        keras.utils.set_random_seed(time.time_ns() % 2**32)
        torch_training.train()
        """,
    )
    done = project.run("train.py", "--runs", "2", env={"KERAS_BACKEND": "torch"})
    assert source(3, "clock", "torch.manual_seed") in sources(done)
    assert {found["line"] for found in sources(done)} == {3}


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


@pytest.mark.slow
def test_global_generators_that_are_unseeded_in_this_process(project: Project) -> None:
    project.write("train.py", UNSEEDED)
    python = source(7, "unseeded", "random.random", ("random",))
    numpy = source(13, "unseeded", "numpy.random.rand", ("numpy.random",))
    assert sources(project.run("train.py", "--runs", "2")) == [python, numpy]
    assert sources(project.run("train.py", "--runs", "2", "--flag", "numpy-seed")) == [python]
    flags = ("--flag", "numpy-seed", "--flag", "python-seed-generators")
    assert project.run("train.py", "--runs", "2", *flags).code == 0


SHARED = """
import random, threading, time
import detaudit
random.seed(0)
drawn, done = threading.Event(), threading.Event()
def load():
    random.random()
    drawn.set()
    done.wait()
threading.Thread(target=load).start()
drawn.wait()
noise = random.random()
done.set()
detaudit.record(loss=time.time(), weights=[noise])
"""


def test_threads_that_share_a_seeded_generator(project: Project) -> None:
    project.write("train.py", SHARED)
    assert sources(project.run("train.py", "--runs", "2")) == [source(12, "shared-generator", "random.random")]


COMPLETION = """
import queue, threading, time
from concurrent.futures import ThreadPoolExecutor, as_completed
import detaudit
def wait(place, gates):
    gates[place].wait()
    return place
def taken(place, gates):
    gates[1 - place].set()  # The other one ends only now, however slow the machine is.
    return place
first = open("first", "a"); once = first.tell() == 0
first.write("x"); first.close()
ours, same = [[threading.Event(), threading.Event()] for _ in range(2)]
ours[once].set(); same[0].set()
with ThreadPoolExecutor(2) as pool:
    took = [taken(f.result(), ours) for f in as_completed([pool.submit(wait, place, ours) for place in (0, 1)])]
    took += [taken(f.result(), same) for f in as_completed([pool.submit(wait, place, same) for place in (0, 1)])]
items = queue.Queue()
for place, name in enumerate(("one", "other") if once else ("other", "one")):
    thread = threading.Thread(target=items.put, args=(place,), name=name)
    thread.start(); thread.join()
got = [items.get(), items.get()]
threading.Thread(target=items.put, args=(2,), name="third").start()
got.append(items.get())
detaudit.record(loss=time.time(), weights=[sum(took + got)])
"""


def test_lines_that_take_results_in_completion_order(project: Project) -> None:
    project.write("train.py", COMPLETION)
    assert sources(project.run("train.py", "--runs", "2")) == [
        source(16, "completion-order", "concurrent.futures.as_completed"),
        source(22, "completion-order", "queue.Queue.get"),
    ]


def test_what_computes_without_training_has_its_lines_and_its_file_named(project: Project) -> None:
    project.write(
        "sample.py", "import numpy as np\nrng = np.random.default_rng()\nnp.save('x.npy', rng.normal(size=4))\n"
    )
    done = project.run("sample.py", "--runs", "2")
    assert done.code == 1
    assert sources(done) == [{**source(2, "unseeded", "numpy.random.default_rng"), "file": "sample.py"}]
    assert done.json["groups"][0]["first_difference"]["explanation"]["likely"] == []
    commands = [step["command"] for step in done.json["next_steps"]]
    advised = {one.split()[1] for one in commands if "--artifact x.npy" in one}
    assert advised == {"run", "bisect"}
    assert {"detaudit fix sample.py", "detaudit trace sample.py"} <= {*commands}
    alone = project.detaudit("bisect", "sample.py")
    assert alone.code == 125
    assert "detaudit bisect sample.py --artifact x.npy" in alone.out
    for options in ((), ("--artifact", "x.npy")):
        fixed = project.detaudit("fix", "sample.py", *options)
        assert fixed.code == 0, fixed.out
        assert "+rng = np.random.default_rng(0)" in fixed.out
        traced = project.detaudit("trace", "sample.py", *options)
        assert "culprit: sample.py:2 in a file, cause: seed" in traced.out


RULES = """
import json
rules = {"color": {"red", "blue", "green", "amber"}, "shape": {"round", "square", "oval"}}
known = {"red", "oval"}
weights = {}
for field, values in rules.items():
    for value in values:
        weights[value] = len(weights) if value in known else 0.5 * len(weights)
json.dump(dict(sorted(weights.items())), open("weights.json", "w"))
"""


@pytest.mark.slow
def test_the_line_that_takes_a_set_is_named_where_nothing_is_trained(project: Project) -> None:
    project.write("rules.py", RULES)
    traced = project.detaudit("trace", "rules.py")
    assert "culprit: rules.py:7 in a file, cause: string hash seed" in traced.out
    assert "with --flag python-hash-seed, 2 runs match" in traced.out
    assert "    + " + "for value in sorted(values):" in traced.out
    fixed = project.detaudit("fix", "rules.py")
    assert fixed.code == 0, fixed.out
    assert "+    for value in sorted(values):" in fixed.out


@pytest.mark.parametrize(
    ("code", "line", "kind"),
    [
        (
            "index = {}\nfor word in {*'abcdefghij'}:\n    index[word] = len(index)\nprint(index['a'])\n",
            2,
            "set-order",
        ),
        ("names = [str(n) for n in range(90)]\nprint(sum(id(one) // 64 % 5 for one in names))\n", 2, "address"),
    ],
)
def test_what_the_code_of_a_script_shows_that_imports_no_framework(
    code: str, line: int, kind: str, project: Project
) -> None:
    project.write("plain.py", code)
    done = project.run("plain.py", "--runs", "5")
    assert done.code == 1
    assert [(one["file"], one["line"], one["kind"]) for one in sources(done)] == [("plain.py", line, kind)]


def test_what_may_be_a_result_is_named_where_nothing_is_trained(project: Project) -> None:
    project.write("plain.py", "import time\nprint([('a', 1.5), ('b', time.perf_counter_ns() % 1000 / 1000)])\n")
    done = project.detaudit("run", "plain.py", "--runs", "2")
    assert done.code == 125
    assert "inconclusive: run 1: no training detected" in done.out
    assert "differs, and may be a result or not: stdout (line 1: " in done.out
    assert "detaudit run plain.py --runs 2 --compare all" in done.out
    assert project.detaudit("run", "plain.py", "--runs", "2", "--compare", "all").code == 1


@pytest.mark.slow
def test_the_process_that_wrote_a_file_is_the_one_whose_lines_are_compared(project: Project) -> None:
    project.write(
        "stages.py",
        "import subprocess, sys\nfor stage in ('first.py', 'second.py'):\n"
        "    subprocess.run([sys.executable, stage], check=True)\n",
    )
    project.write("first.py", "open('a.txt', 'w').write('one two three')\n")
    project.write(
        "second.py",
        "import secrets\nwords = open('a.txt').read().split()\nchosen = secrets.choice(range(10**9))\n"
        "open('b.txt', 'w').write(f'{words[0]} {chosen}')\n",
    )
    traced = project.detaudit("trace", "stages.py", "--isolate")
    assert "culprit: second.py:3 in a file" in traced.out, traced.out


@pytest.mark.slow
def test_a_file_that_no_other_run_writes_is_not_advised(project: Project) -> None:
    project.write(
        "sample.py",
        "import os\nimport numpy as np\nnp.save(f'x-{os.getpid()}.npy', np.random.default_rng().normal(size=4))\n",
    )
    done = project.run("sample.py", "--runs", "2")
    assert done.code == 1
    commands = [step["command"] for step in done.json["next_steps"]]
    assert [one for one in commands if "--artifact" in one] == [
        "detaudit run sample.py --runs 2 --artifact PATH/TO/MODEL"
    ]
    assert not [one for one in commands if one.startswith("detaudit bisect")]
    assert {"detaudit fix sample.py", "detaudit trace sample.py"} <= {*commands}
    assert "--artifact PATH/TO/MODEL" in project.detaudit("bisect", "sample.py").out
    assert "cause: seed" in project.detaudit("trace", "sample.py").out


@pytest.mark.slow
def test_a_set_is_sorted_in_a_script_that_imports_no_framework(project: Project) -> None:
    words = "words = {'a', 'bb', 'ccc', 'dddd', 'eeeee', 'ffffff'}\nopen('out.txt', 'w').write(' '.join(words))\n"
    project.write("words.py", words)
    done = project.detaudit("fix", "words.py")
    assert done.code == 0, done.out
    assert "sorted(" in done.out


def test_a_cross_validation_that_draws_from_the_global_generator_is_named(project: Project) -> None:
    project.write(
        "search.py",
        """
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_validate
from sklearn.tree import ExtraTreeClassifier

x, y = load_iris(return_X_y=True)
print(cross_validate(ExtraTreeClassifier(), x, y)["test_score"].sum())
""",
    )
    done = project.run("search.py", "--runs", "2")
    (named,) = sources(done)
    assert (named["line"], named["kind"], named["call"]) == (7, "unseeded", "sklearn.cross_validate")


@pytest.mark.slow
def test_a_split_that_draws_from_the_global_generator_is_named(project: Project) -> None:
    project.write(
        "split.py",
        """
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

x, y = load_iris(return_X_y=True)
x, _, y, _ = train_test_split(x, y)
GaussianNB().fit(x, y)
""",
    )
    done = project.run("split.py", "--runs", "2")
    (named,) = sources(done)
    assert (named["line"], named["kind"], named["call"]) == (7, "unseeded", "sklearn.model_selection.train_test_split")


@pytest.mark.slow
def test_an_estimator_that_is_seeded_from_the_clock_is_named_where_it_is_fitted(project: Project) -> None:
    project.write(
        "fit.py",
        """
import argparse, time
from sklearn.datasets import load_iris
from sklearn.tree import ExtraTreeClassifier

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31)
x, y = load_iris(return_X_y=True)
ExtraTreeClassifier(random_state=parser.parse_args().seed).fit(x, y)
ExtraTreeClassifier(random_state=3).fit(x, y)
""",
    )
    done = project.run("fit.py", "--runs", "3")
    (named,) = sources(done)
    assert (named["line"], named["call"]) == (9, "ExtraTreeClassifier.fit(random_state)")
    printed = project.detaudit("run", "fit.py", "--runs", "2", "--out", "again").out
    assert "ExtraTreeClassifier.fit(random_state) is seeded " in printed


LIBRARY = """
import numpy as np

class Reducer:
    def __init__(self, size=2, *, random_state=None):
        self.size, self.random_state = size, random_state

    def fit_transform(self, x):
        return self._projected(x)

    def _projected(self, x):
        return x @ np.random.default_rng(self.random_state).normal(size=(x.shape[1], self.size))
"""

REDUCED = """
import sys
sys.path.insert(0, "site-packages")
import numpy as np
from reducing import Reducer
reducer = Reducer(3)
points = reducer.fit_transform(np.ones((4, 5)))
np.save("points.npy", points)
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code of older Pythons does not know its class")
def test_what_a_library_draws_without_a_seed_is_seeded_where_the_script_makes_it(project: Project) -> None:
    project.write("site-packages/reducing.py", LIBRARY)
    project.write("train.py", REDUCED)
    done = project.run("train.py", "--runs", "2", "--artifact", "points.npy")
    taken = {**source(7, "unseeded", "numpy.random.default_rng"), "takes": ["reducing.Reducer(random_state)"]}
    assert (done.code, sources(done)) == (1, [taken])
    fixed = project.detaudit("fix", "train.py", "--format", "json")
    assert (fixed.code, [hunk["new"] for hunk in fixed.json["hunks"]]) == (
        0,
        [["reducer = Reducer(3, random_state=0)"]],
    )


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code of older Pythons does not know its class")
def test_what_is_made_in_another_file_than_it_draws_in_is_seeded_there(project: Project) -> None:
    project.write("site-packages/reducing.py", LIBRARY)
    project.write("parts.py", "from reducing import Reducer\n\nreducer = Reducer(3)\n")
    script = REDUCED.replace("from reducing import Reducer", "from parts import reducer")
    project.write("train.py", script.replace("reducer = Reducer(3)\n", ""))
    fixed = project.detaudit("fix", "train.py", "--format", "json")
    assert (fixed.code, [(hunk["file"], hunk["new"]) for hunk in fixed.json["hunks"]]) == (
        0,
        [("parts.py", ["reducer = Reducer(3, random_state=0)"])],
    )
