"""The trainers that people use are recorded unmodified: their own count of steps, their weights, and no bit changed."""

import math
import sys
from pathlib import Path

import pytest

from tests.ecosystem.conftest import audited, bare, printed
from tests.process.conftest import Project

pytestmark = pytest.mark.ecosystem

END = """
import hashlib
weights = [p.detach() for p in weights]
whole = hashlib.sha256(b"".join(w.numpy().tobytes() for w in weights)).hexdigest()
print(steps, f"{sum(w.double().sum().item() for w in weights):.17g}", whole)
"""

TRAINERS = {
    "lightning": """
import sys, torch, lightning
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
if sys.argv[1:]:
    lightning.seed_everything(int(sys.argv[1]))
x, y = load_digits(return_X_y=True)
rows = TensorDataset(torch.tensor(x[:512] / 16, dtype=torch.float32), torch.tensor(y[:512]))
class Digits(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Dropout(0.1), torch.nn.Linear(32, 10))
    def training_step(self, batch, index):
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
    def validation_step(self, batch, index):
        self.log("val", torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1]))
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
model = Digits()
trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", enable_progress_bar=False)
trainer.fit(model, DataLoader(rows, 64, shuffle=True), DataLoader(rows, 256))
steps, weights = trainer.global_step, model.parameters()
""",
    "transformers": """
import sys, torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed
if sys.argv[1:]:
    set_seed(int(sys.argv[1]))
class Made(torch.utils.data.Dataset):
    ids = torch.randint(0, 64, (64, 16), generator=torch.Generator().manual_seed(0))
    def __len__(self):
        return len(self.ids)
    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index]}
model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=16, n_layer=2, n_head=2))
arguments = TrainingArguments(
    "out", max_steps=6, per_device_train_batch_size=8, gradient_accumulation_steps=2, report_to=[], use_cpu=True,
    disable_tqdm=True,
)
trainer = Trainer(model=model, args=arguments, train_dataset=Made())
trainer.train()
steps, weights = trainer.state.global_step, model.parameters()
""",
    "accelerate": """
import sys, torch
from accelerate import Accelerator
from accelerate.utils import set_seed
if sys.argv[1:]:
    set_seed(int(sys.argv[1]))
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
x = torch.randn(64, 8)
rows = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
optimizer = torch.optim.AdamW(model.parameters())
model, optimizer, loader, schedule = accelerator.prepare(
    model, optimizer, torch.utils.data.DataLoader(rows, 8, shuffle=True), torch.optim.lr_scheduler.StepLR(optimizer, 2)
)
steps = 0
for epoch in range(2):
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(torch.nn.functional.mse_loss(model(x), y))
            optimizer.step(); schedule.step(); optimizer.zero_grad()
            steps += accelerator.sync_gradients
weights = accelerator.unwrap_model(model).parameters()
""",
    "stable-baselines3": """
import sys, stable_baselines3
seed = int(sys.argv[1]) if sys.argv[1:] else None
model = stable_baselines3.DQN(
    "MlpPolicy", "CartPole-v1", seed=seed, learning_starts=32, train_freq=4, buffer_size=1000, device="cpu"
)
model.learn(160)
steps, weights = model._n_updates, model.q_net.parameters()
""",
    "skorch": """
import sys, torch
from sklearn.datasets import load_digits
from skorch import NeuralNetClassifier
if sys.argv[1:]:
    torch.manual_seed(int(sys.argv[1]))
x, y = load_digits(return_X_y=True)
net = NeuralNetClassifier(
    torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10), torch.nn.Softmax(-1)),
    max_epochs=2, batch_size=128, iterator_train__shuffle=True, verbose=0,
)
net.fit((x / 16).astype("f4"), y)
steps, weights = sum(net.history[:, "train_batch_count"]), net.module_.parameters()
""",
}


@pytest.mark.parametrize("trainer", TRAINERS)
def test_trainer(project: Project, trainer: str) -> None:
    project.write("train.py", TRAINERS[trainer] + END)
    alone = bare(project, "train.py", "7")
    group = audited(project, "train.py", "--", "7", code=0)
    run = group["runs"][0]
    rank, *saved = run["ranks"]
    assert {one["framework"] for one in saved} <= {"saved"}  # checkpoints
    assert run["warnings"] == []
    assert printed(project) == alone
    assert rank["steps"] == alone.steps > 1
    assert rank["sum_of_weights"] == pytest.approx(alone.sum, rel=1e-12)
    assert math.isfinite(rank["final_loss"])
    validates = ["output"] if trainer in ("lightning", "skorch") else []  # after the last update too
    stages = ["init", "rng", "batch", "forward", "update", "state", *validates]
    assert group["stages"] == [*stages, *(one["framework"] for one in saved)]


@pytest.mark.parametrize("trainer", TRAINERS)
def test_trainer_without_a_seed(project: Project, trainer: str) -> None:
    project.write("train.py", TRAINERS[trainer] + END)
    found = audited(project, "train.py", code=1)["first_difference"]
    assert (found["step"], found["stage"]) == (0, "init")


def test_accelerate_launch(project: Project) -> None:
    project.write("train.py", TRAINERS["accelerate"] + END)
    accelerate = str(Path(sys.executable).with_name("accelerate"))
    options = ["--cpu", "--num_processes", "1", "--num_machines", "1", "--mixed_precision", "no"]
    group = audited(project, "--", accelerate, "launch", *options, "train.py", "7", code=0)
    (rank,) = group["runs"][0]["ranks"]
    assert rank["steps"] == printed(project).steps
    assert rank["sum_of_weights"] == pytest.approx(printed(project).sum, rel=1e-12)
