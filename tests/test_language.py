"""Check that no text uses a term that the project has replaced by a plainer one."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

RETIRED = {
    r"(told|tells?)(?!\()": "say, print, report, name, describe; distinguish",
    r"(mend(s|ed|ing)?|cures?)": "fix; hint, if it belongs to an error",
    r"lament": "report",
    r"kin": "similar",
    r"(anew|afresh)": "again",
    r"hence": "so",
    r"(hold|holds|held|holding) (\w+ )?still": "set a flag; pin a version, a value or a variation",
    r"as (it stands|they stand)": "without flags; unmodified, if the script itself is meant",
    r"bears? on": "affects",
    r"non-deterministic": "nondeterministic",
    r"unlike": "different",
    r"smallest set": "minimal set",
    r"every flag": "recipe all",
    r"could not (be )?judged?": "inconclusive",
    r"equal (bit for bit|to the bit)": "bit-identical",
    r"(go|goes|going|went) different ways": "diverge",
    r"order of arrival": "completion order",
    r"(nobody (seeded|wrote)|fresh memory)": "unseeded; uninitialized memory",
    r"(follows the clock|runs in all)": "is seeded from the clock; runs in total",
    r"\w*(initiali|locali|normali|optimi|recogni|seriali|synchroni)s(e|ed|er|es|ing|ation)": "American spelling",
    r"(behaviours?|colours?|labelled|maths|neighbours?)": "American spelling",
}
"""Regular expressions between word boundaries, each with what to write. An underscore counts as a space."""

TEXTS = (
    "detaudit/**/*.py",
    "configs/**/*",
    "docs/**/*.md",
    "docs/**/*.py",
    "docs/fixes.yaml",
    "*.md",
    "*.cff",
    "action.yml",
    ".github/**/*.yml",
)

NOT_YET: frozenset[str] = frozenset(
    """
    """.split()  # noqa: SIM905
)
"""Files that are still to be reworded."""


def found(text: str) -> Iterator[str]:
    """Yield each line with a retired term, and what to write instead."""
    for number, line in enumerate(text.splitlines(), 1):
        for term, instead in RETIRED.items():
            match = re.search(rf"\b{term}\b", line.replace("_", " "), re.IGNORECASE)
            if match:
                yield f"line {number}: {match[0]!r}: write {instead}"


def texts() -> dict[str, str]:
    """Return the texts that people read, by path."""
    paths = [path for pattern in TEXTS for path in ROOT.glob(pattern) if path.is_file() and path.suffix != ".pyc"]
    return {str(path.relative_to(ROOT)): path.read_text() for path in sorted(paths)}


def names_of_tests() -> dict[str, str]:
    """Return the names of the tests, a line each, by the file that holds them."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    named = {str(path.relative_to(ROOT)): re.findall(r"def (test_\w+)", path.read_text()) for path in paths}
    return {path: "\n".join(names) for path, names in named.items() if names}


CHECKED = {**texts(), **names_of_tests()}


@pytest.mark.parametrize("path", CHECKED)
def test_no_retired_term(path: str) -> None:
    assert path in NOT_YET or not list(found(CHECKED[path]))


def test_a_term_is_found_in_any_case_and_within_a_name() -> None:
    lines = "Told by one\nwhat_it_tells\nretold, kindly\nfile.tell() held firmly still\nlabelled\nuninitialised"
    assert [one.partition(": write")[0] for one in found(lines)] == [
        "line 1: 'Told'",
        "line 2: 'tells'",
        "line 4: 'held firmly still'",
        "line 5: 'labelled'",
        "line 6: 'uninitialised'",
    ]
