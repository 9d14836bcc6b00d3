"""Which of the processes of a distributed job this is, by the variables of what started it."""

from __future__ import annotations

import os

_VARIABLES = (
    ("RANK", "WORLD_SIZE"),  # torchrun, accelerate, deepspeed
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # mpirun of Open MPI
    ("PMI_RANK", "PMI_SIZE"),  # mpirun of MPICH and Intel MPI
)
"""The variables with the rank and the number of ranks, of each kind of launcher; mpirun may start a torchrun."""


def _number(variable: str) -> int | None:
    value = os.environ.get(variable, "")
    return int(value) if value.isdigit() else None


def attempt() -> int:
    """Return how often an elastic torchrun started its workers before: 0 the first time."""
    return _number("TORCHELASTIC_RESTART_COUNT") or 0


def rank_and_world() -> tuple[int | None, int | None]:
    """Return the rank of this process and the number of ranks, None for what no launcher says."""
    rank, world = next((names for names in _VARIABLES if _number(names[0]) is not None), _VARIABLES[0])
    return _number(rank), _number(world)
