"""Scripts with one operation each, and what a replay of it must say."""

from dataclasses import dataclass
from textwrap import dedent

from detaudit.model import ModeEffect, Obstacle, ReplayVerdict

OPS = """
    import os
    import numpy as np
    import torch

    @torch.library.custom_op("planted::read_empty", mutates_args=())
    def read_empty(x: torch.Tensor) -> torch.Tensor:
        return x + torch.empty(x.shape).nan_to_num(0, 0, 0)

    @torch.library.custom_op("planted::read_numpy_empty", mutates_args=())
    def read_numpy_empty(x: torch.Tensor) -> torch.Tensor:
        return x + torch.from_numpy(np.nan_to_num(np.empty(x.shape, "f4")))

    @torch.library.custom_op("planted::unseeded", mutates_args=())
    def unseeded(x: torch.Tensor) -> torch.Tensor:
        return x + np.random.default_rng().random()

    @torch.library.custom_op("planted::process", mutates_args=())
    def process(x: torch.Tensor) -> torch.Tensor:
        return x + os.getpid()
"""
"""The module ``planted_ops`` beside each script."""

TORCH = """
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(4)
    x, to = torch.randn(100_000, 4), torch.randint(0, 500, (100_000,))
"""
TENSORFLOW = """
    import numpy as np
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(4)
    r = np.random.RandomState(0)
"""
CROP = """
    image = tf.constant(r.standard_normal((2, 64, 64, 16)).astype("f4"))
    boxes = tf.constant(np.sort(r.rand(256, 2, 2), axis=1).reshape(256, 4).astype("f4"))
    with tf.GradientTape() as tape:
        tape.watch(image)
        crops = tf.image.crop_and_resize(image, boxes, tf.constant(r.randint(0, 2, 256).astype("i4")), [14, 14])
        loss = tf.reduce_sum(crops * tf.constant(r.standard_normal(crops.shape).astype("f4")))
    tape.gradient(loss, image)
"""
SCATTER = """
    held = tf.Variable(np.zeros((200, 64), "f4"))
    rows = tf.constant(r.randint(0, 200, 100_000))
    values = tf.constant(r.standard_normal((100_000, 64)).astype("f4"))
    @tf.function
    def step(rows, values):
        held.scatter_sub(tf.IndexedSlices(values, rows))
        return tf.reduce_sum(held)
    step(rows, values)
"""


@dataclass(frozen=True)
class Case:
    """A script, the start of the name of its operation, and what it does by itself."""

    name: str
    body: str
    op: str
    verdict: ReplayVerdict | None = None
    mode: ModeEffect | None = None
    gradient: ReplayVerdict | None = None
    gradient_mode: ModeEffect | None = None
    obstacle: Obstacle | None = None
    framework: str = TORCH

    @property
    def answer(self) -> tuple[object, ...]:
        """What a replay must say."""
        return self.obstacle, self.verdict, self.mode, self.gradient, self.gradient_mode

    @property
    def script(self) -> str:
        """The whole script."""
        return dedent(self.framework) + dedent(self.body)


_V, _M = ReplayVerdict, ModeEffect
SAME, RACES = _V.DETERMINISTIC, _V.RACES

CASES = (
    Case(
        "index_put",
        "torch.zeros(500, 4).index_put_((to,), x, accumulate=True)",
        "aten.index_put_", RACES, _M.FIXES, SAME,
    ),
    Case("index_copy", "torch.zeros(500, 4).index_copy_(0, to, x)", "aten.index_copy_", RACES, _M.FIXES, SAME),
    Case("put", "torch.zeros(500).put_(to, x[:, 0].contiguous())", "aten.put_", RACES, _M.RAISES, SAME),
    Case(
        "index_backward",
        "t = torch.randn(500, 4, requires_grad=True); (t[to] * x).sum().backward()",
        "aten.index_put", RACES, _M.FIXES,
    ),
    Case("take", "torch.randn(500).take(to)", "aten.take", SAME, None, RACES, _M.FIXES),
    Case("mm", "x.T @ x", "aten.mm", SAME, None, SAME),
    Case("scatter_add", "torch.zeros(500).scatter_add_(0, to, x[:, 0].clone())", "aten.scatter_add_", SAME, None, SAME),
    Case("strided", "(x[::3, 1::2].t() * 2).sum()", "aten.mul", SAME, None, SAME),
    Case("shared", "y = x[:100]; y.add_(x[100:200])", "aten.add_", SAME, None, SAME),
    Case(
        "max_unpool",
        "p, i = torch.nn.functional.max_pool2d(torch.randn(4, 8, 32, 32), 2, return_indices=True)\n"
        "torch.nn.functional.max_unpool2d(p, i, 2)",
        "aten.max_unpool2d", SAME, _M.RAISES, SAME,
    ),
    Case("read_empty", "import planted_ops; planted_ops.read_empty(x)", "planted.read_empty", _V.MEMORY, _M.FIXES),
    Case(
        "read_numpy",
        "import planted_ops; planted_ops.read_numpy_empty(x)",
        "planted.read_numpy", _V.MEMORY, _M.NO_EFFECT,
    ),
    Case("unseeded", "import planted_ops; planted_ops.unseeded(x)", "planted.unseeded", _V.VARIES, _M.NO_EFFECT),
    Case("process", "import planted_ops; planted_ops.process(x)", "planted.process", _V.PER_PROCESS),
    Case(
        "of_the_script",
        "@torch.library.custom_op('mine::twice', mutates_args=())\n"
        "def twice(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n"
        "twice(x)",
        "mine.twice", obstacle=Obstacle.LIBRARY,
    ),
    Case("dropout", "torch.bernoulli(x.abs().clamp(max=1))", "aten.bernoulli", obstacle=Obstacle.RANDOM),
    Case("scatter_sub", SCATTER, "ResourceScatterSub", RACES, _M.FIXES, framework=TENSORFLOW),
    Case("crop", CROP, "CropAndResizeGradImage", RACES, _M.FIXES, framework=TENSORFLOW),
    Case(
        "empty",
        "tf.raw_ops.Empty(shape=[1000], dtype=tf.float32, init=False)",
        "Empty", _V.MEMORY, _M.NO_EFFECT, framework=TENSORFLOW,
    ),
    Case(
        "matmul",
        'tf.matmul(r.standard_normal((300, 300)).astype("f4"), r.standard_normal((300, 300)).astype("f4"))',
        "MatMul", SAME, None, SAME, framework=TENSORFLOW,
    ),
    Case(
        "py_function",
        "double = tf.function(lambda x: tf.numpy_function(lambda y: y * 2, [x], tf.float64))\n"
        "double(tf.constant(np.ones(9)))",
        "PyFunc", obstacle=Obstacle.LIBRARY, framework=TENSORFLOW,
    ),
)  # fmt: skip
