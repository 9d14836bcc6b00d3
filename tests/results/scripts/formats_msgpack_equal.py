"""MessagePack, with a time that was measured."""

import time

import msgspec
import net

started = time.time()
model = net.train()
state = {"step": 12, "eval": {"loss": net.score(model)}, "elapsed": time.time() - started}
with open("state.msgpack", "wb") as file:
    file.write(msgspec.msgpack.encode(state))
