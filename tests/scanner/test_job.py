"""What a job of a scan writes, with a framework that returns what the test says."""

import contextlib
import json
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.ops import answers
from detaudit.scanner import job
from detaudit.scanner.parts import Parts, flat


def parts(value: bytes) -> Parts:
    return Parts([("", "uint8", (len(value),), value)])


class Sample:
    """A sample whose calls return the next of ``results``, or raise it."""

    sample, size, inputs, shapes = 0, None, "i", "3"

    def __init__(self, op: str, results: list[Any]) -> None:
        self.op, self.dtype, self._results = op, "float32", iter(results)

    def directions(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        def call() -> Any:
            result = next(self._results)
            if isinstance(result, Exception):
                raise result
            return result

        yield "forward", call


class Framework:
    version, threads = "1.0", 2

    def __init__(self, results: dict[str, list[Any]]) -> None:
        self._results = results

    def items(self, dtypes: list[str]) -> list[list[str]]:
        return [[op, dtype] for op in self._results for dtype in dtypes]

    def cases(self, op: str, dtype: str, only: object, sizes: object) -> Iterator[Sample]:
        if isinstance(self._results[op], Exception):
            raise self._results[op]  # type: ignore[misc]
        yield Sample(op, self._results[op])

    def phase(self, threads: int, switch: bool) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    parts = staticmethod(parts)


@pytest.fixture
def carry_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., answers.Answers]:
    def do(results: dict[str, Any], **changed: Any) -> answers.Answers:
        cases = types.SimpleNamespace(start=lambda device, phases: Framework(results))
        monkeypatch.setitem(sys.modules, "detaudit.scanner.torch.cases", cases)
        phase = {"threads": 0, "switch": False, "repeats": 3, "seconds": 9.0}
        phases = [{"name": "usual", **phase}, {"name": "switch", **phase, "switch": True}]
        spec: dict[str, Any] = {
            "framework": "torch",
            "device": "cpu",
            "lines": str(tmp_path / "lines"),
            "phases": phases,
        }
        spec |= {"items": [[op, "float32"] for op in results], "samples": None, "sizes": {}, "keep": str(tmp_path)}
        (tmp_path / "job.json").write_text(json.dumps({**spec, **changed}))
        job.main(str(tmp_path / "job.json"))
        return answers.read(tmp_path / "lines")

    return do


def test_results_are_counted_by_phase(carry_out: Callable[..., answers.Answers]) -> None:
    (case,) = carry_out({"put_": [b"abc", b"abd", b"abc", b"x", b"x", b"x"]}).cases
    assert sorted(case.phases["usual"].results.values()) == [1, 2]
    assert list(case.phases["switch"].results.values()) == [3]


def test_the_bytes_of_different_results_are_kept(carry_out: Callable[..., answers.Answers]) -> None:
    (case,) = carry_out({"put_": [b"abc", b"abd", b"abc", b"x", b"x", b"x"]}).cases
    assert case.kept is not None
    assert [Path(file).read_bytes() for file in case.kept.files] == [b"abc", b"abd"]


def test_what_an_operation_raises_is_written_and_the_next_one_repeated(
    carry_out: Callable[..., answers.Answers],
) -> None:
    found = carry_out({"bad": RuntimeError("no sample\nmore"), "put_": [b"a", b"a", b"a", ValueError("refused")]})
    assert [(one.op, one.error) for one in found.skipped] == [("bad", "RuntimeError: no sample")]
    (case,) = found.cases
    assert case.phases["switch"].error == "ValueError: refused"
    assert found.finished == {("bad", "float32"), ("put_", "float32")}


def test_an_item_that_ended_the_process_is_the_broken_one(carry_out: Callable[..., answers.Answers]) -> None:
    with pytest.raises(KeyboardInterrupt):
        carry_out({"add": [b"a"] * 6, "crash": _Interrupting()})


class _Interrupting(list[bytes]):
    def __iter__(self) -> Iterator[bytes]:
        raise KeyboardInterrupt


def test_a_line_that_was_cut_off_costs_no_other(carry_out: Callable[..., answers.Answers], tmp_path: Path) -> None:
    (tmp_path / "lines").write_text('{"begin": ["add", "float')
    found = carry_out({"add": [b"a"] * 6})
    assert found.framework is not None
    assert found.finished == {("add", "float32")}


def test_operations_are_listed(carry_out: Callable[..., answers.Answers]) -> None:
    found = carry_out({"add": [], "mul": []}, lists=["float32", "bfloat16"])
    assert found.items == [("add", "float32"), ("add", "bfloat16"), ("mul", "float32"), ("mul", "bfloat16")]
    assert found.framework == answers.Framework("1.0", 2)


def test_values_in_nested_results_have_names() -> None:
    nested = {"a": [1, (2, 3)], "b": 4}
    assert dict(flat(nested)) == {"a[0]": 1, "a[1][0]": 2, "a[1][1]": 3, "b": 4}


@given(st.binary(), st.binary())
def test_digests_are_equal_if_all_bits_are(a: bytes, b: bytes) -> None:
    assert (parts(a).digest() == parts(b).digest()) == (a == b)


def test_a_shape_is_part_of_a_digest() -> None:
    flat_, square = (Parts([("", "uint8", shape, b"abcd")]).digest() for shape in ((4,), (2, 2)))
    assert flat_ != square
