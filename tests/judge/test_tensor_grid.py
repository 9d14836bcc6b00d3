"""In which rows and columns elements differ."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.judge import tensors
from detaudit.judge.tensors import difference


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((), None),
        ((7,), None),
        ((1, 7), None),
        ((7, 1, 1), None),
        ((1088, 32), (1088, 32)),
        ((64, 3, 3, 3), (64, 27)),
        ((128, 64, 32), (128, 2048)),
        ((1, 12, 512, 64), (6144, 64)),
        ((2, 2), (2, 2)),
    ],
)
def test_a_tensor_is_a_matrix_of_its_first_dimensions_and_the_others(
    shape: tuple[int, ...], expected: tuple[int, int] | None
) -> None:
    assert tensors.sides(shape) == expected


@given(st.integers(2, 200), st.integers(2, 200), st.integers(0, 2**32 - 1))
def test_each_element_is_counted_in_the_part_of_its_row_and_its_column(rows: int, columns: int, seed: int) -> None:
    differs = np.random.default_rng(seed).random((rows, columns)) < 0.3
    differs[0, 0] = True
    found = difference(
        "float32", differs.shape, np.zeros(differs.shape, "f4").tobytes(), differs.astype("f4").tobytes()
    )
    assert found is not None
    assert found.grid is not None
    assert (found.grid.rows, found.grid.columns) == differs.shape
    high, wide = min(64, rows), min(64, columns)
    expected = np.zeros((high, wide), int)
    ys, xs = np.nonzero(differs)
    np.add.at(expected, (ys * high // rows, xs * wide // columns), 1)
    assert found.grid.counts == tuple(map(tuple, expected.tolist()))


def test_a_tensor_with_one_row_has_no_grid() -> None:
    found = difference("float32", (1, 3), bytes(12), b"\1" * 12)
    assert found is not None
    assert found.grid is None
