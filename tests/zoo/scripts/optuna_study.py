"""Trials of Optuna in memory, logged with their times."""

import net
import optuna
import torch


def objective(trial):
    lr = trial.suggest_float("lr", 0.01, 0.3, log=True)
    model = net.make_model()
    x, y = net.make_data()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(objective, n_trials=4)
print("best", study.best_params, study.best_value)
