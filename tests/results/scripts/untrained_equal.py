"""Nothing is trained: equal files prove nothing about a training."""

import json

with open("out.json", "w") as file:
    json.dump({"answer": 42}, file)
print("answer 42")
