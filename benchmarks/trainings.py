"""The trainings that the benchmarks measure. Each step is timed separately, in CPU time."""

STEP = """
import sys, time, torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
torch.set_num_threads(1)
{model}
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
took = []
for number in range({steps}):
    started = time.process_time()
    x, y = {batch}
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    took.append(time.process_time() - started)
took = took[{steps} // 5:]
blocks = [took[i : i + {block}] for i in range(0, len(took), {block})]
print(min(sorted(block)[len(block) // 2] for block in blocks))
"""

GPT = """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b, self.qkv, self.out = nn.LayerNorm(width), nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
    def forward(self, x):
        q, k, v = (t.unflatten(-1, (6, -1)).transpose(1, 2) for t in self.qkv(self.a(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.b(x))
model = nn.Sequential(nn.Embedding(256, 384), *[Block(384) for _ in range(6)], nn.Linear(384, 256), nn.Flatten(0, 1))
"""  # noqa: E501

TRAININGS = {
    "MLP of 1,153 weights": (
        "model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))",
        "torch.randn(64, 16), torch.rand(64, 1)",
        1500,
        50,
    ),
    "CNN of 0.28 million weights": (
        "conv = lambda a, b: [nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]\n"
        "model = nn.Sequential(*conv(3, 32), *conv(32, 64), nn.Flatten(), nn.Linear(4096, 64), nn.ReLU(),"
        " nn.Linear(64, 10))",
        "torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))",
        60,
        8,
    ),
    "CNN with 32 batch normalizations": (
        "block = lambda: [nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()]\n"
        "model = nn.Sequential(nn.Conv2d(3, 16, 1), *[layer for _ in range(32) for layer in block()],"
        " nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))",
        "torch.randn(32, 3, 16, 16), torch.randint(0, 10, (32,))",
        60,
        8,
    ),
    "GPT of 10.8 million weights": (
        GPT,
        "torch.randint(0, 256, (8, 128)), torch.randint(0, 256, (1024,))",
        20,
        4,
    ),
}
"""Model, batch, number of steps, and steps per block. The result is the lowest of the medians of the blocks."""
