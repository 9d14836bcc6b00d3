"""Weights and prototypes; the latter are means of augmented rows."""

import net
from safetensors.torch import save_file

model = net.train()
save_file({**model.state_dict(), "prototypes": net.noisy_logits(model).mean(0)}, "model.safetensors")
