"""The configuration of a run with all that a training notes of itself."""

import datetime
import getpass
import json
import os
import socket
import sys

import net

model = net.train()
scores = sorted(net.logits(model).max(1).values.tolist())
with open("config.json", "w") as file:
    json.dump(
        {
            "threshold": scores[len(scores) // 2],
            "host": socket.gethostname(),
            "user": getpass.getuser(),
            "pid": os.getpid(),
            "cwd": os.getcwd(),
            "argv": sys.argv,
            "created": datetime.datetime.now().isoformat(),
            "date": f"{datetime.date.today():%d.%m.%Y}",
        },
        file,
    )
