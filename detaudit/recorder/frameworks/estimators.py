"""What an estimator learned, and which estimators a script still has at its end."""

from __future__ import annotations

import copyreg
import hashlib
import sys
import types
import weakref

from ..process import guard
from ..training import clocks
from ..training.record import ValueReader
from ..training.weights import Summary, Weight, fold

# Digest what an estimator learned: its arrays, numbers and trees, found without regard to addresses and clocks.
#
# Objects are taken apart as pickle does, but nothing is pickled. Left out are the parameters of a constructor that are
# what they were before the fit, random generators and seeds, which explain and do not decide, and the times that a fit
# took.


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ..training import digest


_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented)))
_NAMED = (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType)

_GENERATORS = frozenset(
    (
        "random.Random",
        "numpy.random.mtrand.RandomState",
        "numpy.random._generator.Generator",
        "numpy.random.bit_generator.BitGenerator",
        "numpy.random.bit_generator.SeedSequence",
        "torch._C.Generator",
    )
)
_RECORDED_ELSEWHERE = frozenset(("flax", "jax", "keras", "scikeras", "skorch", "tensorflow", "tf_keras"))
"""Packages whose models are trained by a framework that the recorder hooks."""

_NOT_LEARNED = (
    *("seed", "seeds", "rng", "random_state", "_sklearn_version", "stop_words_id", "_mlflow_run_id"),
    "_skl_callbacks",
)
"""Ends of the names of attributes that hold a seed, a generator, a version, an address, a name that MLflow gave, or
what callbacks of scikit-learn logged, with a UUID for each fit."""

_OF_THE_DATA = frozenset(("n_features_in_", "feature_names_in_"))
"""What every estimator of scikit-learn notes of its data: an estimator that has no more than that learned nothing."""

_HOW_IT_RAN = frozenset(("n_jobs", "verbose"))
"""Parameters that change no result."""


def _read_flaml(search: Any) -> Any:
    """Return the best model of a search, and how it was made: beside them, FLAML keeps how long each trial took."""
    model = search.model
    if model is None:  # before its fit
        return None
    return getattr(model, "estimator", model), search.best_estimator, search.best_config, search.best_loss


def _read_tpot(search: Any) -> Any:
    """Return the best pipeline of a search, beside which TPOT keeps its cluster and how long each trial took."""
    return vars(search).get("fitted_pipeline_")


READERS: dict[str, Callable[[Any], Any]] = {
    "flaml.automl.automl.AutoML": _read_flaml,
    "tpot.tpot_estimator.estimator.TPOTEstimator": _read_tpot,
    "tpot.tpot_estimator.steady_state_estimator.TPOTEstimatorSteadyState": _read_tpot,
}
"""Class, and the function that returns what its instances learned, where they are not taken apart as pickle does."""


class UndigestedError(Exception):
    """An object that pickle cannot take apart, so that it has no digest."""


def is_estimator(value: Any) -> bool:
    """Return whether this is an estimator of scikit-learn, or a model that an adapter can read."""
    base = getattr(sys.modules.get("sklearn.base"), "BaseEstimator", None)
    return (base is not None and isinstance(value, base)) or _reader(type(value)) is not None


def recorded_elsewhere(value: Any) -> bool:
    """Return whether this is a model of a framework that the recorder hooks by itself."""
    return any([kind.__module__.partition(".")[0] in _RECORDED_ELSEWHERE for kind in type(value).__mro__])


def _reader(kind: type) -> Callable[[Any], Any] | None:
    return next((READERS[name] for one in kind.__mro__ if (name := _name(one)) in READERS), None)


def _name(kind: Any) -> str:
    module = getattr(kind, "__module__", None)
    return "%s.%s" % (module, getattr(kind, "__qualname__", getattr(kind, "__name__", "")))


def _is_learned(name: str, value: Any) -> bool:
    return not name.rstrip("_").endswith(_NOT_LEARNED) and not clocks.is_clock(name, value)


class _Given:
    """The parameters that an estimator had before its first fit."""

    def __init__(self, estimator: Any) -> None:
        self.owner: Callable[[], Any] = lambda: None
        state = vars(estimator)
        self.values = {name: state[name] for name in _parameters(type(estimator)) if name in state}
        self.digests = {name: _of_parameter(value) for name, value in self.values.items()}

    def is_same(self, name: str, value: Any) -> bool:
        """Return whether a parameter is what it was."""
        if name in _HOW_IT_RAN or name.endswith(_NOT_LEARNED):
            return True
        if name not in self.digests:
            return False
        before = self.digests[name]
        return value is self.values[name] if before is None else _of_parameter(value) == before


_given: dict[int, _Given] = {}


def remember(estimator: Any) -> None:
    """Remember the parameters of an estimator before its first fit, and those of the estimators among them."""
    if not hasattr(estimator, "__dict__"):
        return
    known = _given.get(id(estimator))
    if known is None or known.owner() is not estimator:
        try:
            key, parameters = id(estimator), _Given(estimator)
            parameters.owner = weakref.ref(estimator, lambda _: _given.pop(key, None))
        except TypeError:  # no weak references
            return
        _given[key] = parameters
    for name in _parameters(type(estimator)):
        for part in _estimators_in(vars(estimator).get(name)):
            remember(part)


def _parameters(kind: type) -> list[str]:
    names: Any = getattr(kind, "_get_param_names", tuple)
    return sorted(names(kind) if isinstance(names, types.FunctionType) else names())  # of PyOD, it is no class method


def _of_parameter(value: Any) -> tuple[str, bytes] | None:
    """Return what identifies the value of a parameter, None if only its address does, as of an estimator."""
    if type(value) in _PLAIN:
        return type(value).__name__, repr(value).encode("utf-8", "backslashreplace")
    if next(iter(_estimators_in(value)), None) is not None:
        return None  # which is read by itself
    try:
        learned = Learned(value)
        texts = [("%s%s" % (one.dtype, one.shape)).encode() + one.tobytes() for one in learned.arrays]
    except Exception as error:
        guard.pass_on(error)
        return None
    return type(value).__name__, hashlib.blake2b(b"".join([learned.rest, *texts])).digest()


class Learned:
    """What a value holds: its ``arrays`` in a fixed order, and a digest of everything else.

    It is ``empty`` if it is an estimator of which nothing is left to compare. With ``seeds`` given, the seeds among the
    keys of dicts are collected there and left out.

    Raises UndigestedError, which names the attribute, if some part of it has no digest.
    """

    def __init__(self, value: Any, seeds: list[tuple[str, Any]] | None = None) -> None:
        self._seeds = seeds
        self.empty = is_estimator(value) and _reader(type(value)) is None
        self._np: Any = sys.modules["numpy"]
        self._key = hashlib.blake2b(digest_size=16)
        self._seen: dict[int, tuple[int, Any]] = {}
        self._path: list[str] = []
        self.arrays: list[Any] = []
        self._walk(value, type(value).__name__)
        self.rest = self._key.digest()

    def _put(self, *texts: object) -> None:
        self._key.update(("%s\n" % (texts,)).encode("utf-8", "backslashreplace"))

    def _walk(self, value: Any, name: str = "") -> None:
        kind = type(value)
        if kind in _PLAIN:
            self._put(kind.__name__, repr(value))
            return
        if id(value) in self._seen:
            self._put("seen", self._seen[id(value)][0])
            return
        self._seen[id(value)] = len(self._seen), value  # which also keeps it, and so its address
        self._path.append(name)
        self._take_apart(value, kind)
        self._path.pop()

    def _take_apart(self, value: Any, kind: type) -> None:
        np, reader = self._np, _reader(kind)
        if isinstance(value, np.ndarray):
            self._array(value)
        elif isinstance(value, np.generic):
            self._array(np.asarray(value))
        elif reader is not None:
            self._put(_name(kind))
            self._walk(reader(value))
        elif isinstance(value, (list, tuple)):
            self._items(kind.__name__, value)
        elif isinstance(value, dict):
            self._mapping(value, self._is_kept)
        elif isinstance(value, (set, frozenset)):
            self._put("set", sorted(map(self._of_key, value)))
        elif isinstance(value, _NAMED):
            self._function(value)
        elif is_estimator(value):
            self._estimator(value)
        else:
            self._other(value, kind)

    def _is_kept(self, key: Any, value: Any) -> bool:
        if not isinstance(key, str):
            return True
        if self._seeds is not None and type(value) in (int, float) and key.rstrip("_").endswith(_NOT_LEARNED[:4]):
            self._seeds.append((key, value))
            return False
        return not clocks.is_clock(key, value)

    def _items(self, kind: str, items: Any) -> None:
        self._put(kind, len(items))
        if {*map(type, items)} <= _PLAIN:
            self._put(repr(list(items)))
            return
        for index, item in enumerate(items):
            self._walk(item, "[%d]" % index)

    def _of_key(self, key: Any) -> str:
        """Return a text that is equal for equal keys of a dict or elements of a set, which have no order."""
        if type(key) in _PLAIN:
            return repr(key)
        learned = Learned(key)
        self.arrays += learned.arrays
        return learned.rest.hex()

    def _mapping(self, mapping: dict[Any, Any], is_kept: Callable[[Any, Any], bool]) -> None:
        keys = sorted(
            [(self._of_key(key), key) for key, one in mapping.items() if is_kept(key, one)], key=lambda k: k[0]
        )
        self._put("dict", len(keys))
        for text, key in keys:
            self._put(text)
            self._walk(mapping[key], "." + key if isinstance(key, str) else "[%s]" % text)

    def _function(self, value: Any) -> None:
        self._put(_name(value))
        if isinstance(value, types.FunctionType):
            self._walk((value.__defaults__, value.__kwdefaults__))
            for cell in value.__closure__ or ():
                self._walk(cell.cell_contents)

    def _estimator(self, value: Any) -> None:
        kind = type(value)
        self._put(kind.__qualname__)
        if recorded_elsewhere(value):
            return
        parameters, before = {*_parameters(kind)}, _given.get(id(value))
        state = value.__getstate__() if hasattr(value, "__getstate__") else dict(vars(value))
        if not isinstance(state, dict):
            self._walk(state)
            return
        changed = set()
        if before is not None and before.owner() in (value, None):
            changed = {name for name in parameters & state.keys() if not before.is_same(name, state[name])}
            changed = {name for name in changed if next(iter(_estimators_in(state[name])), None) is None}
        learned = {name: one for name, one in state.items() if name not in parameters or name in changed}
        self.empty = self.empty and not any(
            [name not in _OF_THE_DATA and _is_learned(name, one) for name, one in learned.items()]
        )
        self._mapping(learned, _is_learned)
        for name in sorted(parameters & state.keys()):  # such as the steps of a pipeline, which are fitted in place
            for index, part in enumerate(_estimators_in(state[name])):
                self._walk(part, ".%s[%d]" % (name, index))

    def _other(self, value: Any, kind: type) -> None:
        names = [_name(one) for one in kind.__mro__]
        self._put(names[0])
        if recorded_elsewhere(value) or not _GENERATORS.isdisjoint(names):
            return
        if "torch.nn.modules.module.Module" in names:
            self._walk(value.state_dict())
        elif "torch.Tensor" in names or "torch._tensor.Tensor" in names:
            self._walk(value.detach().to("cpu", copy=True).numpy())
        elif "numba.core.dispatcher.Dispatcher" in names:  # a compiled function, which is pickled with a random ID
            self._function(value.py_func)
        elif names[0].startswith("pandas.") and hasattr(value, "to_numpy"):
            self._table(value)
        else:
            self._as_pickled(value, kind)

    def _table(self, value: Any) -> None:
        if hasattr(value, "items") and hasattr(value, "columns"):
            for name, column in value.items():
                self._walk(name)
                self._walk(column.to_numpy())
        else:
            self._walk(value.to_numpy())
        if hasattr(value, "index"):
            self._walk(value.index.to_numpy())

    def _as_pickled(self, value: Any, kind: type) -> None:
        try:
            reduce = copyreg.dispatch_table.get(kind)
            reduced = reduce(value) if reduce is not None else value.__reduce_ex__(4)
        except Exception as error:
            guard.pass_on(error)
            raise UndigestedError("%s: %s" % ("".join(self._path), error)) from None
        if isinstance(reduced, str):
            self._put(reduced)
            return
        make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        self._walk((make, arguments, None if items is None else list(items), None if pairs is None else dict(pairs)))
        if isinstance(state, dict):
            self._mapping(state, _is_learned)
        else:
            self._walk(state)

    def _array(self, array: Any) -> None:
        np = self._np
        if isinstance(array, np.ma.MaskedArray):
            self._array(np.ma.getmaskarray(array))
            array = array.filled(None if array.dtype.kind == "O" else np.zeros((), array.dtype))  # no fill value
        array = np.asarray(array)
        if array.dtype.names:
            self._put(array.dtype.names)
            for name in array.dtype.names:  # without the bytes between them, which are not initialized
                self._array(array[name])
        elif array.dtype.kind == "f" and array.dtype.itemsize > 8:  # which has unused bytes
            high = array.astype("f8")
            self._array(high)
            self._array((array - high).astype("f8"))
        elif array.dtype.kind in "OT":
            self._put(array.shape)
            self._items("objects", array.ravel().tolist())
        else:
            self._put("array")
            self.arrays.append(array.view("i8") if array.dtype.kind in "mM" else array)


def _estimators_in(value: Any) -> Iterable[Any]:
    """Yield the estimators in nested lists, tuples and dicts."""
    if is_estimator(value):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _estimators_in(item)
    elif isinstance(value, dict):
        for _, item in sorted(value.items(), key=lambda pair: str(pair[0])):
            yield from _estimators_in(item)


# Hold what estimators learned until the end, as weights.py holds the weights of optimizers.


_FOLD_FROM = 64


class ArrayReader(ValueReader):
    """Reads arrays of any type, text too."""

    def array(self, value: Any) -> Any:
        """Return the array."""
        return value


class _Estimator:
    """An estimator, or another result of a fit, with the digests of what it learned."""

    def __init__(self, owner: Any, reader: ArrayReader) -> None:
        self.owner: Callable[[], Any] = weakref.ref(owner) if hasattr(owner, "__weakref__") else lambda: None
        self._reader = reader
        self._weights: list[Weight] = []

    def learned(self, arrays: list[Any], parts: list[digest.Part]) -> None:
        """Note what it learned last."""
        self._weights = [Weight(array, part, self._reader) for array, part in zip(arrays, parts)]

    def read(self, freed: Any = None) -> None:
        """Read it again, because a script may change it; also when it is ``freed``."""
        owner = self.owner() if freed is None else freed
        if owner is not None:
            arrays = read(owner)
            self.learned(arrays, self._reader.parts(arrays))

    @property
    def gone(self) -> bool:
        """Whether it was freed."""
        return self.owner() is None

    def summary(self) -> Summary:
        """Return what remains of it."""
        return Summary(weights=self._weights)


_held: dict[int, _Estimator] = {}
"""The estimators that were fitted and not freed, by their id()."""


def freed(owner: Any) -> None:
    """Read an estimator that is being freed: it may have been changed since its fit."""
    estimator = _held.pop(id(owner), None)
    if estimator is not None and estimator.owner() in (owner, None):
        estimator.read(owner)


class Estimators:
    """What all estimators of a process learned, in the order of their first fits.

    The order must not depend on when one is freed, which may be up to the garbage collector.
    """

    def __init__(self, reader: ArrayReader) -> None:
        self._reader = reader
        self._fitted: list[_Estimator | Summary] = []
        self._known: dict[int, _Estimator] = {}
        self._fold_from = _FOLD_FROM

    def hold(self, owner: Any, arrays: list[Any], parts: list[digest.Part]) -> None:
        """Hold what ``owner`` learned."""
        estimator = self._known.get(id(owner))
        if estimator is None or estimator.owner() is not owner:
            estimator = self._known[id(owner)] = _Estimator(owner, self._reader)
            self._fitted.append(estimator)
            if is_estimator(owner):
                _held[id(owner)] = estimator
        estimator.learned(arrays, parts)
        if len(self._fitted) > self._fold_from:
            self._fitted = fold(self._fitted)
            self._known = {key: one for key, one in self._known.items() if not one.gone}
            self._fold_from = 2 * len(self._fitted) + _FOLD_FROM

    def sum_up(self) -> Summary:
        """Return what to write of all estimators."""
        total = Summary()
        for one in self._fitted:
            if isinstance(one, _Estimator):
                one.read()
            total.join(one.summary())
        return total


def read(value: Any, seeds: list[tuple[str, Any]] | None = None) -> list[Any]:
    """Return the arrays that were learned, first one with the digest of everything else; [] if nothing was learned.

    Raises UndigestedError if there is something else without a digest. ``seeds`` is as of Learned.
    """
    learned = Learned(value, seeds)
    return [] if learned.empty else [sys.modules["numpy"].frombuffer(learned.rest, dtype="S16"), *learned.arrays]
