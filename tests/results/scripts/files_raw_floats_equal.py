"""Raw floats without a header."""

import net

model = net.train()
net.logits(model).numpy().tofile("embedding.bin")
