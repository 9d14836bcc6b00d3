"""Code that iterates over sets or computes with hashes is found; code that forgets their order is not."""

from pathlib import Path
from typing import Any

import pytest

from detaudit.config.flags import load_catalogue
from detaudit.model import Source, SourceKind, SourceMatch
from detaudit.source.randomness import Pinned, in_text, read


def at(text: str) -> list[int]:
    return [line for line, _, _ in in_text(text.encode())]


@pytest.mark.parametrize(
    "text",
    [
        "for w in {'a', 'b'}: f(w)",
        "for w in set(words): f(w)",
        "x = list(set(words))",
        "x = {w: i for i, w in enumerate(set(words))}",
        "x = [f(w) for w in {g(v) for v in words}]",
        "x = tuple(frozenset(words))",
        "x = ' '.join({f(w) for w in words})",
        "x = [*set(words)]",
        "x = next(iter(set(words)))",
        "for w in a.keys() & b.keys(): f(w)",
        "for w in set(a) - set(b): f(w)",
        "for w in set(a).union(b): f(w)",
        "vocab = set()\nvocab.add(x)\nids = dict(zip(vocab, range(9)))",
        "def f():\n    s = set(words)\n    return [g(w) for w in s]",
        "class A:\n  def a(self): self.s = set()\n  def b(self):\n    return list(self.s)",
        "s = set(a)\ns = s | set(b)\nx = s.pop()",
        "def unique(): return set(words)\nfor w in unique(): f(w)",
        "def unique():\n    s = set(words)\n    return s | {x}\nids = list(unique())",
        "done, _ = wait(jobs)\nfor job in done: f(job)",
        "a, s = list(words), set(words)\nfor w in s: f(w)",
        "(a, s), b = (1, set(words)), 2\nfor w in s: f(w)",
        "done, left = await asyncio.wait(jobs, timeout=9)\nx = [f(job) for job in left]",
        "x = np.random.RandomState()",
        "x = np.random.Generator(PCG64(None))",
        "g = torch.Generator()\ng.seed()",
        "x = hash(name) % 10",
        "x = np.empty((2, 3))",
        "x = torch.empty_like(y)",
        "import polars as pl\nx = pl.read_csv(p).group_by('k').mean()",
        "from polars import col\nx = frame.unique(subset=['k'])",
        "x = y.new_empty(3)",
        "x = id(o) % 7",
        "for x in Parallel(n_jobs=2, return_as='generator_unordered')(jobs): f(x)",
        "x = sorted(things, key=id)",
    ],
)
def test_an_order_that_nothing_fixes(text: str) -> None:
    assert at(text) == [len(text.splitlines())]


@pytest.mark.parametrize(
    ("parameters", "call"),
    [
        ("s", "f(set(words))"),
        ("s", "f(s=set(words)); f({*words})"),
        ("a, s", "x = f(1, set(a)) + f(2, set(b))"),
        ("*, s", "f(s=set(words))"),
        ("s={'a', 'b'}", "f()"),
    ],
)
def test_a_set_that_each_call_passes_to_a_parameter(parameters: str, call: str) -> None:
    assert at(f"def f({parameters}):\n    for w in s: g(w)\n{call}") == [2]


@pytest.mark.parametrize(
    "text",
    [
        "x = sorted(set(words))",
        "x = sorted(set(words), key=str)",
        "x = sorted(set(words), key=lambda w: (-counts[w], w))",
        "done, left = wait(jobs)\nfor job in left: f(job)",
        "a, s = set(words), list(words)\nfor w in s: f(w)",
        "import polars as pl\nx = pl.read_csv(p).group_by('k', maintain_order=True).mean()",
        "import polars, numpy as np\nx = np.unique(y)",
        "x = frame.group_by('k')",
        "a, *s = 1, set(words)\nfor w in s: f(w)",
        "a, s = s, a\nfor w in s: f(w)",
        "ready, left = ray.wait(jobs)\nfor job in ready: f(job)",
        "code, text = process.wait()\nfor word in text: f(word)",
        "x = sorted(list({f(w) for w in words}))",
        "x = sorted(f(w) for w in set(words))",
        "x = {f(w) for w in set(words)}",
        "x = len(set(words)); y = 'a' in {'a', 'b'}; z = max(set(words))",
        "x = set(a) & set(b)",
        "x = list(set(words))\nx.sort()",
        "for i in {1, 2, 3}: f(i)",
        "for i in set(range(9)): f(i)",
        "s = set(words)\ns = sorted(s)\nfor w in s: f(w)",
        "def f(s):\n    for w in s: g(w)",
        "def f(s):\n    for w in s: g(w)\nf(sorted(words)); f(set(words))",
        "def f(s):\n    for w in s: g(w)\nf(set(words)); calls = [f]",
        "def f(s):\n    for w in s: g(w)\nf(*[set(words)])",
        "def f(s={'a', 'b'}):\n    for w in s: g(w)\nf(*rest)",
        "def f(s={'a', 'b'}):\n    for w in s: g(w)\nf(**rest)",
        "def f(s=()):\n    for w in s: g(w)\nf()",
        "def f(s):\n    return f(s)\nfor w in f(words): g(w)",
        "def unique():\n    if words: return set(words)\n    return []\nfor w in unique(): f(w)",
        "class Words:\n    def unique(self): return set(self.words)\nfor w in unique(): f(w)",
        "def unique(): yield set(words)\nfor w in unique(): f(w)",
        "for w in {'a': 1}: f(w)",
        "class A:\n  def __hash__(self): return hash(self.name)",
        "seen = {id(p) for p in ps}\nx = id(p) in seen",
        "print('%d' % id(o))",
        "x = np.random.RandomState(0); g.seed(1); y = PCG64(seed=s)",
    ],
)
def test_an_order_that_is_forgotten_or_fixed(text: str) -> None:
    assert at(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "x = max(set(votes), key=votes.count)",
        "x = sorted(set(words), key=counts.get, reverse=True)[:9]",
        "x = sorted(list(set(words)), key=lambda w: counts[w])",
        "x = min({f(w) for w in words}, key=len)",
    ],
)
def test_elements_with_the_same_key_stay_in_the_order_of_the_set(text: str) -> None:
    assert at(text) == [1]


def test_a_text_that_python_warns_about_is_read_without_warnings() -> None:
    assert at("x = list(set('\\d'))") == [1]


@pytest.mark.parametrize(
    ("text", "kind", "call"),
    [
        ("x = list(set(words))", SourceKind.SET_ORDER, ""),
        ("x = hash(name) % 10", SourceKind.HASH, ""),
        ("x = sorted(things, key=hash)", SourceKind.HASH, ""),
        ("x = id(o) % 7", SourceKind.ADDRESS, ""),
        ("x = sorted(things, key=id)", SourceKind.ADDRESS, ""),
        ("x = np.random.RandomState()", SourceKind.UNSEEDED, "RandomState"),
        ("x = PCG64DXSM(None)", SourceKind.UNSEEDED, "PCG64DXSM"),
        ("random.seed()", SourceKind.UNSEEDED, "random.seed"),
        ("np.random.seed(None)", SourceKind.UNSEEDED, "numpy.random.seed"),
        ("torch.seed()", SourceKind.UNSEEDED, "torch.seed"),
        ("g.seed()", SourceKind.UNSEEDED, "Generator.seed"),
        ("self.np.seed()", SourceKind.UNSEEDED, "Generator.seed"),
        ("torch.Generator().seed()", SourceKind.UNSEEDED, "Generator.seed"),
        ("x = np.empty((2, 3))", SourceKind.UNINITIALIZED, "numpy.empty"),
        ("x = numpy.empty_like(y)", SourceKind.UNINITIALIZED, "numpy.empty_like"),
        ("x = torch.empty_strided((2,), (1,))", SourceKind.UNINITIALIZED, "torch.empty_strided"),
        ("x = y.new_empty(3)", SourceKind.UNINITIALIZED, "torch.empty"),
    ],
)
def test_what_a_line_does(text: str, kind: SourceKind, call: str) -> None:
    assert in_text(text.encode()) == ((1, kind, call),)


def test_what_is_pinned_is_left_out(tmp_path: Path) -> None:
    text = "x = list(set(w))\ny = hash(w)\nz = id(w) % 3\nr = RandomState()\ng = Generator()\ng.seed()\n"
    text += "e = torch.empty_like(x)\n"
    (tmp_path / "a.py").write_text(text)
    (tmp_path / "broken.py").write_text("x = (\n")

    def suspects(*fixing: str, **pinned: Any) -> list[Source]:
        fixed = tuple(flag.matches for flag in load_catalogue().select(fixing))
        return list(read(tmp_path, ["a.py", "broken.py", "none.py"], Pinned(**pinned, fixed=fixed)))

    def suspect(line: int, kind: SourceKind, call: str = "") -> Source:
        return Source(file="a.py", line=line, kind=kind, call=call, suspect=True)

    numpy, torch = (
        suspect(4, SourceKind.UNSEEDED, "RandomState"),
        suspect(6, SourceKind.UNSEEDED, "Generator.seed"),
    )
    order, hashes, address = (
        suspect(1, SourceKind.SET_ORDER),
        suspect(2, SourceKind.HASH),
        suspect(3, SourceKind.ADDRESS),
    )
    memory = suspect(7, SourceKind.UNINITIALIZED, "torch.empty_like")
    assert suspects() == [numpy, torch, order, hashes, address, memory]
    assert suspects(addresses=True) == [numpy, torch, order, hashes, memory]
    # A set of objects is ordered by their addresses.
    objects = suspect(1, SourceKind.OBJECT_SET_ORDER)
    assert suspects("torch-seed-generators", "torch-deterministic-algorithms", hash_seed=True) == [
        numpy,
        objects,
        address,
    ]
    pinned = {"hash_seed": True, "addresses": True}
    assert suspects("numpy-default-rng", "numpy-zero-empty", **pinned) == [torch, memory]


def test_a_line_that_no_flag_fixes_is_a_suspect(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("np.random.seed()\n")
    other, same = SourceMatch(calls=("random.seed",)), SourceMatch(calls=("numpy.random.seed",))
    assert len(read(tmp_path, ["a.py"], Pinned(fixed=(other,)))) == 1
    assert read(tmp_path, ["a.py"], Pinned(fixed=(other, same))) == ()


POOL = "rng = np.random.default_rng(0)\ndef one(i):\n    return rng.normal(i)\nwith ThreadPoolExecutor(4) as pool: "


def shared(text: str) -> list[tuple[int, str]]:
    return [(line, call) for line, kind, call in in_text(text.encode()) if kind is SourceKind.SHARED_GENERATOR]


@pytest.mark.parametrize(
    "text",
    [
        POOL + "x = list(pool.map(one, range(6)))",
        POOL + "x = [pool.submit(one, i) for i in range(6)]",
        POOL + "a, b = pool.submit(one, 1), pool.submit(one, 2)",
        POOL.replace("np.random.default_rng", "random.Random") + "x = list(pool.map(one, range(6)))",
        POOL.replace("(0)", "(seed=SEED)") + "x = list(pool.map(one, range(6)))",
        "rng = RandomState(0)\ndef one(i):\n    return rng.rand()\n"
        "x = Parallel(2, prefer='threads')(delayed(one)(i) for i in y)",
        "g = torch.Generator()\ndef one(i):\n    return torch.randn(3, generator=g)\n"
        "with ThreadPool(2) as p: p.map(one, y)",
        "g = torch.Generator().manual_seed(1)\ndef one(i):\n    return torch.randn(3, generator=g)\n"
        "with ThreadPool(2) as p: p.map(one, y)",
        "rng = Random(0)\ndef one(i):\n    return rng.random()\n"
        "for i in y: threading.Thread(target=one, args=(i,)).start()",
        "rng = Random(0)\ndef one():\n    return rng.random()\nawait gather(*[asyncio.to_thread(one) for i in y])",
        "rng = Random(0)\ndef one():\n    return rng.random()\ndef all():\n    return one()\n"
        "x = [loop.run_in_executor(ThreadPoolExecutor(), all) for i in y]",
        "class A:\n  def one(self, i):\n    return self.rng.normal()\n  def __init__(self): self.rng = Random(0)\n"
        "  def run(self): return list(ThreadPoolExecutor(3).map(self.one, x))",
    ],
)
def test_threads_that_draw_from_one_generator(text: str) -> None:
    assert [line for line, _ in shared(text)] == [3]


@pytest.mark.parametrize(
    "text",
    [
        POOL.replace("Executor(4)", "Executor(1)") + "x = list(pool.map(one, range(6)))",
        POOL.replace("Executor(4)", "Executor(max_workers=1)") + "x = list(pool.map(one, range(6)))",
        POOL.replace("ThreadPool", "ProcessPool") + "x = list(pool.map(one, range(6)))",
        POOL.replace("(0)", "()") + "x = list(pool.map(one, range(6)))",
        POOL.replace("rng.normal(i)", "rng.seed(i)") + "x = list(pool.map(one, range(6)))",
        POOL + "x = list(map(one, range(6)))",
        POOL + "x = pool.submit(one, 1)",
        POOL + "x = list(pool.map(print, range(6)))",
        "def one(i):\n    rng = np.random.default_rng(i)\n    return rng.normal()\nThreadPool(2).map(one, x)",
        "def one(i, rng):\n    return rng.normal()\nThreadPool(2).map(one, x)",
        "rng = Random(0)\ndef one():\n    return rng.random()\nthreading.Thread(target=one).start()",
        "rng = Random(0)\ndef one(i):\n    return rng.random()\n"
        "for i in y: multiprocessing.Process(target=one).start()",
    ],
)
def test_no_threads_draw_from_one_generator(text: str) -> None:
    assert shared(text) == []


def test_a_shared_generator_is_named_as_the_code_does() -> None:
    assert shared(POOL + "x = list(pool.map(one, range(6)))") == [(3, "rng.normal")]
