"""Calls that seed are recorded with their line and kind of seed, and replaced functions behave as before."""

import copy
import os
import pickle
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from detaudit import wire
from detaudit.recorder.process import frames
from detaudit.recorder.process.replace import replace, set_in_c
from detaudit.recorder.randomness import seeds, system


class Lines:
    """A sink that keeps the lines."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []

    def write(self, *lines: dict[str, Any]) -> None:
        self.found += lines

    def guarded(self, where: str, function: Any) -> None:
        function()


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> Any:
    for holder, names in (
        (os, ("urandom", "listdir", "scandir")),
        (random, ("seed", "_urandom")),
        (random.Random, ("seed",)),
    ):
        for name in names:
            monkeypatch.setattr(holder, name, getattr(holder, name))  # so that it is restored
    monkeypatch.setattr(os, "supports_fd", set(os.supports_fd))
    seeds._written.clear()
    seeds._calls.clear()
    seeds._seeds.clear()
    monkeypatch.setattr(seeds, "_observed", 0)
    stop_the_clock(monkeypatch)
    return Lines()


def stop_the_clock(monkeypatch: pytest.MonkeyPatch) -> int:
    """Stop the clock, and return its time in ns. With a running clock, 7 or 42 is sometimes a remainder of the time."""
    now = 1_795_278_075_773_649_700
    monkeypatch.setattr(time, "time_ns", lambda: now)
    monkeypatch.setattr(seeds, "_started", now - 10**10)
    return now


def kinds(sink: Any) -> list[tuple[str, str]]:
    return [(line["kind"], line["what"]) for line in sink.found]


def test_the_kind_of_a_seed_is_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    now = stop_the_clock(monkeypatch)
    for seed in (now, now // 1000, now // 10**6, now // 10**9, now % 2**32, now // 1000 % 2**31, now / 1e9):
        assert seeds._kind(seed) == "clock", seed
    assert seeds._kind(os.getpid()) == "process-id"
    for seed in (0, 42, 1337, -1, 10**6 - 1, 2**31, now // 10**9 - 10**8, 3.5, float("nan")):
        assert seeds._kind(seed) == "seed"


def test_generators_of_user_code_are_recorded_but_not_those_of_libraries(sink: Any) -> None:
    seeds.watch(random, "random", sink)
    random.Random()
    random.Random(5)
    tempfile.mkstemp(dir=tempfile.mkdtemp())  # draws a name from such a generator
    copy.deepcopy(random.Random(5))
    random.SystemRandom()
    assert kinds(sink) == [("unseeded", "random.Random"), ("seed", "random.Random"), ("seed", "random.Random")]
    assert {line["file"] for line in sink.found} == {__file__}


@pytest.mark.parametrize("in_order", [True, False])
def test_of_one_line_seeds_are_kept_that_do_not_depend_on_the_order(sink: Any, in_order: bool) -> None:
    seeds.watch(random, "random", sink)
    for number in range(1000) if in_order else reversed(range(1000)):
        random.seed(number)
    lowest = sorted(map(str, range(1000)), key=wire.seed_number)[: wire.MOST_SEEDS]
    assert {*lowest} <= {line["value"] for line in sink.found}
    assert len(sink.found) < 10 * wire.MOST_SEEDS


def test_seeds_of_threads_beside_each_other_are_kept_all_the_same(sink: Any) -> None:
    seeds.watch(random, "random", sink)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: random.seed(number), range(1000)))
    finally:
        sys.setswitchinterval(interval)
    lowest = sorted(map(str, range(1000)), key=wire.seed_number)[: wire.MOST_SEEDS]
    assert {*lowest} <= {line["value"] for line in sink.found}


def test_only_the_first_calls_are_looked_at(sink: Any) -> None:
    seeds.watch(random, "random", sink)
    for _ in range(seeds._MOST_OBSERVED):
        random.seed(1)
    random.seed(2)
    assert [line["value"] for line in sink.found] == ["1"]


def test_entropy_is_named_after_the_function_that_the_line_called(sink: Any) -> None:
    import secrets
    import uuid

    system.watch(sink)
    uuid.uuid4()
    os.urandom(4)
    secrets.token_bytes(4)
    assert kinds(sink) == [("entropy", f"{n}") for n in ("uuid.uuid4", "os.urandom", "secrets.token_bytes")]


def test_the_order_of_a_listing_and_the_names_in_it(sink: Any, tmp_path: Path) -> None:
    def listing(*names: str) -> str:
        listed = ModuleType("listed")
        listed.listdir = lambda: list(names)  # type: ignore[attr-defined]
        replace(listed, "listdir", lambda function: system._listdir(function, sink))
        seeds._written.clear()
        seeds._calls.clear()
        assert listed.listdir() == list(names)
        return str(sink.found[-1]["value"])

    assert listing("a", "b") == listing("a", "b")
    assert listing("a", "b").split("/")[1] == listing("b", "a").split("/")[1]
    assert len({listing(*names) for names in ("ab", "ba", "ac", "a", "abc")}) == 5


def test_listings_through_pathlib_and_glob_are_recorded_but_not_through_a_library(sink: Any, tmp_path: Path) -> None:
    import glob
    import shutil

    (tmp_path / "a" / "b").mkdir(parents=True)
    system.watch(sink)
    list(tmp_path.iterdir())
    glob.glob(f"{tmp_path}/*")
    list(os.walk(tmp_path))
    with os.scandir(tmp_path) as entries:
        assert [entry.name for entry in entries] == ["a"]
    assert {kind for kind, _ in kinds(sink)} == {"listing-order"}
    assert {what for _, what in kinds(sink)} >= {"glob.glob", "os.walk", "os.scandir"}
    sink.found.clear()
    shutil.copytree(tmp_path / "a", tmp_path / "c")
    shutil.rmtree(tmp_path / "a")
    assert not sink.found


def test_replaced_functions_behave_as_before(sink: Any, tmp_path: Path) -> None:
    system.watch(sink)

    class Held:
        """Keeps a C function, which does not become a method, like pathlib in Python 3.9."""

        listdir: Any = os.listdir

    assert Held().listdir(tmp_path) == []
    assert os.listdir in os.supports_fd
    assert pickle.loads(pickle.dumps(os.listdir)) is os.listdir
    assert os.listdir.__name__ == "listdir"
    with pytest.raises(FileNotFoundError):
        os.scandir(tmp_path / "none")


def test_a_class_method_stays_one() -> None:
    class Generator:
        @classmethod
        def make(cls) -> str:
            return cls.__name__

    class Own(Generator):
        pass

    replace(Generator, "make", lambda function: lambda *args: function(*args) + "!")
    assert Own.make() == "Own!"


def test_generated_code_and_frames_below_a_child_are_not_reported() -> None:
    outer: dict[str, Any] = {"sys": sys, "frames": frames}
    exec(compile("def generated(): return frames.user_frame(sys._getframe())", "<string>", "exec"), outer)
    found = outer["generated"]()
    assert found is not None
    assert found.f_code.co_filename == __file__
    child: dict[str, Any] = {"generated": outer["generated"], "__name__": "multiprocessing.process"}
    path = str(Path(os.__file__).parent / "multiprocessing" / "process.py")
    exec(compile("def _bootstrap(): return generated()", path, "exec"), child)
    assert child["_bootstrap"]().f_code.co_filename == "<string>"


def test_a_seed_that_is_a_numpy_integer_is_a_number(sink: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    np: Any = pytest.importorskip("numpy")
    monkeypatch.setattr(np.random, "seed", np.random.seed)
    monkeypatch.setattr(np.random, "default_rng", np.random.default_rng)
    seeds.watch(np.random, "numpy.random", sink)
    np.random.seed(np.int64(7))
    np.random.default_rng()
    assert [(line["kind"], line["value"]) for line in sink.found] == [("seed", "7"), ("unseeded", "")]


@pytest.mark.parametrize("arguments", [(), ("philox",)])
def test_what_starts_from_entropy_takes_no_seed(sink: Any, arguments: tuple[str, ...]) -> None:
    class Generator:
        @classmethod
        def from_non_deterministic_state(cls, alg: str | None = None) -> str | None:
            return alg

    fake = SimpleNamespace(set_seed=lambda seed: None, Generator=Generator, __name__="random")
    seeds.watch(SimpleNamespace(random=fake), "tensorflow", sink)
    assert Generator.from_non_deterministic_state(*arguments) == (arguments[0] if arguments else None)
    assert kinds(sink) == [("unseeded", "tensorflow.random.Generator.from_non_deterministic_state")]


def test_simple_namespaces_are_not_modules() -> None:
    with pytest.raises(AttributeError):
        replace(SimpleNamespace(), "nothing", lambda function: function)


LIBRARY = """
import functools

import numpy


def chosen(rows, *, rng=None):
    return numpy.random.default_rng(rng)


class Search:
    def __init__(self, tries, random_state=None): ...

    def fit(self, rows):
        return _fitted(rows)


class Inner(Search):
    def fit_all(self, rows):
        return [chosen(rows)]


def _fitted(rows, seed=None):
    return Inner(3).fit_all(rows)


def check_random_state(seed=None):
    return numpy.random.default_rng(seed)


def logged(function):
    return lambda *args: function(*args)


def deprecated(function):
    return functools.wraps(function)(lambda *args: function(*args))


class Sampler:
    @deprecated
    def __init__(self, seed=None): ...

    def sample(self):
        return numpy.random.default_rng()


class Model:
    @logged
    def __init__(self, seed=None):
        self.rng = numpy.random.default_rng(seed)
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code of older Pythons does not know its class")
def test_what_libraries_take_a_seed_by_is_recorded_with_a_call_without_one(sink: Any) -> None:
    library = ModuleType("searching")
    random_ = SimpleNamespace(default_rng=lambda seed=None: seed)
    namespace = vars(library)
    exec(compile(LIBRARY, "/lib/site-packages/searching.py", "exec"), namespace)
    namespace["numpy"] = SimpleNamespace(random=random_)
    seeds._before(random_, "default_rng", sink, seeds._seeding(sink, "numpy.random.default_rng"))
    library.Search(2).fit([])
    library.chosen([])
    library.chosen([], rng=3)
    library.check_random_state()
    random_.default_rng()
    library.Model()
    library.Sampler().sample()
    assert [(line["kind"], line.get("takes")) for line in sink.found] == [
        ("unseeded", ["searching.Search(random_state)", "searching.Inner(random_state)"]),
        ("unseeded", ["searching.chosen(rng)"]),
        ("seed", None),
        ("unseeded", None),
        ("unseeded", None),
        ("unseeded", ["searching.Model(seed)"]),
        ("unseeded", ["searching.Sampler(seed)"]),
    ]


NAMING = """
class Search:
    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self):
        next(tempfile._get_candidate_names())
        return random.Random()
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code of older Pythons does not know its class")
def test_a_generator_for_the_names_of_files_is_not_recorded(monkeypatch: pytest.MonkeyPatch, sink: Any) -> None:
    monkeypatch.setattr(tempfile, "_name_sequence", None)
    seeds.watch(random, "random", sink)
    library = ModuleType("searching")
    exec(compile(NAMING, "/lib/site-packages/searching.py", "exec"), vars(library))
    vars(library).update(random=random, tempfile=tempfile)
    library.Search().fit()
    assert [line["takes"] for line in sink.found] == [["searching.Search(random_state)"]]


STATES = """
class Bagging:
    def __init__(self, n_models, seed=None):
        self.state = numpy.random.RandomState(seed)

    def again(self):
        return numpy.random.default_rng(), numpy.random.SeedSequence(3)

def jitter():
    return numpy.random.RandomState()
"""


DRAWN = np.random.RandomState(3).random()
"""What is drawn while nothing watches."""


@pytest.fixture
def compiled(sink: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Watch what compiled code of NumPy seeds, until the end of the test."""
    kind = np.random.MT19937
    seeding = vars(kind)["_legacy_seeding"]
    bits = vars(np.random.bit_generator)
    monkeypatch.setitem(bits, "randbits", bits["randbits"])
    made = seeds._Compiled(sink)
    made.watch(np.random)
    yield made
    set_in_c(kind, _legacy_seeding=seeding)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code of older Pythons does not know its class")
def test_a_generator_that_a_library_makes_without_a_seed_is_recorded_with_what_takes_one(
    sink: Any, compiled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = ModuleType("bagged.forests")
    monkeypatch.setitem(sys.modules, "bagged", ModuleType("bagged"))
    monkeypatch.setitem(sys.modules, "bagged.forests", library)
    exec(compile(STATES, "/lib/site-packages/bagged.py", "exec"), vars(library))
    vars(library)["numpy"] = np
    drawn = library.Bagging(2, seed=3).state.random()
    library.Bagging(2).again()
    library.jitter()
    np.random.RandomState()
    np.random.default_rng()
    library.Bagging(2, seed=4)
    compiled.end()
    assert [(line["what"], line["takes"]) for line in sink.found] == [
        ("numpy.random.SeedSequence", ["bagged.forests.Bagging(seed)"])
    ]
    assert drawn == DRAWN


@pytest.mark.usefixtures("compiled")
def test_the_seed_of_a_random_state_that_the_script_makes_is_recorded(sink: Any) -> None:
    drawn = np.random.RandomState(3).random()
    np.random.RandomState(seed=os.getpid()).seed(np.int64(5))
    np.random.RandomState().seed(None)
    library = ModuleType("bagged")
    exec(compile("def state(seed): return RandomState(seed)", "/lib/site-packages/bagged.py", "exec"), vars(library))
    vars(library)["RandomState"] = np.random.RandomState
    library.state(7)
    assert [(line["what"], line["kind"], line["value"]) for line in sink.found] == [
        ("numpy.random.RandomState", "seed", "3"),
        ("numpy.random.RandomState", "process-id", str(os.getpid())),
        ("numpy.random.RandomState", "seed", "5"),
    ]
    assert drawn == DRAWN


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code of older Pythons does not know its class")
def test_a_generator_of_python_that_a_library_makes_counts_if_it_takes_a_seed(sink: Any) -> None:
    library = ModuleType("streamed")
    text = """
class Stream:
    def __init__(self, rows, seed=None):
        self.rng = random.Random(seed)

def name():
    return random.Random().random()
"""
    exec(compile(text, "/lib/site-packages/streamed.py", "exec"), vars(library))
    vars(library)["random"] = random
    seeds._before(random, "Random.seed", sink, seeds._seeding(sink, "random.Random", skip=1, through=("random",)))
    library.Stream([])
    library.Stream([], seed=3)
    library.name()
    random.Random()
    assert [(line["kind"], line.get("takes")) for line in sink.found] == [
        ("unseeded", ["streamed.Stream(seed)"]),
        ("unseeded", None),
    ]
