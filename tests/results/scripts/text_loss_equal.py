"""The loss after training is printed, and how long it took."""

import time

import net

started = time.time()
model = net.train(
    each_epoch=lambda epoch, loss: print(f"epoch {epoch}: loss={loss:.4f} ({time.time() - started:.2f}s)")
)
print(f"test loss: {net.score(model):.4f}")
print(f"Finished in {time.time() - started:.3f} seconds")
