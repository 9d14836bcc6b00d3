"""Audit one training: the first run as it is, a bit flipped in each of the others."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from detaudit.audit import Auditor
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.judge.group import GroupInProgress
from detaudit.launch.plan import Settings, plan_group
from detaudit.launch.target import Target
from detaudit.model import Difference, Group
from detaudit.runner import Observer, Runner
from tests.corpus.measure import SCRIPTS
from tests.planted import noted
from tests.planted.forked import SERVER, ForkLauncher
from tests.planted.plants import Named, Plant, Training, expected


class Outcome(NamedTuple):
    """A plant, what its run noted first, and what the report named."""

    training: str
    world: int
    plant: Plant
    expected: Named | None
    found: Named | None

    @property
    def right(self) -> bool:
        """Whether the report names what differs first, or nothing if no result differs."""
        return self.expected == self.found


def named(difference: Difference | None) -> Named | None:
    """Return what a report names, in the form of what is expected."""
    if difference is None:
        return None
    if difference.stage == "saved":
        return Named(0, difference.step, "saved", (difference.site or "").partition(":")[0])
    return Named(difference.rank, difference.step, difference.stage.value)


def _settings(folder: Path, runs: int) -> Settings:
    """Return the settings of an audit in an empty folder. Its results stay in ``folder``/out until the next one."""
    out, cwd = folder / "out", folder / "project"
    shutil.rmtree(out, ignore_errors=True)
    shutil.rmtree(cwd, ignore_errors=True)
    cwd.mkdir()
    return Settings(
        target=Target(arguments=(), script=str(SERVER), python=sys.executable),
        recipes=(load_recipe("none", load_catalogue()),),
        runs=runs,
        out=out,
        mark="planted",
        cwd=cwd,
        command=("detaudit", "run", str(SERVER)),
    )


def _compared(launcher: ForkLauncher, settings: Settings, requests: Sequence[Mapping[str, Any]]) -> Group:
    """Do one run for each request, and compare them as an audit does, but report only once, at the end."""
    launcher.requests = iter(requests)
    runner = Runner(settings, launcher, Observer())
    plan = plan_group(settings, settings.recipes[0], runner.space, {})
    group = GroupInProgress(plan, settings.cwd)
    for number in range(1, len(requests) + 1):
        result = runner.run(number, plan.spec(number))
        group.add(result.run, result.processes, result.record)
    return group.result()


def planted(launcher: ForkLauncher, folder: Path, training: Training, plants: Sequence[Plant]) -> list[Outcome]:
    """Audit a training with one run without a plant, then one for each plant."""
    requests = [{"training": training.name, "world": training.world, "plant": plant} for plant in (None, *plants)]
    group = _compared(launcher, _settings(folder, len(requests)), requests)
    runs = {run.id: run for run in group.runs}
    logs = [folder / "out" / runs[number].log_dir for number in range(1, len(requests) + 1)]
    broken = [run for run in group.runs if run.status != "ok"]
    if broken:
        raise RuntimeError(f"{training}: {broken[0].errors} {broken[0].stderr_tail}")
    reference = noted.read(logs[0])
    return [
        Outcome(
            training.name,
            training.world,
            plant,
            expected(reference, noted.read(logs[number - 1])),
            named(runs[number].first_difference),
        )
        for number, plant in enumerate(plants, 2)
    ]


def control(launcher: ForkLauncher, folder: Path, training: Training | str) -> str:
    """Return the verdict on two runs of a training without a plant, or of a script of the corpus."""
    if isinstance(training, str):
        request: Mapping[str, Any] = {"script": str(SCRIPTS / f"{training}.py")}
    else:
        request = {"training": training.name, "world": training.world, "plant": None}
    launcher.requests = iter([request, request])
    return Auditor(_settings(folder, 2), launcher).run().verdict.value
