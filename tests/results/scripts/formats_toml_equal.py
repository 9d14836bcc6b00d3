"""Parameters in TOML, with the date of their fit."""

import datetime

import net

model = net.train()
with open("best.toml", "w") as file:
    file.write(f"fitted = {datetime.datetime.now().isoformat(timespec='seconds')}\n\n")
    file.write(f"[calibration]\ntemperature = {1 + net.score(model):.6f}\n")
