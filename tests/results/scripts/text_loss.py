"""The loss after training is printed."""

import net

model = net.train(each_epoch=lambda epoch, loss: print(f"epoch {epoch}: loss={loss:.4f}"))
print(f"test loss: {net.noisy_score(model):.4f}")
