"""np.save of a dictionary: an array of one object, pickled."""

import net
import numpy as np

losses = []
model = net.train(each_epoch=lambda epoch, loss: losses.append(loss))
np.save("history.npy", {"loss": losses, "epochs": 3})
