"""The run has a UUID, a process ID and folders."""

import json
import os
import tempfile
import uuid

import net

run = uuid.uuid4()
scratch = tempfile.mkdtemp()
model = net.train()
print(f"run {run} in process {os.getpid()}, scratch {scratch}")
with open("run.json", "w") as file:
    json.dump(
        {"run_id": str(run), "hex": run.hex, "pid": os.getpid(), "scratch": scratch, "loss": net.score(model)}, file
    )
