"""Timings by stage, below a key that says what they are."""

import json
import time

import net

clock = [time.perf_counter()]
model = net.train(each_epoch=lambda epoch, loss: clock.append(time.perf_counter()))
loss = net.score(model)
clock.append(time.perf_counter())
stages = {"training": clock[3] - clock[0], "evaluation": clock[4] - clock[3]}
with open("report.json", "w") as file:
    json.dump({"loss": loss, "timings": stages, "durationMs": int(1000 * (clock[4] - clock[0]))}, file)
