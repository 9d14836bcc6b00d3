"""Which of the lines that may introduce a difference is the culprit, the class of its cause, and what fixes it."""

from pathlib import Path

import pytest

from detaudit.config.flags import load_catalogue
from detaudit.model import Cause, Edit, FlagFix, Source, SourceKind
from detaudit.rules import RULES
from detaudit.trace.culprit import Attribution, Remedies, UserCode, blame_source, choose

CODE = """import os, random
names = os.listdir(".")
order = list(set(names))
objects = list({object() for _ in range(3)})
share = [hash(name) % 2 for name in names]
generator = random.Random()
"""
LINES = CODE.splitlines()
CATALOGUE = load_catalogue()
FIXES = Remedies(CATALOGUE, {"torch": "2.13.0"}, ["cpu"])


def source(line: int, kind: SourceKind, call: str = "", *, suspect: bool = False) -> Source:
    return Source(file="data.py", line=line, kind=kind, call=call, suspect=suspect)


LISTING = source(2, SourceKind.LISTING_ORDER, "os.listdir")
STRINGS = source(3, SourceKind.SET_ORDER, suspect=True)
HASHES = source(5, SourceKind.HASH, suspect=True)
UNSEEDED = source(6, SourceKind.UNSEEDED, "random.Random")


@pytest.fixture
def code(tmp_path: Path) -> UserCode:
    (tmp_path / "data.py").write_text(CODE)
    return UserCode(root=tmp_path, cwd=tmp_path)


@pytest.mark.parametrize(
    ("found", "cause", "edited", "needs", "flags"),
    [
        (LISTING, Cause.ORDER, 'names = sorted(os.listdir("."))', (), ["python-sorted-listings"]),
        (STRINGS, Cause.HASH, "order = sorted(set(names))", (), ["python-hash-seed"]),
        (
            HASHES,
            Cause.HASH,
            "share = [zlib.crc32(str(name).encode()) % 2 for name in names]",
            ("import zlib",),
            ["python-hash-seed"],
        ),
        (UNSEEDED, Cause.SEED, "generator = random.Random(0)", (), ["python-seed-generators"]),
    ],
)
def test_the_cause_and_the_fixes_of_a_line(
    code: UserCode, found: Source, cause: Cause, edited: str, needs: tuple[str, ...], flags: list[str]
) -> None:
    rule = RULES[found.kind][0].name
    edit = Edit(file="data.py", line=found.line, old=(LINES[found.line - 1],), new=(edited,), needs=needs, rule=rule)
    rows = [CATALOGUE.get(flag) for flag in flags]
    fixes = tuple(FlagFix(flag=row.id, title=row.title) for row in rows)
    assert blame_source(found, code, FIXES) == Attribution("data.py", found.line, found, cause, fixes, edit)


def test_a_set_that_evidently_has_objects_is_ordered_by_their_addresses(code: UserCode) -> None:
    blamed = blame_source(source(4, SourceKind.SET_ORDER, suspect=True), code, FIXES)
    assert blamed.source == source(4, SourceKind.OBJECT_SET_ORDER, suspect=True)
    assert blamed.cause is Cause.ADDRESS
    assert [fix.flag for fix in blamed.flags] == ["system-aslr-off", "python-hash-seed"]
    assert blamed.edit is not None
    assert blamed.edit.new == ("objects = list(dict.fromkeys(object() for _ in range(3)))",)


@pytest.mark.parametrize("kind", SourceKind)
def test_every_kind_of_line_has_a_cause(code: UserCode, kind: SourceKind) -> None:
    assert blame_source(source(1, kind), code, FIXES).cause in Cause


def test_a_line_that_introduces_values_is_not_the_culprit_of_a_different_order() -> None:
    assert choose([UNSEEDED, LISTING], orders_only=True) == LISTING
    assert choose([UNSEEDED, LISTING], orders_only=False) == UNSEEDED
    assert choose([UNSEEDED], orders_only=True) == UNSEEDED


def test_a_line_at_which_a_variable_differs_comes_first() -> None:
    assert choose([UNSEEDED, STRINGS], orders_only=False, near=[("data.py", 3)]) == STRINGS


def test_a_seed_that_is_passed_comes_last_because_it_may_follow_from_an_order() -> None:
    passed, completion = source(6, SourceKind.SEED, "random.seed"), source(2, SourceKind.COMPLETION_ORDER)
    assert choose([passed, completion], orders_only=False) == completion


def test_without_lines_there_is_no_culprit() -> None:
    assert choose([], orders_only=False) is None


def test_a_file_that_is_gone_has_no_edit(tmp_path: Path) -> None:
    gone = UserCode(root=tmp_path, cwd=tmp_path)
    assert gone.edit("data.py", 6, SourceKind.UNSEEDED) is None
    assert blame_source(UNSEEDED, gone, FIXES).edit is None
    assert gone.text("data.py", 6) == ""


def test_the_text_of_a_line_and_the_name_of_its_file(code: UserCode) -> None:
    assert code.text("data.py", 6) == "generator = random.Random()"
    assert (code.text("data.py", 99), code.text(None, 1), code.text("data.py", None)) == ("", "", "")
    assert code.display(str(code.cwd / "data.py")) == "data.py"
    assert code.display("/elsewhere/data.py") == "/elsewhere/data.py"


def test_a_line_that_may_run_more_than_once_has_no_edit_and_is_said_to_be_repeated(tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text("def augment(x):\n    return x + np.random.default_rng().normal()\n")
    line = Source(file="data.py", line=2, kind=SourceKind.UNSEEDED, call="numpy.random.default_rng")
    blamed = blame_source(line, UserCode(root=tmp_path, cwd=tmp_path), FIXES)
    assert (blamed.edit, blamed.repeated) == (None, True)


def test_a_line_that_seeds_again_and_one_that_draws_have_the_same_flag(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import numpy as np\nnp.random.seed()\nx = np.random.rand()\n")
    fixes = Remedies(CATALOGUE, {"torch": "2.13.0", "numpy": "2.4.6"}, ["cpu"])
    code = UserCode(root=tmp_path, cwd=tmp_path)
    again = Source(file="train.py", line=2, kind=SourceKind.UNSEEDED, call="numpy.random.seed")
    draws = Source(file="train.py", line=3, kind=SourceKind.UNSEEDED, call="rand", generators=("numpy.random",))
    blamed = blame_source(again, code, fixes)
    assert [fix.flag for fix in blamed.flags] == ["numpy-seed"]
    assert blamed.edit is not None
    assert blamed.edit.new == ("np.random.seed(0)",)
    assert [fix.flag for fix in blame_source(draws, code, fixes).flags] == ["numpy-seed"]
