"""No constant seed where code runs more than once: every item would get the same noise, deterministic and broken."""

import ast
import random
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.model import SourceKind
from detaudit.rules import is_repeated, rewritten

UNSEEDED, CLOCK = SourceKind.UNSEEDED, SourceKind.CLOCK

MARK = "  # here"


def advice(snippet: str, kind: SourceKind = UNSEEDED) -> str | None:
    """Return what the marked line is replaced by, None if no code is advised."""
    text = dedent(snippet)
    (line,) = [number for number, one in enumerate(text.splitlines(), 1) if MARK in one]
    found = rewritten(text, line, kind)
    assert is_repeated(text, line, kind) <= (found is None)
    if found is None:
        return None
    (new,) = found.new
    return new.replace(MARK, "").strip()


HARMLESS = {
    "top of the script": ("rng = np.random.default_rng()  # here", "rng = np.random.default_rng(0)"),
    "main": (
        """
        def main():
            rng = np.random.default_rng()  # here

        if __name__ == "__main__":
            main()
        """,
        "rng = np.random.default_rng(0)",
    ),
    "a function that main calls once": (
        """
        def data(path):
            return random.Random()  # here

        def main():
            with torch.no_grad():
                data("a")

        main()
        """,
        "return random.Random(0)",
    ),
    "an asynchronous main": (
        """
        async def main():
            rng = default_rng()  # here

        asyncio.run(main())
        """,
        "rng = default_rng(0)",
    ),
    "what a loop at the top goes through": (
        "for x in np.random.default_rng().permutation(9): f(x)  # here",
        "for x in np.random.default_rng(0).permutation(9): f(x)",
    ),
    "what a comprehension goes through": (
        "x = [f(y) for y in np.random.default_rng().permutation(9)]  # here",
        "x = [f(y) for y in np.random.default_rng(0).permutation(9)]",
    ),
    "a default argument": (
        "def noise(shape, rng=np.random.default_rng()): return rng.normal(size=shape)  # here",
        "def noise(shape, rng=np.random.default_rng(0)): return rng.normal(size=shape)",
    ),
    "the body of a class": (
        """
        class Data:
            rng = np.random.default_rng()  # here
        """,
        "rng = np.random.default_rng(0)",
    ),
    "the default of a field": (
        """
        @dataclass
        class Data:
            rng: Generator = field(default_factory=lambda: np.random.default_rng())  # here

        data = Data()
        """,
        "rng: Generator = field(default_factory=lambda: np.random.default_rng(0))",
    ),
    "the only object of a class": (
        """
        class Data(Dataset):
            def __init__(self):
                self.rng = np.random.default_rng()  # here

        data = Data()
        """,
        "self.rng = np.random.default_rng(0)",
    ),
}

NUMBERED = {
    "an item of a dataset": (
        """
        class Data(Dataset):
            def __getitem__(self, index):
                rng = np.random.default_rng()  # here
                return self.x[index] + rng.normal()
        """,
        "rng = np.random.default_rng([0, index])",
    ),
    "an item by another name": (
        """
        import torch
        class Data(Dataset):
            def __getitem__(self, item):
                return torch.Generator().seed()  # here
        """,
        "return torch.Generator().manual_seed(torch.randint(2**62, ()).item())",
    ),
    "calls of a function in a loop": (
        """
        def noise(scale, i):
            return scale * np.random.default_rng().normal()  # here

        rows = [noise(2, i) for i in range(9)]
        """,
        "return scale * np.random.default_rng([0, i]).normal()",
    ),
    "calls that a pool makes": (
        """
        def noise(i):
            return np.random.default_rng().normal()  # here

        rows = pool.map(noise, range(9))
        """,
        "return np.random.default_rng([0, i]).normal()",
    ),
    "calls that are submitted": (
        """
        def noise(i):
            return np.random.default_rng().normal()  # here

        jobs = [pool.submit(noise, i) for i in range(9)]
        """,
        "return np.random.default_rng([0, i]).normal()",
    ),
    "jobs of joblib": (
        """
        def noise(i):
            return np.random.default_rng().normal()  # here

        rows = Parallel(2)(delayed(noise)(i) for i in range(9))
        """,
        "return np.random.default_rng([0, i]).normal()",
    ),
    "pairs that a pool gives": (
        """
        def noise(x, i):
            return np.random.default_rng().normal()  # here

        rows = pool.starmap(noise, [(x, i) for i, x in enumerate(xs)])
        """,
        "return np.random.default_rng([0, i]).normal()",
    ),
    "numbers and values side by side": (
        """
        def noise(i, x):
            return np.random.default_rng().normal()  # here

        rows = pool.map(noise, range(9), xs)
        """,
        "return np.random.default_rng([0, i]).normal()",
    ),
    "a pair for each call": (
        """
        def noise(pair):
            return np.random.default_rng().normal()  # here

        rows = pool.map(noise, enumerate(xs))
        """,
        "return np.random.default_rng([0, pair[0]]).normal()",
    ),
    "a list of pairs": (
        """
        def noise(job):
            return np.random.default_rng().normal()  # here

        jobs = list(zip(xs, range(9)))
        rows = pool.map(noise, jobs)
        """,
        "return np.random.default_rng([0, job[1]]).normal()",
    ),
    "a method of each number": (
        """
        class Model:
            def noise(self, i):
                return np.random.default_rng().normal()  # here

        rows = pool.map(Model().noise, range(9))
        """,
        "return np.random.default_rng([0, i]).normal()",
    ),
    "processes": (
        """
        def noise(i, queue):
            return np.random.default_rng().normal()  # here

        jobs = [mp.Process(target=noise, args=(i, queue)) for i in range(9)]
        """,
        "return np.random.default_rng([0, i]).normal()",
    ),
    "passes of a loop": (
        """
        for epoch in range(9):
            rng = np.random.default_rng()  # here
        """,
        "rng = np.random.default_rng([0, epoch])",
    ),
    "passes with numbers of their own": (
        """
        SEEDS = [3, 7, 11]
        for seed in SEEDS:
            rng = np.random.default_rng()  # here
        """,
        "rng = np.random.default_rng([0, seed])",
    ),
    "passes that are numbered beside what they go through": (
        """
        for x, k in zip(xs, range(9)):
            rng = random.Random()  # here
        """,
        "rng = random.Random(k)",
    ),
    "passes of two loops": (
        """
        for epoch in tqdm(range(9)):
            for step, batch in enumerate(loader):
                rng = np.random.RandomState()  # here
        """,
        "rng = np.random.RandomState([0, epoch, step])",
    ),
    "elements of a comprehension": (
        "noise = [np.random.default_rng(None).normal() for i in range(9)]  # here",
        "noise = [np.random.default_rng([0, i]).normal() for i in range(9)]",
    ),
    "workers": (
        """
        def start(worker_id):
            np.random.seed()  # here

        loader = DataLoader(data, worker_init_fn=start)
        """,
        "np.random.seed([0, worker_id])",
    ),
    "an object for each pass": (
        """
        for trial in range(3):
            rng = random.Random()  # here
        """,
        "rng = random.Random(trial)",
    ),
}

ONCE = {
    "batches": """
        for batch in loader:
            rng = np.random.default_rng()  # here
        """,
    "while": """
        while loss > 0.1:
            rng = np.random.default_rng()  # here
        """,
    "a function that is called in a loop": """
        def augment(x):
            return x + np.random.default_rng().normal()  # here

        for batch in loader:
            augment(batch)
        """,
    "a function that calls itself": """
        def search(depth):
            rng = random.Random()  # here
            return search(depth - 1)

        search(3)
        """,
    "an index of a batch among loops without one": """
        for epoch in range(9):
            for batch in loader:
                rng = np.random.default_rng()  # here
        """,
    "a seed of two numbers where only one is taken": """
        for epoch in range(9):
            for i in range(9):
                rng = random.Random()  # here
        """,
    "two loops with one name": """
        for i in range(9):
            for i in range(9):
                rng = np.random.default_rng()  # here
        """,
}

HARMFUL = {
    "an index that repeats": """
        def measure(i):
            return np.random.default_rng().normal()  # here

        values = [[measure(i) for i in range(9)] for repeat in range(3)]
        """,
    "an index with a default": """
        def sample(x, step=10):
            return x + np.random.default_rng().normal()  # here

        a, b = sample(1), sample(1)
        """,
    "an index of two loops": """
        def noise(i):
            return np.random.default_rng().normal()  # here

        a = [noise(i) for i in range(9)]
        b = [noise(i) for i in range(9)]
        """,
    "an index of calls elsewhere": """
        def noise(index):
            return np.random.default_rng().normal()  # here
        """,
    "an item by its name": """
        class Data(Dataset):
            def __getitem__(self, name):
                rng = np.random.default_rng()  # here
        """,
    "an item of no known type": """
        class Data(Dataset):
            def __getitem__(self, index: str):
                rng = np.random.default_rng()  # here
        """,
    "items of an iterable dataset": """
        class Data(IterableDataset):
            def __iter__(self):
                rng = np.random.default_rng()  # here
        """,
    "a function": """
        def augment(x):
            return x + np.random.default_rng().normal()  # here
        """,
    "a function that is called twice": """
        def make():
            return np.random.default_rng()  # here

        a, b = make(), make()
        """,
    "a function that is passed on": """
        def augment(x):
            return x + np.random.default_rng().normal()  # here

        dataset = dataset.map(augment)
        """,
    "two functions that call each other": """
        def a():
            rng = random.Random()  # here
            b()

        def b():
            a()
        """,
    "pairs without a number": """
        def noise(pair):
            return np.random.default_rng().normal()  # here

        rows = pool.map(noise, zip(xs, ys))
        """,
    "jobs that are added later": """
        def noise(job):
            return np.random.default_rng().normal()  # here

        jobs = list(enumerate(xs))
        jobs.append((0, x))
        rows = pool.map(noise, jobs)
        """,
    "jobs that are replaced later": """
        def noise(job):
            return np.random.default_rng().normal()  # here

        jobs = list(range(9))
        jobs[3] = 2
        rows = pool.map(noise, jobs)
        """,
    "numbers that a table counts": "x = [np.random.default_rng().normal() for n in table.count()]  # here",
    "a process that has the name": """
        def noise(x, name):
            return np.random.default_rng().normal()  # here

        jobs = [Process(target=noise, name=i, args=(x, y)) for i in range(9)]
        """,
    "another element of a pair": """
        def noise(x, i):
            return np.random.default_rng().normal()  # here

        rows = pool.starmap(noise, zip(xs, ys))
        """,
    "threads": """
        def noise(i):
            return np.random.default_rng().normal()  # here

        jobs = [Thread(target=noise, args=(i,)) for i in range(9)]
        """,
    "the default of a field of many objects": """
        @dataclass
        class Data:
            rng: Generator = field(default_factory=lambda: np.random.default_rng())  # here

        data = [Data(), Data()]
        """,
    "a lambda": "augment = lambda x: x + np.random.default_rng().normal()  # here",
    "numbers that repeat": """
        def noise(n):
            return np.random.default_rng().normal()  # here

        rows = pool.map(noise, [1, 2, 2])
        """,
    "layers": """
        class Noise(nn.Module):
            def __init__(self):
                self.rng = np.random.default_rng()  # here

        model = nn.Sequential(Noise(), Noise())
        """,
    "a method": """
        class Model:
            def step(self, x):
                torch.seed()  # here

        Model().step(1)
        """,
    "a size is no index": """
        def noise(n):
            return np.random.default_rng().normal(size=n)  # here
        """,
    "an index that is replaced": """
        class Data(Dataset):
            def __getitem__(self, index):
                index = 3
                rng = np.random.default_rng()  # here
        """,
    "a generator expression over others": "x = sum(f(y) for z in zs for y in default_rng().permutation(z))  # here",
}

CLOCKS = {
    "at the top": ("np.random.seed(int(time.time()))  # here", "np.random.seed(0)"),
    "in __getitem__": (
        """
        class Data(Dataset):
            def __getitem__(self, idx):
                rng = np.random.default_rng(time.time_ns())  # here
        """,
        "rng = np.random.default_rng(idx)",
    ),
    "in a function": (
        """
        def augment(x):
            rng = np.random.default_rng(time.time_ns())  # here
        """,
        None,
    ),
    "computed in a function": (
        """
        def augment(x):
            seed = int(time.time())
            rng = np.random.default_rng(seed)  # here
        """,
        None,
    ),
}


@pytest.mark.parametrize(("snippet", "expected"), HARMLESS.values(), ids=HARMLESS)
def test_what_runs_once_gets_a_constant_seed(snippet: str, expected: str) -> None:
    assert advice(snippet) == expected


@pytest.mark.parametrize(("snippet", "expected"), NUMBERED.values(), ids=NUMBERED)
def test_what_is_numbered_gets_another_seed_each_time(snippet: str, expected: str) -> None:
    assert advice(snippet) == expected


@pytest.mark.parametrize("snippet", ONCE.values(), ids=ONCE)
def test_what_may_run_more_than_once_draws_from_a_generator_that_is_made_once(snippet: str) -> None:
    lines = dedent(snippet).lstrip("\n").splitlines()
    (line,) = [number for number, one in enumerate(lines, 1) if MARK in one]
    top = max(number for number in range(line) if lines[number][:1].strip())
    made = "random.Random" if "random.Random" in lines[line - 1] else "np.random.default_rng"
    gap = ["", ""] if lines[top].startswith("def") else []
    found = rewritten("\n".join(lines), line, UNSEEDED)
    drawn = lines[line - 1].replace(f"{made}()", "generator")
    assert found is not None
    assert found.new == (f"generator = {made}(0)", *gap, *lines[top : line - 1], drawn)
    assert (found.first, found.old) == (top + 1, tuple(lines[top:line]))


@pytest.mark.parametrize("snippet", HARMFUL.values(), ids=HARMFUL)
def test_what_may_run_more_than_once_gets_no_code(snippet: str) -> None:
    assert advice(snippet) is None


@pytest.mark.parametrize(("snippet", "expected"), CLOCKS.values(), ids=CLOCKS)
def test_seeds_from_the_clock(snippet: str, expected: str | None) -> None:
    assert advice(snippet, CLOCK) == expected


def test_what_is_told_in_place_of_code() -> None:
    text = dedent(HARMFUL["a function"])
    assert is_repeated(text, 3, UNSEEDED)
    assert not is_repeated(text, 3, SourceKind.SET_ORDER), "an order may be fixed there"
    assert not is_repeated(text, 2, UNSEEDED)
    assert not is_repeated("def f(:", 1, UNSEEDED)
    for snippet, _ in (*HARMLESS.values(), *NUMBERED.values()):
        lines = dedent(snippet).splitlines()
        assert not any(is_repeated("\n".join(lines), number, UNSEEDED) for number in range(1, len(lines) + 1))


NESTS = st.lists(
    st.sampled_from(
        [
            "for NAME in range(3):",
            "for _, x in zip(a, b):",
            "while f():",
            "if f():",
            "with f():",
            "def NAME(index):",
            "def NAME(x):",
            "class NAME:",
        ]
    ),
    max_size=5,
)


@given(NESTS)
def test_the_seeds_that_are_advised_differ_each_time(nests: list[str]) -> None:
    """Run what is advised, as often as its place is reached in three passes of each loop."""
    lines = [f"{' ' * depth}{nest.replace('NAME', f'n{depth}')}" for depth, nest in enumerate(nests)]
    line = f"{' ' * len(nests)}rng = np.random.default_rng()"
    text = "\n".join([*lines, line])
    found = rewritten(text, len(nests) + 1, UNSEEDED)
    repeated = any(nest.startswith(("for _", "while", "def")) for nest in nests)
    if repeated:
        assert found is None or found.new[0].startswith("generator = ")
        return
    assert found is not None
    (call,) = [node for node in ast.walk(ast.parse(found.new[0].strip())) if isinstance(node, ast.Call)]
    (seed,) = call.args
    names = {node.id for node in ast.walk(seed) if isinstance(node, ast.Name)}
    loops = {f"n{depth}" for depth, nest in enumerate(nests) if nest.startswith("for NAME")}
    assert names == loops


def test_a_seed_of_several_numbers_is_one_that_the_generator_takes() -> None:
    """What the advice relies on: NumPy's generators take lists, and those with different numbers differ."""
    np = pytest.importorskip("numpy")
    makers = (np.random.default_rng, np.random.RandomState, lambda seed: np.random.Generator(np.random.PCG64(seed)))
    for make in makers:
        drawn = {float(make([0, index]).normal()) for index in range(9)}
        assert len(drawn) == 9
        assert float(make([0, 3]).normal()) in drawn
    with pytest.raises(TypeError):
        random.Random([0, 1])  # type: ignore[arg-type]
