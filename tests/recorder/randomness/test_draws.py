"""The first line that draws from an unseeded global generator is recorded, and replaced functions behave as before."""

import copy
import inspect
import pickle
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from detaudit.recorder.randomness import draws, seeds
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
    for known in (seeds._written, draws._watched, draws._shared):
        known.clear()
    monkeypatch.setattr(draws, "_compiling", False)
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
    draws.watch_draws(random, "random", sink)  # type: ignore[arg-type]
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
    draws.watch_draws(random, "random", sink)  # type: ignore[arg-type]
    random.seed(3) if seeding == "seed" else random.setstate(state)
    assert random.random() == random.Random(3).random()
    assert not sink.found
    assert random.random is before


@pytest.mark.parametrize("listed", ["keras", "deap", "timm"])
def test_a_draw_of_an_unlisted_library_is_neither_recorded_nor_a_seed(listed: str, random: Any) -> None:
    sink = Lines()
    draws.watch_draws(random, "random", sink)  # type: ignore[arg-type]
    library(random, "filelock")()
    assert not sink.found
    library(random, listed)()
    assert recorded(sink) == [("unseeded", f"{listed}.draw", __file__, "random")]


def test_the_functions_are_restored_after_many_draws_of_a_library(random: Any) -> None:
    sink = Lines()
    before = random.random
    draws.watch_draws(random, "random", sink)  # type: ignore[arg-type]
    draw = library(random, "filelock")
    for _ in range(draws._MOST_DRAWS + 1):
        draw()
    assert random.random is before


def test_a_shuffle_of_a_library_is_one_draw(random: Any) -> None:
    sink = Lines()
    watched = draws.watch_draws(random, "random", sink)  # type: ignore[arg-type]
    held: dict[str, Any] = {"random": random, "__name__": "filelock"}
    exec(compile("def mix(): random.shuffle([*range(5000)])", "/x/site-packages/filelock/names.py", "exec"), held)
    held["mix"]()
    assert watched.on
    random.random()
    assert recorded(sink) == [("unseeded", "random.random", __file__, "random")]


def test_a_replacement_behaves_like_the_original(random: Any) -> None:
    original, method = random.random, random.shuffle
    draws.watch_draws(random, "random", Lines())  # type: ignore[arg-type]
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
    draws.watch_draws(random, "random", sink)  # type: ignore[arg-type]
    taken = random.randrange
    taken(3)
    taken(3)
    assert [what for _, what, _, _ in recorded(sink)] == ["random.randrange"]


def test_compilers_get_the_original_functions(random: Any) -> None:
    before = dict(vars(random))
    draws.watch_draws(random, "random", Lines())  # type: ignore[arg-type]
    draws.restore()
    assert vars(random) == before
    assert random.random is before["random"]
    draws.watch_draws(random, "random", Lines())  # type: ignore[arg-type]
    assert random.random is before["random"]


def test_numpy_s_global_generator(monkeypatch: pytest.MonkeyPatch, numpy: Any, random: Any) -> None:
    np, sink = numpy, Lines()
    for name in dir(np.random):
        monkeypatch.setattr(np.random, name, getattr(np.random, name))  # so that it is restored
    draws.watch_draws(np.random, "numpy.random", sink)  # type: ignore[arg-type]
    np.random.RandomState(0).normal()
    np.random.default_rng(0).normal()
    assert not sink.found
    assert np.random.normal(size=3).shape == (3,)
    assert recorded(sink) == [("unseeded", "numpy.random.normal", __file__, "numpy.random")]
    generator = draws.watch_draws(np.random, "numpy.random", sink)  # type: ignore[arg-type]
    np.random.seed(0)
    assert np.random.rand() == np.random.RandomState(0).rand()
    assert len(sink.found) == 1
    assert not generator.on


def test_a_draw_is_recorded_that_another_thread_draws_into(random: Any) -> None:
    sink = Lines()
    draws.watch_draws(random, "random", sink)  # type: ignore[arg-type]

    class Bound:
        def __index__(self) -> int:  # randrange asks for it, in the middle
            random._inst._randbelow(9)
            thread = threading.Thread(target=random.gauss)
            thread.start()
            thread.join()
            return 9

    random.randrange(Bound())
    assert ("unseeded", "random.randrange", __file__, "random") in recorded(sink)


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
    watched = draws.watch_draws(module, name, sink)  # type: ignore[arg-type]
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


@pytest.mark.parametrize(("seeded", "own"), [(False, False), (True, False), (False, True)])
def test_a_library_whose_generator_starts_as_the_global_one(
    seeded: bool, own: bool, monkeypatch: pytest.MonkeyPatch, numpy: Any, random: Any
) -> None:
    for one in dir(numpy.random):
        monkeypatch.setattr(numpy.random, one, getattr(numpy.random, one))  # so that it is restored
    sink, before = Lines(), dict(vars(numpy.random.RandomState))
    watched = draws.watch_draws(numpy.random, "numpy.random", sink)  # type: ignore[arg-type]
    if seeded:
        numpy.random.seed(3)
    other = numpy.random.RandomState(7)
    state = other.get_state() if own else numpy.random.get_state()
    held: dict[str, Any] = {"np": numpy, "state": state, "__name__": "emcee.ensemble"}
    code = "def Sampler(): other = np.random.RandomState(7); other.set_state(state); return other.random_sample()"
    exec(compile(code, "/x/site-packages/emcee/ensemble.py", "exec"), held)
    drawn = held["Sampler"]()
    other.set_state(state)
    assert other.random_sample() == drawn
    named = [("unseeded", "emcee.Sampler", __file__, "numpy.random")]
    assert recorded(sink) == ([] if seeded or own else named)
    watched.restore()
    assert dict(vars(numpy.random.RandomState)) == before


@pytest.mark.parametrize("by_state", [False, True])
def test_many_draws_from_other_generators_restore_the_methods(
    by_state: bool, monkeypatch: pytest.MonkeyPatch, numpy: Any, random: Any
) -> None:
    for one in dir(numpy.random):
        monkeypatch.setattr(numpy.random, one, getattr(numpy.random, one))  # so that it is restored
    sink, kind = Lines(), numpy.random.RandomState
    other, state = kind(0), kind(1).get_state()
    use: Callable[[], Any] = (lambda: other.set_state(state)) if by_state else (lambda: other.random_sample())
    before, returned = dict(vars(kind)), [None] * 3 if by_state else [*kind(0).random_sample(3)]
    monkeypatch.setattr(draws, "_MOST_OTHERS", 3 * draws._LIKE_OTHERS if by_state else 3)
    watched = draws.watch_draws(numpy.random, "numpy.random", sink)  # type: ignore[arg-type]
    assert [use() for _ in range(2)] == returned[:2]
    assert dict(vars(kind)) != before
    assert use() == returned[2]
    assert dict(vars(kind)) == before
    assert other.random_sample() == kind(1 if by_state else 0).random_sample(1 if by_state else 4)[-1]
    assert watched.on
    numpy.random.random()
    assert recorded(sink) == [("unseeded", "numpy.random.random", __file__, "numpy.random")]


def test_a_fit_that_draws_is_named_by_itself(monkeypatch: pytest.MonkeyPatch, numpy: Any, random: Any) -> None:
    for one in dir(numpy.random):
        monkeypatch.setattr(numpy.random, one, getattr(numpy.random, one))  # so that it is restored
    sink = Lines()
    watched = draws.watch_draws(numpy.random, "numpy.random", sink)  # type: ignore[arg-type]
    watched.around("Forest.fit", lambda: None)
    assert not sink.found
    watched.around("Forest.fit", lambda: numpy.random.mtrand._rand.randint(5))
    assert recorded(sink) == [("unseeded", "Forest.fit", __file__, "numpy.random")]


def test_a_draw_of_a_library_that_is_imported_leaves_the_generator_untouched(
    random: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generators, "_untouched", {})
    generators.watch("random")
    draws.watch_draws(random, "random", Lines())  # type: ignore[arg-type]
    before = random.getstate()
    imported: dict[str, Any] = {"draw": library(random, "rich")}
    exec(compile("draw()", "<frozen importlib._bootstrap>", "exec"), imported)
    assert random.getstate() != before
    assert generators.digests() == {}
    random.random()
    assert [*generators.digests()] == ["random"]


@pytest.fixture
def torch(random: Any) -> Iterator[Any]:
    """Return torch, with its generator in a state of this test, and the original functions afterwards."""
    torch = pytest.importorskip("torch")
    with torch.random.fork_rng():
        yield torch
    draws.restore()


TORCH: dict[str, Callable[[Any], Any]] = {
    "torch.randn": lambda torch: torch.randn(3),
    "torch.Tensor.normal_": lambda torch: torch.empty(3).normal_(),
    "torch.distributions.Normal.sample": lambda torch: torch.distributions.Normal(0.0, 1.0).sample(),
    "torch.utils.data.DataLoader.__iter__": lambda torch: list(torch.utils.data.DataLoader([1, 2])),
    "torch.nn.Linear": lambda torch: torch.nn.Linear(2, 2),
    "torch.nn.init.xavier_uniform_": lambda torch: torch.nn.init.xavier_uniform_(torch.empty(2, 2)),
}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the class of a method is not known")
@pytest.mark.parametrize("name", TORCH)
def test_what_draws_from_the_generator_of_torch(name: str, torch: Any) -> None:
    sink, before, methods = Lines(), dict(vars(torch)), dict(vars(torch.Tensor))
    watched = draws.watch_draws(torch, "torch", sink)  # type: ignore[arg-type]
    own = torch.Generator().manual_seed(0)
    torch.rand(3, generator=own)
    torch.empty(3).uniform_(generator=own)
    torch.rand(3, device="meta")
    assert not sink.found
    assert watched.on
    TORCH[name](torch)
    assert recorded(sink) == [("unseeded", name, __file__, "torch")]
    assert not watched.on
    assert (dict(vars(torch)), dict(vars(torch.Tensor))) == (before, methods)


@pytest.mark.parametrize("seeding", [lambda torch: torch.manual_seed(3), lambda torch: torch.seed()])
def test_torch_that_is_seeded_is_not_recorded(seeding: Callable[[Any], Any], torch: Any) -> None:
    sink = Lines()
    watched = draws.watch_draws(torch, "torch", sink)  # type: ignore[arg-type]
    torch.nn.functional.dropout(torch.ones(3))  # draws, and is not watched
    seeding(torch)
    torch.rand(3)
    assert not sink.found
    assert not watched.on


def test_many_draws_from_other_generators_of_torch_restore_the_functions(
    torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, methods = dict(vars(torch)), dict(vars(torch.Tensor))
    monkeypatch.setattr(draws, "_MOST_OTHERS", 3)
    watched = draws.watch_draws(torch, "torch", Lines())  # type: ignore[arg-type]
    own = torch.Generator().manual_seed(0)
    torch.rand(3, generator=own)
    torch.empty(3).uniform_(generator=own)
    assert watched.on
    torch.rand(3, generator=own)
    assert (dict(vars(torch)), dict(vars(torch.Tensor))) == (before, methods)


def test_torchscript_finds_operations_by_their_functions(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    builtins = torch.jit._builtins
    for name in ("_find_builtin", "_builtin_table"):
        monkeypatch.setattr(builtins, name, getattr(builtins, name))
    draws.watch_torch(torch, Recording(Lines()))  # type: ignore[arg-type]
    builtins._builtin_table = None  # as if nothing had been compiled yet
    taken = torch.rand
    assert builtins._find_builtin(taken) == "aten::rand"
    assert torch.rand is taken
    torch.rand(3)
    assert torch.rand is not taken
    assert builtins._find_builtin(torch.rand) == builtins._find_builtin(taken) == "aten::rand"


def test_dynamo_gets_the_original_functions_once_it_compiles(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._dynamo import convert_frame

    monkeypatch.setattr(draws, "_compiling", False)
    monkeypatch.setattr(draws, "_watched", [])
    kind, original = convert_frame.CatchErrorsWrapper, torch.rand
    monkeypatch.setattr(kind, "__call__", kind.__call__)
    sink = Lines()
    draws.restore_for_dynamo(convert_frame, Recording(sink))  # type: ignore[arg-type]
    draws.watch_draws(torch, "torch", sink)  # type: ignore[arg-type]
    compiled = torch.compile(lambda rows: rows + torch.rand(3), backend="eager", fullgraph=True)
    assert torch.rand is not original
    assert compiled(torch.zeros(3)).shape == (3,)
    assert torch.rand is original
    assert not sink.found


class Recording(NamedTuple):
    sink: Lines


@pytest.fixture
def seeded(random: Any, monkeypatch: pytest.MonkeyPatch) -> Lines:
    """Seed the generator of ``random``, and watch which threads draw from it."""
    sink = Lines()
    monkeypatch.setattr(threading.Thread, "start", threading.Thread.start)
    draws.watch_draws(random, "random", sink)  # type: ignore[arg-type]
    draws.watch_threads(threading, types.SimpleNamespace(sink=sink))  # type: ignore[arg-type]
    random.seed(3)
    return sink


def test_a_line_that_draws_while_another_thread_does_is_named(random: Any, seeded: Lines) -> None:
    drawn, end = threading.Event(), threading.Event()

    def load() -> None:
        random.gauss(0, 1)
        drawn.set()
        end.wait(10)

    thread = threading.Thread(target=load)
    original = random.Random.random
    thread.start()
    drawn.wait(10)
    random.random()
    end.set()
    thread.join()
    assert recorded(seeded) == [("shared-generator", "random.random", __file__, "random")]
    assert not isinstance(random.random, draws._Drawing)
    assert random.Random.random is original


def test_threads_that_draw_one_after_another_share_nothing(random: Any, seeded: Lines) -> None:
    for _ in range(3):
        random.random()
        thread = threading.Thread(target=random.random)
        thread.start()
        thread.join()
    assert not seeded.found
    assert isinstance(random.random, draws._Drawing)
    draws.restore()
    assert not isinstance(random.random, draws._Drawing)


def test_what_threads_draw_is_what_they_would_draw_unwatched(random: Any, seeded: Lines) -> None:
    numbers: list[float] = []
    thread = threading.Thread(target=lambda: numbers.append(random.uniform(1, 2)))
    thread.start()
    thread.join()
    expected = random.Random(3)
    assert numbers == [expected.uniform(1, 2)]


def test_many_draws_beside_threads_are_watched_no_more(random: Any, seeded: Lines) -> None:
    for _ in range(2):
        thread = threading.Thread(target=lambda: [random.random() for _ in range(draws._MOST_SHARED)])
        thread.start()
        thread.join()
        assert not isinstance(random.random, draws._Drawing)
    assert not seeded.found


def test_threads_before_the_first_draw_do_not_make_it_seeded(random: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Lines()
    monkeypatch.setattr(threading.Thread, "start", threading.Thread.start)
    monkeypatch.setattr(draws, "_MOST_DRAWS", 3)
    draws.watch_draws(random, "random", sink)  # type: ignore[arg-type]
    draws.watch_threads(threading, types.SimpleNamespace(sink=sink))  # type: ignore[arg-type]
    for _ in range(5):
        thread = threading.Thread(target=len, args=("",))
        thread.start()
        thread.join()
    random.random()
    assert recorded(sink) == [("unseeded", "random.random", __file__, "random")]
