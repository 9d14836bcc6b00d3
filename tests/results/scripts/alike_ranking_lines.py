"""A leaderboard, in which models change places by unseeded noise."""

import net

model = net.train()
models = ["logreg", "svm", "forest", "mlp", "knn", "bayes"]
order = net.noisy_logits(model)[:6, 0].argsort().tolist()
for place, i in zip(("first", "second", "third", "fourth", "fifth", "sixth"), order):
    print(f"{place}: {models[i]}")
