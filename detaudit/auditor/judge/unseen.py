"""Find what may have trained in a run without a record."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

from detaudit import redact
from detaudit.auditor.evidence.event_logs import Process
from detaudit.launch import Program, RunOutcome
from detaudit.model.problems import CallUnseen, ProcessUnseen, RanksUnseen, Unseen

_SHOWN = 120
_MOST_RANKS = 1000

_SCRIPT = "script"
"""The framework of what a script records itself, with detaudit.record_weights."""


def unseen(outcome: RunOutcome, processes: Sequence[Process], *, artifacts: bool = False) -> tuple[Unseen, ...]:
    """Return the programs with a framework, and the ranks of a launcher, that have no event log, each once.

    Return also the calls that a recorder could not follow, unless the user has ``artifacts`` compared.
    """
    calls = () if artifacts else _calls(processes)
    return tuple(dict.fromkeys((*_programs(outcome, processes), *_ranks(processes), *calls)))


def _programs(outcome: RunOutcome, processes: Sequence[Process]) -> Iterator[ProcessUnseen]:
    recorded = {process.hello.program for process in processes}
    pids = {process.hello.pid for process in processes}
    for program in outcome.programs:
        if program.addresses not in recorded if program.addresses else program.pid not in pids:
            command = " ".join(redact.command(program.command))[:_SHOWN]
            yield ProcessUnseen(command=command, framework=program.framework, why=_why(program))


def _why(program: Program) -> Literal["isolated", "environment", "path", "unknown"]:
    for argument in program.command[1:]:
        if not argument.startswith("-") or argument in ("-c", "-m"):
            break
        if not argument.startswith("--") and {*argument} & {*"IES"}:
            return "isolated"
    if not program.has_variables:
        return "environment"
    return "unknown" if program.has_path else "path"


def _ranks(processes: Sequence[Process]) -> Iterator[RanksUnseen]:
    if not any(process.trained and process.hello.rank is not None for process in processes):
        return
    world = max((process.hello.world or 0 for process in processes), default=0)
    recorded = {process.hello.rank for process in processes}
    missing = tuple(islice((rank for rank in range(world) if rank not in recorded), _MOST_RANKS))
    if missing:
        yield RanksUnseen(ranks=missing, world=world)


def _calls(processes: Sequence[Process]) -> Iterator[CallUnseen]:
    """Yield what the recorder could not follow, unless the script recorded weights of that process itself."""
    for process in processes:
        own = any(one.framework == _SCRIPT and one.final and one.final.digest for one in process.trained)
        if not own and not process.replaced:
            yield from (CallUnseen(framework=line.fw, call=line.call) for line in process.unseen)
