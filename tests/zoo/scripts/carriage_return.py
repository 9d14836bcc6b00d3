"""print with end="\\r"."""

import time

import net

started = time.time()
model = net.train(
    epochs=6,
    each_epoch=lambda epoch, loss: print(
        f"[{epoch}/6] loss {loss:.4f} eta {(time.time() - started) / epoch * (6 - epoch):.1f}s", end="\r"
    ),
)
print(f"\nloss {net.score(model):.4f}")
