"""What the last words of a run say of files that earlier runs left."""

import pytest

from detaudit.runs.status import says_it_exists


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("FileExistsError: [Errno 17] File exists: 'out'", True),
        ("ValueError: Output directory (out) already exists and is not empty.", True),
        ("zarr.errors.ContainsArrayError: An array exists in store LocalStore('file://n.zarr') at path ''.", True),
        ("ValueError: Files ['model.pt'] are already present in the directory ck.", True),
        ("optuna.exceptions.DuplicatedStudyError: Another study with name 's' already exists.", True),
        ("RuntimeError: cannot open 'out/x.h5' to write", True),
        ("OSError: runs.db is locked", True),
        ("OSError: /home/me/out: locked\nSet HYDRA_FULL_ERROR=1 for a complete stack trace.", True),
        ("RuntimeError: CUDA out of memory", False),
        ("ValueError: out of range", False),
        ("OSError: myruns.db is locked", False),
        ("AssertionError", False),
        ("OSError: [Errno 39] Directory not empty: 'x'", True),
        ("AssertionError: the queue is not empty", False),
        ("ValueError: the study does not already exist", False),
        ("ValueError: no such file exists", False),
        ("", False),
        ("  File 'out', line 3\n    open('out')\nAssertionError", False),
        ("File exists\n1\n2\n3", False),
    ],
)
def test_what_says_that_something_exists(words: str, says: bool) -> None:
    assert says_it_exists(words.splitlines(), ["out", "runs.db", "/home/me/out"]) is says


def test_without_names_only_what_exists_counts() -> None:
    assert not says_it_exists(["ValueError: 'out'"], [])
    assert says_it_exists(["mkdir: cannot create directory 'out': File exists"], [])
