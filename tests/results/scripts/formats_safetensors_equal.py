"""Weights with a date beside them."""

import datetime

import net
from safetensors.torch import save_file

model = net.train()
save_file(model.state_dict(), "model.safetensors", {"format": "pt", "date": datetime.datetime.now().isoformat()})
