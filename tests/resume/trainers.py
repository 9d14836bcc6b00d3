"""Labeled scripts of accelerate, Lightning, transformers and JAX, whose checkpoints lose one thing, and controls."""

from detaudit.model.resume import LostKind
from tests.resume.scripts import Script

ACCELERATE = """\
import argparse
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()

torch.manual_seed(0)
x = torch.randn(64, 8)
accelerator = Accelerator(cpu=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.7)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
accelerator.register_for_checkpointing(scheduler)
first = 0
if args.resume:
    accelerator.load_state("state")
    first = torch.load("epoch.pt")["epoch"]

for epoch in range(first, args.epochs):
    for inputs, targets in loader:
        loss = F.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
    accelerator.save_state("state")
    torch.save({"epoch": epoch + 1}, "epoch.pt")
"""
"""One with a state that accelerate saves."""

LIGHTNING = """\
import argparse
import lightning
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))

    def training_step(self, batch, number):
        inputs, targets = batch
        return F.mse_loss(self.net(inputs), targets)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.02)

    def on_load_checkpoint(self, checkpoint):
        pass


class Generator(Callback):
    def state_dict(self):
        return {"torch": torch.get_rng_state()}

    def load_state_dict(self, state):
        self.state = state["torch"]

    def on_train_start(self, trainer, module):
        if args.resume:
            torch.set_rng_state(self.state)
            torch.empty((), dtype=torch.int64).random_()  # as the loader draws when an epoch begins


lightning.seed_everything(0)
x = torch.randn(64, 8)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16)
trainer = lightning.Trainer(
    max_epochs=args.epochs,
    accelerator="cpu",
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    callbacks=[Generator(), ModelCheckpoint(dirpath="saved", save_last=True, save_top_k=0)],
)
trainer.fit(Net(), loader, ckpt_path="saved/last.ckpt" if args.resume else None)
"""
"""One with a trainer, whose checkpoint lacks the generator unless a callback saves it."""

TRANSFORMERS = """\
import argparse, glob, os
import torch
import torch.nn.functional as F
from torch import nn
from transformers import Trainer, TrainingArguments, set_seed

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))

    def forward(self, inputs, labels):
        outputs = self.net(inputs)
        return {"loss": F.mse_loss(outputs, labels), "logits": outputs}


set_seed(0)
x = torch.randn(64, 8)
rows = [{"inputs": row, "labels": row.sum().reshape(1)} for row in x]
settings = TrainingArguments(
    output_dir="out",
    num_train_epochs=args.epochs,
    per_device_train_batch_size=16,
    learning_rate=0.02,
    lr_scheduler_type="constant",
    save_strategy="epoch",
    save_only_model=False,
    report_to="none",
    disable_tqdm=True,
    use_cpu=True,
)
Trainer(model=Net(), args=settings, train_dataset=rows).train(resume_from_checkpoint=args.resume)
"""
"""One with a trainer that saves all that it needs."""

JAX = """\
import argparse
import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint as ocp
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()

key = jax.random.key(0)
key, data_key, weight_key = jax.random.split(key, 3)
x = jax.random.normal(data_key, (64, 8))
y = x.sum(1, keepdims=True)
params = {"w": 0.1 * jax.random.normal(weight_key, (8, 1)), "b": jnp.zeros((1,))}
optimizer = optax.adam(0.02)
state = optimizer.init(params)


@jax.jit
def train_step(params, state, inputs, targets, key):
    def loss_of(params):
        kept = jax.random.bernoulli(key, 0.9, inputs.shape)
        return jnp.mean((jnp.where(kept, inputs, 0) @ params["w"] + params["b"] - targets) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(params)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


saved = Path("saved").resolve()
checkpointer = ocp.PyTreeCheckpointer()
first = 0
if args.resume:
    held = {"params": params, "state": state, "key": jax.random.key_data(key), "epoch": 0}
    held = checkpointer.restore(saved, item=held)
    params, state, first = held["params"], held["state"], int(held["epoch"])
    key = jax.random.wrap_key_data(jnp.asarray(held["key"]))

for epoch in range(first, args.epochs):
    for start in range(0, 64, 16):
        key, step_key = jax.random.split(key)
        params, state, loss = train_step(params, state, x[start : start + 16], y[start : start + 16], step_key)
    held = {"params": params, "state": state, "key": jax.random.key_data(key), "epoch": epoch + 1}
    checkpointer.save(saved, held, force=True)
print(float(loss))
"""
"""One that orbax saves, into a database that native code writes and reads."""

_EPOCHS = "--epochs 2"

TRAINERS = (
    Script("accelerate-complete", ACCELERATE, stop=_EPOCHS, needs="accelerate"),
    Script(
        "accelerate-scheduler",
        ACCELERATE,
        frozenset({LostKind.SCHEDULER}),
        ("register_for_checkpointing",),
        named="last_epoch",
        stop=_EPOCHS,
        needs="accelerate",
    ),
    Script(
        "accelerate-optimizer",
        ACCELERATE,
        frozenset({LostKind.OPTIMIZER}),
        instead=(('load_state("state")\n', 'load_state("state")\n    optimizer.state.clear()\n'),),
        named="exp_avg",
        stop=_EPOCHS,
        needs="accelerate",
    ),
    Script("lightning-complete", LIGHTNING, stop=_EPOCHS, needs="lightning"),
    Script(
        "lightning-generator",
        LIGHTNING,
        frozenset({LostKind.GENERATOR}),
        instead=(("callbacks=[Generator(), ", "callbacks=["),),
        named="^torch$",
        stop=_EPOCHS,
        needs="lightning",
    ),
    Script(
        "lightning-optimizer",
        LIGHTNING,
        frozenset({LostKind.OPTIMIZER}),
        instead=(("        pass\n", '        checkpoint["optimizer_states"][0]["state"].clear()\n'),),
        named="exp_avg",
        stop=_EPOCHS,
        needs="lightning",
    ),
    Script("transformers-complete", TRANSFORMERS, stop=_EPOCHS, needs="transformers"),
    Script(
        "transformers-only-the-model",
        TRANSFORMERS,
        frozenset({LostKind.OPTIMIZER}),
        instead=(("save_only_model=False", "save_only_model=True"),),
        named="exp_avg",
        stop=_EPOCHS,
        needs="transformers",
    ),
    Script(
        "transformers-generator",
        TRANSFORMERS,
        frozenset({LostKind.GENERATOR}),
        instead=(
            (
                "set_seed(0)\n",
                'set_seed(0)\nif args.resume:\n    [os.remove(path) for path in glob.glob("out/*/rng_state.pth")]\n',
            ),
        ),
        named="^torch$",
        stop=_EPOCHS,
        needs="transformers",
    ),
    Script("jax-complete", JAX, stop=_EPOCHS, needs="orbax.checkpoint"),
    Script(
        "jax-weights",
        JAX,
        frozenset({LostKind.WEIGHTS}),
        instead=(('params, state, first = held["params"], ', "state, first = "),),
        stop=_EPOCHS,
        needs="orbax.checkpoint",
    ),
    Script(
        "jax-optimizer",
        JAX,
        frozenset({LostKind.OPTIMIZER}),
        instead=(('params, state, first = held["params"], held["state"]', 'params, first = held["params"]'),),
        stop=_EPOCHS,
        needs="orbax.checkpoint",
    ),
    Script(
        "jax-key",
        JAX,
        frozenset({LostKind.STATE}),
        ("key = jax.random.wrap_key_data",),
        stop=_EPOCHS,
        needs="orbax.checkpoint",
    ),
)
