"""Whether a match counts: other machines, and runs that shared this one."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from detaudit import wire
from detaudit.config.choice import is_gpu
from detaudit.launch.slots import DEVICES, Jobs
from detaudit.model import FlagState, Machine, Run, Verdict, Warning
from detaudit.model.problems import CoresReduced, DeviceShared, MachinesRunOnce, RunsCrowded
from detaudit.model.warnings import SlotsDiffer
from detaudit.runs.log import Process

# Decide whether runs that went at once had enough of the machine for a match to count.
#
# Contention hides races. A difference is a fact, however it came about.


_THREADS = ("torch.get_num_threads()", "tensorflow.python.eager.context._context._intra_op_parallelism_threads")
_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_SETS = {
    "tensorflow": ("TF_NUM_INTRAOP_THREADS", _THREADS[1]),
    "others": ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "torch.set_num_threads", "torch-one-thread"),
}
"""What sets the number of threads of a framework: variables, settings, calls and flags."""


def threads(competing: int, processes: Iterable[Process]) -> int:
    """Return how many threads a run used at once: as many as competed for CPUs, or as its frameworks were set to."""
    return max([competing, *(_set_to(process) * (process.hello.world or 1) for process in processes)])


def _set_to(process: Process) -> int:
    if process.settings is None or not process.trained:
        return 0
    thread_counts = [value for name in _THREADS if isinstance(value := process.settings.values.get(name), int)]
    start = process.settings.environ.get("start", {})
    return max(thread_counts or [int(start[name]) for name in _VARIABLES if start.get(name, "").isdecimal()], default=0)


def _by_cores(process: Process, env: Collection[str]) -> bool:
    """Return whether a framework that trained made as many threads as it found cores, for want of another number."""
    values = process.settings.values if process.settings is not None else {}  # a run that was ended may lack them
    setters = {name for name, value in values.items() if isinstance(value, int) and value}
    setters |= {*env, *(source.what for source in process.sources)}
    setters |= {flag.id for flag in process.flags if flag.state == wire.FLAG_APPLIED}
    imported = {framework.name for framework in process.frameworks}
    return any(
        setters.isdisjoint(_SETS["tensorflow" if "tensorflow" in imported and one.framework != "torch" else "others"])
        for one in process.trained
        if one.framework != "script"
    )


def slots_differ(jobs: Jobs, results: Mapping[int, str]) -> list[Warning]:
    """Return a warning if runs differ exactly if their slots do, and each slot had two or more of them.

    ``results`` has a text for each run, equal for runs with the same results.
    """
    by_slot: defaultdict[int, list[str]] = defaultdict(list)
    for number, result in results.items():
        by_slot[jobs.slot_index(number)].append(result)
    same = all(len(of_slot) > 1 and len(set(of_slot)) == 1 for of_slot in by_slot.values())
    apart = len({of_slot[0] for of_slot in by_slot.values()}) == len(by_slot) > 1
    return [SlotsDiffer(slots=len(jobs.slots))] if same and apart and not jobs.remote else []


class Crowding:
    """What the runs of a group shared, ``gpu`` saying whether this machine may have one."""

    def __init__(self, jobs: Jobs, *, gpu: bool) -> None:
        self._jobs, self._gpu = jobs, gpu
        self._first: int | None = None
        self._most = 1
        self._shared: str | None = None
        self._lone = False

    def add(self, run: Run, threads_: int, processes: Sequence[Process], env: Collection[str]) -> None:
        """Take in a run, which began with the variables ``env``."""
        self._first = threads_ if self._first is None else self._first
        self._most = max(self._most, threads_)
        self._shared = self._device(run, processes) if self._shared is None else self._shared
        own = self._jobs.slots[self._jobs.slot_index(run.id)].cpus
        on_cpu = not run.devices or not all(is_gpu(name) for names in run.devices for name in names.split(","))
        alone = len(own) == 1 < self._jobs.cores and on_cpu
        self._lone = self._lone or (alone and any(_by_cores(process, env) for process in processes))

    @property
    def reason(self) -> RunsCrowded | CoresReduced | DeviceShared | None:
        """Why runs that match do not count, None if they do."""
        at_once = self._jobs.at_once(self._first or 0)
        if at_once == 1 or self._jobs.remote:
            return None
        if self._shared is not None:
            return DeviceShared(jobs=at_once, device=self._shared)
        if at_once * self._most > self._jobs.cores:
            return RunsCrowded(jobs=at_once, threads=self._most, cores=self._jobs.cores)
        return CoresReduced(jobs=at_once, cores=self._jobs.cores) if self._lone else None

    def _device(self, run: Run, processes: Sequence[Process]) -> str | None:
        """Return a device that the run used and that is not its own, ``""`` if it is unknown, None if there is none."""
        own = self._jobs.slots[self._jobs.slot_index(run.id)].devices
        if own:
            visible = (value for process in processes for value in _visible(process))
            return next((name for value in visible for name in value.split(",") if name not in own), None)
        used = [name for names in run.devices for name in names.split(",")]
        if not used and self._gpu:
            return ""
        return next((name for name in used if _is_shared(name)), None)


def _visible(process: Process) -> Collection[str]:
    """Return the devices that a process could use at any time, as the variable names them."""
    stages = process.settings.environ.values() if process.settings is not None else ()
    return {variables[DEVICES].strip() for variables in stages if variables.get(DEVICES, "").strip()}


def _is_shared(device: str) -> bool:
    return not device.lower().rpartition("device:")[2].startswith(("cpu", "unknown", "meta"))


# What runs on several machines show: of the training, or only of the machines.
#
# Two runs that differ on one machine, or on machines that are alike in all that may change bits, prove that a training
# is nondeterministic. If each machine repeats its own result, the machines differ. A pair on machines that are not
# alike proves neither.


@dataclass(frozen=True)
class RunMachine:
    """Where a run was done: ``id`` is that of the machine until it restarts, ``relevant`` is what may change bits.

    ``refused`` are the flags that it does not support, ``described`` is the environment of its runs.
    """

    id: str
    host: str = ""
    relevant: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, FlagState] = field(default_factory=dict)
    described: Mapping[str, Any] = field(default_factory=dict)


class Machines:
    """Takes in where each run was done; nothing of it matters as long as all were on one machine."""

    def __init__(self) -> None:
        self._places: dict[int, RunMachine] = {}

    def add(self, run: int, machine: RunMachine | None) -> None:
        """Note where a run was done."""
        if machine is not None:
            self._places[run] = machine

    def with_results(self, results: Mapping[int, int]) -> tuple[Machine, ...]:
        """Return the machines in the order of their first runs, ``()`` if there is one; ``results`` are by run."""
        runs: defaultdict[str, list[int]] = defaultdict(list)
        for run, machine in sorted(self._places.items()):
            runs[machine.id].append(run)
        if len(runs) < 2:
            return ()
        relevant = {one: self._places[numbers[0]].relevant for one, numbers in runs.items()}
        names = {name for facts in relevant.values() for name in facts}
        differing = sorted(name for name in names if len({facts.get(name) for facts in relevant.values()}) > 1)
        kinds = {tuple(sorted(facts.items())): None for facts in relevant.values()}
        return tuple(
            Machine(
                id=number,
                host=self._places[numbers[0]].host,
                kind=list(kinds).index(tuple(sorted(relevant[one].items()))) + 1,
                runs=tuple(numbers),
                results=tuple(sorted({results[run] for run in numbers if run in results})),
                facts={name: relevant[one][name] for name in differing if name in relevant[one]},
            )
            for number, (one, numbers) in enumerate(runs.items(), 1)
        )


def verdict(machines: tuple[Machine, ...], results: Mapping[int, int]) -> tuple[Verdict, MachinesRunOnce | None]:
    """Return what matching or differing runs on these machines show, and why that is nothing.

    ``results`` are the numbers of the results of finished runs, by run.
    """
    if any(len(machine.results) > 1 for machine in machines):
        return Verdict.NONDETERMINISTIC, None
    compared = {machine.id: sum(run in results for run in machine.runs) for machine in machines}
    if len(set(results.values())) == 1:
        kinds = [machine.kind for machine in machines for run in machine.runs if run in results]
        if len(kinds) > len(set(kinds)):
            return Verdict.DETERMINISTIC, None
        return Verdict.INCONCLUSIVE, MachinesRunOnce(machines=tuple(compared))
    pairs = list(_differing(machines))
    once = {one.id for pair in pairs for one in pair if compared[one.id] == 1}
    if any(a.kind == b.kind and not once.isdisjoint((a.id, b.id)) for a, b in pairs):
        return Verdict.NONDETERMINISTIC, None
    if once:
        return Verdict.INCONCLUSIVE, MachinesRunOnce(machines=tuple(sorted(once)))
    return Verdict.MACHINE_DEPENDENT, None


def _differing(machines: tuple[Machine, ...]) -> Iterator[tuple[Machine, Machine]]:
    return ((a, b) for a, b in combinations(machines, 2) if a.results and b.results and a.results != b.results)
