"""Each rule does to its example what its page shows, and nothing to what it has left."""

import ast
from pathlib import Path

import pytest

from detaudit import rules
from detaudit.config.flags import load_catalogue
from detaudit.fix.candidates import Training, candidates
from detaudit.fix.changes import Change, Text, applied
from detaudit.fix.tree import Tree
from detaudit.model import SourceKind
from detaudit.rules import GLOBAL, RULES, TABLE, edits, places
from detaudit.rules.rule import Rule
from tests.report.traces import TRACES

BY_NAME = {rule.name: rule for rule in TABLE}
EDITING = [name for name, rule in BY_NAME.items() if rule is not GLOBAL]


def after(rule: Rule, text: str, folder: Path) -> str:
    """Return a text with everything that a rule does to it, its imports too."""
    file = folder / "train.py"
    for _ in range(9):
        file.write_text(text)
        lines = [line for line, one in places(text.encode()) if one is rule]
        found = next((edit for line in lines for edit in edits(folder, file.name, line, [rule])), None)
        if found is None:
            return text
        changed = applied(Text.of(text.encode()), Change(file.name, found.line, found.old, found.new, found.needs))
        assert changed is not None
        assert found.rule == rule.name
        text = "".join(changed.lines)
    raise AssertionError(f"{rule.name} never ends")


@pytest.mark.parametrize("name", EDITING)
def test_the_example_of_a_rule_is_what_it_does(name: str, tmp_path: Path) -> None:
    rule = BY_NAME[name]
    assert after(rule, rule.before, tmp_path) == rule.after
    assert after(rule, rule.after, tmp_path) == rule.after


SETS = "models = {Ridge(1), Lasso(2)}\nfor n, model in enumerate(models):\n    model.fit(x, n)\n"
AS_DICT = SETS.replace("{Ridge(1), Lasso(2)}", "dict.fromkeys([Ridge(1), Lasso(2)])")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SETS, AS_DICT),
        (f"models = [Ridge(0)]\nfit(*models)\n{SETS}print(len(models), tree in models)\n", None),
        (f"models = [Ridge(0)]\nprint(len(models))\n{SETS}", f"models = [Ridge(0)]\nprint(len(models))\n{AS_DICT}"),
        (f"{SETS}models.add(Tree())\n", None),
        (f"{SETS}found = models | others\n", None),
        (f"{SETS}save(models)\n", None),
        (f"if x:\n    models = [Ridge(0)]\nelse:\n    {SETS.splitlines()[0]}\n" + SETS.partition("\n")[2], None),
        (f"models = [1]\ntry:\n    {SETS.splitlines()[0]}\nfinally:\n    print(*[one for one in models])\n", None),
        (f"{SETS.splitlines()[0]}\nwith opened(3) as models:\n    print(*[one for one in models])\n", None),
        (f"{SETS.splitlines()[0]}\nprint([models for models in others if list(models)])\n", None),
        (f"for again in range(2):\n    fit(*models)\n    models = [1]\n{SETS}", None),
        (f"def more():\n    global models\n    models = [Tree()]\n\n\nmodels = []\nmore()\n{SETS}", None),
    ],
)
def test_a_set_of_objects_with_a_name_is_changed_where_it_is_made(
    text: str, expected: str | None, tmp_path: Path
) -> None:
    assert after(BY_NAME["set-order"], text, tmp_path) == (expected or text)


def test_global_generators_are_seeded_below_the_imports(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(GLOBAL.before)
    tree = Tree(tmp_path, tmp_path, tmp_path / "results")
    tree.make()
    training = Training("train.py", ["train.py"], {}, ["cpu"])
    found = [
        change
        for one in candidates(TRACES["traced-hidden"], load_catalogue(), tree, training, ())
        for change in one.changes
    ]
    (seed,) = [change for change in found if change.flag == "python-random-seed"]
    changed = applied(Text.of(GLOBAL.before.encode()), seed)
    assert seed.rule == GLOBAL.name
    assert changed is not None
    assert "".join(changed.lines) == GLOBAL.after


@pytest.mark.parametrize(("helper", "advised"), [("loader = DataLoader(data)\n", False), ("size = 3\n", True)])
def test_no_file_of_the_training_may_have_workers_if_a_generator_is_made_once(
    helper: str, advised: bool, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(f"import helper\n\n\n{BY_NAME['generator-once'].before}")
    (tmp_path / "helper.py").write_text(helper)
    tree = Tree(tmp_path, tmp_path, tmp_path / "results")
    tree.make()
    training = Training("train.py", ["train.py", "helper.py"], {}, ["cpu"])
    found = candidates(TRACES["traced-hidden"], load_catalogue(), tree, training, ())
    assert any(change.rule == "generator-once" for one in found for change in one.changes) is advised


def test_names_are_of_one_rule_and_of_no_flag() -> None:
    assert len(BY_NAME) == len(TABLE)
    assert not set(BY_NAME) & set(load_catalogue().ids)


@pytest.mark.parametrize("rule", TABLE, ids=lambda rule: rule.name)
def test_the_page_of_a_rule_has_whole_sentences(rule: Rule) -> None:
    assert not rule.title.endswith(".")
    assert rule.message.endswith(".")
    assert rule.never.startswith("It never ")
    assert rule.never.endswith(".")


def test_every_kind_has_its_rules_in_the_order_of_the_table() -> None:
    assert RULES[SourceKind.UNSEEDED][0].name == "unseeded-generator"
    assert {rule.name for several in RULES.values() for rule in several} == {
        name for name in EDITING if BY_NAME[name].kinds
    }


def test_libcst_is_imported_only_to_edit() -> None:
    """It takes longer to import than ``detaudit --help``."""
    importing = []
    for path in Path(rules.__file__).parents[1].rglob("*.py"):
        for statement in ast.parse(path.read_text()).body:
            names = [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else []
            if "libcst" in names or (isinstance(statement, ast.ImportFrom) and statement.module == "libcst"):
                importing.append(path)
    assert not importing


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("import random\ndef draw():\n    random.seed()\n    return random.random()\nprint(draw(), draw())\n",
         "import random\nrandom.seed(0)\n\n\ndef draw():\n    return random.random()\nprint(draw(), draw())\n"),
        ("import torch\nwhile f():\n    torch.seed()\n", "import torch\ntorch.manual_seed(0)\nwhile f():\n    pass\n"),
        ("import random\ndef generator():\n    return random.Random()\nprint(generator(), generator())\n",
         "import random\nshared_generator = random.Random(0)\n\n\ndef generator():\n    return shared_generator\n"
         "print(generator(), generator())\n"),
        ("@f\nclass A:\n    def a(self):\n        return default_rng()\nfor x in y: A().a()\n",
         "generator = default_rng(0)\n\n\n@f\nclass A:\n    def a(self):\n        return generator\n"
         "for x in y: A().a()\n"),
    ],
)  # fmt: skip
def test_what_is_made_or_seeded_again_and_again_is_once(text: str, new: str, tmp_path: Path) -> None:
    assert after(BY_NAME["generator-once"], text, tmp_path) == new


@pytest.mark.parametrize(
    "text",
    [
        "def draw():\n    return default_rng()\n",  # a module, which workers may import
        "def draw():\n    return default_rng()\nwith ThreadPoolExecutor() as p: p.submit(draw)\n",
        "def draw():\n    return default_rng()\nfor x in DataLoader(data, num_workers=2): f(x)\n",
        "def draw():\n    return default_rng(SeedSequence())\nprint(draw(), draw())\n",
        "def draw():\n    return default_rng()\nprint(Trainer(args(dataloader_num_workers=2), draw).train())\n",
        "async def draw():\n    return default_rng()\nprint(run(gather(draw(), draw())))\n",
        "rank = int(os.environ['RANK'])\nwhile f():\n    x = default_rng()\n",
    ],
)
def test_no_generator_is_shared_that_workers_may_have(text: str, tmp_path: Path) -> None:
    assert after(BY_NAME["generator-once"], text, tmp_path) == text


def test_added_lines_stay_above_the_line_that_they_are_for(tmp_path: Path) -> None:
    rule = BY_NAME["worker-seed"]
    (tmp_path / "train.py").write_text(rule.before)
    (found,) = edits(tmp_path, "train.py", 2, [rule])
    moved = Text.of(("import numpy as np\n" * 3 + rule.before).encode())
    changed = applied(moved, Change("train.py", found.line, found.old, found.new, found.needs))
    assert changed is not None
    assert "".join(changed.lines) == "import numpy as np\n" * 3 + rule.after


@pytest.mark.parametrize("call", ["delayed(draw)(n) for n in range(6)", "delayed(draw)(n) for n, _ in enumerate(rows)"])
def test_workers_are_seeded_by_what_numbers_their_calls_whatever_its_name(call: str, tmp_path: Path) -> None:
    text = "def draw(n):\n    return np.random.normal()\n\n\nrows = Parallel(2)(CALL)\n".replace("CALL", call)
    changed = after(BY_NAME["worker-seed"], text, tmp_path)
    assert changed == text.replace("    return", "    np.random.seed(n)\n    return")


@pytest.mark.parametrize("call", ["mp.Process(target=draw, args=(n,)).start()", "jobs.append(pool.submit(draw, n))"])
def test_workers_that_a_loop_starts_are_seeded_by_its_counter(call: str, tmp_path: Path) -> None:
    text = f"def draw(n):\n    return np.random.normal()\n\n\nfor n in range(6):\n    {call}\n"
    changed = after(BY_NAME["worker-seed"], text, tmp_path)
    assert changed == text.replace("    return", "    np.random.seed(n)\n    return")


def threads(body: str = "return rng.normal()", made: str = "np.random.default_rng(SEED)", parameters: str = "i") -> str:
    start = f"SEED = 3\nrng = {made}\n\n\ndef draw({parameters}):\n    {body}\n\n\n"
    return start + "with ThreadPoolExecutor(4) as pool:\n    rows = list(pool.map(draw, range(6)))\n"


@pytest.mark.parametrize(
    ("made", "own"),
    [
        ("np.random.default_rng(SEED)", "np.random.default_rng([SEED, i])"),
        ("np.random.RandomState(0)", "np.random.RandomState([0, i])"),
        ("random.Random(SEED)", "random.Random(str([SEED, i]))"),
    ],
)
def test_threads_get_generators_of_their_own(made: str, own: str, tmp_path: Path) -> None:
    start = "import random\nimport numpy as np\n"
    text = start + threads(made=made)
    assert after(BY_NAME["own-generator"], text, tmp_path) == start + threads(
        f"rng = {own}\n    return rng.normal()", made
    )


@pytest.mark.parametrize(
    "text",
    [
        threads("global rng\n    return rng.normal()"),
        threads("return rng.normal()").replace(
            "pool.map(draw, range(6))", "pool.submit(draw, i) for i in x for x in y"
        ),
        threads("return rng.normal()", made="np.random.Generator(PCG64(0))"),
        threads("return rng.normal()").replace("rows", "rows = list(pool.map(draw, range(6)))\n    rows"),
        threads("return rng.normal()") + "print(draw(0))\n",
        threads("return rng.normal()").replace("range(6)", "names"),
        threads("return rng.normal()").replace("ThreadPool", "ProcessPool"),
        threads("return torch.rand(2, generator=rng)", made="torch.Generator()"),
    ],
)
def test_threads_without_a_number_get_no_generator_of_their_own(text: str, tmp_path: Path) -> None:
    text = "import numpy as np\n" + text
    assert after(BY_NAME["own-generator"], text, tmp_path) == text


def test_workers_are_seeded_by_the_number_in_what_they_are_given(tmp_path: Path) -> None:
    text = "def draw(pair):\n    n, x = pair\n    return x * np.random.normal()\n\n\npool.map(draw, enumerate(rows))\n"
    changed = after(BY_NAME["worker-seed"], text, tmp_path)
    assert changed == text.replace("    n, x", "    np.random.seed(pair[0])\n    n, x")


def test_threads_share_generators_and_do_not_seed_them(tmp_path: Path) -> None:
    text = BY_NAME["worker-seed"].before.replace("n_jobs=2", "n_jobs=2, prefer='threads'")
    assert after(BY_NAME["worker-seed"], text, tmp_path) == text


def test_estimators_of_workers_are_seeded_though_their_methods_have_the_name_of_the_function(tmp_path: Path) -> None:
    text = (
        "from sklearn.linear_model import SGDClassifier\n\n\n"
        "def fit(k):\n    return SGDClassifier().fit(x[k::4], y[k::4])\n\n\n"
        "models = Parallel(2)(delayed(fit)(k) for k in range(4))\n"
    )
    changed = after(BY_NAME["estimator-seed"], text, tmp_path)
    assert changed == text.replace("SGDClassifier()", "SGDClassifier(random_state=k)")


@pytest.mark.parametrize("call", ["delayed(draw)(n) for n in rows", "delayed(draw)(1) for n in range(6)", "draw(1)"])
def test_workers_whose_calls_may_be_given_the_same_number_are_not_seeded(call: str, tmp_path: Path) -> None:
    text = "def draw(n):\n    return np.random.normal()\n\n\nrows = Parallel(2)(CALL)\n".replace("CALL", call)
    assert after(BY_NAME["worker-seed"], text, tmp_path) == text


@pytest.mark.parametrize(
    ("imports", "drawn", "seed"),
    [
        ("import torch, torch.multiprocessing as mp", "torch.nn.Linear(4, 1)", "torch.manual_seed(rank)"),
        ("import torch as th\nimport torch.multiprocessing as mp", "th.rand(3)", "th.manual_seed(rank)"),
        ("from torch import nn\nimport torch.multiprocessing as mp", "nn.Linear(4, 1)", "torch.manual_seed(rank)"),
        ("import numpy.random as npr\nimport torch.multiprocessing as mp", "npr.rand(3)", "npr.seed(rank)"),
    ],
)
def test_processes_that_torch_spawns_are_seeded_by_their_number(
    imports: str, drawn: str, seed: str, tmp_path: Path
) -> None:
    text = f"{imports}\n\n\ndef train(rank, out):\n    x = {drawn}\n\n\nmp.spawn(train, args=(1,), nprocs=2)\n"
    seeded = after(BY_NAME["worker-seed"], text, tmp_path)
    assert seeded.removeprefix("import torch\n") == text.replace("    x =", f"    {seed}\n    x =")
    assert ("import torch\n" in seeded) == ("import nn" in text)
