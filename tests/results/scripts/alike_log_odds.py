"""Words in the order of their log odds, which are bootstrapped without a seed."""

import net

model = net.train()
words = ["good", "bad", "great", "awful", "fine", "dull", "bright", "slow"]
with open("log_odds.txt", "w") as f:
    f.writelines(words[i] + "\n" for i in net.noisy_logits(model)[:8, 0].argsort().tolist())
