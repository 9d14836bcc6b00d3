"""Write docs/lab/mutants.md: how many mutants unit tests kill, and why the others survive. `make test-mutants` runs it.

survivors.yaml has the reasons, by what a line becomes: the numbers of mutants change with the code.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import yaml
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code

ROOT = Path(__file__).parents[2]
MUTANTS = Path("mutants")
REASONS = Path("tests/mutants/survivors.yaml")
KILLED = ("killed", "timeout")
REQUIRED = 0.95

HEAD = """\
# Mutants

Do the tests notice if a decision changes? [mutmut](https://github.com/boxed/mutmut) {version} makes one small change at
a time in the modules that decide: it swaps an operator, changes a number or a text, drops an argument, forces a
condition. Such a *mutant* is killed if a unit test fails with it.

`make test-mutants` measures it again and writes this page (some minutes; an interrupted one continues, and `rm -r
mutants` starts over). `[tool.mutmut]` in `pyproject.toml` names the modules and the tests, which start no processes.
Hypothesis tries the same examples for each mutant, and torch has one thread. A mutant that never ends counts as
killed. Values that are set on import, properties and other decorated functions are not changed. At least
{required:.0%} of the mutants of each module must be killed, and each survivor must have a reason in
`tests/mutants/survivors.yaml`.

"""


class Survivor(NamedTuple):
    """A mutant that no test kills: its module, its function, what the changed line becomes."""

    module: str
    function: str
    becomes: str


class Module(NamedTuple):
    """The mutants of a module: their number, and those that survive."""

    path: str
    mutants: int
    survivors: tuple[Survivor, ...]

    @property
    def killed(self) -> int:
        return self.mutants - len(self.survivors)


def modules() -> list[Module]:
    """Return what was measured, and fail if anything was not."""
    found = []
    for file in sorted(MUTANTS.rglob("*.py.meta")):
        path = file.relative_to(MUTANTS).with_suffix("")
        statuses = {
            name: status_by_exit_code[code] for name, code in json.loads(file.read_text())["exit_code_by_key"].items()
        }
        if missing := [name for name, status in statuses.items() if status == "not checked"]:
            sys.exit(f"{path}: {len(missing)} mutants were not run")
        left = [survivor(path, name) for name, status in statuses.items() if status not in KILLED]
        if statuses:
            found.append(Module(str(path), len(statuses), tuple(left)))
    return found


def survivor(path: Path, name: str) -> Survivor:
    lines = [line for line in get_diff_for_mutant(name, path=path).splitlines() if not line.startswith(("+++", "---"))]
    added, removed = (" ".join(line[1:].strip() for line in lines if line[0:1] == sign) for sign in "+-")
    function = name.rpartition(".")[2].partition("__mutmut_")[0].removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
    return Survivor(str(path), function, added or f"(without) {removed}")


def reasons() -> dict[tuple[str, str], str]:
    """Return why mutants survive, by module and by what a line becomes."""
    groups = yaml.safe_load((ROOT / REASONS).read_text())
    return {(group["module"], line): group["why"] for group in groups for line in group["becomes"]}


def text(found: Sequence[Module], why: dict[tuple[str, str], str]) -> str:
    rows = [
        (f"`{one.path}`", one.mutants, one.killed, len(one.survivors), f"{one.killed / one.mutants:.1%}")
        for one in found
    ]
    total, killed = sum(one.mutants for one in found), sum(one.killed for one in found)
    rows.append(("all", total, killed, total - killed, f"{killed / total:.1%}"))
    table = ["| module | mutants | killed | survived | rate |", "|---|---|---|---|---|"]
    table += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    parts = [HEAD.format(version=version("mutmut"), required=REQUIRED), "\n".join(table), "\n\n## Survivors\n"]
    for module in found:
        groups: dict[str, list[Survivor]] = {}
        for one in module.survivors:
            groups.setdefault(why.get((one.module, one.becomes), "No reason is known."), []).append(one)
        if groups:
            parts.append(f"\n`{module.path}`:\n\n")
        for reason, mutants in groups.items():
            parts.append(f"- {reason}\n")
            parts += [f"  - `{one.function}`: `{one.becomes}`\n" for one in mutants]
    return "".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="write the page to this file")
    options = parser.parse_args()
    found, why = modules(), reasons()
    page = text(found, why)
    if options.write:
        options.write.write_text(page)
    print(page)
    surviving = {(one.module, one.becomes) for module in found for one in module.survivors}
    problems = [f"no reason: {module}: {line}" for module, line in sorted(surviving - why.keys())]
    problems += [f"does not survive any more: {module}: {line}" for module, line in sorted(why.keys() - surviving)]
    problems += [f"too few are killed: {one.path}" for one in found if one.killed / one.mutants < REQUIRED]
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
