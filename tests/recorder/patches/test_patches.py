"""Each patch does what its flag says, leaves alone what it must, and can be taken back."""

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
from detaudit.recorder.patches import Order, entropy
from detaudit.recorder.process import replace
from detaudit.recorder.randomness import seeds

Apply = Callable[..., Callable[[], None]]


@pytest.fixture
def patch() -> Iterator[Apply]:
    """Applies a patch by name; all are taken back in the end."""
    undone: list[Callable[[], None]] = []

    def apply(name: str, **order: Any) -> Callable[[], None]:
        undo = patches.apply(name, Order(**order))
        undone.append(undo)
        return undo

    yield apply
    for undo in reversed(undone):
        undo()


def twice(patch: Apply, name: str, draw: Callable[[], Any]) -> list[Any]:
    """Return what is drawn in two processes that apply a patch, as far as one process can play two."""
    drawn = []
    for _ in range(2):
        undo = patch(name)
        drawn.append(draw())
        undo()
    return drawn


def test_generators_without_a_seed(patch: Apply) -> None:
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


def test_seeds_entropy_and_the_names_of_tempfile_stay_what_they_are(patch: Apply, tmp_path: Path) -> None:
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


def test_each_thread_and_each_process_draws_numbers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(names: str = "ab") -> dict[str, int]:
        stream, found = entropy.Stream(0), {}

        def draw(name: str) -> None:
            found[name] = stream.bits(64)

        threads = [threading.Thread(target=draw, args=(name,), name=name) for name in names]
        for thread in threads:
            thread.start()
            thread.join()
        draw("main")
        monkeypatch.setattr(entropy, "_path", (1,))
        draw("fork")
        monkeypatch.setattr(entropy, "_path", ())
        monkeypatch.setenv("RANK", "1")
        draw("rank")
        monkeypatch.delenv("RANK")
        return found

    assert drawn("ab") == drawn("ba")  # whichever comes first
    assert len(set(drawn().values())) == 5


def test_children_that_are_forked_all_at_once_draw_different_numbers(patch: Apply) -> None:
    def draw() -> list[bytes]:
        entropy._forks = 0
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


def test_numpy_and_torch_generators_without_a_seed(patch: Apply) -> None:
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


def test_what_a_patch_mends_is_no_source_any_more(patch: Apply) -> None:
    undo = patch("seed-python-generators")
    assert "random.Random" in seeds.repeatable
    undo()
    assert "random.Random" not in seeds.repeatable


def test_listings_come_in_the_order_of_names(patch: Apply, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    if os.listdir(folder) != sorted(names):  # as most file systems have it
        assert listed()[0] != sorted(names)


def test_a_scan_can_be_left_half_way_and_closed(patch: Apply, tmp_path: Path) -> None:
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


def test_taking_back_leaves_alone_what_others_put_on_top(patch: Apply, tmp_path: Path) -> None:
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
            patches.apply("broken", Order())
    finally:
        del patches.PATCHES["broken"]
    assert os.listdir is before
