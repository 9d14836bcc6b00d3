"""Raw floats, as a viewer of embeddings wants them, without a header: nobody can say what differs."""

import net

model = net.train()
net.noisy_logits(model).numpy().tofile("embedding.bin")
