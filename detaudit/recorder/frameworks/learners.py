"""Hook libraries whose models learn in one method or function, such as statsmodels and PyMC, or only predict.

The classes, their methods and what these set are those of statsmodels 0.14, arch 8.0, Prophet 1.1, gensim 4.3,
lifelines 0.30, implicit 0.7, PyMC 5.28 and ONNX Runtime 1.32.
"""

from __future__ import annotations

import importlib.metadata

from . import estimators, fits
from .fits import hook_functions, hook_methods, hook_predictions, hook_subclasses, read_when_freed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..process.recorder import Recorder


def _params(learner: Any) -> Any:
    """Return the parameters that were learned, None before."""
    params = vars(learner).get("params", vars(learner).get("_params"))
    return params if params is not None and len(params) else None


def _embedding(model: Any) -> Any:
    """Return the vectors of words, of their parts and of documents, with the words, and the weights of the output."""
    held = [vars(model).get(name) for name in ("syn1", "syn1neg")]
    for vectors in (vars(model).get("wv"), vars(model).get("dv")):
        if vectors is not None:
            held += [vars(vectors).get(name) for name in ("index_to_key", "vectors", "vectors_vocab", "vectors_ngrams")]
    return held


def _topics(model: Any) -> Any:
    state = vars(model).get("state")
    return None if state is None else (state.sstats, state.eta)


def _survival(fitter: Any) -> Any:
    """Return the attributes whose names end as those of scikit-learn do, of a fitter and of what it fits inside."""
    learned = {name: value for name, value in vars(fitter).items() if name.endswith("_")}
    inner = vars(fitter).get("_model")
    return (learned, _survival(inner)) if inner is not None else learned or None


def _factors(model: Any) -> Any:
    """Return the factors of users and items, or the similarity of items."""
    held = [vars(model).get(name) for name in ("user_factors", "item_factors", "similarity")]
    return None if all(one is None for one in held) else held


def _draws(inference: Any) -> Any:
    """Return the draws of a sampler by the names of the variables, without the times that it took."""
    return {name: values.values for name, values in inference.posterior.data_vars.items()}


_LEARNERS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "statsmodels.base.model": ("Results", "__init__", _params),
    "arch.univariate.base": ("ARCHModelFixedResult", "__init__", _params),
    "prophet.forecaster": ("Prophet", "fit", _params),
    "gensim.models.word2vec": ("Word2Vec", "train", _embedding),
    "gensim.models.ldamodel": ("LdaModel", "update", _topics),
    "gensim.models.ldamulticore": ("LdaMulticore", "update", _topics),
}
"""Module, and its class, the method in which it learns, and the function that returns what it learned."""

_BASES: dict[str, tuple[str, tuple[str, ...], Callable[[Any], Any]]] = {
    "lifelines.fitters": (
        "BaseFitter",
        ("fit", "fit_left_censoring", "fit_interval_censoring", "fit_right_censoring"),
        _survival,
    ),
    "implicit.recommender_base": ("RecommenderBase", ("fit", "partial_fit_users", "partial_fit_items"), _factors),
}
"""The same for a class whose subclasses learn, each in methods of its own."""

_RETURNED = {
    "arviz.data.inference_data.InferenceData": _draws,  # up to arviz 0.23
    "xarray.core.datatree.DataTree": _draws,
}
"""Class of what ``pymc.sample`` returns, and the function that returns what was drawn."""


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return ""


def install(module: Any, recorder: Recorder) -> None:
    """Record what the models of this module learn from now on."""
    library, _, _ = module.__name__.partition(".")
    recorder.sink.write({"k": "framework", "name": library, "version": _version(library)})
    if module.__name__ == "pymc":
        estimators.READERS.update(_RETURNED)
        hook_functions(module, ("sample",), recorder)
        return
    if library == "onnxruntime":
        hook_predictions(module.Session, ("run",), recorder)
        return
    if module.__name__ in _BASES:
        name, methods, read = _BASES[module.__name__]
        kind = getattr(module, name)
        hook_subclasses(kind, methods, recorder)
    else:
        name, method, read = _LEARNERS[module.__name__]
        kind = getattr(module, name)
        hook_methods(kind, (method,), recorder)
        hook_predictions(kind, ("predict", "forecast"), recorder)
    estimators.READERS["%s.%s" % (kind.__module__, kind.__qualname__)] = read
    read_when_freed(kind, fits.of(recorder))
