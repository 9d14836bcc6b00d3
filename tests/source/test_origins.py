"""The lines that make the values used at a line, and what they call."""

import textwrap

import pytest

from detaudit.source.origins import handed_over, origins


def lines(code: str, at: int) -> list[int]:
    return list(dict.fromkeys(one.line for one in origins(textwrap.dedent(code).encode(), at)))


def system_values(code: str, at: int) -> list[str]:
    found = origins(textwrap.dedent(code).encode(), at)
    return [one.system_value for one in found if one.system_value]


def test_names_are_followed_to_what_they_are_bound_to() -> None:
    code = """\
        a = 1
        b = a + 2
        other = 3
        c = [b]
        use(c)
    """
    assert lines(code, 5) == [5, 4, 2, 1]


def test_a_harmless_value_is_not_followed() -> None:
    code = "import time\nstarted = time.time()\nrate = 0.1\nuse(rate)\nprint(time.time() - started)\n"
    assert system_values(code, 4) == []
    assert system_values(code, 5) == ["time.time", "time.time"]


@pytest.mark.parametrize(
    "code",
    [
        "from time import time\nrate = time()\nuse(rate)\n",
        "import time as t\nrate = [t.time()]\nuse(rate[0])\n",
        "import time\nrate, other = time.time(), 2\nuse(rate)\n",
        "import time\nrate = 0\nrate += time.time()\nuse(rate)\n",
        "import time\nfor rate in [time.time()]:\n    use(rate)\n",
        "import time\nwith open(time.time()) as rate:\n    use(rate)\n",
        "import time\nif (rate := time.time()) > 1:\n    use(rate)\n",
        "import time\ndef rate():\n    x = time.time()\n    return x\nuse(rate())\n",
        "import time\nclass A:\n    def a(self):\n        self.x = time.time()\n    def b(self): use(self.x)\n",
        "import time\ndef go(rate):\n    use(rate)\ngo(rate=time.time())\n",
        "import time\ndef go(x, rate):\n    def inner():\n        use(rate)\n    inner()\ngo(1, time.time())\n",
    ],
)  # fmt: skip
def test_the_clock_is_found_through(code: str) -> None:
    at = next(number for number, line in enumerate(code.splitlines(), 1) if "use(" in line)
    assert "time.time" in system_values(code, at)


@pytest.mark.parametrize("call", ["os.getpid", "os.getloadavg", "time.perf_counter_ns", "datetime.datetime.now"])
def test_values_of_the_system(call: str) -> None:
    module = call.partition(".")[0]
    assert system_values(f"import {module}\nuse({call}())\n", 2) == [call]


def test_only_the_head_of_a_block_belongs_to_its_line() -> None:
    code = "import time\nwhile running:\n    use(time.time())\n"
    assert system_values(code, 2) == []


@pytest.mark.parametrize(
    "call", ["pool.map(draw, [1])", "run(partial(draw, 1))", "Process(target=draw)", "a = f(x, draw)"]
)
def test_a_function_that_is_handed_over(call: str) -> None:
    code = f"def draw(i):\n    x = i\n    return x\ndef other(): pass\n{call}\n"
    assert list(handed_over(code.encode(), 5)) == [range(1, 4)]


def test_a_function_that_is_called_is_not_handed_over() -> None:
    assert not list(handed_over(b"def draw(i):\n    return i\nx = draw(f(1)) + len(draw.__name__)\n", 3))


def test_a_name_bound_to_itself_ends() -> None:
    assert lines("a = 0\nfor _ in x:\n    a = a + 1\nuse(a)\n", 4) == [4, 1, 3]


def test_invalid_code_has_no_origins() -> None:
    with pytest.raises(SyntaxError):
        list(origins(b"use(", 1))
