"""Trials of Optuna in a database, each run a new study in a file of its own."""

import contextlib
import os

import net
import optuna
import torch

with contextlib.suppress(FileNotFoundError):
    os.remove("study.db")


def objective(trial):
    lr = trial.suggest_float("lr", 0.01, 0.3)
    model = net.make_model()
    x, y = net.make_data()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


study = optuna.create_study(study_name="lr", storage="sqlite:///study.db", sampler=optuna.samplers.RandomSampler(0))
study.optimize(objective, n_trials=3)
