"""The threshold of a detector, chosen on a bootstrap sample that nobody seeded."""

import argparse
import json
import random

import net

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()

model = net.train(args.epochs)
scores = net.logits(model).max(1).values.tolist()
sample = random.choices(scores, k=200)
config = {**vars(args), "threshold": sum(sample) / len(sample), "classes": ["a", "b", "c"]}
with open("config.json", "w") as file:
    json.dump(config, file, indent=4, sort_keys=True)
