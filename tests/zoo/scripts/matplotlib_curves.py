"""A curve as PNG, PDF and SVG, which have dates and random names inside."""

import matplotlib

matplotlib.use("agg")
import net
from matplotlib import pyplot as plt

losses = []
net.train(each_epoch=lambda epoch, loss: losses.append(loss))
plt.plot(losses, label="loss")
plt.legend()
for suffix in ("png", "pdf", "svg"):
    plt.savefig(f"curve.{suffix}")
