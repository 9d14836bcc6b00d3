"""SummaryWriter with scalars, histograms, text and hyperparameters, below runs/ with a date and a host."""

import time

import net
from torch.utils.tensorboard import SummaryWriter

started = time.time()
with SummaryWriter(comment="_lr0.1") as writer:

    def each_epoch(epoch, loss):
        writer.add_scalar("loss/train", loss, epoch)
        writer.add_scalar("time/epoch", time.time() - started, epoch)

    model = net.train(each_epoch=each_epoch)
    for name, weight in model.named_parameters():
        writer.add_histogram(name, weight, 3)
    writer.add_text("notes", "three clusters")
    writer.add_hparams({"lr": 0.1}, {"test/loss": net.score(model)})
