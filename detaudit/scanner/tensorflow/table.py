"""The operations of TensorFlow that are repeated, and their inputs.

It has what NVIDIA's status list names (github.com/NVIDIA/framework-reproducibility, doc/d9m/tensorflow_status.md), what
raced on a CPU, and a few others that should match. Inputs are large enough for several threads, and each index occurs
many times.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    Input: TypeAlias = tuple[Any, ...]
    """``(kind, shape, ...)``; see ``made``."""

    Row: TypeAlias = tuple[Sequence[Input], Callable[..., Any]]


def made(np: Any, random: Any, spec: Input) -> Any:
    """Return an array of a kind: ``index`` and ``sorted`` are below the third element of ``spec``."""
    kind, shape, *more = spec
    if kind == "float":
        return random.standard_normal(shape)
    if kind == "positive":
        return random.random(shape) + 0.1
    if kind == "index":
        return random.integers(0, more[0], shape, dtype=np.int32)
    if kind == "sorted":
        return np.sort(random.integers(0, more[0], shape, dtype=np.int32))
    if kind == "one-hot":
        return np.eye(shape[1])[random.integers(0, shape[1], shape[0])]
    corners = np.sort(random.random((shape[0], 2, 2)), axis=1)
    return corners.reshape(shape[0], 4).astype(np.float32)


_IMAGES = ("float", (4, 64, 64, 8))
_SCATTERED = (("float", (1000, 8)), ("index", (40000, 1), 1000), ("float", (40000, 8)))
_SEGMENTS = (("float", (100000, 4)), ("index", (100000,), 100))
_SORTED = (("float", (100000, 4)), ("sorted", (100000,), 100))
_VOLUME = ("float", (2, 16, 32, 32, 4))


def rows(tf: Any) -> dict[str, Row]:
    """Return inputs and function of each operation by its name, as in code after ``tf.``."""
    return {**_layers(tf), **_losses(tf), **_indexed(tf), **_images(tf), **_others(tf)}


def _layers(tf: Any) -> dict[str, Row]:
    nn = tf.nn
    image, same, ratio = _IMAGES, "SAME", [1.0, 1.5, 1.5, 1.0]
    return {
        "nn.bias_add": ((image, ("float", (8,))), nn.bias_add),
        "nn.conv1d": ((("float", (8, 4096, 8)), ("float", (5, 8, 8))), lambda x, w: nn.conv1d(x, w, 1, same)),
        "nn.conv2d": ((image, ("float", (3, 3, 8, 8))), lambda x, w: nn.conv2d(x, w, 1, same)),
        "nn.conv3d": ((_VOLUME, ("float", (3, 3, 3, 4, 4))), lambda x, w: nn.conv3d(x, w, [1] * 5, same)),
        "nn.conv2d_transpose": (
            (image, ("float", (3, 3, 8, 8))),
            lambda x, w: nn.conv2d_transpose(x, w, [4, 128, 128, 8], 2, same),
        ),
        "nn.depthwise_conv2d": (
            (image, ("float", (3, 3, 8, 2))),
            lambda x, w: nn.depthwise_conv2d(x, w, [1] * 4, same),
        ),
        "nn.separable_conv2d": (
            (image, ("float", (3, 3, 8, 1)), ("float", (1, 1, 8, 8))),
            lambda x, d, p: nn.separable_conv2d(x, d, p, [1] * 4, same),
        ),
        "nn.dilation2d": (
            (image, ("float", (3, 3, 8))),
            lambda x, w: nn.dilation2d(x, w, [1] * 4, same, "NHWC", [1] * 4),
        ),
        "nn.max_pool2d": ((image,), lambda x: nn.max_pool2d(x, 3, 2, same)),
        "nn.max_pool3d": ((_VOLUME,), lambda x: nn.max_pool3d(x, 3, 2, same)),
        "nn.max_pool_with_argmax": ((image,), lambda x: nn.max_pool_with_argmax(x, 3, 2, same)[0]),
        "nn.avg_pool2d": ((image,), lambda x: nn.avg_pool2d(x, 3, 2, same)),
        "nn.avg_pool3d": ((_VOLUME,), lambda x: nn.avg_pool3d(x, 3, 2, same)),
        "nn.fractional_max_pool": ((image,), lambda x: nn.fractional_max_pool(x, ratio, seed=1)[0]),
        "nn.fractional_avg_pool": ((image,), lambda x: nn.fractional_avg_pool(x, ratio, seed=1)[0]),
        "nn.fused_batch_norm": (
            (image, ("positive", (8,)), ("float", (8,))),
            lambda x, s, o: tf.compat.v1.nn.fused_batch_norm(x, s, o)[0],
        ),
        "nn.local_response_normalization": ((image,), lambda x: nn.local_response_normalization(x)),
        "nn.softmax": ((("float", (1024, 1000)),), nn.softmax),
        "nn.dropout": ((image,), lambda x: nn.dropout(x, 0.5, seed=1)),
    }


def _losses(tf: Any) -> dict[str, Row]:
    nn = tf.nn
    logits = ("float", (1024, 1000))
    return {
        "nn.softmax_cross_entropy_with_logits": (
            (logits, ("one-hot", (1024, 1000))),
            lambda x, y: nn.softmax_cross_entropy_with_logits(y, x),
        ),
        "nn.sparse_softmax_cross_entropy_with_logits": (
            (logits, ("index", (1024,), 1000)),
            lambda x, y: nn.sparse_softmax_cross_entropy_with_logits(y, x),
        ),
        "nn.sigmoid_cross_entropy_with_logits": (
            (logits, ("one-hot", (1024, 1000))),
            lambda x, y: nn.sigmoid_cross_entropy_with_logits(y, x),
        ),
        "nn.ctc_loss": (
            (("float", (64, 32, 16)), ("index", (32, 12), 15)),
            lambda x, y: nn.ctc_loss(y, x, [12] * 32, [64] * 32, blank_index=15),
        ),
        "nn.l2_loss": ((_IMAGES,), nn.l2_loss),
    }


def _indexed(tf: Any) -> dict[str, Row]:
    math = tf.math

    def of_variable(name: str) -> Callable[..., Any]:
        def scatter(x: Any, index: Any, values: Any) -> Any:
            variable = tf.Variable(x)
            getattr(variable, name)(tf.IndexedSlices(values, index[:, 0]))
            return variable.read_value()

        return scatter

    segments = {
        "math.unsorted_segment_%s" % name: (_SEGMENTS, _unsorted(getattr(math, "unsorted_segment_" + name)))
        for name in ("sum", "mean", "prod", "max", "min", "sqrt_n")
    }
    ordered = {
        "math.segment_%s" % name: (_SORTED, getattr(math, "segment_" + name))
        for name in ("sum", "mean", "prod", "max", "min")
    }
    variables = {
        "Variable.scatter_%s" % name: (_SCATTERED, of_variable("scatter_" + name))
        for name in ("add", "sub", "update", "max", "min", "mul", "div")
    }
    tensors = {
        "tensor_scatter_nd_%s" % name: (_SCATTERED, getattr(tf, "tensor_scatter_nd_" + name))
        for name in ("add", "sub", "update", "max", "min")
    }
    table, index = ("float", (1000, 8)), ("index", (40000,), 1000)
    return {
        **segments,
        **ordered,
        **variables,
        **tensors,
        "scatter_nd": (_SCATTERED[1:], lambda i, v: tf.scatter_nd(i, v, [1000, 8])),
        "gather": ((table, index), lambda x, i: tf.gather(x, i)),
        "gather_nd": ((table, _SCATTERED[1]), tf.gather_nd),
        "nn.embedding_lookup": ((table, index), tf.nn.embedding_lookup),
        "nn.embedding_lookup_sparse": ((table, index), lambda x, i: _sparse_lookup(tf, x, i)),
        "repeat": ((("float", (1000, 8)),), lambda x: tf.repeat(x, 40, axis=0)),
        "math.bincount": (
            (("index", (200000,), 50), ("positive", (200000,))),
            lambda i, w: math.bincount(i, weights=w, minlength=50, maxlength=50),
        ),
        "histogram_fixed_width": ((("float", (200000,)),), lambda x: tf.histogram_fixed_width(x, [-3.0, 3.0])),
        "dynamic_partition": (_SEGMENTS, lambda x, i: tf.dynamic_partition(x, i % 4, 4)),
    }


def _unsorted(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, index: function(x, index, 100)


def _sparse_lookup(tf: Any, table: Any, index: Any) -> Any:
    rows = tf.repeat(tf.range(4000, dtype=tf.int64), 10)
    places = tf.stack([rows, tf.tile(tf.range(10, dtype=tf.int64), [4000])], 1)
    ids = tf.sparse.SparseTensor(places, tf.cast(index, tf.int64), [4000, 10])
    return tf.nn.safe_embedding_lookup_sparse(table, ids)


def _images(tf: Any) -> dict[str, Row]:
    image = tf.image
    resized = {
        "image.resize.%s" % method: ((_IMAGES,), _resize(image, method))
        for method in ("bilinear", "nearest", "bicubic")
    }
    return {
        **resized,
        "image.crop_and_resize": (
            (_IMAGES, ("boxes", (256,)), ("index", (256,), 4)),
            lambda x, boxes, of: image.crop_and_resize(x, boxes, of, [24, 24]),
        ),
        "image.adjust_contrast": ((("float", (8, 128, 128, 3)),), lambda x: image.adjust_contrast(x, 2.0)),
        "image.extract_patches": (
            (_IMAGES,),
            lambda x: image.extract_patches(x, [1, 3, 3, 1], [1] * 4, [1] * 4, "SAME"),
        ),
        "image.stateless_sample_distorted_bounding_box": (
            (("boxes", (1,)),),
            lambda b: image.stateless_sample_distorted_bounding_box([64, 64, 3], b[None], (1, 2))[0],
        ),
    }


def _resize(image: Any, method: str) -> Callable[..., Any]:
    return lambda x: image.resize(x, [100, 100], method)


def _others(tf: Any) -> dict[str, Row]:
    quantization, matrix = tf.quantization, ("float", (512, 512))
    return {
        "matmul": ((matrix, matrix), tf.matmul),
        "einsum": ((("float", (8, 128, 64)), ("float", (8, 64, 128))), lambda a, b: tf.einsum("bij,bjk->bik", a, b)),
        "reduce_sum": ((("float", (1000, 1000)),), tf.reduce_sum),
        "reduce_mean": ((("float", (1000, 1000)),), lambda x: tf.reduce_mean(x, 0)),
        "math.cumsum": ((("float", (1000, 1000)),), lambda x: tf.cumsum(x, 1)),
        "math.cumprod": ((("float", (1000, 100)),), lambda x: tf.math.cumprod(x, 1)),
        "sort": ((("float", (1000, 1000)),), tf.sort),
        "math.top_k": ((("float", (1000, 1000)),), lambda x: tf.math.top_k(x, 5)[0]),
        "linalg.svd": ((("float", (64, 16, 16)),), lambda x: tf.linalg.svd(x)[0]),
        "linalg.solve": ((("float", (64, 16, 16)), ("float", (64, 16, 4))), tf.linalg.solve),
        "sparse.sparse_dense_matmul": (
            (("float", (40000,)), ("index", (40000,), 1000), ("float", (1000, 64))),
            lambda values, column, dense: _sparse_matmul(tf, values, column, dense),
        ),
        "quantization.fake_quant_with_min_max_vars": (
            (_IMAGES,),
            lambda x: quantization.fake_quant_with_min_max_vars(x, -2.0, 2.0),
        ),
        "quantization.fake_quant_with_min_max_vars_per_channel": (
            (_IMAGES, ("positive", (8,))),
            lambda x, most: quantization.fake_quant_with_min_max_vars_per_channel(x, -most, most),
        ),
        "random.stateless_normal": ((("index", (2,), 9),), lambda seed: tf.random.stateless_normal([300, 300], seed)),
        "raw_ops.Empty": ((("index", (2,), 300),), lambda shape: tf.raw_ops.Empty(shape=shape + 100, dtype=tf.float32)),
    }


def _sparse_matmul(tf: Any, values: Any, column: Any, dense: Any) -> Any:
    rows = tf.range(40000, dtype=tf.int64) // 40
    places = tf.stack([rows, tf.cast(column, tf.int64)], 1)
    return tf.sparse.sparse_dense_matmul(tf.sparse.SparseTensor(places, values, [1000, 1000]), dense)
