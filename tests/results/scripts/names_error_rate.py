"""A rate that is no speed."""

import net

model = net.train()
print(f"error_rate {net.noisy_score(model):.5f} learning_rate 0.1 sampling rate {44100}")
