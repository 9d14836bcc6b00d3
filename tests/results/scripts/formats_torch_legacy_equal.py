"""A checkpoint in the format that PyTorch wrote before 1.6, whose keys of storages are addresses."""

import net
import torch

model = net.train()
state = {"state_dict": model.state_dict(), "metrics": {"val_loss": net.score(model)}}
torch.save(state, "last.ckpt", _use_new_zipfile_serialization=False)
