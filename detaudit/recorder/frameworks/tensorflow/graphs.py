"""Record inside TensorFlow's graphs: compute exact digests, and keep one row per step in a ring buffer.

This adds only operations that XLA supports. TensorFlow derives the seeds of random operations from a counter of its own
(framework/random_seed.py), so added operations shift no random stream.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import itertools
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any


RING = 1024
"""Steps of one call of a tf.function that the ring keeps; further steps overwrite the oldest."""

_WIDTH = 256
_GOLD = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX = 0xBF58476D1CE4E5B9 - (1 << 64)


def _int64(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little", signed=True)


class GraphDigest:
    """Digests tensors inside a graph like recorder/training/digest.py, by sums of words times odd keys modulo 2**64.

    The values differ from digests outside of graphs: rows of words are multiplied by keys, not mixed, and all tensors
    of one dtype are concatenated.
    """

    def __init__(self, tf: Any) -> None:
        self._tf = tf

    @functools.cached_property
    def _keys(self) -> Any:
        np: Any = importlib.import_module("numpy")
        return np.frombuffer(hashlib.shake_128(b"detaudit graph keys").digest(_WIDTH * 8), dtype="<i8") | np.int64(1)

    def of(self, tensors: Sequence[Any]) -> Any:
        """Return an int64 scalar that depends on every bit of the tensors, on their dtypes, shapes and order."""
        tf = self._tf
        parts: dict[Any, list[Any]] = {}
        for tensor in tensors:
            if not tensor.shape.is_fully_defined():
                parts.setdefault(tf.int64, []).append(tf.shape(tensor, out_type=tf.int64))
            flat = self._plain(tf.reshape(tensor, [-1]))
            parts.setdefault(flat.dtype, []).append(flat)
        total = tf.constant(_int64("|".join([f"{t.dtype.name}{t.shape}" for t in tensors]).encode()), tf.int64)
        for flats in parts.values():
            total = total * _GOLD + self._sum(self._words(flats))
        return total

    def _plain(self, flat: Any) -> Any:
        """Return the elements in a dtype whose bits can be read, also under XLA."""
        tf = self._tf
        if flat.dtype == tf.string:
            return tf.strings.to_hash_bucket_fast(flat, 2**63 - 1)
        if flat.dtype.is_complex:
            return tf.concat([tf.math.real(flat), tf.math.imag(flat)], 0)
        return tf.cast(flat, tf.uint8) if flat.dtype.is_bool else flat

    def _words(self, flats: list[Any]) -> Any:
        """Return the elements as rows of 64-bit words, the last row padded with zeros."""
        tf = self._tf
        ratio = 8 // flats[0].dtype.size
        sizes = [flat.shape[0] for flat in flats]
        known = None not in sizes
        rest = -(sum(sizes) if known else sum([tf.size(flat) for flat in flats])) % (_WIDTH * ratio)
        if not known or rest:
            flats = [*flats, tf.zeros([rest], flats[0].dtype)]
        flat = flats[0] if len(flats) == 1 else tf.concat(flats, 0)
        words = tf.bitcast(tf.reshape(flat, [-1, _WIDTH, ratio] if ratio > 1 else [-1, _WIDTH]), tf.uint64)
        # Without the fold, two flipped sign bits would cancel.
        words = tf.bitwise.bitwise_xor(words, tf.bitwise.right_shift(words, tf.constant(32, tf.uint64)))
        return tf.bitcast(words, tf.int64)

    def _sum(self, words: Any) -> Any:
        tf = self._tf
        rows = tf.reduce_sum(words * tf.constant(self._keys, tf.int64), 1)
        if rows.shape[0] == 1:
            return rows[0]
        key = tf.range(1, tf.size(rows, out_type=tf.int64) + 1, dtype=tf.int64) * _GOLD
        for shift in (32, 29):  # give neighboring rows unrelated keys
            key = tf.bitwise.bitwise_xor(key, tf.bitwise.right_shift(key, tf.constant(shift, tf.int64))) * _MIX
        return tf.reduce_sum(rows * tf.bitwise.bitwise_or(key, tf.constant(1, tf.int64)))


class Row(NamedTuple):
    """The record of one step, by its number. A digest is 0 if there was nothing to digest."""

    loss: Any
    losses: Any
    batch: Any
    gradients: Any
    number: Any


class _Ring:
    """The last steps on one device. With XLA, a function cannot use variables on another device."""

    def __init__(self, zeros: Callable[..., Any], read: Callable[[Any], Any]) -> None:
        self._read = read
        self.rows = zeros(RING, len(Row._fields))
        self.count = zeros()
        self.batch = zeros()
        self._seen = 0

    def new(self) -> tuple[int, list[Row]]:
        """Return the number of steps since the last call, and the rows of those that were not overwritten."""
        rows = self._read(self.rows)
        count, numbers = self._seen, rows[:, -1]
        while numbers[count % RING] == count + 1:
            count += 1
        if numbers[count % RING] > count:  # of a step that overwrote this one
            count = int(numbers.max())
        added = count - self._seen
        self._seen = count
        if added <= 0:
            return 0, []
        losses = rows[:, 0].view("f8")
        kept = [i % RING for i in range(count - min(added, RING), count)]
        return added, [Row(losses[i], *rows[i, 1:]) for i in kept]


class Rings:
    """Keeps the records of steps inside graphs, in variables of the recorder, one ring per device."""

    def __init__(self, tf: Any, read: Callable[[Any], Any]) -> None:
        self._tf, self._read = tf, read
        self._digest = GraphDigest(tf)
        self._control_flow: Any = importlib.import_module("tensorflow.python.ops.control_flow_util")
        self._context: Any = importlib.import_module("tensorflow.python.eager.context")
        self._record: Any = importlib.import_module("tensorflow.python.eager.record")
        self._variables: Any = importlib.import_module("tensorflow.python.ops.resource_variable_ops")
        self._rings: dict[str, _Ring] = {}
        self._loss_types: set[str] = set()

    @property
    def loss_type(self) -> str:
        """The type of the losses before they were converted; empty if graphs have different ones."""
        return next(iter(self._loss_types)) if len(self._loss_types) == 1 else ""

    @contextlib.contextmanager
    def _aside(self) -> Iterator[None]:
        """Keep added operations out of the user's tapes, and out of the numbering of the user's operations."""
        with self._record.stop_recording(), self._tf.name_scope("detaudit"):
            yield

    def _ring(self, device: str) -> _Ring:
        with self._tf.init_scope():
            device = device or str(self._context.context().device_name or "")
            if device not in self._rings:
                with self._tf.device(device or None):
                    self._rings[device] = _Ring(self._zeros, self._read)
        return self._rings[device]

    def _zeros(self, *shape: int) -> Any:
        # tf.Variable would be changed by a distribution strategy or a variable creator scope of the user.
        return self._variables.ResourceVariable(self._tf.zeros(shape, self._tf.int64), trainable=False)

    def inputs(self, tensors: Sequence[Any]) -> None:
        """Add operations to the graph under construction that keep a digest of the inputs of a model."""
        with self._aside():
            digest = self._digest.of(tensors)
            batch = self._ring(self._tf.constant(0).device).batch
            batch.assign(batch * _GOLD + digest)

    def write(self, losses: Sequence[Any], gradients: Sequence[Any]) -> None:
        """Add operations to the graph under construction that write a row whenever they run.

        Under XLA, gradients are left out: as outputs of a compiled loop they are fused otherwise, so that the last bits
        of the update change (seen with TensorFlow 2.21 on CPUs with AVX-512).
        """
        tf = self._tf
        if self._control_flow.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
            gradients = []
        with self._aside():
            none = tf.constant(0, tf.int64)
            ring = self._ring(none.device)
            loss = losses[-1]
            self._loss_types.add(loss.dtype.name)
            single = len(losses) == 1 and loss.shape.rank == 0
            loss = tf.cast(loss if loss.shape.rank == 0 else tf.reduce_sum(loss), tf.float64)
            row = Row(
                loss=tf.bitcast(loss, tf.int64),
                losses=none if single else self._digest.of(losses),
                batch=ring.batch.read_value(),
                gradients=self._digest.of(gradients) if gradients else none,
                number=ring.count.assign_add(1),
            )
            ring.batch.assign(none)
            index = tf.cast((row.number - 1) % RING, tf.int32)
            tf.raw_ops.ResourceScatterUpdate(resource=ring.rows.handle, indices=index, updates=tf.stack(row))

    def new(self) -> tuple[int, list[Row]]:
        """Return the number of steps since the last call, and the rows of those that were not overwritten.

        The rows of several devices alternate.
        """
        additions = [ring.new() for ring in self._rings.values()]
        turns = itertools.zip_longest(*[rows for _, rows in additions])
        return sum([added for added, _ in additions]), [row for turn in turns for row in turn if row is not None]

    def used_by(self, functions: Iterable[Any]) -> list[Any]:
        """Return the recorder's variables that these concrete functions use."""
        used = {id(capture) for function in functions for capture, _ in function.graph.captures}
        own = [variable for ring in self._rings.values() for variable in (ring.rows, ring.count, ring.batch)]
        return [variable for variable in own if id(variable.handle) in used]
