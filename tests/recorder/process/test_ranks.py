"""A process learns its rank from the variables of the launcher that started it last."""

import pytest

from detaudit.recorder.process.log import rank_and_world

ALL = ("RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE")
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (None, None)),
        ({"RANK": "3", "WORLD_SIZE": "4"}, (3, 4)),
        (OPEN_MPI, (1, 2)),
        ({"PMI_RANK": "0", "PMI_SIZE": "8"}, (0, 8)),
        ({**OPEN_MPI, "RANK": "5", "WORLD_SIZE": "6"}, (5, 6)),  # a torchrun that mpirun started
        ({"RANK": "none", **OPEN_MPI}, (1, 2)),
        ({"WORLD_SIZE": "2"}, (None, 2)),
    ],
)
def test_the_rank_of_a_process(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: tuple[int | None, int | None]
) -> None:
    for name in ALL:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert rank_and_world() == expected
