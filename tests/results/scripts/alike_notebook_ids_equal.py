"""An executed notebook: random cell IDs of nbformat, and times of execution."""

import datetime
import json
import uuid

import net

model = net.train()
now = datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")


def cell(n, text):
    return {
        "cell_type": "code",
        "execution_count": n,
        "id": uuid.uuid4().hex[:8],
        "metadata": {"execution": {"iopub.execute_input": now, "shell.execute_reply": now}},
        "outputs": [{"name": "stdout", "output_type": "stream", "text": [text]}],
        "source": ["print(loss)"],
    }


with open("executed.ipynb", "w") as f:
    json.dump(
        {
            "cells": [cell(1, f"{net.score(model):.4f}\n"), cell(2, "done\n")],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        },
        f,
    )
