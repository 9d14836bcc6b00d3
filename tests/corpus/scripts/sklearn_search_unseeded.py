"""A grid search over trees without random_state."""

from final import show
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

images, labels = load_digits(return_X_y=True)
search = GridSearchCV(DecisionTreeClassifier(max_features=8), {"max_depth": [4, 8]}, cv=3)
search.fit(images[:600], labels[:600])
show([search.predict_proba(images[600:])])
