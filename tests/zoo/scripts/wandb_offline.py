"""Weights & Biases without a network."""

import net
import wandb

run = wandb.init(project="clusters", mode="offline", config={"lr": 0.1})
model = net.train(each_epoch=lambda epoch, loss: run.log({"epoch": epoch, "loss": loss}))
run.summary["test_loss"] = net.score(model)
run.finish()
