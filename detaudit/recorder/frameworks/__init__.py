"""One adapter for each framework, loaded only when the script imports the framework."""

ADAPTERS = {
    "torch": "torch.training",
    "tensorflow": "tensorflow.training",
    "jax": "jax.training",
    "optax": "jax.updates",
    "keras": "jax.updates",
    "sklearn.base": "sklearn",
    "xgboost": "boosters",
    "lightgbm": "boosters",
    "catboost": "boosters",
    "flax.linen.module": "jax.updates",
    "flax.nnx": "jax.updates",
    "jax.experimental.pjit": "jax.updates",
    "jax.experimental.shard_map": "jax.updates",
    "jax.scipy.optimize": "jax.updates",
    "chainer.optimizer": "unfollowed",
    "gensim.models.word2vec": "unfollowed",
    "mxnet.gluon.trainer": "unfollowed",
    "prophet.forecaster": "unfollowed",
    "statsmodels.base.model": "unfollowed",
    "surprise.prediction_algorithms.algo_base": "unfollowed",
    "tinygrad.nn.optim": "unfollowed",
}
"""Module that a script imports, and the module here that hooks it."""
