"""What hooks each framework, loaded only when the script imports the framework."""

from ... import wire

UNFOLLOWED = {
    "chainer.optimizer": ("GradientMethod", "update"),
    "mxnet.gluon.trainer": ("Trainer", "step"),
    "spacy.language": ("Language", "update"),
    "surprise.prediction_algorithms.algo_base": ("AlgoBase", "fit"),
    "tinygrad.nn.optim": ("Optimizer", "step"),
}
"""Module, and the class and the method in it that every training of its package calls, as its source has them."""

HOOKS = {
    **{module: own for framework in wire.FRAMEWORKS.values() for module, own in framework.hooks.items()},
    **dict.fromkeys(UNFOLLOWED, "unfollowed"),
}
"""Module that a script imports, and the module here that hooks it."""
