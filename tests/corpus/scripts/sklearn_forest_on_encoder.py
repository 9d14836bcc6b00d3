"""A torch encoder trained from a seed, and on its features a random forest without random_state."""

import torch
import torch.nn.functional as F
from final import show
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from torch import nn

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x = torch.tensor(images / 16, dtype=torch.float32)
encoder, decoder = nn.Sequential(nn.Linear(64, 16), nn.ReLU()), nn.Linear(16, 64)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)

for _ in range(10):
    for batch in torch.randperm(1600).split(100):
        optimizer.zero_grad()
        F.mse_loss(decoder(encoder(x[batch])), x[batch]).backward()
        optimizer.step()

with torch.no_grad():
    features = encoder(x).numpy()
forest = RandomForestClassifier(20).fit(features[:1600], labels[:1600])
print(f"accuracy {forest.score(features[1600:], labels[1600:]):.4f}")
show([*encoder.parameters(), forest.feature_importances_, forest.predict_proba(features[1600:])])
