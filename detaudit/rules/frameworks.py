"""Rules for what frameworks draw: data sets, layers, loaders, estimators, and the place of the global seed."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from detaudit.model import SourceKind
from detaudit.rules.calls import fixed, with_keyword
from detaudit.rules.generators import is_none
from detaudit.rules.rule import UNSAFE, Fix, Rule
from detaudit.rules.times import indexes
from detaudit.source.text import SourceText, argument_of, given_otherwise, last

_UNSEEDED = frozenset({SourceKind.UNSEEDED})


def _without(call: ast.Call, name: str, position: int) -> bool:
    """Whether an argument is None or not passed, and may be passed."""
    passed = call.args[position] if len(call.args) > position else argument_of(call, name)
    if passed is not None:
        return is_none(passed) and len(call.args) <= position
    return not given_otherwise(call) and not any(isinstance(one, ast.Starred) for one in call.args)


def _seeded(page: SourceText, call: ast.Call, name: str, value: str = "{}", module: str = "") -> Fix:
    """Return the fix that passes a seed by a keyword: 0, or what numbers the times at which the call is made.

    ``value`` is what is passed, by a function of this ``module``.
    """
    numbers = indexes(page.reader, call)
    if numbers is None or len(numbers) > 1:
        return UNSAFE
    local = page.name_of(module)
    value = (local + value.removeprefix(module) if local else value).format(*numbers or "0")
    return fixed(with_keyword(page, call, name, value), *(() if local or not module else page.importing(module)))


class DatasetShuffle(Rule):
    """Give the shuffle of a tf.data pipeline a seed."""

    name = "dataset-shuffle"
    kinds = _UNSEEDED
    message = "Without a seed of its own, and a global one from before it is made, each run shuffles in another order."
    before = "data = tf.data.Dataset.range(100).shuffle(100).batch(10)\n"
    after = "data = tf.data.Dataset.range(100).shuffle(100, seed=0).batch(10)\n"
    never = (
        "It never takes the order of the first epoch for all: `reshuffle_each_iteration` stays as it is. In a loop, "
        "the seed is the number of the pass."
    )

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        if not isinstance(node, ast.Call) or not _without(node, "seed", 1):
            return None
        match node.func:
            case ast.Attribute(attr="shuffle", value=value) if page.is_made_by(value, "tensorflow.data"):
                return _seeded(page, node, "seed")
            case _:
                return None


_LAYERS = {
    *("AlphaDropout", "Dropout", "GaussianDropout", "GaussianNoise"),
    *(f"SpatialDropout{n}D" for n in (1, 2, 3)),
    *(f"Random{what}" for what in ("Brightness", "Contrast", "Crop", "Flip", "Rotation", "Translation", "Zoom")),
}
_INITIALIZERS = {
    *(f"{who}{how}" for who in ("Glorot", "He", "Lecun") for how in ("Normal", "Uniform")),
    *("Orthogonal", "RandomNormal", "RandomUniform", "TruncatedNormal", "VarianceScaling"),
}


class LayerSeed(Rule):
    """Give random layers and initializers of Keras seeds of their own."""

    name = "layer-seed"
    kinds = _UNSEEDED
    message = "Keras draws their seeds from Python's `random`, which `tf.random.set_seed` does not seed."
    before = "drop = keras.layers.Dropout(0.5)\nnoise = keras.layers.GaussianNoise(0.1)\n"
    after = "drop = keras.layers.Dropout(0.5, seed=0)\nnoise = keras.layers.GaussianNoise(0.1, seed=1)\n"
    never = (
        "It never gives two layers of a file the same seed, nor any to a layer that is made again and again: they "
        "would draw the same."
    )

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        if not isinstance(node, ast.Call) or not _is_random(page, node) or not _lacks_a_seed(node):
            return None
        if indexes(page.reader, node) != ():
            return UNSAFE
        calls = [one for one in ast.walk(page.reader.tree) if isinstance(one, ast.Call) and _is_random(page, one)]
        calls.sort(key=lambda one: page.span(one)[1])
        used = {seed.value for one in calls if isinstance(seed := argument_of(one, "seed"), ast.Constant)}
        free = (n for n in range(2 * len(calls)) if n not in used)
        seeds = dict(zip((one for one in calls if _lacks_a_seed(one)), free, strict=False))
        return fixed(with_keyword(page, node, "seed", str(seeds[node])))


def _is_random(page: SourceText, call: ast.Call) -> bool:
    module, _, name = page.full(call.func).rpartition(".")
    layer = name in _LAYERS and module.endswith("keras.layers")
    return layer or (name in _INITIALIZERS and module.endswith("keras.initializers"))


def _lacks_a_seed(call: ast.Call) -> bool:
    seed = argument_of(call, "seed")
    return is_none(seed) if seed is not None else not given_otherwise(call)


_GLOBAL_SEEDS = {
    *("random.seed", "numpy.random.seed", "torch.manual_seed", "tensorflow.random.set_seed"),
    *("keras.utils.set_random_seed", "tensorflow.keras.utils.set_random_seed", "lightning.seed_everything"),
}


class LateSeed(Rule):
    """Set global seeds before the first data set and the first layer."""

    name = "late-seed"
    kinds = _UNSEEDED
    message = (
        "What was drawn before the seed was set, such as the seed of a data set or initial weights, is another in "
        "each run."
    )
    before = "data = tf.data.Dataset.range(9).shuffle(9)\ntf.random.set_seed(1)\n"
    after = "tf.random.set_seed(1)\ndata = tf.data.Dataset.range(9).shuffle(9)\n"
    never = "It never moves a seed out of a loop, a condition or a function, nor above what its value is computed of."

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        match node:
            case ast.Expr(value=ast.Call(func=function, args=[_])) if page.full(function) in _GLOBAL_SEEDS:
                body = page.reader.parent(node)
            case _:
                return None
        if not isinstance(body, ast.Module):
            return None
        above = body.body[: body.body.index(node)]
        first = next((n for n, one in enumerate(above) if _draws(page, one)), len(above))
        bound = {name for one in above[first:] for name in _bound(one)}
        lines = [one.lineno for one in body.body]
        if first == len(above) or lines.count(node.lineno) > 1 or lines.count(above[first].lineno) > 1:
            return None
        if bound & {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}:
            return None
        (start, end), target = page.whole_lines(node), page.whole_lines(above[first])[0]
        text = page.text(start, end)
        return Fix(((target, target, text if text[-1:] in "\r\n" else f"{text}\n"), (start, end, "")))


def _draws(page: SourceText, statement: ast.stmt) -> bool:
    """Whether a statement calls something when it runs that may draw: whatever is no global seed itself."""
    calls = isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr | ast.For | ast.With)
    functions = [one.func for one in ast.walk(statement) if isinstance(one, ast.Call)] if calls else []
    return any(page.full(one) not in _GLOBAL_SEEDS for one in functions)


def _bound(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name.split(".")[0]
            case _:
                pass


_SPLITS = {"KFold", "StratifiedKFold", "StratifiedGroupKFold"}
_ESTIMATORS = {
    *("train_test_split", "resample", "shuffle", "ShuffleSplit", "StratifiedShuffleSplit", "GroupShuffleSplit"),
    *("RepeatedKFold", "RepeatedStratifiedKFold", "RandomizedSearchCV", "permutation_importance"),
    *(f"make_{what}" for what in ("blobs", "circles", "classification", "friedman1", "moons", "regression")),
    *(
        f"{what}{kind}"
        for what in ("AdaBoost", "Bagging", "DecisionTree", "ExtraTree", "ExtraTrees", "GradientBoosting", "MLP")
        for kind in ("Classifier", "Regressor")
    ),
    *(
        f"{what}{kind}"
        for what in ("HistGradientBoosting", "RandomForest", "SGD")
        for kind in ("Classifier", "Regressor")
    ),
    *("BernoulliRBM", "DictionaryLearning", "FastICA", "GaussianMixture", "GaussianRandomProjection", "KMeans"),
    *("IsolationForest", "LatentDirichletAllocation", "MiniBatchKMeans", "NMF", "Nystroem", "Perceptron", "RBFSampler"),
    *("SparseRandomProjection", "SpectralClustering", "TSNE", "TruncatedSVD"),
    # of imbalanced-learn, https://imbalanced-learn.org/stable/references/
    *(
        "RandomUnderSampler",
        "RandomOverSampler",
        "SMOTE",
        "SMOTEN",
        "SMOTENC",
        "BorderlineSMOTE",
        "KMeansSMOTE",
        "SVMSMOTE",
    ),
    *("ADASYN", "ClusterCentroids", "InstanceHardnessThreshold", "SMOTEENN", "SMOTETomek", "BalancedBaggingClassifier"),
    *("BalancedRandomForestClassifier", "EasyEnsembleClassifier", "RUSBoostClassifier"),
}


@dataclass(frozen=True)
class _Seeded:
    """What a library gives a keyword for a seed, what is passed by it, and the keywords that make it needless."""

    module: str
    names: set[str]
    keyword: str
    value: str = "{}"
    others: tuple[str, ...] = ()
    uses: str = ""
    """The module that the value is of."""


_SEEDED = (
    _Seeded("sklearn", _ESTIMATORS | _SPLITS, "random_state"),
    _Seeded("imblearn", _ESTIMATORS, "random_state"),
    # https://docs.scipy.org/doc/scipy/reference/stats.qmc.html
    _Seeded(
        "scipy.stats.qmc",
        {"Halton", "LatinHypercube", "MultinomialQMC", "MultivariateNormalQMC", "PoissonDisk", "Sobol"},
        "seed",
        others=("rng",),
    ),
    # https://bayesian-optimization.github.io/BayesianOptimization/
    _Seeded("bayes_opt", {"BayesianOptimization"}, "random_state"),
    # https://albumentations.ai/docs/4-advanced-guides/reproducibility
    _Seeded("albumentations", {"Compose", "ReplayCompose"}, "seed"),
    # https://stable-baselines3.readthedocs.io/en/master/guide/algos.html
    _Seeded("stable_baselines3", {"A2C", "DDPG", "DQN", "PPO", "SAC", "TD3"}, "seed"),
    # https://optuna.readthedocs.io/en/stable/faq.html
    _Seeded("optuna.samplers", {"CmaEsSampler", "NSGAIISampler", "QMCSampler", "RandomSampler", "TPESampler"}, "seed"),
    _Seeded(
        "optuna",
        {"create_study"},
        "sampler",
        "optuna.samplers.TPESampler(seed={})",
        others=("directions",),
        uses="optuna",
    ),
)


@dataclass(frozen=True)
class EstimatorSeed(Rule):
    """Give what a library draws with a seed of its own."""

    seeded: tuple[_Seeded, ...] = _SEEDED

    name = "estimator-seed"
    kinds = frozenset({SourceKind.UNSEEDED, SourceKind.ENTROPY})
    message = (
        "Without one, estimators, samplers and agents draw from NumPy's global generator, or from one that the system "
        "seeds."
    )
    before = (
        "from sklearn.model_selection import train_test_split\n\ntrain, test = train_test_split(rows, test_size=0.2)\n"
    )
    after = (
        "from sklearn.model_selection import train_test_split\n\n"
        "train, test = train_test_split(rows, test_size=0.2, random_state=0)\n"
    )
    never = (
        "It never gives a constant to what is made or fitted again and again: the forests of an ensemble would all be "
        "the same."
    )

    @classmethod
    def of(cls, taker: str) -> "EstimatorSeed":
        """Return the rule for what a run recorded, such as ``umap.UMAP(random_state)``; see Source."""
        full, _, keyword = taker.removesuffix(")").partition("(")
        module, name = full.partition(".")[0], full.rpartition(".")[2]
        if keyword in ("rng", "rstate"):
            return cls((_Seeded(module, {name}, keyword, "numpy.random.default_rng({})", uses="numpy"),))
        return cls((_Seeded(module, {name}, keyword),))

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        if not isinstance(node, ast.Call):
            return None
        if self.seeded is _SEEDED:
            return self._fix(page, node) or _said_to_be_none(page, node)
        times = indexes(page.reader, node)
        for call in (node, *_made_by(page, node)):
            fix = self._fix(page, call)
            if fix is not None:
                known = indexes(page.reader, call) == times and not any(map(_may_be_seed, call.args))
                return fix if known else UNSAFE
        return None

    def _fix(self, page: SourceText, call: ast.Call) -> Fix | None:
        for one, (module, _, name) in product(self.seeded, [one.rpartition(".") for one in _called(page, call)]):
            if name in one.names and f"{module}.".startswith(f"{one.module}."):
                shuffles = argument_of(call, "shuffle")
                if name in _SPLITS and not (isinstance(shuffles, ast.Constant) and shuffles.value is True):
                    return None
                if not _without(call, one.keyword, 99) or argument_of(call, *one.others) is not None:
                    return None
                return _seeded(page, call, one.keyword, one.value, one.uses)
        return None


def _called(page: SourceText, call: ast.Call) -> list[str]:
    """Return the full name of what is called, by ``super().__init__`` those of the bases of the class."""
    match call.func:
        case ast.Attribute(attr="__init__", value=ast.Call(func=ast.Name(id="super"), args=[])):
            function = page.reader.scope(call)
            owner = page.reader.parent(function)
            return [page.full(base) for base in owner.bases] if isinstance(owner, ast.ClassDef) else []
        case function:
            return [page.full(function)]


def _said_to_be_none(page: SourceText, call: ast.Call) -> Fix | None:
    """Return the fix of a call of any library with ``random_state=None``."""
    said = [
        one.arg for one in call.keywords if one.arg in ("random_state", "random_seed", "seed") and is_none(one.value)
    ]
    return _seeded(page, call, said[0] or "") if said and "." in page.full(call.func) else None


class PassedSeed(EstimatorSeed):
    """Pass a seed through a library's function, whose own parameters may not name it: minimize(..., seed=0)."""

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        one = self.seeded[0]
        if not isinstance(node, ast.Call) or page.full(node.func).partition(".")[0] != one.module:
            return None
        if isinstance(page.reader.parent(node), ast.Call | ast.keyword | ast.Attribute):
            return None  # the outermost call of the line takes all
        if not _without(node, one.keyword, 99) or any(map(_may_be_seed, node.args)):
            return None
        return _seeded(page, node, one.keyword, one.value, one.uses)


_SEED = re.compile("seed|rand|rng|state", re.IGNORECASE)


def _may_be_seed(argument: ast.expr) -> bool:
    """Whether an argument without a keyword may be the seed already: it is None, or named like one."""
    named = isinstance(argument, ast.Name | ast.Attribute) and _SEED.search(last(argument))
    return is_none(argument) or bool(named)


def _made_by(page: SourceText, call: ast.Call) -> Iterator[ast.Call]:
    """Yield, of a call of a method, those that its object is evidently made by: ``pipe = Pipeline([PCA()])``."""
    if isinstance(call.func, ast.Attribute):
        values = page.reader.values(call.func.value)
        if len(values) == 1 and values[0] is not None:
            yield from (node for node in ast.walk(values[0]) if isinstance(node, ast.Call))


_LOADERS = {"DataLoader", "StatefulDataLoader"}
_SAMPLERS = {"RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler", "random_split"}


class LoaderGenerator(Rule):
    """Give a DataLoader a generator of its own."""

    name = "loader-generator"
    kinds = _UNSEEDED
    message = (
        "Without one, its order and the seeds of its workers are drawn from torch's global generator, as all before "
        "them left it."
    )
    before = "import torch\n\nloader = torch.utils.data.DataLoader(\n    data,\n    shuffle=True,\n)\n"
    after = (
        "import torch\n\nloader = torch.utils.data.DataLoader(\n    data,\n    shuffle=True,\n"
        "    generator=torch.Generator().manual_seed(0),\n)\n"
    )
    never = (
        "It never makes a loader that is made for each epoch repeat the order of the first: its seed is the number "
        "of the epoch, and without such a number the line stays as it is."
    )

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        if not isinstance(node, ast.Call) or not _without(node, "generator", 99):
            return None
        module, _, name = page.full(node.func).rpartition(".")
        if not module.startswith(("torch.utils.data", "torchdata")) or name not in _LOADERS | _SAMPLERS:
            return None
        drawing = [argument_of(node, "shuffle"), argument_of(node, "num_workers")]
        if name in _LOADERS and not any(isinstance(one, ast.Constant) and one.value for one in drawing):
            return None
        return _seeded(page, node, "generator", "torch.Generator().manual_seed({})", "torch")


class RowSeed(Rule):
    """Give a sample of rows of Polars or pandas a seed."""

    name = "row-seed"
    kinds = _UNSEEDED
    message = (
        "Polars draws with a generator of its own, which `random.seed` does not seed, and pandas from the global one "
        "of NumPy."
    )
    before = "import polars as pl\n\nrows = pl.read_csv(path).sample(fraction=1.0, shuffle=True)\n"
    after = "import polars as pl\n\nrows = pl.read_csv(path).sample(fraction=1.0, shuffle=True, seed=0)\n"
    never = "It never gives all passes of a loop the same rows: there the seed is the number of the pass."

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        match node:
            case ast.Call(func=ast.Attribute(attr="sample" | "shuffle" as name, value=value)):
                if _without(node, "seed", 99) and page.is_made_by(value, "polars"):
                    return _seeded(page, node, "seed")
                of_pandas = name == "sample" and _without(node, "random_state", 4)
                return _seeded(page, node, "random_state") if of_pandas and page.is_made_by(value, "pandas") else None
            case _:
                return None


_GYMS = ("gymnasium", "gym")


class EnvironmentSeed(Rule):
    """Seed an environment of Gymnasium where it is reset, or below where it is made."""

    name = "environment-seed"
    kinds = frozenset({SourceKind.UNSEEDED, SourceKind.ENTROPY})
    message = (
        "Environments and spaces of Gymnasium have generators of their own, which the system seeds: no global seed "
        "reaches them."
    )
    before = (
        'import gymnasium as gym\n\nenv = gym.make("CartPole-v1")\nstate, _ = env.reset()\nwhile True:\n'
        "    state, *_ = env.step(env.action_space.sample())\n"
    )
    after = (
        'import gymnasium as gym\n\nenv = gym.make("CartPole-v1")\nenv.action_space.seed(0)\n'
        "state, _ = env.reset(seed=0)\nwhile True:\n    state, *_ = env.step(env.action_space.sample())\n"
    )
    never = (
        "It never gives all episodes the same seed: in a loop that counts them, it is their number, and in another "
        "one the environment is seeded once, where it is made."
    )

    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        match node:
            case ast.Call(func=ast.Attribute(attr="reset", value=env)) if page.is_made_by(env, *_GYMS):
                return _reset(page, node, env)
            case ast.Call(func=ast.Attribute(attr="sample", value=ast.Attribute(attr=name, value=env) as space)):
                if name not in ("action_space", "observation_space") or not page.is_made_by(env, *_GYMS):
                    return None
                return _once_below(page, env, f"{ast.unparse(space)}.seed")
            case _:
                return None


def _reset(page: SourceText, call: ast.Call, env: ast.expr) -> Fix | None:
    """Return the fix that seeds an environment at a reset, if no other one does."""
    if _is_seeded(page, ast.unparse(call.func)) or given_otherwise(call):
        return None
    numbers, made = indexes(page.reader, call), page.reader.values(env)
    several = any(one is not None and "vec" in ast.unparse(one).lower() for one in made)  # the next has the next seed
    if numbers is None or len(numbers) > 1 or (numbers and several):
        return _once_below(page, env, f"{ast.unparse(env)}.reset", "seed=")
    return _seeded(page, call, "seed")


def _is_seeded(page: SourceText, function: str) -> bool:
    """Whether a function is called anywhere with a seed: by its keyword, or as its only argument."""
    calls = [
        one for one in ast.walk(page.reader.tree) if isinstance(one, ast.Call) and ast.unparse(one.func) == function
    ]
    seeds = [argument_of(one, "seed") for one in calls]
    return any(one.args for one in calls) or any(seed is not None and not is_none(seed) for seed in seeds)


def _once_below(page: SourceText, env: ast.expr, function: str, keyword: str = "") -> Fix | None:
    """Return the fix that calls a function with a seed below where an environment is made; None if it is called."""
    if _is_seeded(page, function):
        return None
    name = ast.unparse(env)
    made = [one for one in ast.walk(page.reader.tree) if isinstance(one, ast.Assign) and _binds(one, name)]
    if len(made) != 1 or indexes(page.reader, made[0]) != ():
        return UNSAFE
    end = page.whole_lines(made[0])[1]
    margin = page.lines[made[0].lineno - 1][: made[0].col_offset]
    if margin.strip() or page.text(end - 1, end) != "\n":
        return UNSAFE
    return Fix(((end, end, f"{margin}{function}({keyword}0)\n"),))


def _binds(statement: ast.Assign, name: str) -> bool:
    return any(ast.unparse(target) == name for target in statement.targets)
