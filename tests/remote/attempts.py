"""Archives of runs as workers leave them, made without a worker."""

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.model import RankRecord, Run, Status, record_of
from detaudit.remote.archive import Attempt, name_of
from detaudit.remote.plan import SCHEMA_VERSION, Plan
from detaudit.remote.worker import packed
from detaudit.runs.log import read_run
from detaudit.runs.status import recorded
from tests.fakes import training
from tests.logs import write_log

RANK = RankRecord(rank=0, framework="torch", steps=2, sum_of_weights=3.0, final_loss=0.5, digest="same")


def plan(runs: int = 3, nonce: str = "n", *recipes: str, **fields: Any) -> Plan:
    catalogue = load_catalogue()
    values: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "detaudit": "1",
        "created": "2026-11-24T00:00:00+00:00",
        "nonce": nonce,
        "command": ("detaudit", "plan", "train.py"),
        "recipes": tuple(load_recipe(name, catalogue) for name in recipes or ("none",)),
        "runs": runs,
        "script": "train.py",
    }
    return Plan(**{**values, **fields})


def attempt(of: Plan, run: int, name: str = "", host: str = "node1", **machine: Any) -> Attempt:
    _, number = of.recipe_and_number(run)
    return Attempt(
        schema_version=SCHEMA_VERSION,
        plan=of,
        run=run,
        id=name or f"attempt-{run}",
        cwd="/there",
        place="/tmp/detaudit-abcdefgh",
        machine={"id": host, "host": host, "python": None, "frameworks": {}, "packages": {}, **machine},
        result=Run(id=number, status=Status.OK, exit_code=0, wall_s=1.5, steps=2, ranks=(RANK,)),
        started="2026-11-24T00:00:00+00:00",
        ended="2026-11-24T00:00:02+00:00",
    )


SOURCE = {
    "k": "source",
    "kind": "unseeded",
    "what": "random.random",
    "file": "/there/train.py",
    "line": 3,
    "value": "random",
}


def stored(folder: Path, made: Attempt, *updates: str, name: str = "", steps: int = 2) -> Path:
    """Write what is stored of a run to a folder, whose ranks have these last weights; return its archive."""
    return all_stored(folder, made, *updates, name=name, steps=steps)[-1]


def all_stored(folder: Path, made: Attempt, *updates: str, name: str = "", steps: int = 2) -> list[Path]:
    """Do the same, and return all that is stored, in this order."""
    work = folder / "work"
    (work / "logs").mkdir(parents=True, exist_ok=True)
    for rank, update in enumerate(updates or ("same",)):
        started, *rest = training(update, steps=steps)
        named = {**started, "pid": 7 + rank, "rank": rank if len(updates) > 1 else None}
        write_log(work / "logs" / f"{7 + rank}.0.jsonl", (named, SOURCE, *rest))
    (work / "stdout.log").write_text("hello\n")
    (work / "stderr.log").write_text("")
    path = folder / (name or name_of(made.plan, made.run))
    record = record_of(recorded(read_run(work)))
    made = replace(made, result=replace(made.result, steps=record.steps, ranks=record.ranks))
    found = packed(made, work, path)
    for file in sorted(work.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    work.rmdir()
    return found
