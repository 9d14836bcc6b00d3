"""numba recognizes the functions of global generators that it compiles, and the draws of a script have a line."""

import pytest

from tests.process.conftest import Project

pytestmark = pytest.mark.ecosystem

COMPILED = """
import random
import numba
import numpy as np
from numpy.random import normal
from sklearn.linear_model import LogisticRegression

@numba.njit
def seeded(seed):
    np.random.seed(seed)
    random.seed(seed)
    numbers = np.arange(5)
    np.random.shuffle(numbers)
    drawn = normal() + np.random.rand() + np.random.randint(0, 4) + random.random() + random.gauss(0, 1)
    return drawn + numbers[0] + np.random.choice(numbers, 3)[0] + np.random.standard_normal(3)[0]

@numba.njit(parallel=True)
def in_threads(count):  # numba seeds the generator of each thread from the system's entropy
    numbers = np.zeros(count)
    for i in numba.prange(count):
        numbers[i] = np.random.rand()
    return numbers.sum()

before = seeded(3), seeded(4)
x = np.random.normal(size=(50, 3))
assert before == (seeded(3), seeded(4)) and 0 < in_threads(8) < 8
LogisticRegression().fit(x, x[:, 0] > 0)
"""


def test_numba_draws_as_without_the_recorder(project: Project) -> None:
    pytest.importorskip("numba")
    project.write("train.py", COMPILED)
    done = project.run("train.py", "--runs", "2")
    assert done.code == 1, done.out + done.err
    (group,) = done.json["groups"]
    assert [run["exit_code"] for run in group["runs"]] == [0, 0]
    named = group["sources"][0]
    assert COMPILED.splitlines()[named["line"] - 1] == "x = np.random.normal(size=(50, 3))"
    assert named["call"] == "numpy.random.normal"
