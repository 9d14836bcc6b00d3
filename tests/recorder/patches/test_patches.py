"""Each patch does what its flag says, does not change anything else, and can be undone."""

import glob
import os
import pickle
import random
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from detaudit.recorder import patches
from detaudit.recorder.patches import PatchOptions, generators
from detaudit.recorder.process import replace
from detaudit.recorder.randomness import seeds

Apply = Callable[..., Callable[[], None]]


@pytest.fixture
def patch() -> Iterator[Apply]:
    """Return a function that applies a patch by name; all patches are undone at the end."""
    undone: list[Callable[[], None]] = []

    def apply(name: str, **order: Any) -> Callable[[], None]:
        undo = patches.apply(name, PatchOptions(**order))
        undone.append(undo)
        return undo

    yield apply
    for undo in reversed(undone):
        undo()


def twice(patch: Apply, name: str, draw: Callable[[], Any]) -> list[Any]:
    """Return the draws after applying a patch twice, in place of two processes."""
    drawn = []
    for _ in range(2):
        undo = patch(name)
        drawn.append(draw())
        undo()
    return drawn


def test_unseeded_generators_are_seeded(patch: Apply) -> None:
    class Own(random.Random):
        pass

    def draw() -> list[float]:
        made = [random.Random(), Own(), random.Random(None)]
        made[0].seed()
        random.seed()
        return [random.random(), *[generator.random() for generator in made]]

    one, other = twice(patch, "seed-python-generators", draw)
    assert one == other
    assert len(set(one)) == 4
    assert draw() != one


def test_seeds_entropy_and_the_names_of_tempfile_do_not_change(patch: Apply, tmp_path: Path) -> None:
    seeded = random.Random(5).random()

    def draw() -> list[Any]:
        names: Any = vars(tempfile)["_RandomNameSequence"]()
        return [next(names), random.SystemRandom().random(), secrets.token_hex(), os.urandom(8)]

    one, other = twice(patch, "seed-python-generators", draw)
    assert not {*one} & {*other}
    patch("seed-python-generators")
    assert random.Random(5).random() == seeded
    own = random.Random()
    copied = pickle.loads(pickle.dumps(own))
    assert type(copied) is random.Random
    assert copied.random() == own.random()


def test_each_thread_and_each_process_draws_different_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(names: str = "ab") -> dict[str, int]:
        stream, found = generators.Stream(0), {}

        def draw(name: str) -> None:
            found[name] = stream.bits(64)

        threads = [threading.Thread(target=draw, args=(name,), name=name) for name in names]
        for thread in threads:
            thread.start()
            thread.join()
        draw("main")
        monkeypatch.setattr(generators, "_path", (1,))
        draw("fork")
        monkeypatch.setattr(generators, "_path", ())
        monkeypatch.setenv("RANK", "1")
        draw("rank")
        monkeypatch.delenv("RANK")
        return found

    assert drawn("ab") == drawn("ba")  # the order of the threads does not matter
    assert len(set(drawn().values())) == 5


def test_children_forked_at_the_same_time_draw_different_numbers(patch: Apply) -> None:
    def draw() -> list[bytes]:
        generators._forks = 0
        pipes = [os.pipe() for _ in range(2)]
        for _, write in pipes:
            if os.fork() == 0:
                os.write(write, repr((random.random(), random.Random().random())).encode())
                os._exit(0)
        for _ in pipes:
            os.wait()
        return [os.read(read, 99) for read, _ in pipes]

    one, other = twice(patch, "seed-python-generators", draw)
    assert one == other
    assert one[0] != one[1]


def test_unseeded_numpy_and_torch_generators_are_seeded(patch: Apply) -> None:
    np: Any = pytest.importorskip("numpy")
    pytest.importorskip("numpy.random")
    torch: Any = pytest.importorskip("torch")

    def numpy_draws() -> list[float]:
        return [np.random.default_rng().normal(), np.random.RandomState().normal(), np.random.PCG64().random_raw()]

    def torch_draws() -> list[Any]:
        generator = torch.Generator()
        return [generator.seed(), torch.rand(1, generator=generator).item(), torch.seed(), torch.rand(1).item()]

    for name, draw in (("seed-numpy-entropy", numpy_draws), ("seed-torch-generators", torch_draws)):
        one, other = twice(patch, name, draw)
        assert one == other
        assert len(set(one)) == len(one)
        assert draw() != one
    assert isinstance(torch.default_generator, torch.Generator)
    assert torch.Generator().manual_seed(3).initial_seed() == 3


def test_functions_that_a_patch_fixes_are_not_recorded(patch: Apply) -> None:
    undo = patch("seed-python-generators")
    assert "random.Random" in seeds.repeatable
    undo()
    assert "random.Random" not in seeds.repeatable


def test_listings_are_sorted_by_name(patch: Apply, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{number * 7919 % 101:03}" for number in range(60)]
    for name in names:
        (tmp_path / "folder" / name).mkdir(parents=True)
    folder = str(tmp_path / "folder")
    listdir, scandir = os.listdir, os.scandir

    def listed() -> list[list[str]]:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            with os.scandir(descriptor) as entries:
                scanned = [entry.name for entry in entries]
            by_descriptor = os.listdir(descriptor)
        finally:
            os.close(descriptor)
        return [
            os.listdir(folder),
            by_descriptor,
            scanned,
            [path.name for path in Path(folder).iterdir()],
            [path.name for path in Path(folder).glob("*")],
            [os.path.basename(path) for path in glob.glob(folder + "/*")],
            next(os.walk(folder))[1],
            [os.fsdecode(name) for name in os.listdir(os.fsencode(folder))],
            [os.fsdecode(entry.name) for entry in os.scandir(os.fsencode(folder))],
        ]

    undo = patch("sort-listings")
    assert listed() == [sorted(names)] * 9
    shutil.copytree(folder, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy")
    undo()
    assert (os.listdir, os.scandir) == (listdir, scandir)
    if os.listdir(folder) != sorted(names):  # which holds for most file systems
        assert listed()[0] != sorted(names)


def test_a_scan_can_be_closed_before_its_end(patch: Apply, tmp_path: Path) -> None:
    for name in "ba":
        (tmp_path / name).touch()
    patch("sort-listings")
    with os.scandir(tmp_path) as entries:
        assert next(entries).name == "a"
    assert list(entries) == []
    os.scandir(tmp_path).close()
    with pytest.raises(FileNotFoundError):
        os.scandir(tmp_path / "none")
    assert os.scandir in os.supports_fd


def test_undo_keeps_later_replacements_by_others(patch: Apply, tmp_path: Path) -> None:
    (tmp_path / "b").touch()
    (tmp_path / "a").touch()
    plain = os.listdir
    undo = patch("sort-listings")
    theirs = replace.replace(os, "listdir", lambda function: lambda *args: function(*args))
    undo()
    assert os.listdir is theirs
    assert os.listdir(tmp_path) == plain(tmp_path)
    os.listdir = plain


def test_a_patch_that_fails_changes_nothing() -> None:
    before = os.listdir
    patches.PATCHES["broken"] = "listings.broken"
    try:
        with pytest.raises(AttributeError):
            patches.apply("broken", PatchOptions())
    finally:
        del patches.PATCHES["broken"]
    assert os.listdir is before
