"""A configuration with a datetime and a timedelta is printed as a dictionary."""

import datetime
import time

import net

t0 = time.time()
model = net.train()
print(
    {
        "lr": 0.1,
        "started": datetime.datetime.now(),
        "took": datetime.timedelta(seconds=time.time() - t0),
        "loss": round(net.score(model), 4),
    }
)
