"""With the recorder a script behaves as without it: same stdout, same exit status, same weights, bit for bit."""

import os
import re
import subprocess
import sys
import textwrap

import pytest

from detaudit import wire
from detaudit.launch.plan import BOOTSTRAP
from tests.process.conftest import Project
from tests.process.test_training import KERAS_FIT, TAPE, TORCH_OPTIMIZER

SAVE = """
import sys
import textwrap
print(sys.path, sys.argv, sorted(name for name in sys.modules if "detaudit" in name and not name.startswith("_")))
"""

SEED = {
    "torch": "import torch\ntorch.manual_seed(5)\n",
    "keras": "import keras\nkeras.utils.set_random_seed(5)\n",
    "tape": "import tensorflow as tf\ntf.random.set_seed(5)\n",
}


STAMP = re.compile(r"^(?:([IWEF])\d{4} [\d:.]+ +\d+|[\d-]{10} [\d:.]+:)", re.MULTILINE)
"""Time and thread of a line that TensorFlow logs; on a processor with AVX512-VNNI it logs one at any log level."""


def bare_and_recorded(project: Project, *argv: str) -> tuple[subprocess.CompletedProcess[str], ...]:
    """Run a script without and with the recorder; what they print is the same but for the stamps of log lines."""
    (project.folder / "logs").mkdir()
    base = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    recorded = {**base, "PYTHONPATH": str(BOOTSTRAP), wire.ENV_LOGS: str(project.folder / "logs")}
    base.pop("PYTHONPATH", None)
    return tuple(_without_stamps(project, env, argv) for env in (base, recorded))


def _without_stamps(project: Project, env: dict[str, str], argv: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *argv], cwd=project.folder, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout, STAMP.sub(r"\1", done.stderr))


@pytest.mark.parametrize(
    ("seed", "text"),
    [
        ("torch", TORCH_OPTIMIZER),
        pytest.param("keras", KERAS_FIT, marks=pytest.mark.full),
        pytest.param("tape", TAPE, marks=pytest.mark.slow),
    ],
    ids=["torch", "keras", "tape"],
)
def test_same_output_and_same_weights(project: Project, seed: str, text: str) -> None:
    project.write("train.py", SEED[seed] + textwrap.dedent(text) + SAVE)
    bare, recorded = bare_and_recorded(project, "train.py", "--epochs", "1")
    assert bare.stdout == recorded.stdout
    assert (bare.returncode, recorded.returncode) == (0, 0)
    assert len(bare.stdout.splitlines()) == 2  # the weights' sum in all its digits, and what Python shows of itself
    assert list((project.folder / "logs").iterdir())


@pytest.mark.parametrize(
    ("text", "code"),
    [("import sys\nsys.exit(7)", 7), ("raise SystemExit('no')", 1), ("import os\nos._exit(9)", 9), ("1/0", 1)],
)
def test_same_exit_status_and_same_last_words(project: Project, text: str, code: int) -> None:
    project.write("train.py", text)
    bare, recorded = bare_and_recorded(project, "train.py")
    assert (bare.returncode, recorded.returncode) == (code, code)
    assert bare.stderr == recorded.stderr


WARNED = """
import torch
optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
torch.optim.lr_scheduler.StepLR(optimizer, 1).step()
torch.optim.lr_scheduler.LambdaLR(optimizer, float).step(2)
"""


def test_a_warning_is_about_the_line_of_the_script(project: Project) -> None:
    project.write("train.py", WARNED)
    bare, recorded = bare_and_recorded(project, "train.py")
    assert len(re.findall(r"train\.py:\d+: UserWarning", bare.stderr)) == 3, bare.stderr
    assert bare.stderr == recorded.stderr


REPLACED = """
import copy, glob, inspect, os, pathlib, pickle, random, shutil, tempfile, uuid
folder = tempfile.mkdtemp()
for name in "cab":
    pathlib.Path(folder, name, "x").mkdir(parents=True)
with os.scandir(folder) as entries:
    print(next(entries).is_dir())
print(sorted(os.listdir(folder)), sorted(os.listdir(os.fsencode(folder))), sorted(e.name for e in os.scandir(folder)))
print(sorted(p.name for p in pathlib.Path(folder).iterdir()), len(glob.glob(folder + "/**", recursive=True)))
print(len(list(pathlib.Path(folder).rglob("*"))), len(list(os.walk(folder))), len(list(os.fwalk(folder))))
print(os.listdir in os.supports_fd, os.scandir in os.supports_fd, shutil.rmtree.avoids_symlink_attacks)
print(pickle.loads(pickle.dumps(os.listdir)) is os.listdir, inspect.signature(os.listdir), os.urandom.__name__)
class Held:
    listdir, draw = os.listdir, os.urandom
print(len(Held().listdir(folder)), len(Held().draw(3)))
class Own(random.Random):
    def seed(self, a=None, version=2):
        super().seed(7)
random.seed(4)
print(Own().random(), random.Random(3).random(), copy.deepcopy(random.Random(5)).random(), random.random())
print(isinstance(random.SystemRandom(), random.Random), uuid.uuid1().version, uuid.uuid4().version)
for wrong in (lambda: os.listdir("/no/such"), lambda: os.environ.update(A=5), lambda: os.environ.pop("NONE")):
    try:
        wrong()
    except (OSError, TypeError, KeyError) as error:
        print(repr(error))
os.environ["OMP_NUM_THREADS"] = "1"
del os.environ["OMP_NUM_THREADS"]
import concurrent.futures, multiprocessing.pool, queue
for name in ("as_completed", "wait"):
    function = getattr(concurrent.futures, name)
    print(pickle.loads(pickle.dumps(function)) is function, inspect.signature(function))
    print(inspect.isgeneratorfunction(function))
with concurrent.futures.ThreadPoolExecutor(2) as pool, multiprocessing.pool.ThreadPool(2) as threads:
    futures = {pool.submit(pow, n, 2) for n in range(5)}
    print(sorted(f.result() for f in concurrent.futures.as_completed(futures)))
    print(sorted(threads.imap_unordered(abs, [-1, 2])))
    print(len(concurrent.futures.wait(futures, 5, "FIRST_COMPLETED").done) > 0)
items = queue.Queue(1)
items.put(1)
print(items.get(), sorted(vars(queue.PriorityQueue())), inspect.signature(queue.Queue))
with concurrent.futures.ProcessPoolExecutor(1) as pool:
    print(0 <= pool.submit(random.random).result() < 1, list(pool.map(random.Random(3).randint, [1], [9])))
shutil.rmtree(folder)
print(os.path.exists(folder), "OMP_NUM_THREADS" in os.environ)
"""


def test_functions_that_are_replaced_behave_as_before(project: Project) -> None:
    project.write("train.py", REPLACED)
    bare, recorded = bare_and_recorded(project, "train.py")
    assert (bare.stdout, bare.stderr) == (recorded.stdout, recorded.stderr)
    assert len(bare.stdout.splitlines()) == 22
    event_logs = [path.read_text() for path in (project.folder / "logs").iterdir()]
    assert max(text.count('"k":"source"') for text in event_logs) > 10
    assert not any('"k":"trouble"' in text for text in event_logs)


CALLED_FROM_C = """
import _thread, concurrent.futures, itertools, os, random, sys, uuid
import numpy, torch
from sklearn.linear_model import LinearRegression
failed = []
sys.unraisablehook = lambda unraisable: failed.append((unraisable.object, repr(unraisable.exc_value)))
weight = torch.zeros(2, requires_grad=True)
weight.grad = torch.ones(2)
optimizer = torch.optim.SGD([weight], 0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
fitted = LinearRegression().fit([[0.0], [1.0]], [0.0, 2.0])
future = concurrent.futures.Future()
future.set_result(0)
for function, arguments in (
    (os.urandom, (3,)), (os.listdir, (".",)), (os.scandir, (".",)), (uuid.uuid1, ()),
    (random.random, ()), (random.seed, (1,)), (random.Random, ()), (random.SystemRandom().random, ()),
    (numpy.random.normal, ()), (numpy.random.mtrand._rand.normal, ()), (numpy.random.seed, (1,)),
    (numpy.random.default_rng, ()), (numpy.random.RandomState, ()),
    (torch.manual_seed, (1,)), (torch.use_deterministic_algorithms, (False,)), (torch.optim.SGD, ([weight], 0.1)),
    (optimizer.step, ()), (scheduler.step, ()), (fitted.fit, ([[0.0], [1.0]], [0.0, 3.0])),
    (fitted.predict, ([[2.0]],)),
    (list, (concurrent.futures.as_completed([future]),)), (concurrent.futures.wait, ([future],)),
    (os.environ.__setitem__, ("OMP_NUM_THREADS", "1")), (open, (__file__,)),
):
    ended = _thread.allocate_lock()
    ended.acquire()
    calls = itertools.chain(itertools.starmap(function, [arguments]), itertools.starmap(ended.release, [()]))
    _thread.start_new_thread(list, (calls,))  # no Python function lies below the call, as in a thread of native code
    if not ended.acquire(timeout=10):
        failed.append(function)
print(failed, weight.tolist(), fitted.coef_.round(6), os.environ["OMP_NUM_THREADS"])
"""


def test_functions_may_be_called_from_native_code(project: Project) -> None:
    project.write("train.py", CALLED_FROM_C)
    bare, recorded = bare_and_recorded(project, "train.py")
    assert (bare.stdout, bare.stderr) == (recorded.stdout, recorded.stderr)
    assert bare.stdout.startswith("[] ")


def test_the_users_own_sitecustomize_still_runs(project: Project) -> None:
    project.write("theirs/sitecustomize.py", "import builtins\nbuiltins.theirs = 'ran'\n")
    project.write("train.py", "print(theirs)\nimport sitecustomize\nprint(sitecustomize.__file__)\n")
    path = os.pathsep.join([str(BOOTSTRAP), str(project.folder / "theirs")])
    env = {**os.environ, "PYTHONPATH": path, wire.ENV_LOGS: str(project.folder)}
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=project.folder, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["ran", str(project.folder / "theirs" / "sitecustomize.py")]


def test_a_recorder_that_cannot_write_stays_out_of_the_way(project: Project, seeded: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(BOOTSTRAP), wire.ENV_LOGS: "/no/such/folder"}
    done = subprocess.run(
        [sys.executable, seeded], cwd=project.folder, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_child_writes_an_event_log_of_its_own(project: Project, start: str) -> None:
    project.write(
        "train.py",
        f"""
        import multiprocessing, torch_training as training
        if __name__ == "__main__":
            context = multiprocessing.get_context("{start}")
            children = [context.Process(target=training.train, kwargs=dict(seed=n, steps=n + 2)) for n in range(2)]
            for child in children: child.start()
            for child in children: child.join()
            training.train(seed=9, steps=5)
        """,
    )
    done = project.run("train.py", "--runs", "2", "--full")
    assert done.code == 0
    assert [rank["steps"] for rank in done.json["groups"][0]["runs"][0]["ranks"]] == [5, 2, 3]
