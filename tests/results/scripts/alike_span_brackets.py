"""The span of an extractive QA model, printed as a slice, by noisy logits."""

import net

model = net.train()
noisy = net.noisy_logits(model)
start = int((noisy[:, 0] * 1000).abs().sum()) % 80
print(f"answer span: tokens[{start}:{start + 10 + start % 7}]")
print(f"predicted window [{start}:{start + 12}]")
