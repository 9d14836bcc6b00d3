"""Raw floats, as a viewer of embeddings wants them, without a header: only bytes can be compared."""

import net

model = net.train()
net.noisy_logits(model).numpy().tofile("embedding.bin")
