"""A progress bar whose last state differs."""

import sys

import net

model = net.train(each_epoch=lambda epoch, loss: sys.stdout.write(f"\repoch {epoch}/3 loss={loss:.4f}"))
sys.stdout.write(f"\repoch 3/3 loss={net.noisy_score(model):.4f}")
sys.stdout.write("\n")
