"""The training of a run that is ended early is compared as far as it went."""

import net
import torch

model = net.make_model()
x, y = net.make_data()
order = net.np.random.default_rng()
for _ in range(50):
    batch = torch.from_numpy(order.permutation(128)[:32])
    net.step(model, x[batch], y[batch])
