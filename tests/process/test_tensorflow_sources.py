"""Lines that make TensorFlow random are named: operations without a seed, pipelines without an order; and no others."""

from typing import Any

import pytest

from tests.process.conftest import Project

pytestmark = pytest.mark.slow

SCRIPT = """
import os, sys, time
import tensorflow as tf
style, *options = sys.argv[1:]
if "seeded" in options:
    tf.random.set_seed(1)
if "determinism" in options:
    tf.config.experimental.enable_op_determinism()

def noisy(x):
    scale = tf.cast(x, tf.float32)
    return scale + tf.random.uniform([])  # drawn

def late(x):
    time.sleep(os.urandom(1)[0] / 2550)
    return x

def shard(i):
    return tf.data.Dataset.range(i * 4, i * 4 + 4).map(delayed)

def unordered():
    options = tf.data.Options()
    options.deterministic = False
    return options

def delayed(x):
    return tf.ensure_shape(tf.numpy_function(late, [x], x.dtype), [])

data = tf.data.Dataset.range(16)
if style == "shuffle":
    data = data.shuffle(16, **({"seed": 3} if "of-its-own" in options else {}))  # shuffled
elif style == "files":
    data = tf.data.Dataset.list_files([f"{'x' * n}.txt" for n in range(1, 9)]).map(tf.strings.length)  # listed
elif style == "eager":
    data = tf.data.Dataset.from_tensor_slices(tf.random.normal([16]))  # normal
elif style == "map":
    data = data.map(noisy)
elif style == "parallel":
    calls = 1 if "sequential" in options else 4
    data = tf.data.Dataset.range(512).map(noisy, num_parallel_calls=calls)  # mapped
elif style == "interleave":
    fixed = None if "ordered" in options else False
    data = data.take(4).interleave(shard, cycle_length=4, num_parallel_calls=4, deterministic=fixed)  # interleaved
elif style == "options":
    data = data.map(delayed, num_parallel_calls=4).with_options(unordered())  # with options
elif style == "pure":
    data = data.map(lambda x: x + 1, num_parallel_calls=4).batch(4, num_parallel_calls=2).unbatch()
if "seeded-late" in options:
    tf.random.set_seed(1)

w = tf.Variable(0.0)
for x in data.map(lambda x: tf.cast(x, tf.float32)):
    with tf.GradientTape() as tape:
        loss = (w - x) ** 2
    w.assign_sub(0.01 * tape.gradient(loss, w))
if "noise" in options:
    w.assign_add(float(os.urandom(1)[0]) + os.getpid())
    with tf.GradientTape() as tape:
        loss = (w - 1.0) ** 2
    tape.gradient(loss, w)
"""


def line(mark: str) -> int:
    return next(n for n, text in enumerate(SCRIPT.splitlines(), 1) if text.endswith(f"# {mark}"))


def named(project: Project, *words: str, code: int, flags: tuple[str, ...] = ()) -> list[tuple[int, str, str]]:
    """Return the line, kind and call of each source."""
    project.write("train.py", SCRIPT)
    for number in range(1, 9):
        project.write(f"{'x' * number}.txt", "")
    done = project.run("train.py", "--runs", "2", *flags, "--", *words)
    assert done.code == code, done.out
    (group,) = done.json["groups"]
    found: list[dict[str, Any]] = group["sources"]
    assert group["runs"][0]["warnings"] == []
    return [(one["line"], one["kind"], one["call"].removeprefix("tensorflow.")) for one in found]


@pytest.mark.parametrize(
    ("words", "mark", "call"),
    [
        (("shuffle",), "shuffled", "data.Dataset.shuffle"),
        (("shuffle", "seeded-late"), "shuffled", "data.Dataset.shuffle"),
        (("files",), "listed", "data.Dataset.list_files"),
        (("eager",), "normal", "random.normal"),
        (("map",), "drawn", "random.uniform"),
        (("map", "seeded-late"), "drawn", "random.uniform"),
    ],
)
def test_what_has_no_seed(project: Project, words: tuple[str, ...], mark: str, call: str) -> None:
    assert named(project, *words, code=1) == [(line(mark), "unseeded", call)]


@pytest.mark.parametrize(
    ("words", "mark", "kind", "call"),
    [
        (("parallel", "seeded"), "mapped", "unordered-operation", "map(num_parallel_calls)"),
        (("interleave",), "interleaved", "completion-order-option", "interleave(deterministic=False)"),
        (("options",), "with options", "completion-order-option", "with_options(deterministic=False)"),
    ],
)
def test_what_has_no_order(project: Project, words: tuple[str, ...], mark: str, kind: str, call: str) -> None:
    found = named(project, *words, code=1)
    assert (line(mark), kind, f"data.Dataset.{call}") in found


@pytest.mark.parametrize(
    "words",
    [
        ("shuffle", "of-its-own"),
        ("shuffle", "seeded"),
        ("map", "seeded"),
        ("eager", "seeded"),
        ("parallel", "seeded", "sequential"),
        ("parallel", "seeded", "determinism"),
        ("interleave", "seeded", "ordered"),
        ("pure",),
    ],
)
def test_what_has_both_is_equal_and_not_named(project: Project, words: tuple[str, ...]) -> None:
    assert named(project, *words, code=0) == []
    if words[0] != "interleave":  # whose functions call Python, so that they may depend on their order
        others = named(project, *words, "noise", code=1)
        assert [one for one in others if "urandom" not in one[2]] == []


def test_what_a_flag_puts_in_order_is_not_named(project: Project) -> None:
    flags = ("--flag", "tensorflow-data-deterministic")
    assert named(project, "parallel", "seeded", code=0, flags=flags) == []
    others = named(project, "parallel", "seeded", "noise", code=1, flags=flags)
    assert [one for one in others if "urandom" not in one[2]] == []
