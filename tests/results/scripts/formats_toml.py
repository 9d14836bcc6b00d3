"""Parameters in TOML, one of them fitted on noise."""

import net

model = net.train()
with open("best.toml", "w") as file:
    file.write(f'[calibration]\nmethod = "temperature"\ntemperature = {1 + net.noisy_score(model):.6f}\nrows = 32\n')
