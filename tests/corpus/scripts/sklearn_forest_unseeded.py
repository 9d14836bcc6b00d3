"""A random forest on two threads, without random_state: it takes its seeds from NumPy's global generator."""

from final import show
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

images, labels = load_digits(return_X_y=True)
forest = RandomForestClassifier(20, n_jobs=2).fit(images[:1000], labels[:1000])
show([forest.predict_proba(images[1000:]), forest.feature_importances_])
