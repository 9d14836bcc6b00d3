"""Object identities and addresses in a file for debugging."""

import json

import net

model = net.train()
with open("debug.json", "w") as file:
    shown = {"model": object.__repr__(model), "function": repr(net.train), "loss": net.score(model)}
    json.dump(shown, file)
