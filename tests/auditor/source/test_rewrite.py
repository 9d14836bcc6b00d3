"""Lines that give another result in each run are rewritten so that they do not, and nothing else of a file changes."""

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detaudit.auditor.source.rewrite import RULES, Rewrite, rewritten

SCRIPTS = Path(__file__).parents[2] / "corpus" / "scripts"

ENDS = re.compile(r"\r\n|\r|\n")


def applied(text: str, rewrite: Rewrite) -> str:
    lines = ENDS.split(text)
    assert tuple(lines[rewrite.first - 1 :][: len(rewrite.old)]) == rewrite.old
    lines[rewrite.first - 1 : rewrite.first - 1 + len(rewrite.old)] = rewrite.new
    return "\n".join(lines)


def mended(kind: str, text: str, line: int = 0) -> str | None:
    """Return the text with what mends its last line, or the one given, and check that there is no more to mend."""
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
        ("python_set_order", "enumerate({", "set", 'enumerate(sorted({f"word{i}" for i in range(500)}))}'),
        ("python_id_order", "list({", "set", "layers = list(dict.fromkeys(nn.Linear(16, 16) for _ in range(6)))"),
        ("python_hash_split", "hash(", "hash", 'if zlib.crc32(f"sample-{i}".encode()) % 10 < 8]]'),
        ("numpy_default_rng", "= np.random.default_rng()", "unseeded", "generator = np.random.default_rng(0)"),
        ("python_random_instance", "random.Random().", "unseeded", "random.Random(0).shuffle(order)"),
        ("torch_generator_seed", "generator.seed()", "unseeded", "generator.manual_seed(0)"),
        ("python_clock_seed", "torch.manual_seed(", "clock", "torch.manual_seed(0)"),
        (
            "torch_as_completed",
            "in as_completed(",
            "arrival",
            "        for done in [pool.submit(gradients, batch) for batch in batches]:",
        ),
        ("torch_pool_unordered", "imap_unordered(", "arrival", "        for made in pool.imap(batch, range(60)):"),
        ("torch_loader_out_of_order", "DataLoader(S", "arrival", "DataLoader(Samples(), batch_size=8, num_workers=2):"),
        ("torch_empty_buffer", "torch.empty(", "memory", "    padded = torch.zeros(300, 16)"),
        ("numpy_empty", "np.empty((", "memory", "    batch = np.zeros((256, 16), np.float32)"),
        (
            "tensorflow_unordered_interleave",
            ".interleave(",
            "arrival",
            "    .interleave(shard, cycle_length=8, num_parallel_calls=8)",
        ),
    ],
)
def test_each_script_that_an_edit_mends(script: str, line: str, kind: str, new: str) -> None:
    text = (SCRIPTS / f"{script}.py").read_bytes()
    (number,) = [n for n, one in enumerate(text.decode().splitlines(), 1) if line in one and not one.startswith('"""')]
    rewrite = rewritten(text, number, kind)
    assert rewrite is not None
    assert (rewrite.first, len(rewrite.old), len(rewrite.new)) == (number, 1, 1)
    assert rewrite.new[0].endswith(new)
    assert rewrite.needs == (("import zlib",) if kind == "hash" else ())
    assert mended(kind, text.decode(), number) is not None


MENDED = [
    ("set", "for w in {'a', 'b'}: f(w)", "for w in sorted({'a', 'b'}): f(w)"),
    ("set", "x = [*set(a), *{f(b)}]", "x = [*sorted(set(a)), *sorted({f(b)})]"),
    ("set", "x = ' '.join(a.keys() & b.keys())", "x = ' '.join(sorted(a.keys() & b.keys()))"),
    ("set", "s = set(a)\nx = [g(w) for w in s]", "s = set(a)\nx = [g(w) for w in sorted(s)]"),
    ("set", "for p in set(m.parameters()): f(p)", "for p in dict.fromkeys(m.parameters()): f(p)"),
    ("set", "for p in {A(), B()}: f(p)", "for p in dict.fromkeys([A(), B()]): f(p)"),
    ("set", "x = list({1, 'a'})", "x = list(dict.fromkeys([1, 'a']))"),
    ("set", "x = list({A(w) for w in set(b)})", "x = list(dict.fromkeys(A(w) for w in sorted(set(b))))"),
    ("set", "x = list({Path(w) for w in b})", "x = sorted({Path(w) for w in b})"),
    ("listing", "x = os.listdir(d)", "x = sorted(os.listdir(d))"),
    ("listing", "for x in Path(d).glob('*'): f(x)", "for x in sorted(Path(d).glob('*')): f(x)"),
    ("listing", "for e in os.scandir(d): f(e)", "for e in sorted(os.scandir(d), key=lambda entry: entry.name): f(e)"),
    ("listing", "x = list(d.iterdir())", "x = sorted(d.iterdir())"),
    ("listing", "x = next(d.iterdir())", "x = next(iter(sorted(d.iterdir())))"),
    ("listing", "from glob import iglob\nx = [*iglob('*')]", "from glob import iglob\nx = [*sorted(iglob('*'))]"),
    ("unseeded", "x = RandomState(None)", "x = RandomState(0)"),
    ("unseeded", "x = Generator(PCG64(seed=None))", "x = Generator(PCG64(seed=0))"),
    ("unseeded", "x = SeedSequence(spawn_key=(1,))", "x = SeedSequence(0, spawn_key=(1,))"),
    ("unseeded", "import random\nrandom.seed()", "import random\nrandom.seed(0)"),
    ("unseeded", "np.random.seed(None)", "np.random.seed(0)"),
    ("unseeded", "import torch\ntorch.seed()", "import torch\ntorch.manual_seed(0)"),
    ("unseeded", "import torch\nr = random.Random(1)\nr.seed()", "import torch\nr = random.Random(1)\nr.seed(0)"),
    (
        "unseeded",
        "x = tf.random.Generator.from_non_deterministic_state(alg='philox')",
        "x = tf.random.Generator.from_seed(0, alg='philox')",
    ),
    ("clock", "np.random.seed(int(time.time()))", "np.random.seed(0)"),
    ("clock", "x = train_test_split(a, random_state=datetime.now().second)", "x = train_test_split(a, random_state=0)"),
    ("clock", "from time import time\nk = PRNGKey(int(time()))", "from time import time\nk = PRNGKey(0)"),
    ("clock", "s = int(time.time())\nf(s)\nset_seed(s)", "s = 0\nf(s)\nset_seed(s)"),
    ("pid", "r = random.Random(os.getpid() + 1)", "r = random.Random(0)"),
    ("arrival", "for x in as_completed(fs, timeout=3): f(x)", "for x in fs: f(x)"),
    ("arrival", "for x in tqdm(as_completed(fs), total=3): f(x)", "for x in tqdm(fs, total=3): f(x)"),
    ("arrival", "x = list(as_completed(p.submit(f, i) for i in y))", "x = list([p.submit(f, i) for i in y])"),
    ("arrival", "x = next(as_completed(a + b))", "x = next(iter((a + b)))"),
    ("arrival", "x = DataLoader(in_order=False, dataset=d)", "x = DataLoader(dataset=d)"),
    ("arrival", "x = DataLoader((d), in_order=False,)", "x = DataLoader((d),)"),
    ("arrival", "x = d.map(f, deterministic=False).batch(2)", "x = d.map(f).batch(2)"),
    ("arrival", "options.deterministic = False", "options.deterministic = True"),
    ("arrival", "x = Parallel(2, return_as='generator_unordered')(j)", 'x = Parallel(2, return_as="generator")(j)'),
    ("memory", "x = np.empty_like(y) + y.new_empty(3)", "x = np.zeros_like(y) + y.new_zeros(3)"),
    ("memory", "import torch as t\nx = t.empty(3)", "import torch as t\nx = t.zeros(3)"),
    ("hash", "x = hash('a' 'b')", "x = zlib.crc32('a' 'b'.encode())"),
    ("hash", "x = hash((a, b)) % 3", "x = zlib.crc32(str((a, b)).encode()) % 3"),
    ("hash", "x.sort(key=hash)", "x.sort(key=lambda item: zlib.crc32(str(item).encode()))"),
]


@pytest.mark.parametrize(("kind", "text", "new"), MENDED)
def test_a_line_that_an_edit_mends(kind: str, text: str, new: str) -> None:
    assert mended(kind, text) == new


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("set", "x = sorted({'a', b})"),
        ("set", "s = set(a)\nx = s.pop()"),
        ("set", "x = list(set(a.parameters()) - set(b.parameters()))"),
        ("set", "s = set()\ns.add(Linear(3))\nfor x in s: f(x)"),
        ("set", "async def f():\n    return list({A(x) async for x in y})"),
        ("listing", "x = sorted(p for p in d.glob('*'))"),
        ("listing", "x = len(os.listdir(d))"),
        ("listing", "for x in os.walk(d): f(x)"),
        ("listing", "with os.scandir(d) as entries: f(entries)"),
        ("listing", "y = 1\nx = os.scandir(d); next(x)"),
        ("unseeded", "x = default_rng(3)"),
        ("unseeded", "x = default_rng(**given)"),
        ("clock", "x = time.time()"),
        ("clock", "def f(s):\n    seed(s)"),
        ("arrival", "for x in as_completed({p.submit(f, i): i for i in y}): f(x)"),
        ("arrival", "fs = set(g)\nfor x in as_completed(fs): f(x)"),
        ("arrival", "x = queue.get()"),
        ("memory", "x = queue.empty()"),
        ("memory", "x = np.empty(3, dtype=object)"),
        ("memory", "x = torch.empty_strided((2, 3), (1, 2))"),
        ("memory", "x = torch.empty(3, memory_format=torch.channels_last)"),
        ("hash", "class A:\n  def __hash__(self): return hash(self.name)"),
        ("hash", "x = hash(frozenset(y))"),
        ("id", "x = sorted(y, key=id)"),
        ("no such kind", "x = list(set(y))"),
        ("set", "x = list(set(y)"),
        ("set", "x = list(set('\0'))"),
    ],
)
def test_a_line_for_which_nothing_safe_is_known(kind: str, text: str) -> None:
    assert mended(kind, text) is None


def test_an_import_that_is_there_is_not_asked_for() -> None:
    rewrite = rewritten("import zlib\nx = hash(y)", 2, "hash")
    assert rewrite is not None
    assert rewrite.needs == ()
    rewrite = rewritten("from numpy import empty\nx = empty(3)", 2, "memory")
    assert rewrite is not None
    assert rewrite.needs == ("from numpy import zeros",)


def test_an_expression_that_begins_on_another_line_of_its_statement() -> None:
    text = "x = f(\n    tuple(  # ä\n        {'é', b}  # in order\n    ),\n    3,\n)\ny = list(set(z))\n"
    for line in range(1, 7):
        assert rewritten(text, line, "set") == Rewrite(
            3, ("        {'é', b}  # in order",), ("        sorted({'é', b})  # in order",)
        )
    assert rewritten("for x in y:\n    for w in set(x):\n        pass\n", 1, "set") is None


def test_a_keyword_on_a_line_of_its_own_takes_the_line_with_it() -> None:
    text = "x = DataLoader(\n    d,\n    in_order=False,\n)\n"
    assert rewritten(text, 1, "arrival") == Rewrite(3, ("    in_order=False,",), ())
    text = "x = DataLoader(\n    d,  # fast\n    in_order=False,\n)\n"
    assert rewritten(text, 3, "arrival") == Rewrite(3, ("    in_order=False,",), ("    in_order=True,",))


def test_a_file_in_another_encoding_is_read_in_it() -> None:
    text = "# -*- coding: latin-1 -*-\nx = 'é', list({'é', b})\n".encode("latin-1")
    assert rewritten(text, 2, "set") == Rewrite(2, ("x = 'é', list({'é', b})",), ("x = 'é', sorted({'é', b})",))
    assert rewritten("\ufeffx = list(set(y))".encode(), 1, "set") is not None


texts = st.text(st.characters(exclude_characters="\r\n\0", codec="utf-8"), max_size=12)
gaps = st.sampled_from(["", " ", "  # ünder way\n        ", "\n    "])


@settings(deadline=None)
@given(
    case=st.sampled_from([case for case in MENDED if "\n" not in case[1] and case[1].startswith("x = ")]),
    word=texts,
    comment=texts,
    depth=st.integers(0, 3),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    gap=gaps,
    after=gaps,
)
def test_however_a_line_is_written_it_still_parses_and_no_other_line_changes(
    case: tuple[str, str, str], word: str, comment: str, depth: int, end: str, gap: str, after: str
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
def test_any_text_is_answered(text: str, line: int, kind: str) -> None:
    rewritten(text, line, kind)
    rewritten(text.encode(), line, kind)
