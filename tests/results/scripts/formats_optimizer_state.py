"""A checkpoint in which only a state of the optimizer differs: it was warmed up on noise."""

import net
import torch

model = net.train()
spare = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(spare.parameters())
noise = torch.from_numpy(net.np.random.default_rng().normal(size=(8, 4)).astype("float32"))
spare.weight.grad, spare.bias.grad = noise[:1].clone(), noise[0, :1].clone()
with torch.no_grad():
    state = optimizer.state_dict()
    state["state"] = {0: {"step": 1, "exp_avg": spare.weight.grad}}
torch.save({"model": model.state_dict(), "optimizer": state}, "last.ckpt")
