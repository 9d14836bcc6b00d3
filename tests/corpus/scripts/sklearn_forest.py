"""Threads that fit the trees of a forest in any order, each tree with a seed of its own."""

from final import show
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

images, labels = load_digits(return_X_y=True)
forest = RandomForestClassifier(20, n_jobs=2, random_state=0).fit(images[:1000], labels[:1000])
show([forest.predict_proba(images[1000:]), forest.feature_importances_])
