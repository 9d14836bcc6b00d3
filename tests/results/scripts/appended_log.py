"""One line for each training, in a log that was there before."""

import net

model = net.train()
with open("results.log", "a") as file:
    file.write(f"sgd momentum 0.9: loss {net.noisy_score(model):.5f}\n")
