"""Lists and numbers in a pickle, with what the training took."""

import datetime
import pickle
import time

import net

started = time.time()
model = net.train()
with open("results.pkl", "wb") as file:
    result = {"name": "mlp", "scores": [net.score(model)], "elapsed": time.time() - started}
    pickle.dump(result | {"date": datetime.datetime.now().isoformat()}, file, protocol=2)
