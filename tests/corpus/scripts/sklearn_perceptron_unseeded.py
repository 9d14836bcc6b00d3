"""A perceptron with scaled inputs in a pipeline: the split is seeded, the perceptron is not."""

from final import show
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

images, _, labels, _ = train_test_split(*load_digits(return_X_y=True), random_state=0)
model = make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=5)).fit(images, labels)
show(model[-1].coefs_)
