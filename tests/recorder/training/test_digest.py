"""The digest changes with every bit, and is the same in NumPy and torch."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from detaudit.recorder.training.digest import CHUNK, SMALL, NumpyDigest, TorchDigest, of_parts

NUMPY, TORCH = NumpyDigest(np), TorchDigest(torch)

SIZES = [
    0,
    1,
    7,
    8,
    SMALL - 1,
    SMALL,
    SMALL + 1,
    SMALL + 7,
    SMALL + 8,
    8 * CHUNK - 1,
    8 * CHUNK,
    8 * CHUNK + 5,
    24 * CHUNK + 8,
]


def some_bytes(size: int) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    return np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)


@pytest.mark.parametrize("size", SIZES)
def test_numpy_and_torch_match(size: int) -> None:
    data = some_bytes(size)
    assert NUMPY.words(data) == TORCH.words([torch.from_numpy(data)])[0]


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.bool, torch.complex64]
)
def test_every_dtype_is_read_as_its_bytes(dtype: torch.dtype) -> None:
    tensor = (torch.arange(1000) % 7).to(dtype)
    assert TORCH.words([tensor])[0] == NUMPY.words(tensor.view(torch.uint8).numpy())


def test_a_view_that_starts_inside_a_word() -> None:
    data = torch.arange(100, dtype=torch.float32)
    assert len(set(TORCH.words([data[1:], data[1:].clone()]))) == 1
    assert TORCH.words([data[1:]])[0] == NUMPY.words(data[1:].numpy())


LONG = bytes(range(256)) * (SMALL // 256)
"""Put before the bytes under test, this makes a tensor long enough for the arithmetic digest."""


@settings(max_examples=300)
@given(st.binary(min_size=1, max_size=200), st.sampled_from([b"", LONG]), st.data())
def test_any_flipped_bit_changes_the_digest(data: bytes, before: bytes, draw: st.DataObject) -> None:
    data = before + data
    bit = draw.draw(st.integers(0, len(data) * 8 - 1))
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    assert NUMPY.words(np.frombuffer(data, np.uint8)) != NUMPY.words(np.frombuffer(bytes(changed), np.uint8))


floats = st.lists(st.floats(width=32, allow_nan=False), min_size=2, max_size=60)


@settings(max_examples=300)
@given(floats, st.sampled_from([0, SMALL]), st.data())
def test_any_swap_changes_the_digest(values: list[float], ones: int, draw: st.DataObject) -> None:
    array = np.array([*values, *[1.0] * ones], np.float32)
    i, j = draw.draw(st.tuples(*[st.integers(0, len(values) - 1)] * 2))
    swapped = array.copy()
    swapped[[i, j]] = swapped[[j, i]]
    assert (NUMPY.words(array) == NUMPY.words(swapped)) == (array.tobytes() == swapped.tobytes())


@settings(max_examples=300)
@given(floats, st.sampled_from([0, SMALL]), st.data())
def test_any_two_flipped_signs_change_the_digest(values: list[float], ones: int, draw: st.DataObject) -> None:
    array = np.array([*values, *[1.0] * ones], np.float32)
    pair = draw.draw(st.lists(st.integers(0, len(values) - 1), min_size=2, max_size=2, unique=True))
    flipped = array.copy()
    flipped[pair] = -flipped[pair]
    assert NUMPY.words(array) != NUMPY.words(flipped)


def test_two_flipped_signs_in_every_pair_of_places_of_a_long_row() -> None:
    words = np.zeros(600, np.uint64)  # long enough for the arithmetic digest
    seen = {NUMPY.words(words)}
    for i in range(400):
        for j in range(i):
            flipped = words.copy()
            flipped[[i, j]] ^= np.uint64(1 << 63)
            seen.add(NUMPY.words(flipped))
    assert len(seen) == 1 + 400 * 399 // 2


def test_zero_has_a_sign_and_nan_a_payload() -> None:
    assert NUMPY.words(np.array([0.0])) != NUMPY.words(np.array([-0.0]))
    payload = np.array([np.nan]).view(np.uint64) + np.uint64(1)
    assert NUMPY.words(np.array([np.nan])) != NUMPY.words(payload.view(np.float64))


def test_the_length_of_zeros_changes_the_digest() -> None:
    sizes = [*range(40), *range(SMALL - 20, SMALL + 20)]
    assert len({NUMPY.words(np.zeros(n, np.uint8)) for n in sizes}) == 80


def test_name_type_and_shape_change_the_digest() -> None:
    parts = [
        ("a", "float32", (2, 3), 5),
        ("b", "float32", (2, 3), 5),
        ("a", "float16", (2, 3), 5),
        ("a", "float32", (3, 2), 5),
    ]
    assert len({of_parts([part]) for part in parts}) == 4
    assert of_parts(parts[:2]) != of_parts(parts[1::-1])


def test_sums_match() -> None:
    array = np.random.default_rng(0).normal(size=200_000).astype(np.float32)
    assert NUMPY.total(array) == pytest.approx(math.fsum(array.tolist()), rel=1e-12)
    assert TORCH.total(torch.from_numpy(array)) == pytest.approx(math.fsum(array.tolist()), rel=1e-12)
    assert NUMPY.total(np.array([np.inf, 1.0])) == np.inf
    assert math.isnan(NUMPY.total(np.array([np.inf, -np.inf])))
    assert TORCH.total(torch.empty(0)) == 0.0
