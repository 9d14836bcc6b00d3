"""scikit-learn, verbose."""

from sklearn.datasets import load_digits
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

x, y = load_digits(return_X_y=True)
steps = [("scale", StandardScaler()), ("mlp", MLPClassifier((8,), max_iter=4, random_state=0, verbose=True))]
Pipeline(steps, verbose=True).fit(x, y)
GradientBoostingClassifier(n_estimators=3, max_depth=1, random_state=0, verbose=2).fit(x[:200], y[:200] > 4)
