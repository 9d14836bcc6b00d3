"""Count how often the kernel killed a process because memory ran out."""

from pathlib import Path

_CGROUPS = Path("/proc/self/cgroup")
_VMSTAT = Path("/proc/vmstat")
_MOUNT = Path("/sys/fs/cgroup")


def kills() -> int:
    """Return how many processes were killed for lack of memory so far, here or in the group that limits it.

    The kernel counts them for the whole system (``oom_kill`` in /proc/vmstat, proc(5)) and for each control group
    (``memory.events`` of version 2, ``memory.oom_control`` of version 1:
    https://docs.kernel.org/admin-guide/cgroup-v2.html). Only a change of the number means something.
    """
    return sum(_count(path) for path in (_VMSTAT, *_of_group()))


def _of_group() -> list[Path]:
    try:
        lines = [line.split(":", 2) for line in _CGROUPS.read_text().splitlines()]
    except OSError:
        return []
    found = []
    for number, controllers, path in (line for line in lines if len(line) == 3):
        if number == "0":
            found.append(_MOUNT / path.lstrip("/") / "memory.events")
        elif "memory" in controllers.split(","):
            found.append(_MOUNT / "memory" / path.lstrip("/") / "memory.oom_control")
    return found


def _count(path: Path) -> int:
    try:
        words = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return 0
    return next((int(line[1]) for line in words if line[:1] == ["oom_kill"] and line[1].isdecimal()), 0)
