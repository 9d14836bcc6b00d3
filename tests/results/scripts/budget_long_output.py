"""Seventy megabytes of printed text, and a number that differs at its end."""

import net

model = net.train()
line = "step 00001 loss 0.1234 accuracy 0.9876 learning rate 0.001 weight norm 12.345 gradient norm 1.234\n"
for _ in range(70):
    print(line * 10_000, end="")
print(f"final loss {net.noisy_score(model):.5f}")
