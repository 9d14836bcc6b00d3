"""The faults: what happens, when, and which verdicts are right after it."""

import itertools
import signal
from dataclasses import dataclass

DETERMINISTIC, DIFFERENT, USAGE, INCONCLUSIVE, INTERRUPTED, KILLED = 0, 1, 2, 125, 130, -9

POINTS = ("start", "step", "end", "exit")
"""Before the first step, after the second of four, after the last, and when Python ends."""

HARMLESS = (
    *("leave_at_once", "close_all_descriptors", "close_stdout", "print_gigabytes"),
    *("print_control_characters", "change_directory", "remove_the_working_directory", "replace_meta_path"),
    *("clear_the_environment", "set_umask", "leave_a_child", "leave_a_child_without_variables"),
    *("leave_children_that_fork", "leave_a_zombie", "jump_the_clock", "exec_itself"),
)
FATAL = (
    *("segv", "kill", "term", "abort", "interrupt", "stop", "hang", "hang_and_ignore_signals", "hang_in_a_thread"),
    *("raise_an_error", "exit_with_3", "sys_exit", "run_out_of_memory", "recurse_for_ever", "forbid_cpu_time"),
    "exec_something_else",
)
_RAISE = (*("raise_an_error", "recurse_for_ever", "sys_exit", "interrupt", "hang_in_a_thread", "run_out_of_memory"),)
UNCERTAIN = (
    *("fork_and_leave", "daemonize", "forbid_files", "forbid_writing", "delete_the_logs", "damage_the_logs"),
    *("remove_the_results", "replace_open", "litter_the_logs"),
)
"""What may or may not cost the record. None of it may turn a difference into a match."""


@dataclass(frozen=True)
class Case:
    """A fault at a point. ``right`` are the exit statuses that are right; ``seeded`` says whether the runs match."""

    kind: str
    fault: str
    point: str
    seeded: bool
    right: frozenset[int]
    torch: bool = False

    @property
    def name(self) -> str:
        words = (self.kind, self.fault, self.point, "matching" if self.seeded else "differing")
        return " ".join((*words, "torch") if self.torch else words)


def _of_child() -> list[Case]:
    found = []
    for seeded, at in itertools.product((True, False), POINTS):
        result = DETERMINISTIC if seeded else DIFFERENT
        for names, right in ((HARMLESS, {result}), (FATAL, {INCONCLUSIVE}), (UNCERTAIN, {result, INCONCLUSIVE})):
            for fault in names:
                found.append(Case("script", fault, at, seeded, _right(fault, at, seeded, right)))  # noqa: PERF401
    return found


def _right(fault: str, at: str, seeded: bool, right: set[int]) -> frozenset[int]:
    result = DETERMINISTIC if seeded else DIFFERENT
    if at == "exit" and fault in _RAISE:
        return frozenset({result, INCONCLUSIVE})  # Python prints what atexit functions raise, and exits with 0
    if fault == "leave_at_once" and at in ("start", "step"):
        return frozenset({result, INCONCLUSIVE})  # at the start nothing was trained
    if fault == "replace_meta_path" and at == "start":
        return frozenset({INCONCLUSIVE})  # detaudit.record can import nothing any more
    if fault in ("exec_itself", "exec_something_else") and at != "start":
        return frozenset({result, INCONCLUSIVE})
    return frozenset(right)


_SIGNALS = (
    ("INT", signal.SIGINT, set[int]()),
    ("TERM", signal.SIGTERM, set[int]()),
    ("HUP", signal.SIGHUP, set[int]()),
    ("KILL", signal.SIGKILL, {INTERRUPTED}),
)


def _of_auditor() -> list[Case]:
    moments = [f"{moment / 10:.1f} s" for moment in range(1, 37, 3)]
    return [
        # It may come before detaudit handles signals, when nothing has been started, or after the end.
        Case("auditor", name, moment, seeded=True, right=frozenset({-number, INTERRUPTED, DETERMINISTIC} - never))
        for (name, number, never), moment in itertools.product(_SIGNALS, moments)
    ]


def _of_storage() -> list[Case]:
    faults = ("full disk", "read-only folder", "folder in the way", "folder of another audit", "folder that vanishes")
    points = {"full disk": ("start", "step", "end", "exit"), "folder that vanishes": ("start", "step", "end", "exit")}
    found = [
        Case("storage", fault, point, seeded, frozenset({INCONCLUSIVE}))
        for seeded in (True, False)
        for fault in faults
        for point in points.get(fault, ("before",))
    ]
    return [
        Case(one.kind, one.fault, one.point, one.seeded, frozenset({USAGE}))
        if one.fault in ("folder in the way", "folder of another audit")
        else one
        for one in found
    ]


def _together() -> list[Case]:
    return [
        Case("together", fault, "before", seeded, frozenset({DETERMINISTIC if seeded else DIFFERENT}))
        for seeded in (True, False)
        for fault in ("two audits in a folder", "clock that jumps", "copies of a repository")
    ] + [Case("together", "one results folder for two audits", "before", True, frozenset({DETERMINISTIC, USAGE}))]


def _of_torch() -> list[Case]:
    faults = ("segv", "kill", "hang", "run_out_of_memory", "raise_an_error")
    fatal = [Case("script", one, "step", False, frozenset({INCONCLUSIVE}), torch=True) for one in faults]
    harmless = ("fork_and_leave", "close_all_descriptors", "replace_meta_path", "clear_the_environment")
    return fatal + [
        Case("script", one, "step", seeded, frozenset({0 if seeded else 1, INCONCLUSIVE}), torch=True)
        for seeded in (True, False)
        for one in harmless
    ]


CASES = (*_of_child(), *_of_auditor(), *_of_storage(), *_together(), *_of_torch())
