"""A pipeline of scaling, randomized components and clusters, each with a fixed random_state."""

from final import show
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

images, _ = load_digits(return_X_y=True)
components = PCA(16, svd_solver="randomized", random_state=0)
pipeline = make_pipeline(StandardScaler(), components, KMeans(10, n_init=2, random_state=0))
clusters = pipeline.fit_predict(images)

print(f"inertia {pipeline[-1].inertia_:.4f}")
show([components.components_, pipeline[-1].cluster_centers_, clusters])
