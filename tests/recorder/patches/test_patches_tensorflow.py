"""The patches of TensorFlow: the order of tf.data, and cross-entropy in basic operations."""

import datetime
import time
from collections.abc import Callable
from typing import Any

import pytest

from detaudit.recorder import patches
from detaudit.recorder.patches import PatchOptions
from detaudit.recorder.randomness import seeds, tensorflow

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # from TensorFlow and its dependencies
]


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow")


def calls_none(v: Any) -> Any:
    return v * 2


def branches(v: Any, tf: Any) -> Any:
    return tf.cond(v > 5, lambda: v + 1, lambda: v)


def test_functions_with_state_are_detected(tf: Any) -> None:
    def draws(v: Any) -> Any:
        return v + tf.random.uniform(())

    drawing = tf.function(draws)
    pure: list[Callable[[Any], Any]] = [
        calls_none,
        lambda v: branches(v, tf),
        lambda v: tf.data.Dataset.from_tensors(v).map(calls_none)._variant_tensor,
        lambda v: tf.while_loop(lambda i: i < 3, lambda i: i + 1, [v])[0],
    ]
    stateful: list[Callable[[Any], Any]] = [
        draws,
        lambda v: drawing(v),
        lambda v: tf.cond(v > 5, lambda: drawing(v), lambda: v),
        lambda v: tf.data.Dataset.from_tensors(v).map(draws)._variant_tensor,
        lambda v: tf.data.Dataset.from_tensors(v).shuffle(3)._variant_tensor,
        lambda v: tf.numpy_function(calls_none, [v], tf.float32),
    ]

    def are_stateful(functions: list[Callable[[Any], Any]]) -> list[bool]:
        spec = tf.TensorSpec((), tf.float32)
        traced = [tf.function(f, autograph=False).get_concrete_function(spec) for f in functions]
        return [tensorflow.is_stateful(function) for function in traced]

    assert are_stateful(pure) == [False] * len(pure)
    assert are_stateful(stateful) == [True] * len(stateful)
    assert tensorflow.is_stateful(None)  # unknown


def operations(tf: Any, dataset: Callable[[], Any]) -> dict[str, str]:
    """Return the operations of a dataset, each with its attribute ``deterministic``."""
    with tf.Graph().as_default() as graph:
        dataset()
        found = {}
        for operation in graph.get_operations():
            if "Dataset" in operation.type:
                known = "deterministic" in operation.node_def.attr
                found[operation.type] = operation.get_attr("deterministic").decode() if known else ""
    return found


def test_the_order_is_kept_and_random_functions_run_in_sequence(tf: Any) -> None:
    def rows(row: Any) -> Any:
        return tf.data.Dataset.from_tensor_slices(row)

    def dataset() -> Any:
        made = tf.data.Dataset.from_tensor_slices([[1.0, 2.0], [3.0, 4.0]])
        made = made.interleave(rows, cycle_length=2, num_parallel_calls=2, deterministic=False)
        made = made.map(calls_none, num_parallel_calls=2)
        made = made.map(lambda v: v + tf.random.normal(()), num_parallel_calls=2, deterministic=False)
        return made.batch(2, num_parallel_calls=2, deterministic=False)

    bare = operations(tf, dataset)
    assert bare["ParallelInterleaveDatasetV4"] == "false"
    undo = patches.apply("tensorflow-data-in-order", PatchOptions())
    try:
        patched = operations(tf, dataset)
        options = tf.data.Options()
        options.deterministic = False
        assert options._to_proto().deterministic
    finally:
        undo()
    assert patched == {
        "TensorSliceDataset": "",
        "ParallelInterleaveDatasetV4": "true",
        "ParallelMapDatasetV2": "true",
        "MapDataset": "",
        "ParallelBatchDataset": "true",
    }
    assert operations(tf, dataset) == bare
    assert not options._to_proto().deterministic


def test_plain_cross_entropy(tf: Any) -> None:
    logits = tf.Variable(tf.random.stateless_normal((6, 4), (0, 1)))
    labels = tf.constant([0, 1, 2, 3, 0, 1])
    soft = tf.nn.softmax(tf.random.stateless_normal((6, 4), (2, 3)))
    keras = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    compiled = tf.function(tf.nn.softmax_cross_entropy_with_logits, jit_compile=True)
    nested = tf.reshape(labels, (2, 3))
    losses: list[Callable[[], Any]] = [
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits),
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(nested, tf.reshape(logits, (2, 3, 4))),
        lambda: tf.nn.softmax_cross_entropy_with_logits(soft, logits),
        lambda: tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(labels, 4), logits),
        lambda: tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits),
        lambda: keras(labels, logits),
        lambda: compiled(soft, logits),
    ]

    def results() -> list[Any]:
        found = []
        for loss in losses:
            with tf.GradientTape() as tape:
                value = loss()
            found += [value.numpy(), tape.gradient(value, logits).numpy()]
        return found

    def kinds() -> set[str]:
        with tf.Graph().as_default() as graph:
            tf.nn.sparse_softmax_cross_entropy_with_logits([0], [[1.0, 2.0]])
            tf.nn.softmax_cross_entropy_with_logits([[1.0, 0.0]], [[1.0, float("-inf")]])
            return {operation.type for operation in graph.get_operations() if "CrossEntropy" in operation.type}

    before = results()
    assert len(kinds()) == 2
    undo = patches.apply("tensorflow-plain-cross-entropy", PatchOptions())
    try:
        after = results()
        assert not kinds()
        masked = tf.nn.softmax_cross_entropy_with_logits([[1.0, 0.0]], [[1.0, float("-inf")]])
        assert masked.numpy().tolist() == [0]
    finally:
        undo()
    assert len(kinds()) == 2
    for one, other in zip(before, after, strict=True):
        assert one.shape == other.shape
        assert one == pytest.approx(other, abs=1e-6)


def test_a_generator_from_a_nondeterministic_state_is_repeatable(tf: Any) -> None:
    def drawn() -> float:
        return float(tf.random.Generator.from_non_deterministic_state().normal(()))

    found = []
    for _ in range(2):
        undo = patches.apply("seed-tensorflow-generators", PatchOptions())
        found.append((drawn(), drawn()))
        undo()
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]
    assert drawn() != found[0][0]
    assert seeds.repeatable == set()


def test_autograph_calls_a_clock_that_counts_as_it_is(tf: Any) -> None:
    undo = patches.apply("count-clock", PatchOptions())
    try:

        @tf.function  # type: ignore[untyped-decorator]
        def timed(v: Any) -> Any:
            time.sleep(0.001)
            return v, time.time(), datetime.datetime.now().timestamp(), time.strftime("%Y", time.gmtime(0))

        _, seconds, now, year = timed(tf.constant(1.0))
        assert abs(float(seconds) - float(now)) < 86400
        assert year.numpy() == b"1970"
    finally:
        undo()
