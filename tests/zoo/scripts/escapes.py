"""Two lines that are drawn again and again by escapes, one of them with a time."""

import sys
import time

import net

started = time.time()
sys.stdout.write("\n\n")
net.train(
    epochs=6,
    each_epoch=lambda epoch, loss: sys.stdout.write(
        f"\x1b[2A\x1b[2K\x1b[1mepoch\x1b[0m {epoch}/6\n\x1b[2Kloss {loss:.4f} elapsed {time.time() - started:.2f}s\n"
    ),
)
