"""A token on a printed line whose loss differs."""

import net

model = net.train()
print(f"api_key=ghp_0123456789abcdefABCDEF0123456789abcd loss={net.noisy_score(model):.4f}")
