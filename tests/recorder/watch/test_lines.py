"""The lines that ran and their assignments are recorded, and the traced program behaves as before."""

import copy
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from detaudit.recorder.lines import tracer
from detaudit.recorder.lines.values import Values, can_change
from detaudit.recorder.process import frames
from detaudit.recorder.process.log import encode
from detaudit.trace.lines import assignments, fork, watched

BOOTSTRAP = Path(tracer.__file__).parents[1] / "bootstrap"
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
NESTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)


class Stream:
    """A fake OpStream, whose window and step the test sets."""

    def __init__(self) -> None:
        self.open = True
        self.now = 0
        self.n = 0
        self.lines: list[dict[str, Any]] = []
        self.troubles: list[BaseException] = []

    def step(self, after_loss: bool) -> int:
        return self.now

    def write(self, kind: str, **fields: Any) -> None:
        self.lines.append(json.loads(encode({"k": kind, **fields})))

    def next_number(self) -> int:
        self.n += 1
        return self.n - 1

    def trouble(self, where: str, error: BaseException) -> None:
        self.troubles.append(error)

    def when_open(self, observe: Any) -> None:
        observe(self.open)

    def when_over(self, finish: Any, forget: Any) -> None:
        pass

    def flush(self) -> None:
        pass


class Script:
    """A user's script that is run and traced in this process."""

    def __init__(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = file
        monkeypatch.setitem(frames._known, __file__, False)  # this test is not user code
        self.stream = Stream()
        self.tracer = tracer.Tracer(self.stream)  # type: ignore[arg-type]

    def run(self, text: str, **names: Any) -> dict[str, Any]:
        names["stream"] = self.stream
        code = compile(text, str(self.file), "exec")
        before = sys.gettrace()
        sys.settrace(self.tracer.call)
        try:
            exec(code, names)
        finally:
            self.tracer.finish()
            sys.settrace(before)
        assert not self.stream.troubles
        return names

    @property
    def ran(self) -> list[list[int]]:
        """The lines of each part of a step."""
        known: dict[int, list[int]] = {}
        found = []
        for line in self.stream.lines:
            if line["k"] == "path":
                known[line["id"]] = [number for _, numbers in line["lines"] for number in numbers]
            elif line["k"] == "line":
                found.append([number for key, times in line["paths"] for number in known[key] * times])
        return found

    def values(self, name: str) -> list[tuple[int, str]]:
        """Return the lines after which a name was recorded, with the text of its value."""
        return [(line["line"], line["text"]) for line in self.recorded(name)]

    def recorded(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.stream.lines if line.get("name") == name]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    return Script(tmp_path / "train.py", monkeypatch)


def test_lines_are_kept_in_the_order_in_which_they_ran(script: Script) -> None:
    script.run("for i in range(3):\n    if i == 1:\n        j = i\nk = 2\n")
    assert script.ran == [[1, 2, 1, 2, 3, 1, 2, 1, 4]]
    assert script.values("j") == [(3, "1")]
    assert script.values("k") == [(4, "2")]


def test_each_step_has_its_own_lines(script: Script) -> None:
    script.run("a = 1\nstream.now = 1\nb = 2\nc = 3\nstream.now = 2\nd = 4\n")
    assert script.ran == [[1, 2], [3, 4, 5], [6]]
    found = [(line["name"], line["step"], line["at"]) for name in "abcd" for line in script.recorded(name)]
    assert found == [("a", 0, 1), ("b", 1, 3), ("c", 1, 4), ("d", 2, 6)]


def test_the_order_of_a_set_counts_where_it_is_a_value_and_not_inside_of_one(script: Script) -> None:
    names = script.run("a = set(x)\nb = set(y)\nc = {'k': [a]}\nd = {'k': [b]}\n", x=[8, 16, 0], y=[0, 16, 8])
    assert [*names["a"]] != [*names["b"]]
    a, b, c, d = (script.recorded(name)[0] for name in "abcd")
    assert (a["digest"] == b["digest"], a["bag"] == b["bag"]) == (False, True)
    assert (c["digest"], c["bag"]) == (d["digest"], d["bag"])


def test_what_a_library_runs_is_not_traced(script: Script) -> None:
    script.run("import json\ntext = json.dumps({'a': [1, 2]}, indent=1)\n")
    assert {line.get("file", str(script.file)) for line in script.stream.lines} == {str(script.file)}
    assert script.ran == [[1, 2]]


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ("import random\nx = list(range(9))\nrandom.shuffle(x)\ny = 1", "x", 3),
        ("x = [1]\ny = x\ny.append(2)\nprint(x)", "x", 3),  # changed through a different name
        ("x = {}\nx['a'] = 1", "x", 2),
        ("x = {1}\ny = 0\nx |= {2}", "x", 3),
        ("def f(n):\n    return n\nf(2)", "n", 1),
        ("def f():\n    n = 3\n    return n\nf()", "f()", 3),
        ("class A: pass\na = A()\na.b = 5\na.b += 1", "a.b", 4),
        ("class A: pass\na = A()\na.b = []\na.b.append(1)", "a.b", 4),
        ("def f():\n    global x\n    x = 1\nf()", "x", 3),
        ("def f():\n    x = 0\n    def g():\n        nonlocal x\n        x = 1\n    g()\nf()", "x", 5),
        ("with open(__import__('os').devnull) as f:\n    x = f.read()", "x", 2),
        ("x = [\n    1,\n    2,\n]", "x", 1),
    ],
)
def test_a_change_is_recorded_at_its_line(script: Script, text: str, name: str, line: int) -> None:
    script.run(text)
    assert script.values(name)[-1][0] == line


def test_an_unchanged_value_is_not_recorded_again(script: Script) -> None:
    script.run("x = [1]\nprint(x)\nlen(x)\nm = object()\nm = object()\n")
    assert script.values("x") == [(1, "[1]")]
    assert script.values("m") == [(4, "")]


def test_a_long_loop_takes_little_room(script: Script) -> None:
    script.run("x = 0\nwhile x < 5000:\n    x += 1\n")
    assert len(script.ran[0]) == 10_002
    assert len(script.stream.lines) < 40


def test_generators_and_errors_behave_as_before(script: Script) -> None:
    found = script.run(
        "def count(n):\n    for i in range(n):\n        got = yield i\n    return got\n"
        "def run():\n    x = yield from count(3)\n    return x\nall_of_it = list(run())\n"
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    why = str(error)\n"
    )
    assert (found["all_of_it"], found["why"]) == ([0, 1, 2], "division by zero")
    assert [text for _, text in script.values("count()")] == ["0", "1", "2"]
    with pytest.raises(ValueError, match="mine"):
        script.run("raise ValueError('mine')")


def test_properties_and_reprs_of_the_user_are_not_called(script: Script) -> None:
    found = script.run(
        "called = []\nclass A:\n    def __repr__(self):\n        called.append(1)\n        return ''\n"
        "    def __eq__(self, other):\n        called.append(2)\n    __hash__ = None\n"
        "    @property\n    def p(self):\n        called.append(3)\n        return [1]\n"
        "    def __getattr__(self, name):\n        called.append(4)\n"
        "class L(list):\n    def __iter__(self):\n        called.append(5)\n        return iter(())\n"
        "    def __len__(self):\n        called.append(6)\n        return 1\n"
        "a = A()\nb = [a, L([a])]\nc = {'a': a}\nl = L([1, 2])\nn = 3\n"
    )
    assert found["called"] == []


def test_what_a_signal_handler_raises_reaches_the_user(script: Script, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(compile("def stop(_):\n    raise TimeoutError('mine')\n", str(tmp_path / "handler.py"), "exec"), names)
    script.stream.step = names["stop"]  # type: ignore[method-assign]
    with pytest.raises(TimeoutError, match="mine"):
        script.run("x = 1\n")


def test_a_failure_of_the_tracer_does_not_reach_the_script(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Values, "describe", lambda *_: 1 / 0)
    with pytest.raises(AssertionError):  # there was trouble
        script.run("x = 1\ny = x + 1\nstream.seen = y\n")
    assert script.stream.seen == 2  # type: ignore[attr-defined]
    assert {type(error) for error in script.stream.troubles} == {ZeroDivisionError}


def test_an_existing_trace_function_is_kept() -> None:
    stream, before = Stream(), sys.gettrace()

    def theirs(*_: Any) -> None:
        return None

    sys.settrace(theirs)
    try:
        tracer.install(stream)  # type: ignore[arg-type]
        assert sys.gettrace() is theirs
        tracer.Tracer(stream).opened(False)  # type: ignore[arg-type]
        assert sys.gettrace() is theirs
    finally:
        sys.settrace(before)
    assert len(stream.troubles) == 1


def test_the_window_can_open_while_a_function_runs(script: Script) -> None:
    script.stream.open = False
    names = {"tracer": script.tracer, "stream": script.stream}
    opened, closed = (f"stream.open = {now}\ntracer.opened(stream.open)\n" for now in (True, False))
    text = f"x = 1\ny = 2\n{opened}z = 3\n{closed}w = 4"
    before = sys.gettrace()
    try:
        exec(compile(text, str(script.file), "exec"), names)
    finally:
        sys.settrace(before)
    assert script.ran == [[5, 6]]  # closed at the 7th line
    assert (script.values("z"), script.values("w")) == ([(5, "3")], [])


def test_each_thread_has_its_own_record(script: Script) -> None:
    threading.settrace(script.tracer.call)
    try:
        script.run(
            "import threading\ndef work(n):\n    x = n\n"
            "for n in (1, 2):\n    t = threading.Thread(target=work, args=(n,), name='w')\n"
            "    t.start()\n    t.join()\n"
        )
    finally:
        threading.settrace(None)
    found = [(line["thread"], line["text"]) for line in script.recorded("x")]
    assert found == [("w", "1"), ("w#2", "2")]
    ended = {line["thread"] for line in script.stream.lines if line.get("ended")}
    assert ended == {"w", "w#2", "MainThread"}


@given(NESTS, NESTS)
def test_different_plain_values_have_different_digests(a: Any, b: Any) -> None:
    describe = Values().describe
    assert describe("x", a) == describe("x", copy.deepcopy(a))
    # repr distinguishes 1 from True and 0.0 from -0.0, like the digests.
    assert (describe("x", a).digest == describe("x", b).digest) == (repr(a) == repr(b))


@given(st.lists(SCALARS, max_size=20), st.randoms())
def test_the_bag_ignores_the_order_of_elements(items: list[Any], random: Any) -> None:
    other = [*items]
    random.shuffle(other)
    a, b = Values().describe("x", items), Values().describe("x", other)
    assert a.bag == b.bag
    assert (a.digest == b.digest) == (repr(items) == repr(other))
    assert Values().describe("x", [*items, 1]).bag != a.bag


def test_no_address_is_recorded() -> None:
    class Mine:
        pass

    for make in (
        Mine,
        object,
        lambda: [Mine()],
        lambda: {"a": object()},
        lambda: (print, Mine),
        lambda: threading.Lock(),
    ):
        held = [make() for _ in range(3)]
        assert len({Values().describe("x", one) for one in held}) == 1
        assert "0x" not in str(Values().describe("x", held[0]))


def test_secrets_have_no_text() -> None:
    assert Values().describe("api_key", "abc").text == ""
    assert Values().describe("config", {"token": "abc"}).text == ""
    assert Values().describe("run", "abc").text == "'abc'"


def test_bounds_hold() -> None:
    nested: list[Any] = []
    nested.append(nested)
    for value in (nested, list(range(10**6)), 10**9000, "x" * 10**6, {i: [i] * 50 for i in range(10**4)}):
        found = Values().describe("x", value)
        assert len(found.text) <= 80
        assert len(found.digest) < 100


def test_arrays_are_described_by_their_bytes() -> None:
    describe = Values().describe
    x = np.arange(12.0).reshape(3, 4)
    assert describe("x", x) == describe("x", x.copy(order="F"))
    assert describe("x", x).digest != describe("x", x.T).digest != describe("x", x.reshape(4, 3)).digest
    assert describe("x", x).bag == describe("x", x[::-1]).bag
    assert describe("x", x).bag != describe("x", x + 1).bag
    assert describe("x", np.array([object()])).digest == "numpy.ndarray"
    assert describe("x", np.float32(1)).digest != describe("x", np.float32(2)).digest


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_are_described_by_their_columns(library: str) -> None:
    module = pytest.importorskip(library)
    describe = Values().describe

    def table(*rows: tuple[float, str | None]) -> Any:
        return module.DataFrame({"x": [x for x, _ in rows], "name": [name for _, name in rows]})

    x = table((0.5, "a"), (1.5, None))
    turned = table((1.5, None), (0.5, "a"))
    assert describe("x", x) == describe("x", table((0.5, "a"), (1.5, None)))
    assert describe("x", x).digest != describe("x", turned).digest
    assert describe("x", x).bag == describe("x", turned).bag
    for other in (table((0.5, "a"), (1.5, "b")), table((0.5, "a"), (1.25, None))):
        assert describe("x", x).digest != describe("x", other).digest
        assert describe("x", x).bag != describe("x", other).bag
    assert describe("x", x["name"]).digest != describe("x", turned["name"]).digest
    assert describe("x", [x]).digest != describe("x", [turned]).digest
    large, other = (table(*[(at / 2, "a")] * 40_000) for at in (1, 2))
    assert can_change(x)
    assert not can_change(large), "it would take long before each line"
    assert describe("x", large).digest != describe("x", other).digest


def test_tensors_are_read_without_an_operation() -> None:
    seen = []

    class Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.arange(12, dtype=torch.bfloat16).reshape(3, 4)
    w = torch.nn.Parameter(torch.ones(3))
    odd = [x.to(torch.complex64).conj(), x.to_sparse(), torch.empty(2, device="meta"), torch.empty(0, 3)]
    turned, plain = x.t(), x.t().contiguous()
    with Watching():  # type: ignore[no-untyped-call]
        found = [Values().describe("x", value) for value in (x, x.clone(), turned, plain, w, *odd)]
    assert len(seen) == 1  # the clone
    assert found[0] == found[1] != found[2] == found[3]
    assert [":" in one.digest for one in found[4:]] == [True, False, False, False, True]
    assert w.grad is None


def test_a_tensor_under_a_transform_is_described_by_its_type() -> None:
    digests: list[str] = []

    def f(x: Any) -> Any:
        digests.append(Values().describe("x", x).digest)
        return x * 2

    torch.func.vmap(f)(torch.ones(3, 2))
    with pytest.warns(DeprecationWarning, match="jit.trace"):
        torch.jit.trace(f, torch.ones(2), check_trace=False)  # type: ignore[no-untyped-call]
    assert set(digests) == {"torch.Tensor"}


def test_a_model_is_described_by_its_weights() -> None:
    def made(seed: int) -> str:
        torch.manual_seed(seed)
        return Values().describe("model", torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))).digest

    assert made(0) == made(0) != made(1)


def runs(tmp_path: Path, text: str, times: int = 2) -> Iterator[Path]:
    script = tmp_path / "train.py"
    script.write_text(text)
    for number in range(times):
        folder = tmp_path / str(number)
        folder.mkdir()
        watch = {"DETAUDIT_LOGS": str(folder), "DETAUDIT_WATCH": '{"level":"lines","first":0,"last":1}'}
        environment = {**os.environ, **watch, "PYTHONPATH": str(BOOTSTRAP), "PYTHONHASHSEED": str(number + 1)}
        subprocess.run([sys.executable, str(script)], cwd=tmp_path, env=environment, check=True)
        assert "trouble" not in next(folder.glob("*.jsonl")).read_text()
        yield next(folder.glob("*.ops"))


@pytest.mark.launches
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import os\nif os.path.exists('left'):\n    x = 1\nopen('left', 'w').close()\n", 2),
        ("import time\nn = 0\nend = time.time_ns() % 9999\nwhile n < end:\n    n += 1\nx = 1\n", 4),
    ],
)
def test_two_processes_that_diverge(tmp_path: Path, text: str, line: int) -> None:
    a, b = runs(tmp_path, text)
    found = fork(watched(a), watched(b))
    assert found is not None
    assert found.last is not None
    assert found.last.line == line


@pytest.mark.launches
@pytest.mark.parametrize(
    ("text", "line", "reordered"),
    [
        ("x = 1\nwords = list({f'w{i}' for i in range(99)})\ny = 2\n", 2, True),
        ("import random\nx = list(range(99))\nrandom.shuffle(x)\ny = 2\n", 3, True),
        ("import random\ndef f():\n    return random.random()\nx = [f()]\n", 3, False),
        ("import random\nrandom.seed(0)\nx = random.random()\ny = sorted({'a', 'b', 'c'})\n", 0, None),
    ],
)
def test_two_processes_whose_values_differ(tmp_path: Path, text: str, line: int, reordered: bool | None) -> None:
    a, b = runs(tmp_path, text)
    assert fork(watched(a), watched(b)) is None
    found = min(assignments(watched(a), watched(b)), key=lambda one: one.order, default=None)
    assert (found.one.line if found else 0, found.reordered if found else None) == (line, reordered)
