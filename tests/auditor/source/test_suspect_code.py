"""Sets that are iterated and hashes that are computed with are found; what forgets their order is not."""

from pathlib import Path
from typing import Any

import pytest

from detaudit.auditor.source.scan import in_text
from detaudit.auditor.source.suspect_code import Fixed, read


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
        "x = np.random.RandomState()",
        "x = np.random.Generator(PCG64(None))",
        "g = torch.Generator()\ng.seed()",
        "x = hash(name) % 10",
        "x = np.empty((2, 3))",
        "x = torch.empty_like(y)",
        "x = y.new_empty(3)",
        "x = id(o) % 7",
        "x = sorted(things, key=id)",
    ],
)
def test_an_order_that_nothing_fixes(text: str) -> None:
    assert at(text) == [len(text.splitlines())]


@pytest.mark.parametrize(
    "text",
    [
        "x = sorted(set(words))",
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
        "for w in {'a': 1}: f(w)",
        "class A:\n  def __hash__(self): return hash(self.name)",
        "seen = {id(p) for p in ps}\nx = id(p) in seen",
        "print('%d' % id(o))",
        "x = np.random.RandomState(0); g.seed(1); y = PCG64(seed=s)",
    ],
)
def test_an_order_that_is_forgotten_or_fixed(text: str) -> None:
    assert at(text) == []


def test_a_text_that_python_warns_of_is_read_in_silence() -> None:
    assert at("x = list(set('\\d'))") == [1]


def test_what_is_held_still_is_left_out(tmp_path: Path) -> None:
    text = "x = list(set(w))\ny = hash(w)\nz = id(w) % 3\nr = RandomState()\ng = Generator()\ng.seed()\n"
    text += "e = torch.empty_like(x)\n"
    (tmp_path / "a.py").write_text(text)
    (tmp_path / "broken.py").write_text("x = (\n")

    def lines(**fixed: Any) -> list[int]:
        found = read(tmp_path, ["a.py", "broken.py", "none.py"], Fixed(**fixed))
        assert all(source.kind == "candidate" for source in found)
        return [source.line for source in found]

    assert lines() == [4, 6, 1, 2, 3, 7]
    assert lines(addresses=True) == [4, 6, 1, 2, 7]
    # A set of objects is ordered by their addresses.
    assert lines(hash_seed=True, torch_entropy=True, filled={"torch.empty"}) == [4, 1, 3]
    assert lines(hash_seed=True, addresses=True, numpy_entropy=True, filled={"numpy.empty"}) == [6, 7]
