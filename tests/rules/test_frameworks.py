"""What frameworks draw gets a seed where that is safe, and stays where a seed would make draws repeat."""

from pathlib import Path
from textwrap import dedent

import pytest

from detaudit.model import SourceKind
from detaudit.rules import RULES, edits, rewritten
from detaudit.rules.frameworks import EstimatorSeed, PassedSeed
from detaudit.rules.order import OneWorker
from detaudit.rules.rule import Rule

UNSEEDED, CLOCK, ADDRESS, MEMORY = (
    SourceKind.UNSEEDED,
    SourceKind.CLOCK,
    SourceKind.ADDRESS,
    SourceKind.UNINITIALIZED,
)
MARK = "  # here"
DATA = "data = tf.data.Dataset.range(9)\n"
LOADER = "import torch\nfrom torch.utils.data import DataLoader\n"
SKLEARN = (
    "from sklearn.model_selection import KFold, train_test_split\nfrom sklearn.ensemble import RandomForestClassifier\n"
)


def edited(text: str, kind: SourceKind = UNSEEDED) -> str | None:
    """Return what the marked line becomes, or the last line; None if it stays."""
    rewrite = rewritten(text, marked(text), kind)
    return "\n".join(rewrite.new).replace(MARK, "").strip() if rewrite is not None else None


def marked(text: str) -> int:
    """Return the number of the marked line, or of the last one."""
    lines = text.splitlines()
    return next((n for n, one in enumerate(lines, 1) if MARK in one), len(lines))


GYM = "import gymnasium as gym\nfrom stable_baselines3 import PPO\nenv = gym.make('CartPole-v1')\n"
QMC = "from scipy.stats import qmc\n"
FIELD = "@dataclass\nclass Noise:\n    rng: object = field(default_factory=np.random.default_rng)\n"


@pytest.mark.parametrize(
    ("text", "new"),
    [
        (GYM + "state, _ = env.reset()", "state, _ = env.reset(seed=0)"),
        (GYM + "for episode in range(9):\n    env.reset()", "env.reset(seed=episode)"),
        (GYM + "env.reset(seed=3)\nenv.reset()", None),
        ("import gymnasium as gym\ne = gym.make_vec('A', 3)\nfor n in range(9):\n    e.reset()",
         "e.reset(seed=0)\nfor n in range(9):"),
        ("import gymnasium as gym\nclass Maze(gym.Env): ...\nmaze = Maze()\nmaze.reset()", "maze.reset(seed=0)"),
        ("class Maze(Base): ...\nmaze = Maze()\nmaze.reset()", None),
        (GYM + "while f():\n    env.reset()", "env.reset(seed=0)\nwhile f():"),
        (GYM + "env.action_space.sample()", "env.action_space.seed(0)\nenv.action_space.sample()"),
        (GYM + "env.action_space.seed(3)\nenv.action_space.sample()", None),
        (GYM + "env = Wrapper(gym.make('A'))\nwhile f():\n    env.reset()", None),
        (GYM + "rows.reset()", None),
        (GYM + "agent = PPO('MlpPolicy', env)", "agent = PPO('MlpPolicy', env, seed=0)"),
        (GYM + "agent = PPO('MlpPolicy', env, seed=3)", None),
        (GYM + "agent = PPO.load('agent', env)", None),
        ("import optuna\ns = optuna.create_study(direction='maximize')",
         "s = optuna.create_study(direction='maximize', sampler=optuna.samplers.TPESampler(seed=0))"),
        ("import optuna\ns = optuna.create_study(sampler=optuna.samplers.RandomSampler())",
         "s = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))"),
        ("import optuna\ns = optuna.create_study(directions=['maximize', 'minimize'])", None),
        ("from bayes_opt import BayesianOptimization\na = BayesianOptimization(f, {'x': (0, 1)})",
         "a = BayesianOptimization(f, {'x': (0, 1)}, random_state=0)"),
        ("import albumentations as A\nt = A.Compose([A.HorizontalFlip(p=0.5)])",
         "t = A.Compose([A.HorizontalFlip(p=0.5)], seed=0)"),
        ("from optuna.samplers import TPESampler\nclass S(TPESampler):\n    def __init__(self):\n"
         "        super().__init__()  # here\ns = S()", "super().__init__(seed=0)"),
        ("class S(Sampler):\n    def __init__(self):\n        super().__init__()  # here\ns = S()", None),
        ("import polars as pl\nt = pl.DataFrame(x)\na = t.filter(f).sample(9)", "a = t.filter(f).sample(9, seed=0)"),
        ("import polars as pl\nt = pd.DataFrame(x).sample(9)", None),
        ("import pandas as pd\nt = pd.read_csv(x)\nt = t.sample(frac=1.0)", "t = t.sample(frac=1.0, random_state=0)"),
        ("import pandas as pd\nt = pd.read_csv(x).sample(9, random_state=r)", None),
        ("import pandas as pd, random\nt = random.sample(x, 9)", None),
        ("import gymnasium\nclass A:\n    def __init__(self):\n        self.env = gymnasium.make('A')\n"
         "    def run(self):\n        while f():\n            self.env.reset()  # here\na = A()",
         "self.env.reset(seed=0)\n    def run(self):"),
        (QMC + "points = qmc.Sobol(2).random(8)", "points = qmc.Sobol(2, seed=0).random(8)"),
        (QMC + "points = qmc.Sobol(2, rng=3).random(8)", None),
        (QMC + "def points():\n    return qmc.LatinHypercube(d=2)", None),
        (FIELD + "noise = Noise()", "rng: object = field(default_factory=lambda: np.random.default_rng(0))"),
        (FIELD + "noise = [Noise() for n in range(3)]", None),
        (DATA + "rows = data.shuffle(9)", "rows = data.shuffle(9, seed=0)"),
        (DATA + "rows = data.map(f).shuffle(9, None)", None),
        (DATA + "rows = data.shuffle(9, seed=None)", "rows = data.shuffle(9, seed=0)"),
        (DATA + "rows = data.shuffle(9, 3)", None),
        (DATA + "rows = data.shuffle(9, seed=3)", None),
        (DATA + "rows = data.shuffle(*args)", None),
        (DATA + "for epoch in range(3):\n    rows = data.shuffle(9)", "rows = data.shuffle(9, seed=epoch)"),
        (DATA + "def rows():\n    return data.shuffle(9)", None),
        ("random.shuffle(rows)", None),
        ("rows = table.shuffle(9)", None),
        ("drop = keras.layers.Dropout(0.5)", "drop = keras.layers.Dropout(0.5, seed=0)"),
        ("from keras import layers\ndrop = layers.Dropout(0.5)", "drop = layers.Dropout(0.5, seed=0)"),
        ("drop = torch.nn.Dropout(0.5)", None),
        ("a = keras.layers.Dropout(0.5, seed=0)\nb = keras.layers.Dropout(0.5)",
         "b = keras.layers.Dropout(0.5, seed=1)"),
        ("a = [keras.layers.Dropout(0.5) for n in range(3)]", None),
        ("def block():\n    return keras.layers.Dropout(0.5)", None),
        ("a = keras.initializers.HeNormal()", "a = keras.initializers.HeNormal(seed=0)"),
        (SKLEARN + "a, b = train_test_split(x, y)", "a, b = train_test_split(x, y, random_state=0)"),
        (SKLEARN + "a = RandomForestClassifier()", "a = RandomForestClassifier(random_state=0)"),
        (SKLEARN + "a = KFold(3)", None),
        (SKLEARN + "a = KFold(3, shuffle=True)", "a = KFold(3, shuffle=True, random_state=0)"),
        (SKLEARN + "a = RandomForestClassifier(**best)", None),
        (SKLEARN + "a = [RandomForestClassifier() for n in range(3)]",
         "a = [RandomForestClassifier(random_state=n) for n in range(3)]"),
        (SKLEARN + "def forest():\n    return RandomForestClassifier()", None),
        ("a, b = train_test_split(x)", None),
        (LOADER + "a = DataLoader(x, shuffle=True)",
         "a = DataLoader(x, shuffle=True, generator=torch.Generator().manual_seed(0))"),
        (LOADER + "a = DataLoader(x, num_workers=2)",
         "a = DataLoader(x, num_workers=2, generator=torch.Generator().manual_seed(0))"),
        (LOADER + "a = DataLoader(x)", None),
        (LOADER + "a = DataLoader(x, shuffle=True, generator=g)", None),
        (LOADER + "for epoch in range(3):\n    a = DataLoader(x, shuffle=True)",
         "a = DataLoader(x, shuffle=True, generator=torch.Generator().manual_seed(epoch))"),
        (LOADER + "while f():\n    a = DataLoader(x, shuffle=True)", None),
        (LOADER + "def loader():\n    return DataLoader(x, shuffle=True)", None),
        (LOADER + "def start(n):\n    np.random.seed()  # here\n\na = DataLoader(x, worker_init_fn=start)",
         "np.random.seed(torch.initial_seed() % 2**32)"),
        (LOADER + "def g(n):\n    for m in n:\n        seed()  # here\n\nDataLoader(x, worker_init_fn=g)", None),
        (LOADER + "a = DataLoader(x, worker_init_fn=lambda n: random.seed())  # here",
         "a = DataLoader(x, worker_init_fn=lambda n: random.seed(torch.initial_seed() % 2**32))"),
    ],
)  # fmt: skip
def test_what_a_framework_draws(text: str, new: str | None) -> None:
    assert edited(text) == new


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ('p = {"seed": int(time.time())}', 'p = {"seed": 0}'),
        ('p = {**other, "bagging_seed": os.getpid()}', 'p = {**other, "bagging_seed": 0}'),
        ("m = LGBMClassifier(bagging_seed=int(time.time()))", "m = LGBMClassifier(bagging_seed=0)"),
        ('p = {"started": time.time()}', None),
        ('p = {"seed": 3}', None),
        ('def f():\n    return {"seed": time.time_ns()}', None),
    ],
)
def test_seeds_of_boosters(text: str, new: str | None) -> None:
    assert edited(text, CLOCK) == new


@pytest.mark.parametrize(
    ("kind", "text", "new"),
    [
        (MEMORY, "x = np.ndarray((3, 4), np.float32)", "x = np.zeros((3, 4), np.float32)"),
        (MEMORY, "x = np.ndarray((3, 4), buffer=b)", None),
        (MEMORY, "x = np.ndarray(3, object)", None),
        (MEMORY, "x = torch.Tensor(3, n)", "x = torch.zeros(3, n)"),
        (MEMORY, "x = torch.FloatTensor(3)", "x = torch.zeros(3)"),
        (MEMORY, "x = torch.Tensor([1.0, 2.0])", None),
        (MEMORY, "x = torch.Tensor(rows)", None),
        (ADDRESS, "a = [f(), g()]\nx = sorted(a, key=id)", "x = list(a)"),
        (ADDRESS, "a = {f(), g()}\nx = sorted(a, key=id)", None),
        (ADDRESS, "x = id(a) % 7", None),
    ],
)
def test_memory_and_addresses(kind: SourceKind, text: str, new: str | None) -> None:
    assert edited(text, kind) == new


LATE = [rule for rule in RULES[UNSEEDED] if rule.name == "late-seed"]


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("import torch\nmodel = torch.nn.Linear(2, 2)\ntorch.manual_seed(1)\n", True),
        ("import torch\nmodel = torch.nn.Linear(2, 2)\ntorch.manual_seed(1)", True),
        ("import torch\nSEED = 3\nmodel = torch.nn.Linear(2, 2)\ntorch.manual_seed(SEED)\n", True),
        ("import torch\nmodel = torch.nn.Linear(2, 2)\nSEED = 3\ntorch.manual_seed(SEED)\n", False),
        ("import numpy as np\nx = f()\nimport torch\ntorch.manual_seed(1)\n", False),
        ("import torch\ntorch.manual_seed(1)\nmodel = torch.nn.Linear(2, 2)\n", False),
        ("import random, torch\nrandom.seed(1)\ntorch.manual_seed(1)\n", False),
        ("import torch\ndef f():\n    return torch.rand(2)\ntorch.manual_seed(1)\n", False),
        ("import torch\nx = torch.rand(2)\ny = 1; torch.manual_seed(1)\n", False),
        ("import torch\ny = 1; x = torch.rand(2)\ntorch.manual_seed(y)\n", False),
        ("import torch\nx = torch.rand(2)\nif x:\n    torch.manual_seed(1)\n", False),
    ],
)
def test_a_seed_that_is_set_too_late_is_moved_up(text: str, moved: bool) -> None:
    line = next(n for n, one in enumerate(text.splitlines(), 1) if "torch.manual_seed" in one)
    rewrite = rewritten(dedent(text), line, UNSEEDED)
    assert (rewrite is not None) is moved
    if rewrite is not None:
        assert rewrite.new[0].startswith("torch.manual_seed(")
        assert sorted(filter(None, rewrite.new)) == sorted(rewrite.old)


REDUCER = "from umap import UMAP\n"
FMIN = "from hyperopt import fmin\n"


@pytest.mark.parametrize(
    ("text", "taker", "new"),
    [
        (REDUCER + "x = UMAP(2).fit(x)", "umap.UMAP(random_state)", "x = UMAP(2, random_state=0).fit(x)"),
        (REDUCER + "a = UMAP(2)\nx = a.fit(x)  # here", "umap.UMAP(random_state)", "a = UMAP(2, random_state=0)"),
        (REDUCER + "a = Pipeline([('a', UMAP())])\na.fit(x)  # here", "umap.UMAP(random_state)",
         "a = Pipeline([('a', UMAP(random_state=0))])"),
        (REDUCER + "a = UMAP(2, random_state=3)\nx = a.fit(x)  # here", "umap.UMAP(random_state)", None),
        (REDUCER + "a = UMAP(2, args.seed)\nx = a.fit(x)  # here", "umap.UMAP(random_state)", None),
        (REDUCER + "a = UMAP(2, None)\nx = a.fit(x)  # here", "umap.UMAP(random_state)", None),
        (REDUCER + "a = UMAP(**best)\nx = a.fit(x)  # here", "umap.UMAP(random_state)", None),
        (REDUCER + "a = UMAP()\nif x:\n    a = UMAP(2)\nx = a.fit(x)  # here", "umap.UMAP(random_state)", None),
        (REDUCER + "a = UMAP()\na = UMAP(2)\nx = a.fit(x)  # here", "umap.UMAP(random_state)",
         "a = UMAP(2, random_state=0)"),
        (REDUCER + "while f():\n    a = UMAP()\n    a.fit(x)  # here", "umap.UMAP(random_state)", None),
        (REDUCER + "for n in range(3):\n    a = UMAP()\n    a.fit(x)  # here", "umap.UMAP(random_state)",
         "a = UMAP(random_state=n)"),
        (REDUCER + "a = UMAP()\nfor n in range(3):\n    a.fit(x)  # here", "umap.UMAP(random_state)", None),
        (REDUCER + "for n in range(3):\n    UMAP().fit(x)  # here", "umap.UMAP(random_state)",
         "UMAP(random_state=n).fit(x)  # here"),
        (REDUCER + "a = UMAP()\nx = a.fit(x)  # here", "umap.PCA(random_state)", None),
        ("from arch.univariate import Normal\nn = Normal()", "arch.univariate.Normal(seed)", "n = Normal(seed=0)"),
        (FMIN + "import numpy as n\na = fmin(f)", "hyperopt.fmin(rstate)",
         "a = fmin(f, rstate=n.random.default_rng(0))"),
        (FMIN + "a = fmin(table.fmin(f), table.fmin(f))", "hyperopt.fmin(seed)",
         "a = fmin(table.fmin(f), table.fmin(f), seed=0)"),
        (FMIN + "a = fmin(f, hp.randint('x', 5), rand.suggest)", "hyperopt.fmin(seed)",
         "a = fmin(f, hp.randint('x', 5), rand.suggest, seed=0)"),
        (FMIN + "a = table.fmin(f)", "hyperopt.Table.fmin(seed)", None),
        (FMIN + "best = fmin(f)", "hyperopt.fmin(rstate)", "best = fmin(f, rstate=numpy.random.default_rng(0))"),
    ],
)  # fmt: skip
def test_what_a_run_showed_to_take_a_seed(text: str, taker: str, new: str | None, tmp_path: Path) -> None:
    assert edited_by(EstimatorSeed.of(taker), text, tmp_path) == new


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("m = glassbox.Booster(rounds=20, random_state=None)", "m = glassbox.Booster(rounds=20, random_state=0)"),
        ("m = glassbox.Booster(rounds=20, random_state=3)", None),
        ("m = glassbox.Booster(rounds=20, rng=None)", None),
        ("def f(seed=None):\n    return [seed]", None),
        ("m = f(seed=None)", None),
        ("while f():\n    m = glassbox.Booster(seed=None)  # here", None),
    ],
)
def test_a_seed_that_is_said_to_be_none(text: str, new: str | None, tmp_path: Path) -> None:
    assert edited_by(EstimatorSeed(), "from interpret import glassbox\n" + text, tmp_path) == new


MINIMIZE = "from pymoo.optimize import minimize\nfrom pymoo.algorithms import NSGA2\n"


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("r = minimize(problem, NSGA2(20), verbose=False)", "r = minimize(problem, NSGA2(20), verbose=False, seed=0)"),
        ("r = minimize(problem, NSGA2(20), seed=1)", None),
        ("r = minimize(problem, NSGA2(20), **options)", None),
        ("r = minimize(problem, NSGA2(20), args.seed)", None),
        ("r = other(problem)", None),
        ("while f():\n    minimize(problem)  # here", None),
    ],
)
def test_a_seed_that_a_library_may_pass_on(text: str, new: str | None, tmp_path: Path) -> None:
    assert edited_by(PassedSeed.of("pymoo.Algorithm(seed)"), MINIMIZE + text, tmp_path) == new


def edited_by(rule: Rule, text: str, folder: Path) -> str | None:
    """Return the first line that a rule writes for the marked line, or the last; None if it has no edit."""
    (folder / "train.py").write_text(text)
    return next((edit.new[0].strip() for edit in edits(folder, "train.py", marked(text), [rule])), None)


VECTORS = "from gensim.models import Word2Vec\n"
FOREST = "from econml.dml import CausalForestDML\n"
INDEX = "import hnswlib\nindex = hnswlib.Index('l2', 4)\n"
TREES = "from sklearn.ensemble import RandomForestRegressor\n"
BPR = "from implicit.bpr import BayesianPersonalizedRanking as BPR\n"


@pytest.mark.parametrize(
    ("text", "new"),
    [
        (VECTORS + "a = Word2Vec(x)", "a = Word2Vec(x, workers=1)"),
        (VECTORS + "a = Word2Vec(x, workers=4)", "a = Word2Vec(x, workers=1)"),
        (VECTORS + "a = Word2Vec(x, workers=1)", None),
        (VECTORS + "a = Word2Vec(x, **options)", None),
        ("a = Word2Vec(x)", None),
        (FOREST + "a = CausalForestDML(criterion='mse')", "a = CausalForestDML(criterion='mse', n_jobs=1)"),
        (TREES + "a = RandomForestRegressor(9, n_jobs=-1)", "a = RandomForestRegressor(9, n_jobs=1)"),
        (TREES + "a = RandomForestRegressor(9, n_jobs=cores)", "a = RandomForestRegressor(9, n_jobs=1)"),
        (TREES + "a = RandomForestRegressor(9, n_jobs=None)", None),
        (TREES + "a = RandomForestRegressor(9)", None),
        (BPR + "a = BPR(8)", "a = BPR(8, num_threads=1, random_state=0)"),
        (BPR + "a = BPR(8, random_state=3)", "a = BPR(8, random_state=3, num_threads=1)"),
        (BPR + "a = BPR(8, random_state=3, num_threads=1)", None),
        (INDEX + "index.add_items(x, num_threads=4)", "index.add_items(x, num_threads=1)"),
        (INDEX + "index.add_items(x, num_threads=1)", None),
        ("index.add_items(x)", None),
    ],
)
def test_threads_that_write_to_the_same_weights_or_add_to_the_same_sum(
    text: str, new: str | None, tmp_path: Path
) -> None:
    assert edited_by(OneWorker(), text, tmp_path) == new
