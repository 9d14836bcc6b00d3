"""tqdm drawn by rich."""

import warnings

import net
import torch
from tqdm import TqdmExperimentalWarning
from tqdm.rich import tqdm

warnings.simplefilter("ignore", TqdmExperimentalWarning)
model = net.make_model()
x, y = net.make_data()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in tqdm(range(40), desc="training"):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
