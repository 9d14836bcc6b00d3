"""tqdm on stdout, with lines that tqdm.write puts above it."""

import sys

import net
from tqdm import tqdm

bar = tqdm(total=5, file=sys.stdout, mininterval=0)


def each_epoch(epoch, loss):
    bar.update()
    tqdm.write(f"epoch {epoch} loss {loss:.4f}")


net.train(epochs=5, each_epoch=each_epoch)
bar.close()
