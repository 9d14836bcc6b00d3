"""The difference of tensors is what NumPy finds, for any bits at all."""

import math
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from detaudit.judge import tensors
from detaudit.judge.tensors import difference

WORDS = {"float16": "u2", "float32": "u4", "float64": "u8", "int8": "u1", "int16": "u2", "int64": "u8", "uint32": "u4"}


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, Any, Any]:
    dtype = draw(st.sampled_from(sorted(WORDS)))
    most = 256 ** np.dtype(dtype).itemsize - 1
    words = st.lists(st.integers(0, most), min_size=1, max_size=30)
    ours = draw(words)
    theirs = [draw(st.one_of(st.just(word), st.integers(0, most), st.just(min(most, word + 1)))) for word in ours]
    a, b = (np.array(side, WORDS[dtype]).view(dtype) for side in (ours, theirs))
    return dtype, a, b


@given(pairs())
def test_it_finds_what_numpy_finds(pair: tuple[str, Any, Any]) -> None:
    dtype, a, b = pair
    differing = np.flatnonzero(a.view(WORDS[dtype]) != b.view(WORDS[dtype]))
    found = difference(dtype, a.shape, a.tobytes(), b.tobytes())
    if not differing.size:
        assert found is None
        return
    assert found is not None
    assert (found.mismatched, found.total, found.first.index) == (differing.size, a.size, (differing[0],))
    assert [one.index for one in found.next] == [(place,) for place in differing[1:4]]
    x, y = (side[differing].tolist() for side in (a, b))
    known = [(p, q) for p, q in zip(x, y, strict=True) if not (math.isnan(p) or math.isnan(q))]
    assert found.nans == len(x) - len(known)
    if not known:
        assert found.max_abs is None
        return
    assert float(found.max_abs or 0) == max(float(abs(p - q)) for p, q in known)
    assert 0 <= float(found.max_rel or 0) <= 2 or found.max_rel == "inf"


@given(pairs())
def test_it_is_the_same_without_numpy(pair: tuple[str, Any, Any]) -> None:
    dtype, a, b = pair
    for name in (dtype, *(["bfloat16"] if dtype == "float16" else []), *(["int32"] if dtype == "uint32" else [])):
        fast = difference(name, a.shape, a.tobytes(), b.tobytes())
        with mock.patch.object(tensors, "_numpy", return_value=None):
            assert repr(difference(name, a.shape, a.tobytes(), b.tobytes())) == repr(fast)


@given(pairs())
def test_it_is_the_same_both_ways(pair: tuple[str, Any, Any]) -> None:
    dtype, a, b = pair
    there, back = (difference(dtype, a.shape, x.tobytes(), y.tobytes()) for x, y in ((a, b), (b, a)))
    assert (there is None) == (back is None)
    if there and back:
        assert (there.max_abs, there.max_rel, there.max_ulp) == (back.max_abs, back.max_rel, back.max_ulp)


@given(st.floats(-(2.0**120), 2.0**120, width=32), st.integers(1, 5))
def test_ulps_are_steps_to_the_next_float(start: float, steps: int) -> None:
    a = np.float32(start)
    b = a
    for _ in range(steps):
        b = np.nextafter(b, np.float32(np.inf), dtype=np.float32)
    found = difference("float32", (), a.tobytes(), b.tobytes())
    assert found is not None
    assert found.max_ulp == steps


@given(st.lists(st.integers(0, 2**16 - 1), min_size=1, max_size=20))
def test_bfloat16_is_read_as_torch_reads_it(words: list[int]) -> None:
    raw = np.array(words, "u2").tobytes()
    read = tensors.values("bfloat16", raw)
    wide = torch.frombuffer(bytearray(raw), dtype=torch.bfloat16).float().tolist()
    assert read is not None
    assert all(x == y or (math.isnan(y) and x != x) for x, y in zip(read, wide, strict=True))


def test_the_first_of_many_pieces_is_named_by_its_index() -> None:
    a = np.zeros((300, 50), "float32")
    b = a.copy()
    b[200, 7], b[299, 49] = 1, -3
    found = difference("float32", a.shape, a.tobytes(), b.tobytes())
    assert found is not None
    assert (found.mismatched, found.first.index) == (2, (200, 7))
    assert (found.max_abs, found.max_rel) == (3.0, 1.0)
    assert (found.first.values, found.first.bits) == (("0", "1"), ("0x00000000", "0x3f800000"))


def test_zeros_of_two_signs_differ_by_zero() -> None:
    found = difference("float64", (), np.float64(0).tobytes(), np.float64("-0.0").tobytes())
    assert found is not None
    assert (found.mismatched, found.max_abs, found.max_rel, found.max_ulp) == (1, 0.0, 0.0, 0)
    assert found.first.values == ("0", "-0")


def test_nans_of_different_bits_differ_and_have_no_distance() -> None:
    a = np.array([0x7FC00000, 0x3F800000], "u4")
    b = np.array([0x7FC00001, 0x3F800000], "u4")
    assert difference("float32", (2,), a.tobytes(), a.tobytes()) is None
    found = difference("float32", (2,), a.tobytes(), b.tobytes())
    assert found is not None
    assert (found.mismatched, found.nans, found.max_abs, found.max_ulp) == (1, 1, None, None)


def test_infinity_is_infinitely_far_away() -> None:
    a, b = np.array([np.inf, 1]), np.array([-np.inf, 1])
    found = difference("float64", (2,), a.tobytes(), b.tobytes())
    assert found is not None
    assert (found.max_abs, found.max_rel) == ("inf", "inf")


def test_complex_numbers_have_a_distance_but_no_ulp() -> None:
    a, b = np.array([1 + 1j, 3 + 4j]), np.array([1 + 1j, 0j])
    found = difference("complex128", (2,), a.tobytes(), b.tobytes())
    assert found is not None
    assert (found.max_abs, found.max_ulp) == (5.0, None)
    assert found.first.bits[0] == "0x4008000000000000 0x4010000000000000"


def test_of_an_unknown_type_the_bits_are_compared() -> None:
    found = difference("float8_e4m3fn", (3,), b"\1\2\3", b"\1\2\4")
    assert found is not None
    assert (found.mismatched, found.max_abs) == (1, None)
    assert (found.first.values, found.first.bits) == (("", ""), ("0x03", "0x04"))


def test_bytes_that_do_not_fill_the_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="do not make"):
        difference("float32", (3,), bytes(12), bytes(8))
    with pytest.raises(ValueError, match="do not make"):
        difference("float32", (3,), bytes(10), bytes(10))
    assert difference("float32", (0, 4), b"", b"") is None


def test_bytes_that_are_of_another_type_are_refused() -> None:
    with pytest.raises(ValueError, match="6 bytes do not make elements of 8 bytes"):
        difference("float64", (1,), b"123456", b"123457")


@given(pairs())
def test_each_element_that_differs_is_counted_once_by_its_distance_and_by_its_place(pair: tuple[str, Any, Any]) -> None:
    dtype, a, b = pair
    found = difference(dtype, a.shape, a.tobytes(), b.tobytes())
    if found is None:
        return
    assert list(found.slices) == (a.view(WORDS[dtype]) != b.view(WORDS[dtype])).astype(int).tolist()
    if found.max_ulp is None:
        assert found.ulps == ()
        return
    assert sum(found.ulps) == found.mismatched - found.nans
    assert len(found.ulps) == found.max_ulp.bit_length() + 1


def test_distances_of_all_lengths_are_counted() -> None:
    ranks = np.array([0, 1, 2, 3, 4, 2**32 - 1, 2**32, 2**53 - 1, 2**53 + 1, 2**62 - 1], "u8")
    with_zero = np.array([1 << 63, *ranks[1:]], "u8")  # zeros of both signs have a distance of 0
    found = difference("float64", (10,), np.zeros(10).tobytes(), with_zero.tobytes())
    assert found is not None
    expected = dict.fromkeys(range(63), 0) | {0: 1, 1: 1, 2: 2, 3: 1, 32: 1, 33: 1, 53: 1, 54: 1, 62: 1}
    assert dict(enumerate(found.ulps)) == expected


def test_places_are_counted_in_equal_parts_of_a_large_tensor() -> None:
    a = np.zeros(51_200, "f4")
    b = a.copy()
    b[:200], b[-1] = 1, 1
    found = difference("float32", (512, 100), a.tobytes(), b.tobytes())
    assert found is not None
    assert found.slices == (200, *(0,) * 254, 1)
