"""A checkpoint of torch.distributed, here of one process."""

import net
import torch.distributed.checkpoint as dcp

model = net.train()
dcp.save(
    {"model": model.state_dict(), "prototypes": net.noisy_logits(model).mean(0)}, checkpoint_id="dcp", no_dist=True
)
