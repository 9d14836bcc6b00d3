"""The digest changes with every bit, and is the same in NumPy and torch."""

import functools
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from detaudit.recorder.training import digest
from detaudit.recorder.training.digest import CHUNK, SMALL, NumpyDigest, TorchDigest, of_bytes, of_parts

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
    ("size", "expected"),
    [
        (0, 0xB4B2797457A0A6E4),
        (1, 0x4882EAD1CDD9F694),
        (SMALL, 0xD7C0A298F81E63DD),
        (SMALL + 8, 0xF785BB01FDD25E83),
        (SMALL + 13, 0x9D1BF6001F6BC227),
        (8 * CHUNK + 5, 0xCF958149357A4F2D),
        (24 * CHUNK + 8, 0xFEDF12A8A04233BA),
    ],
)
def test_a_baseline_of_an_older_version_has_the_same_digests(
    size: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "_keys", b"")
    data = (np.arange(size) * 7 % 251).astype(np.uint8)
    assert NumpyDigest(np).words(data) == expected
    assert TorchDigest(torch).words([torch.from_numpy(data)]) == [expected]


def test_the_digests_of_names_are_those_of_an_older_version_too() -> None:
    assert of_bytes(b"abc") == "cf4ab791c62b8d2b2109c90275287816"
    parts = [("w", "float32", (2, 3), 5), ("b", "float32", (3,), 2**64 - 1)]
    assert of_parts(parts) == "cb518f96f8ea467b3f612ada292850e8"


def test_tensors_are_digested_together_as_alone() -> None:
    tensors = [torch.from_numpy(some_bytes(size)) for size in (SMALL + 9, 3, 0, 8 * CHUNK + 5, SMALL, SMALL + 16)]
    assert TORCH.words(tensors) == [TORCH.words([tensor])[0] for tensor in tensors]
    assert TORCH.words([]) == []


@pytest.mark.parametrize(("device", "blocks"), [("cpu", 300), ("meta", 2)])
def test_only_on_a_device_are_many_chunks_added_at_once(device: str, blocks: int) -> None:
    """Two chunks fit into the cache of a core, while a device is faster with more of them."""
    sizes: list[int] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(torch, name)

        def cat(self, pieces: list[torch.Tensor]) -> torch.Tensor:
            sizes.append(len(pieces))
            return torch.cat(pieces)

    computed = TorchDigest(Counting())  # type: ignore[arg-type]
    sums = computed._sums(torch.zeros(600 * CHUNK * 8, dtype=torch.uint8, device=device))
    assert {keys.device.type for keys in computed._keys.values()} == {device}
    assert sizes == [blocks]
    assert (sums.shape, sums.device.type) == ((600,), device)


def test_arrays_are_digested_in_c_order() -> None:
    array = np.arange(2000, dtype=np.float64).reshape(40, 50)
    assert NUMPY.words(array.T) == NUMPY.words(np.ascontiguousarray(array.T)) != NUMPY.words(array)
    assert NUMPY.words(np.float64(2)) == NUMPY.words(np.array([2.0]))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.bool, torch.complex64]
)
def test_every_dtype_is_read_as_its_bytes(dtype: torch.dtype) -> None:
    tensor = (torch.arange(1000) % 7).to(dtype)
    assert TORCH.words([tensor])[0] == NUMPY.words(tensor.view(torch.uint8).numpy())


@pytest.mark.parametrize("size", [100, SMALL])
@pytest.mark.parametrize("start", [1, 2, 9])
def test_a_view_that_starts_inside_a_word(size: int, start: int) -> None:
    data = torch.arange(size, dtype=torch.float32)[start:]
    assert len(set(TORCH.words([data, data.clone()]))) == 1
    assert TORCH.words([data])[0] == NUMPY.words(data.numpy())


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


def test_sums_are_exact_where_float64_is() -> None:
    for array in (np.arange(300_000), np.full(200_000, 2.0**-20, np.float32), np.ones(5, bool), np.zeros(0)):
        assert NUMPY.total(array) == TORCH.total(torch.from_numpy(array)) == float(array.astype(np.float64).sum())


def test_of_complex_numbers_the_real_parts_are_added() -> None:
    array = np.array([[1 + 2j, 3 - 5j], [0.5 + 1j, 0]])
    assert NUMPY.total(array) == TORCH.total(torch.from_numpy(array)) == 4.5


def test_numbers_of_a_type_that_numpy_lacks_are_added() -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    assert np.dtype(bfloat16).kind == "V"
    assert NUMPY.total(np.array([1.5, 2.0], bfloat16)) == 3.5


def test_what_is_no_number_has_no_sum() -> None:
    for array in (np.array(["1", "2"]), np.array([b"1"]), np.array([1, 2], "m8[s]"), np.array([3], object)):
        assert NUMPY.total(array) == 0.0


def test_a_sum_that_overflows_warns_nobody() -> None:
    big = np.full(3, np.finfo(np.float64).max)
    assert NUMPY.total(big) == np.inf
    assert math.isnan(NUMPY.total(np.array([np.inf, -np.inf])))


def test_torch_adds_chunks_of_a_fixed_size() -> None:
    """Otherwise the last digit of a sum may depend on its size."""
    sizes: list[int] = []

    class Sums:
        """A tensor that reports the sizes of the parts that are added."""

        def __init__(self, size: int) -> None:
            self.size = size

        def reshape(self, _shape: int) -> "Sums":
            return self

        def is_complex(self) -> bool:
            return False

        def numel(self) -> int:
            return self.size

        def __getitem__(self, part: slice) -> "Sums":
            return Sums(len(range(*part.indices(self.size))))

        def double(self) -> "Sums":
            return self

        def sum(self) -> torch.Tensor:
            sizes.append(self.size)
            return torch.tensor(float(self.size), dtype=torch.float64)

    assert TORCH.total(Sums(4 * CHUNK + 3)) == 4 * CHUNK + 3
    assert sizes == [4 * CHUNK, 3]


def test_numpy_adds_chunks_of_the_same_size() -> None:
    sizes: list[int] = []

    class Counting:
        """NumPy that reports the sizes of the parts that are added."""

        def __getattr__(self, name: str) -> Any:
            return self if name == "add" else getattr(np, name)

        def reduce(self, part: Any) -> float:
            sizes.append(len(part))
            return float(np.add.reduce(part))

    assert NumpyDigest(Counting()).total(np.ones(4 * CHUNK + 3)) == 4 * CHUNK + 3  # type: ignore[arg-type]
    assert sizes == [4 * CHUNK, 3]


def test_torch_digests_the_same_inside_and_outside_of_inference() -> None:
    fresh, data = TorchDigest(torch), torch.arange(5 * CHUNK)
    with torch.inference_mode():
        assert fresh.words([data]) == TORCH.words([data])
    assert fresh.words([data]) == TORCH.words([data])


class Interrupted:
    """A library, in the middle of whose shifts a signal handler or a destructor digests something else."""

    def __init__(self, library: ModuleType, digest_others: Callable[[int], object]) -> None:
        self.library, self.digest_others = library, digest_others
        self.depth = 0

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.library, name)
        return functools.partial(self.shift, function) if name.endswith("right_shift") else function

    def shift(self, function: Callable[..., object], *args: Any, **kwargs: Any) -> None:
        function(*args, **kwargs)
        if self.depth < 3:
            self.depth += 1
            self.digest_others(1 << self.depth)
            self.depth -= 1


def test_a_digest_may_be_interrupted_by_others() -> None:
    data = np.arange(3 * CHUNK, dtype=np.uint64)
    numpy: Any = Interrupted(np, lambda value: of_numpy.words(np.full(2 * CHUNK, value, dtype=np.uint64)))
    of_numpy = NumpyDigest(numpy)
    assert of_numpy.words(data) == NUMPY.words(data)
    in_torch: Any = Interrupted(torch, lambda value: of_torch.words([torch.full((2 * CHUNK,), value)]))
    of_torch = TorchDigest(in_torch)
    assert of_torch.words([torch.from_numpy(data.view(np.int64))]) == [NUMPY.words(data)]
