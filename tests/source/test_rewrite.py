"""Lines that give different results are rewritten so that they do not, and nothing else of a file changes."""

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detaudit.model import SourceKind
from detaudit.rules import RULES, Rewrite, rewritten

SCRIPTS = Path(__file__).parents[1] / "corpus" / "scripts"

SET, OBJECTS, LISTING = SourceKind.SET_ORDER, SourceKind.OBJECT_SET_ORDER, SourceKind.LISTING_ORDER
UNSEEDED, CLOCK, PROCESS_ID = SourceKind.UNSEEDED, SourceKind.CLOCK, SourceKind.PROCESS_ID
COMPLETION, OPTION = SourceKind.COMPLETION_ORDER, SourceKind.COMPLETION_ORDER_OPTION
ENTROPY = SourceKind.ENTROPY
MEMORY, HASH, ADDRESS = SourceKind.UNINITIALIZED, SourceKind.HASH, SourceKind.ADDRESS

ENDS = re.compile(r"\r\n|\r|\n")


def applied(text: str, rewrite: Rewrite) -> str:
    lines = ENDS.split(text)
    assert tuple(lines[rewrite.first - 1 :][: len(rewrite.old)]) == rewrite.old
    lines[rewrite.first - 1 : rewrite.first - 1 + len(rewrite.old)] = rewrite.new
    return "\n".join(lines)


def fixed(kind: SourceKind, text: str, line: int = 0) -> str | None:
    """Return the text with the fix of its last line, or of ``line``, and check that nothing is left to fix."""
    line = line or len(text.splitlines())
    rewrite = rewritten(text.encode(), line, kind)
    if rewrite is None:
        return None
    new = applied(text, rewrite)
    ast.parse(new)
    moved = line + len(rewrite.new) - len(rewrite.old) if line > rewrite.first else line
    assert rewritten(new, max(moved, 1), kind) is None
    return new


@pytest.mark.parametrize(
    ("script", "line", "kind", "new"),
    [
        ("python_set_order", "enumerate({", SET, 'enumerate(sorted({f"word{i}" for i in range(500)}))}'),
        ("python_id_order", "list({", SET, "layers = list(dict.fromkeys(nn.Linear(16, 16) for _ in range(6)))"),
        ("python_hash_split", "hash(", HASH, 'if zlib.crc32(f"sample-{i}".encode()) % 10 < 8]]'),
        ("numpy_default_rng", "= np.random.default_rng()", UNSEEDED, "generator = np.random.default_rng(0)"),
        ("python_random_instance", "random.Random().", UNSEEDED, "random.Random(0).shuffle(order)"),
        ("torch_generator_seed", "generator.seed()", UNSEEDED, "generator.manual_seed(0)"),
        ("python_clock_seed", "torch.manual_seed(", CLOCK, "torch.manual_seed(0)"),
        (
            "torch_as_completed",
            "in as_completed(",
            COMPLETION,
            "        for done in [pool.submit(gradients, batch) for batch in batches]:",
        ),
        ("torch_pool_unordered", "imap_unordered(", COMPLETION, "        for made in pool.imap(batch, range(60)):"),
        (
            "torch_loader_out_of_order",
            "DataLoader(S",
            COMPLETION,
            "DataLoader(Samples(), batch_size=8, num_workers=2):",
        ),
        ("torch_empty_buffer", "torch.empty(", MEMORY, "    padded = torch.zeros(300, 16)"),
        ("numpy_empty", "np.empty((", MEMORY, "    batch = np.zeros((256, 16), np.float32)"),
        (
            "tensorflow_unordered_interleave",
            ".interleave(",
            COMPLETION,
            "    .interleave(shard, cycle_length=8, num_parallel_calls=8)",
        ),
    ],
)
def test_fixes_each_script(script: str, line: str, kind: SourceKind, new: str) -> None:
    text = (SCRIPTS / f"{script}.py").read_bytes()
    (number,) = [n for n, one in enumerate(text.decode().splitlines(), 1) if line in one and not one.startswith('"""')]
    rewrite = rewritten(text, number, kind)
    assert rewrite is not None
    assert (rewrite.first, len(rewrite.old), len(rewrite.new)) == (number, 1, 1)
    assert rewrite.new[0].endswith(new)
    assert rewrite.needs == (("import zlib",) if kind is HASH else ())
    assert fixed(kind, text.decode(), number) is not None


FIXED = [
    (SET, "for w in {'a', 'b'}: f(w)", "for w in sorted({'a', 'b'}): f(w)"),
    (SET, "x = [*set(a), *{f(b)}]", "x = [*sorted(set(a)), *sorted({f(b)})]"),
    (SET, "x = ' '.join(a.keys() & b.keys())", "x = ' '.join(sorted(a.keys() & b.keys()))"),
    (SET, "s = set(a)\nx = [g(w) for w in s]", "s = set(a)\nx = [g(w) for w in sorted(s)]"),
    (SET, "for p in set(m.parameters()): f(p)", "for p in dict.fromkeys(m.parameters()): f(p)"),
    (SET, "for p in {A(), B()}: f(p)", "for p in dict.fromkeys([A(), B()]): f(p)"),
    (SET, "x = list({1, 'a'})", "x = list(dict.fromkeys([1, 'a']))"),
    (SET, "x = list({A(w) for w in set(b)})", "x = list(dict.fromkeys(A(w) for w in sorted(set(b))))"),
    (SET, "x = list({Path(w) for w in b})", "x = sorted({Path(w) for w in b})"),
    (OBJECTS, "x = list({A(), B()})", "x = list(dict.fromkeys([A(), B()]))"),
    (LISTING, "x = os.listdir(d)", "x = sorted(os.listdir(d))"),
    (LISTING, "for x in Path(d).glob('*'): f(x)", "for x in sorted(Path(d).glob('*')): f(x)"),
    (LISTING, "for e in os.scandir(d): f(e)", "for e in sorted(os.scandir(d), key=lambda entry: entry.name): f(e)"),
    (LISTING, "x = list(d.iterdir())", "x = sorted(d.iterdir())"),
    (LISTING, "x = next(d.iterdir())", "x = next(iter(sorted(d.iterdir())))"),
    (LISTING, "from glob import iglob\nx = [*iglob('*')]", "from glob import iglob\nx = [*sorted(iglob('*'))]"),
    (UNSEEDED, "x = RandomState(None)", "x = RandomState(0)"),
    (UNSEEDED, "x = Generator(PCG64(seed=None))", "x = Generator(PCG64(seed=0))"),
    (UNSEEDED, "x = SeedSequence(spawn_key=(1,))", "x = SeedSequence(0, spawn_key=(1,))"),
    (UNSEEDED, "import random\nrandom.seed()", "import random\nrandom.seed(0)"),
    (UNSEEDED, "np.random.seed(None)", "np.random.seed(0)"),
    (ENTROPY, "import random\nrandom.SystemRandom().shuffle(x)", "import random\nrandom.Random(0).shuffle(x)"),
    (ENTROPY, "x = np.random.default_rng(secrets.randbits(64))", "x = np.random.default_rng(0)"),
    (UNSEEDED, "import torch\ntorch.seed()", "import torch\ntorch.manual_seed(0)"),
    (UNSEEDED, "import torch\nr = random.Random(1)\nr.seed()", "import torch\nr = random.Random(1)\nr.seed(0)"),
    (
        UNSEEDED,
        "x = tf.random.Generator.from_non_deterministic_state(alg='philox')",
        "x = tf.random.Generator.from_seed(0, alg='philox')",
    ),
    (CLOCK, "np.random.seed(int(time.time()))", "np.random.seed(0)"),
    (CLOCK, "x = train_test_split(a, random_state=datetime.now().second)", "x = train_test_split(a, random_state=0)"),
    (CLOCK, "from time import time\nk = PRNGKey(int(time()))", "from time import time\nk = PRNGKey(0)"),
    (CLOCK, "s = int(time.time())\nf(s)\nset_seed(s)", "s = 0\nf(s)\nset_seed(s)"),
    (CLOCK, "s = int(getenv('SEED', time.time()))\nset_seed(s)", "s = int(getenv('SEED', 0))\nset_seed(s)"),
    (CLOCK, "set_seed(args.seed or int(time.time()))", "set_seed(args.seed or 0)"),
    (
        CLOCK,
        "@dataclass\nclass C:\n    my_seed: int = field(default_factory=lambda: int(time.time()) % 7)",
        "@dataclass\nclass C:\n    my_seed: int = field(default_factory=lambda: 0)",
    ),
    (CLOCK, "class C:\n    SEED: int = time.time_ns()", "class C:\n    SEED: int = 0"),
    (CLOCK, "set_seed(int(time.time()) if s is None else s)", "set_seed(0 if s is None else s)"),
    (
        CLOCK,
        "set_seed(int(time.time()) + int(getenv('RANK', os.getpid())))",
        'set_seed(int(os.environ.get("RANK", 0)))',
    ),
    (CLOCK, "set_seed((s or os.getpid()) * int(time.time()))", "set_seed(0)"),
    (PROCESS_ID, "r = random.Random(os.getpid() + 1)", "r = random.Random(0)"),
    (COMPLETION, "for x in as_completed(fs, timeout=3): f(x)", "for x in fs: f(x)"),
    (COMPLETION, "for x in tqdm(as_completed(fs), total=3): f(x)", "for x in tqdm(fs, total=3): f(x)"),
    (COMPLETION, "x = list(as_completed(p.submit(f, i) for i in y))", "x = list([p.submit(f, i) for i in y])"),
    (COMPLETION, "for x in as_completed({p.submit(f): 1}): f(x)", "for x in {p.submit(f): 1}: f(x)"),
    (COMPLETION, "for x in as_completed(fs): fs.remove(x)", "for x in list(fs): fs.remove(x)"),
    (
        COMPLETION,
        "import asyncio\nfor x in asyncio.as_completed([create_task(f(i)) for i in y]): g(x)",
        "import asyncio\nfor x in [create_task(f(i)) for i in y]: g(x)",
    ),
    (CLOCK, "np.random.seed(args.seed + int(time.time()))", "np.random.seed(args.seed + 0)"),
    (
        CLOCK,
        "day = datetime.datetime.now()\ndraw = np.random.RandomState(int(day.strftime('%H%M%S')))",
        "day = datetime.datetime.now()\ndraw = np.random.RandomState(0)",
    ),
    (
        CLOCK,
        "c = {'seed': int(time.time()), 'n': 3}\nmanual_seed(c['seed'])",
        "c = {'seed': 0, 'n': 3}\nmanual_seed(c['seed'])",
    ),
    (
        CLOCK,
        "args.seed = int(time.time())\nmanual_seed(args.seed)",
        "args.seed = 0\nmanual_seed(args.seed)",
    ),
    (
        CLOCK,
        "s = int(time.time())\nprint(f'{s}')\nd = f'runs/{s}'\nmanual_seed(s)",
        "s = int(time.time())\nprint(f'{s}')\nd = f'runs/{s}'\nmanual_seed(0)",
    ),
    (CLOCK, "x = default_rng([args.seed, rank, int(time.time())])", "x = default_rng([args.seed, rank, 0])"),
    (COMPLETION, "x = next(as_completed(a + b))", "x = next(iter((a + b)))"),
    (COMPLETION, "x = DataLoader(in_order=False, dataset=d)", "x = DataLoader(dataset=d)"),
    (COMPLETION, "x = DataLoader((d), in_order=False,)", "x = DataLoader((d),)"),
    (COMPLETION, "x = d.map(f, deterministic=False).batch(2)", "x = d.map(f).batch(2)"),
    (COMPLETION, "options.deterministic = False", "options.deterministic = True"),
    (OPTION, "x = DataLoader(d, in_order=False)", "x = DataLoader(d)"),
    (COMPLETION, "x = Parallel(2, return_as='generator_unordered')(j)", 'x = Parallel(2, return_as="generator")(j)'),
    (
        SourceKind.ROW_ORDER,
        "import polars as pl\nx = pl.scan_csv(p).unique(subset='a').collect()",
        "import polars as pl\nx = pl.scan_csv(p).unique(subset='a', maintain_order=True).collect()",
    ),
    (SET, "done, left = wait(fs)\nx = [f(job) for job in done]", "done, left = wait(fs)\nx = [f(job) for job in fs]"),
    (MEMORY, "x = np.empty_like(y) + y.new_empty(3)", "x = np.zeros_like(y) + y.new_zeros(3)"),
    (MEMORY, "import torch as t\nx = t.empty(3)", "import torch as t\nx = t.zeros(3)"),
    (HASH, "x = hash('a' 'b') % 7", "x = zlib.crc32('a' 'b'.encode()) % 7"),
    (
        HASH,
        "x = hash(b'a')",
        "x = int.from_bytes(hashlib.blake2b(b'a', digest_size=8).digest(), \"little\", signed=True)",
    ),
    (
        UNSEEDED,
        "seed = None\nx = default_rng(seed)",
        "seed = None\nx = default_rng(0 if seed is None else seed)",
    ),
    (
        UNSEEDED,
        "p.add_argument('-s', '--my-seed', type=int)\nx = default_rng(args.my_seed)",
        "p.add_argument('-s', '--my-seed', type=int)\nx = default_rng(0 if args.my_seed is None else args.my_seed)",
    ),
    (
        UNSEEDED,
        "class C:\n    seed: int | None = None\nx = default_rng(c.seed)",
        "class C:\n    seed: int | None = None\nx = default_rng(0 if c.seed is None else c.seed)",
    ),
    (
        UNSEEDED,
        "import os\nrank = os.environ['RANK']\nx = default_rng()",
        "import os\nrank = os.environ['RANK']\nx = default_rng([0, int(os.environ.get(\"RANK\", 0))])",
    ),
    (HASH, "x = hash((a, b)) % 3", "x = zlib.crc32(str((a, b)).encode()) % 3"),
    (HASH, "x.sort(key=hash)", "x.sort(key=lambda item: zlib.crc32(str(item).encode()))"),
]


@pytest.mark.parametrize(("kind", "text", "new"), FIXED)
def test_fixes_a_line(kind: SourceKind, text: str, new: str) -> None:
    assert fixed(kind, text) == new


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (SET, "x = sorted({'a', b})"),
        (SET, "s = set(a)\nx = s.pop()"),
        (SET, "x = list(set(a.parameters()) - set(b.parameters()))"),
        (SET, "done, left = wait(fs, return_when=FIRST_COMPLETED)\nfor job in done: f(job)"),
        (SET, "done, left = wait({f(x) for x in y})\nfor job in done: f(job)"),
        (SET, "s = set()\ns.add(Linear(3))\nfor x in s: f(x)"),
        (SET, "async def f():\n    return list({A(x) async for x in y})"),
        (LISTING, "x = sorted(p for p in d.glob('*'))"),
        (LISTING, "x = len(os.listdir(d))"),
        (LISTING, "for x in os.walk(d): f(x)"),
        (LISTING, "with os.scandir(d) as entries: f(entries)"),
        (LISTING, "y = 1\nx = os.scandir(d); next(x)"),
        (UNSEEDED, "x = default_rng(3)"),
        (UNSEEDED, "def f(seed=1):\n    return default_rng(seed)"),
        (UNSEEDED, "p.add_argument('--seed', type=int, default=3)\nx = default_rng(args.seed)"),
        (CLOCK, "@dataclass\nclass Config:\n    started: int = field(default_factory=lambda: int(time.time()))"),
        (UNSEEDED, "x = default_rng(**given)"),
        (CLOCK, "x = time.time()"),
        (CLOCK, "base = int(time.time())\nfor i in names: draw = default_rng(base + i)"),
        (CLOCK, "def f(s):\n    seed(s)"),
        (COMPLETION, "for x in as_completed({p.submit(f, i) for i in y}): f(x)"),
        (COMPLETION, "import asyncio\nfor x in asyncio.as_completed([f(i) for i in y]): await x"),
        (UNSEEDED, "def f(i):\n    x = default_rng()\nf(1)\nfor i in range(3): f(i)".replace("\nf(1)", "\nf(1)", 1)),
        (COMPLETION, "fs = set(g)\nfor x in as_completed(fs): f(x)"),
        (COMPLETION, "x = queue.get()"),
        (MEMORY, "x = queue.empty()"),
        (MEMORY, "x = np.empty(3, dtype=object)"),
        (MEMORY, "x = torch.empty_strided((2, 3), (1, 2))"),
        (MEMORY, "x = torch.empty(3, memory_format=torch.channels_last)"),
        (HASH, "class A:\n  def __hash__(self): return hash(self.name)"),
        (HASH, "x = hash(frozenset(y))"),
        (ADDRESS, "x = sorted(y, key=id)"),
        (SourceKind.RACING_OPERATION, "x = list(set(y))"),
        (SET, "x = list(set(y)"),
        (SET, "x = list(set('\0'))"),
    ],
)
def test_a_line_without_a_safe_edit(kind: SourceKind, text: str) -> None:
    assert fixed(kind, text) is None


def test_a_seed_that_a_function_is_given() -> None:
    text = "def main(n, seed=3):\n    manual_seed(seed)\nmain(1, int(time.time()))"
    assert fixed(CLOCK, text, 2) == text.replace("int(time.time())", "0")
    once = "def main(seed=None):\n    return default_rng(seed)\nmain()"
    assert fixed(UNSEEDED, once, 2) == once.replace("(seed)", "(0 if seed is None else seed)")
    often = f"{once}\nmain()"
    assert fixed(UNSEEDED, often, 2) is None


def test_an_import_that_the_file_has_is_not_needed() -> None:
    rewrite = rewritten("import zlib\nx = hash(y) % 9", 2, HASH)
    assert rewrite is not None
    assert rewrite.needs == ()
    rewrite = rewritten("from numpy import empty\nx = empty(3)", 2, MEMORY)
    assert rewrite is not None
    assert rewrite.needs == ("from numpy import zeros",)


def test_an_expression_that_begins_on_a_different_line_of_its_statement() -> None:
    text = "x = f(\n    tuple(  # ä\n        {'é', b}  # in order\n    ),\n    3,\n)\ny = list(set(z))\n"
    for line in range(1, 7):
        assert rewritten(text, line, SET) == Rewrite(
            3, ("        {'é', b}  # in order",), ("        sorted({'é', b})  # in order",)
        )
    assert rewritten("for x in y:\n    for w in set(x):\n        pass\n", 1, SET) is None


def test_a_keyword_on_its_own_line_is_removed_with_the_line() -> None:
    text = "x = DataLoader(\n    d,\n    in_order=False,\n)\n"
    assert rewritten(text, 1, COMPLETION) == Rewrite(3, ("    in_order=False,",), ())
    text = "x = DataLoader(\n    d,  # fast\n    in_order=False,\n)\n"
    assert rewritten(text, 3, COMPLETION) == Rewrite(3, ("    in_order=False,",), ("    in_order=True,",))


def test_a_file_is_read_in_its_encoding() -> None:
    text = "# -*- coding: latin-1 -*-\nx = 'é', list({'é', b})\n".encode("latin-1")
    assert rewritten(text, 2, SET) == Rewrite(2, ("x = 'é', list({'é', b})",), ("x = 'é', sorted({'é', b})",))
    assert rewritten("\ufeffx = list(set(y))".encode(), 1, SET) is not None


texts = st.text(st.characters(exclude_characters="\r\n\0", codec="utf-8"), max_size=12)
gaps = st.sampled_from(["", " ", "  # ünder way\n        ", "\n    "])


@settings(deadline=None)
@given(
    case=st.sampled_from([case for case in FIXED if "\n" not in case[1] and case[1].startswith("x = ")]),
    word=texts,
    comment=texts,
    depth=st.integers(0, 3),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    gap=gaps,
    after=gaps,
)
def test_however_a_line_is_written_it_still_parses_and_no_other_line_changes(
    case: tuple[SourceKind, str, str], word: str, comment: str, depth: int, end: str, gap: str, after: str
) -> None:
    kind, text, _ = case
    spread = f"x = ({word!r},{gap}{text.removeprefix('x = ')}{after})  # {comment}"
    above = ["# ü", *("    " * n + f"if {word!r}:" for n in range(depth))]
    below = ["    " * depth + f"y = list(set({word!r})), np.empty(3)", "z = 1"]
    statement = ("    " * depth + spread).split("\n")
    whole = end.join([*above, *statement, *below])
    for number in range(len(above) + 1, len(above) + 1 + len(statement)):
        rewrite = rewritten(whole, number, kind)
        assert rewrite is not None
        new = applied(whole, rewrite)
        ast.parse(new)
        assert new.split("\n")[: len(above)] == above
        assert new.split("\n")[-2:] == below
        assert rewritten(new, rewrite.first, kind) is None


@settings(deadline=None)
@given(text=texts, line=st.integers(-2, 5), kind=st.sampled_from(sorted(RULES)))
def test_any_text_is_answered(text: str, line: int, kind: SourceKind) -> None:
    rewritten(text, line, kind)
    rewritten(text.encode(), line, kind)
