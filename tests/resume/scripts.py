"""The labeled scripts: each loses one thing when it is resumed, and the controls lose nothing.

A script is a complete one without some of its lines. Those only save and restore, so that all scripts of a base train
the same as long as nobody stops them.
"""

from dataclasses import dataclass

from detaudit.model.resume import LostKind

TORCH = """\
import argparse, random
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()

torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
rng = np.random.default_rng(0)
order = torch.Generator()
order.manual_seed(0)
x = torch.randn(64, 8)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
average = torch.optim.swa_utils.AveragedModel(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.7)
scaler = torch.amp.GradScaler("cpu", init_scale=3.0, growth_factor=1.7, growth_interval=3)
first = 0
if args.resume:
    saved = torch.load("checkpoint.pt", weights_only=False)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    scheduler.load_state_dict(saved["scheduler"])
    scaler.load_state_dict(saved["scaler"])
    average.load_state_dict(saved["average"])
    torch.set_rng_state(saved["torch"])
    random.setstate(saved["python"])
    np.random.set_state(saved["numpy"])
    rng.bit_generator.state = saved["rng"]
    order.set_state(saved["order"])
    first = saved["epoch"]

for epoch in range(first, args.epochs):
    by_epoch = torch.randperm(4, generator=torch.Generator().manual_seed(epoch))
    batches = torch.randperm(64, generator=order).split(16)
    for batch in (batches[place] for place in by_epoch):
        scale = random.uniform(0.9, 1.1) + 0.01 * np.random.normal() + 0.01 * rng.normal()
        loss = F.mse_loss(model(x[batch] * scale), y[batch])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        average.update_parameters(model)
    scheduler.step()
    saved = {"epoch": epoch + 1}
    saved["model"] = model.state_dict()
    saved["optimizer"] = optimizer.state_dict()
    saved["scheduler"] = scheduler.state_dict()
    saved["scaler"] = scaler.state_dict()
    saved["average"] = average.state_dict()
    saved["torch"] = torch.get_rng_state()
    saved["python"] = random.getstate()
    saved["numpy"] = np.random.get_state()
    saved["rng"] = rng.bit_generator.state
    saved["order"] = order.get_state()
    torch.save(saved, "checkpoint.pt")
"""
"""A training in torch that saves all that it needs."""

STEPS = """\
import argparse
import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()

torch.manual_seed(0)
x = torch.randn(48, 8)
y = x.sum(1, keepdim=True)
torch.manual_seed(1)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
step, place = 0, 0
if args.resume:
    saved = torch.load("checkpoint.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    step = saved["done"]
    place = saved["place"]

while step < args.steps:
    batch = slice(8 * place, 8 * place + 8)
    rate = 0.01 / (1 + step // 4)
    for group in optimizer.param_groups:
        group["lr"] = rate
    loss = F.mse_loss(model(x[batch]), y[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step, place = step + 1, (place + 1) % 6
    if step % 5 == 0:
        torch.save(
            {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "done": step,
                "place": place,
            },
            "checkpoint.pt",
        )
"""
"""One that saves within its epochs, and sets its learning rate by hand."""

NUMPY = """\
import argparse
import numpy as np
import detaudit

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()

rng = np.random.default_rng(0)
start, weights, momentum = 0, np.zeros(8), np.zeros(8)
if args.resume:
    saved = np.load("checkpoint.npz", allow_pickle=True)
    start, weights = int(saved["done"]), saved["weights"]
    momentum = saved["momentum"]
    rng.bit_generator.state = saved["rng"].item()
for step in range(start, args.steps):
    gradient = weights - rng.normal(size=8)
    momentum = 0.9 * momentum + gradient
    weights = weights - 0.1 * momentum
    detaudit.record(loss=float(gradient @ gradient), weights=[weights])
    saved = {"done": step + 1, "weights": weights}
    saved["momentum"] = momentum
    saved["rng"] = np.array(rng.bit_generator.state)
    np.savez("checkpoint.npz", **saved)
"""
"""One without a framework."""

SKLEARN = """\
import argparse, pickle
import numpy as np
from sklearn.linear_model import SGDRegressor

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()

x = np.random.RandomState(0).normal(size=(64, 6))
y = x.sum(1)
order = np.random.RandomState(1)
model, start = SGDRegressor(random_state=0), 0
if args.resume:
    with open("checkpoint.pkl", "rb") as file:
        saved = pickle.load(file)
    model, start = saved["model"], saved["done"]
    order.set_state(saved["order"])
for step in range(start, args.steps):
    rows = order.permutation(64)[:16]
    model.partial_fit(x[rows], y[rows])
    saved = {"model": model, "done": step + 1}
    saved["order"] = order.get_state()
    with open("checkpoint.pkl", "wb") as file:
        pickle.dump(saved, file)
"""
"""One that fits an estimator part by part."""

KERAS = """\
import argparse, json
import numpy as np
import keras

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()

keras.utils.set_random_seed(0)
x = np.random.RandomState(0).normal(size=(32, 6)).astype("float32")
y = x.sum(1, keepdims=True)
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.Adam(0.02), loss="mse")
first = 0
if args.resume:
    model = keras.models.load_model("checkpoint.keras")
    first = json.load(open("done.json"))["epoch"]


class Save(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.save("checkpoint.keras")
        json.dump({"epoch": epoch + 1}, open("done.json", "w"))


rate = keras.callbacks.LearningRateScheduler(lambda epoch, lr: 0.02 * 0.5**epoch)
model.fit(x, y, batch_size=8, epochs=args.epochs, initial_epoch=first, shuffle=False, verbose=0,
          callbacks=[rate, Save()])
"""
"""One in Keras."""


@dataclass(frozen=True)
class Script:
    """A script: a base without lines, or with other ones, and what it loses; nothing if it is a control.

    A report must name one of ``lost``, and ``named`` in the names of its values. ``missing``: the checkpoint has
    nothing of the kind. ``needs``: a package that is not among those of the other tests.
    """

    name: str
    base: str
    lost: frozenset[LostKind] = frozenset()
    without: tuple[str, ...] = ()
    instead: tuple[tuple[str, str], ...] = ()
    named: str = ""
    missing: bool = False
    stop: str = "--epochs 3"
    needs: str = ""

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.name.replace('-', '_')}.py"

    @property
    def code(self) -> str:
        """The code of the script."""
        code = self.base
        for text in self.without:
            assert text in code, (self.name, text)
            code = "".join(line for line in code.splitlines(keepends=True) if text not in line)
        for old, new in self.instead:
            assert old in code, (self.name, old)
            code = code.replace(old, new)
        return code


def _torch(name: str, lost: LostKind, key: str, named: str, *, saved: bool = False) -> Script:
    """Return a script that does not restore what has a key in its checkpoint; nor is it ``saved``."""
    lines = (f'(saved["{key}"])',) if key != "rng" else ('.state = saved["rng"]',)
    return Script(
        name,
        TORCH,
        frozenset({lost}),
        without=lines if saved else (*lines, f'saved["{key}"] = '),
        named=named,
        missing=not saved and lost is not LostKind.GENERATOR,
    )


_BY_HAND = (
    'model.load_state_dict(saved["model"])',
    '[one.data.copy_(saved["model"][name]) for name, one in model.named_parameters()]',
)
_ALL_EPOCHS = ("range(first, args.epochs)", "range(args.epochs)")
_LEFT_EPOCHS = ("range(first, args.epochs)", "range(args.epochs - first)")
_ORDER = (("generator=order", "generator=torch.Generator().manual_seed(5)"),)
_ZEROED = (
    '    optimizer.load_state_dict(saved["optimizer"])\n',
    '    optimizer.load_state_dict(saved["optimizer"])\n'
    '    [one["exp_avg_sq"].zero_() for one in optimizer.state.values()]\n',
)

# fmt: off
SCRIPTS = (
    Script("torch-complete", TORCH),
    _torch("torch-generator", LostKind.GENERATOR, "torch", r"^torch$"),
    _torch("torch-generator-saved", LostKind.GENERATOR, "torch", r"^torch$", saved=True),
    _torch("python-generator", LostKind.GENERATOR, "python", r"^random$"),
    _torch("numpy-generator", LostKind.GENERATOR, "numpy", r"^numpy.random$"),
    _torch("own-numpy-generator", LostKind.GENERATOR, "rng", r"^rng$"),
    _torch("own-torch-generator", LostKind.GENERATOR, "order", r"^order$"),
    _torch("adam", LostKind.OPTIMIZER, "optimizer", r"exp_avg"),
    Script("adam-second-moment", TORCH, frozenset({LostKind.OPTIMIZER}), instead=(_ZEROED,), named="exp_avg_sq"),
    _torch("scheduler", LostKind.SCHEDULER, "scheduler", r"last_epoch"),
    _torch("scaler", LostKind.SCALER, "scaler", r"scale"),
    _torch("average", LostKind.OTHER_MODEL, "average", r"^average\."),
    _torch("weights", LostKind.WEIGHTS, "model", "", saved=True),
    Script("buffers", TORCH, frozenset({LostKind.BUFFERS}), instead=(_BY_HAND,), named="running_mean"),
    Script("all-epochs-again", TORCH, frozenset({LostKind.COUNTER}), instead=(_ALL_EPOCHS,)),
    Script("epoch-of-the-order", TORCH, frozenset({LostKind.DATA_ORDER}), instead=(_LEFT_EPOCHS,)),
    Script("steps-complete", STEPS, stop="--steps 10"),
    Script(
        "momentum",
        STEPS,
        frozenset({LostKind.OPTIMIZER}),
        ("optimizer.load_state", '"optimizer":'),
        named="momentum_buffer",
        missing=True,
        stop="--steps 10",
    ),
    Script(
        "place-in-the-epoch",
        STEPS,
        frozenset({LostKind.DATA_ORDER}),
        ('place = saved["place"]', '"place":'),
        stop="--steps 10",
    ),
    Script(
        "rate-by-hand",
        STEPS,
        frozenset({LostKind.LEARNING_RATE}),
        stop="--steps 10",
        instead=(('step = saved["done"]', 'step, args.steps = 0, args.steps - saved["done"]'),),
    ),
    Script(
        "steps-again", STEPS, frozenset({LostKind.COUNTER}), ('step = saved["done"]', '"done":'), stop="--steps 10"
    ),
    Script("numpy-complete", NUMPY, stop="--steps 10"),
    Script(
        "numpy-momentum",
        NUMPY,
        frozenset({LostKind.OPTIMIZER}),
        ('saved["momentum"]',),
        missing=True,
        stop="--steps 10",
    ),
    Script(
        "numpy-rng",
        NUMPY,
        frozenset({LostKind.GENERATOR}),
        ('saved["rng"]',),
        named=r"^rng$",
        missing=True,
        stop="--steps 10",
    ),
    Script("sklearn-complete", SKLEARN, stop="--steps 6"),
    Script(
        "sklearn-order",
        SKLEARN,
        frozenset({LostKind.GENERATOR}),
        ('saved["order"]',),
        named=r"^order$",
        stop="--steps 6",
    ),
    Script(
        "sklearn-t",
        SKLEARN,
        frozenset({LostKind.OPTIMIZER}),
        stop="--steps 6",
        instead=(
            ('start = saved["model"], saved["done"]', 'start = saved["model"], saved["done"]\n    model.t_ = 1.0'),
        ),
    ),
    Script("keras-complete", KERAS, stop="--epochs 2"),
    Script(
        "keras-adam",
        KERAS,
        frozenset({LostKind.OPTIMIZER}),
        named=r"^Adam: velocity of dense/kernel$",
        stop="--epochs 2",
        instead=(
            (
                'model = keras.models.load_model("checkpoint.keras")',
                'model.set_weights(keras.models.load_model("checkpoint.keras").get_weights())',
            ),
        ),
    ),
    Script(
        "keras-epoch",
        KERAS,
        frozenset({LostKind.LEARNING_RATE}),
        stop="--epochs 2",
        instead=(("epochs=args.epochs, initial_epoch=first", "epochs=args.epochs - first"),),
    ),
)
# fmt: on
