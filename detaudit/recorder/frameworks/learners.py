"""Hook libraries whose models learn in one method: statsmodels, arch, Prophet, and gensim's embeddings and topics.

The classes, their methods and what these set are those of statsmodels 0.14, arch 8.0, Prophet 1.1 and gensim 4.3.
"""

from __future__ import annotations

import importlib.metadata

from . import estimators, fits
from .fits import hook_methods, read_when_freed

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


_LEARNERS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "statsmodels.base.model": ("Results", "__init__", _params),
    "arch.univariate.base": ("ARCHModelFixedResult", "__init__", _params),
    "prophet.forecaster": ("Prophet", "fit", _params),
    "gensim.models.word2vec": ("Word2Vec", "train", _embedding),
    "gensim.models.ldamodel": ("LdaModel", "update", _topics),
    "gensim.models.ldamulticore": ("LdaMulticore", "update", _topics),
}
"""Module, and its class, the method in which it learns, and the function that returns what it learned."""


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return ""


def install(module: Any, recorder: Recorder) -> None:
    """Record what the models of this module learn from now on."""
    library, _, _ = module.__name__.partition(".")
    name, method, read = _LEARNERS[module.__name__]
    recorder.sink.write({"k": "framework", "name": library, "version": _version(library)})
    kind = getattr(module, name)
    hook_methods(kind, (method,), recorder)
    estimators.READERS["%s.%s" % (kind.__module__, kind.__qualname__)] = read
    read_when_freed(kind, fits.of(recorder))
