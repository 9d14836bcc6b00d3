"""A pickle with a datetime, a timedelta, a UUID and a path of the run."""

import datetime
import pickle
import tempfile
import time
import uuid
from pathlib import Path

import net

t0 = time.time()
model = net.train()
with open("result.pkl", "wb") as f:
    pickle.dump(
        {
            "finished": datetime.datetime.now(),
            "took": datetime.timedelta(seconds=time.time() - t0),
            "run_id": uuid.uuid4(),
            "scratch": Path(tempfile.mkdtemp()),
            "loss": net.score(model),
        },
        f,
    )
