"""A token on a printed line whose loss differs."""

import net

TOKEN = "ghp_" + "0123456789abcdefABCDEF0123456789abcd"

model = net.train()
print(f"api_key={TOKEN} loss={net.noisy_score(model):.4f}")
