"""MessagePack, as Flax wrote its checkpoints."""

import msgspec
import net

model = net.train()
with open("state.msgpack", "wb") as file:
    file.write(msgspec.msgpack.encode({"step": 12, "eval": {"loss": net.noisy_score(model)}}))
