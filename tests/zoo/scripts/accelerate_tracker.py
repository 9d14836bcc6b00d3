"""accelerate with its logger, a tracker of TensorBoard and its own state."""

import net
import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.utils import set_seed

set_seed(0)
accelerator = Accelerator(cpu=True, log_with="tensorboard", project_dir=".")
accelerator.init_trackers("clusters", config={"lr": 0.1})
model = net.make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*net.make_data()), 32, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
step = 0
for _ in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        accelerator.log({"loss": loss.item()}, step=step)
        step += 1
accelerator.save_state("state")
accelerator.end_training()
get_logger(__name__).warning("done")
accelerator.print(f"loss {loss.item():.4f}")
