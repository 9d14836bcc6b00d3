"""The first line that draws from an unseeded global generator is recorded, and replaced functions behave as before."""

import copy
import inspect
import pickle
import sys
from typing import Any

import pytest

from detaudit.recorder.randomness import seeds
from detaudit.recorder.training import generators
from tests.recorder.randomness.test_completion_order import copy_of
from tests.recorder.randomness.test_seeds import Lines


@pytest.fixture
def numpy() -> Any:
    """Return NumPy, with the imports of its generators (``secrets``) done before the copy of ``random`` is in place."""
    pytest.importorskip("numpy.random")
    return pytest.importorskip("numpy")


@pytest.fixture
def random(monkeypatch: pytest.MonkeyPatch) -> Any:
    for known in (seeds._written, seeds._watched):
        known.clear()
    monkeypatch.setattr(seeds, "_compiling", False)
    monkeypatch.setitem(sys.modules, "random", copy_of("random"))
    return sys.modules["random"]


def recorded(sink: Lines) -> list[tuple[str, str, str, str]]:
    return [(line["kind"], line["what"], line["file"], line["value"]) for line in sink.found]


def library(module: Any, top: str) -> Any:
    """Return a function of a library that draws."""
    held: dict[str, Any] = {"random": module, "__name__": top}
    exec(compile("def draw(): return random.random()", f"/x/site-packages/{top}/names.py", "exec"), held)
    return held["draw"]


def test_the_first_line_that_draws_unseeded(random: Any) -> None:
    sink = Lines()
    before = dict(vars(random))
    seeds.watch_draws(random, "random", sink)  # type: ignore[arg-type]
    random.gauss(0, 1)
    random.random()
    assert recorded(sink) == [("unseeded", "random.gauss", __file__, "random")]
    assert vars(random) == before
    assert random.random is before["random"]


@pytest.mark.parametrize("seeding", ["seed", "setstate"])
def test_a_generator_that_was_seeded_in_any_way_is_not_recorded(random: Any, seeding: str) -> None:
    sink = Lines()
    state = random.Random(3).getstate()
    before = random.random
    seeds.watch_draws(random, "random", sink)  # type: ignore[arg-type]
    random.seed(3) if seeding == "seed" else random.setstate(state)
    assert random.random() == random.Random(3).random()
    assert not sink.found
    assert random.random is before


def test_a_draw_of_an_unlisted_library_is_neither_recorded_nor_a_seed(random: Any) -> None:
    sink = Lines()
    seeds.watch_draws(random, "random", sink)  # type: ignore[arg-type]
    library(random, "filelock")()
    assert not sink.found
    library(random, "keras")()
    assert recorded(sink) == [("unseeded", "keras.draw", __file__, "random")]


def test_the_functions_are_restored_after_many_draws_of_a_library(random: Any) -> None:
    sink = Lines()
    before = random.random
    seeds.watch_draws(random, "random", sink)  # type: ignore[arg-type]
    draw = library(random, "filelock")
    for _ in range(seeds._MOST_DRAWS + 1):
        draw()
    assert random.random is before


def test_a_shuffle_of_a_library_is_one_draw(random: Any) -> None:
    sink = Lines()
    watched = seeds.watch_draws(random, "random", sink)  # type: ignore[arg-type]
    held: dict[str, Any] = {"random": random, "__name__": "filelock"}
    exec(compile("def mix(): random.shuffle([*range(5000)])", "/x/site-packages/filelock/names.py", "exec"), held)
    held["mix"]()
    assert watched.on
    random.random()
    assert recorded(sink) == [("unseeded", "random.random", __file__, "random")]


def test_a_replacement_behaves_like_the_original(random: Any) -> None:
    original, method = random.random, random.shuffle
    seeds.watch_draws(random, "random", Lines())  # type: ignore[arg-type]
    ours = random.shuffle
    assert random.random is not original
    assert (random.random, ours) == (original, method)
    assert {original: 1}[random.random] == 1
    assert (ours.__name__, ours.__self__, ours.__doc__) == ("shuffle", method.__self__, method.__doc__)
    assert inspect.signature(ours) == inspect.signature(method)
    assert repr(ours) == repr(method)
    assert copy.copy(ours) == method
    assert copy.deepcopy(random.random) is original
    assert copy.deepcopy(ours).__self__ is not method.__self__
    assert type(pickle.loads(pickle.dumps(ours))) is type(method)
    with pytest.raises(TypeError, match="shuffle"):
        ours()

    class Held:
        draw = random.random

    assert 0 <= Held().draw() < 1


def test_a_function_taken_from_the_module_is_recorded_once(random: Any) -> None:
    sink = Lines()
    seeds.watch_draws(random, "random", sink)  # type: ignore[arg-type]
    taken = random.randrange
    taken(3)
    taken(3)
    assert [what for _, what, _, _ in recorded(sink)] == ["random.randrange"]


def test_compilers_get_the_original_functions(random: Any) -> None:
    before = dict(vars(random))
    seeds.watch_draws(random, "random", Lines())  # type: ignore[arg-type]
    seeds.restore()
    assert vars(random) == before
    assert random.random is before["random"]
    seeds.watch_draws(random, "random", Lines())  # type: ignore[arg-type]
    assert random.random is before["random"]


def test_numpy_s_global_generator(monkeypatch: pytest.MonkeyPatch, numpy: Any, random: Any) -> None:
    np, sink = numpy, Lines()
    for name in dir(np.random):
        monkeypatch.setattr(np.random, name, getattr(np.random, name))  # so that it is restored
    seeds.watch_draws(np.random, "numpy.random", sink)  # type: ignore[arg-type]
    np.random.RandomState(0).normal()
    np.random.default_rng(0).normal()
    assert not sink.found
    assert np.random.normal(size=3).shape == (3,)
    assert recorded(sink) == [("unseeded", "numpy.random.normal", __file__, "numpy.random")]
    generator = seeds.watch_draws(np.random, "numpy.random", sink)  # type: ignore[arg-type]
    np.random.seed(0)
    assert np.random.rand() == np.random.RandomState(0).rand()
    assert len(sink.found) == 1
    assert not generator.on


LIBRARY = """
import functools

def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper

@decorated
def sample(generator):
    return _draw(generator)

def _draw(generator):
    return generator.random()
"""


@pytest.mark.parametrize("name", ["random", "numpy.random"])
def test_a_library_that_draws_from_the_generator_itself(
    name: str, monkeypatch: pytest.MonkeyPatch, numpy: Any, random: Any
) -> None:
    module = random if name == "random" else numpy.random
    for one in dir(module):
        monkeypatch.setattr(module, one, getattr(module, one))  # so that it is restored
    generator = random._inst if name == "random" else numpy.random.mtrand._rand
    before = dict(vars(type(generator))), dict(getattr(generator, "__dict__", {}))
    held: dict[str, Any] = {"__name__": "scipy.stats"}
    exec(compile(LIBRARY, "/x/site-packages/scipy/stats.py", "exec"), held)
    sink = Lines()
    watched = seeds.watch_draws(module, name, sink)  # type: ignore[arg-type]
    kind, other = type(generator), type(generator)(0)
    assert other.random() == kind(0).random()
    assert pickle.loads(pickle.dumps(other.random))() == pickle.loads(pickle.dumps(kind.random))(other)
    held["sample"](other)
    taken = kind.random
    assert not sink.found
    assert isinstance(held["sample"](generator), float)
    assert recorded(sink) == [("unseeded", "scipy.sample", __file__, name)]
    assert not watched.on
    assert pickle.loads(pickle.dumps(taken)) is kind.random
    assert (dict(vars(type(generator))), dict(getattr(generator, "__dict__", {}))) == before
    assert len(sink.found) == 1


def test_many_draws_from_other_generators_restore_the_methods(
    monkeypatch: pytest.MonkeyPatch, numpy: Any, random: Any
) -> None:
    for one in dir(numpy.random):
        monkeypatch.setattr(numpy.random, one, getattr(numpy.random, one))  # so that it is restored
    sink, kind = Lines(), numpy.random.RandomState
    before, drawn = dict(vars(kind)), [kind(0).random_sample() for _ in range(3)]
    monkeypatch.setattr(seeds, "_MOST_OTHERS", 3)
    watched = seeds.watch_draws(numpy.random, "numpy.random", sink)  # type: ignore[arg-type]
    assert [kind(0).random_sample() for _ in range(2)] == drawn[:2]
    assert dict(vars(kind)) != before
    assert kind(0).random_sample() == drawn[2]
    assert dict(vars(kind)) == before
    assert watched.on
    numpy.random.random()
    assert recorded(sink) == [("unseeded", "numpy.random.random", __file__, "numpy.random")]


def test_a_fit_that_draws_is_named_by_itself(monkeypatch: pytest.MonkeyPatch, numpy: Any, random: Any) -> None:
    for one in dir(numpy.random):
        monkeypatch.setattr(numpy.random, one, getattr(numpy.random, one))  # so that it is restored
    sink = Lines()
    watched = seeds.watch_draws(numpy.random, "numpy.random", sink)  # type: ignore[arg-type]
    watched.around("Forest.fit", lambda: None)
    assert not sink.found
    watched.around("Forest.fit", lambda: numpy.random.mtrand._rand.randint(5))
    assert recorded(sink) == [("unseeded", "Forest.fit", __file__, "numpy.random")]


def test_a_draw_of_a_library_that_is_imported_leaves_the_generator_untouched(
    random: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generators, "_untouched", {})
    generators.watch("random")
    seeds.watch_draws(random, "random", Lines())  # type: ignore[arg-type]
    before = random.getstate()
    imported: dict[str, Any] = {"draw": library(random, "rich")}
    exec(compile("draw()", "<frozen importlib._bootstrap>", "exec"), imported)
    assert random.getstate() != before
    assert generators.digests() == {}
    random.random()
    assert [*generators.digests()] == ["random"]
