"""The tables of docs/lab/planted.md."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.corpus.measure import machine
from tests.planted import rates
from tests.planted.audits import Outcome
from tests.planted.plants import AFTER_STEP, KNOWN, STEPS, TAPE

_HEAD = """# Planted perturbations

Written by `make measure-planted` (hours, resumable): one bit of one tensor is flipped in one run, at a random place,
tensor, element, bit, step and rank (`tests/planted/`). The training notes a SHA-256 of the bytes of each batch, loss,
weight, buffer, output and saved file by itself; what differs first between its notes and those of a run without a flip
is what detaudit must name: rank, step and stage, or the file. If nothing but a batch differs, no result does, and the
runs must match.
"""

_PARTS = {
    "recorded": """## Recorded trainings

Real trainings in torch, in eager TensorFlow, in NumPy with `detaudit.record`, in two child processes, and in two and
four gloo ranks, recorded by the real recorder and compared by the same code as in an audit. For speed, each run is a
forked child of one process that has imported torch or TensorFlow.
""",
    "live": """## Live trainings

The same by `detaudit run`, with a fresh process for each run: one without a flip and ten with one.
""",
}

_COLUMNS = "| flipped | planted | changed a result | detected | named right | at once | later | no change, match |"

_NOTES = """
- *At once*: the stage in which the flip is made, at its step. *Later*: the first stage after it whose value changed.
  A weight or a buffer that is flipped after its update is recorded at the next step; after the last one it shows at the
  end. Without an optimizer and in TensorFlow, weights are read as they enter the next gradient, so both flips of a
  weight show at its own step. `detaudit.record` is given no initial weights.
- *No change*: the bits of all losses, weights, buffers, outputs and files were those of the run without the flip,
  because a rounding, a ReLU or the next update removed it. detaudit says that the runs match, as
  [promised](../promises.md).
- Not in the table: {uncovered} flips of a frozen variable of a `tf.Module` that is dropped after the last step. They
  are not detected, by design: such a module is read at the end of the process
  ([not covered](../promises.md#not-covered)).
"""

_CONTROLS = """## Controls

Audits of two runs without a flip, each of which must be deterministic: the trainings above, and of the forked runs
every fifth a control of the corpus. Forked runs share their hash seed and their memory addresses, fresh processes share
nothing; [corpus.md](corpus-verdicts.md) has the controls of the corpus as fresh processes.

| audits | done | deterministic | false alarms |
|---|---|---|---|
"""

_RATES = """## How many runs catch a race

For each nondeterministic script of the corpus, the probability that 2, 3, 5 or 10 of its measured runs without detaudit
(20 of each, `tests/corpus/measured.yaml`) are not all equal, drawn at random without replacement. If what was measured
leaves open how equal runs fall into groups, both bounds are given. The first row is what `detaudit run` says of N
matching runs: they *would catch a difference that shows up in so many runs or more (95% confidence)*. In bold where
this covers the script: two of its runs differ at least as often.
"""


def document(
    planted: Mapping[str, Sequence[Outcome]],
    controls: Mapping[str, Sequence[str]],
    counts: Mapping[str, int],
    labels: Mapping[str, Mapping[str, Any]],
    measured: Mapping[str, Mapping[str, Any]],
) -> str:
    """Return docs/lab/planted.md; ``counts`` are the numbers that are wanted of each part."""
    lines = [_HEAD, ", ".join(f"{name} {value}" for name, value in machine().items()) + ".", ""]
    for part, all_of_them in planted.items():
        outcomes = [one for one in all_of_them if covered(one)]
        uncovered = len(all_of_them) - len(outcomes)
        lines += [_PARTS[part], *_table(outcomes), "", *_summary(outcomes, counts[part] - uncovered), ""]
        if part == "recorded":
            lines += [_NOTES.lstrip().format(uncovered=uncovered)]
    lines += [_CONTROLS.rstrip()]
    for part, verdicts in controls.items():
        right, alarms = (verdicts.count(word) for word in ("deterministic", "nondeterministic"))
        name = "fresh processes" if part.startswith("live") else "forked runs"
        lines.append(f"| {name} | {len(verdicts):,} of {counts[part]:,} | {right:,} | {alarms} |")
    lines += ["", _RATES, *rates.lines(labels, measured), "", *_promise(labels, measured)]
    return "\n".join([*lines, ""])


def covered(one: Outcome) -> bool:
    """Return whether detaudit promises to detect this flip: not after the last step, if its module is dropped then."""
    return (one.training, one.plant.place, one.plant.step) != (TAPE.name, AFTER_STEP, STEPS)


def _table(outcomes: Sequence[Outcome]) -> list[str]:
    kinds = sorted({(one.plant.place, _kind(one)) for one in outcomes})
    rows = [_row(f"{place}, {kind}", [one for one in outcomes if (one.plant.place, _kind(one)) == (place, kind)])
            for place, kind in kinds]  # fmt: skip
    return [_COLUMNS, "|---" * 8 + "|", *rows, _row("**all**", outcomes)]


def _kind(one: Outcome) -> str:
    if one.world > 1:
        return f"{one.world} gloo ranks" if one.training == "gloo" else f"{one.world} children"
    return {"record": "`detaudit.record`", "by-hand": "torch by hand", "tape": "TensorFlow"}.get(one.training, "torch")


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    changed = [one for one in outcomes if one.expected is not None]
    found = [one for one in changed if one.found is not None]
    right = [one for one in found if one.right]
    at_once = sum(_at_once(one) for one in right)
    same = [one for one in outcomes if one.expected is None]
    matched = sum(one.right for one in same)
    cells = (len(outcomes), len(changed), len(found), len(right), at_once, len(right) - at_once)
    matches = f"{len(same):,}" if matched == len(same) else f"{len(same):,}, of which {matched:,} match"
    return f"| {name} | {' | '.join(f'{cell:,}' for cell in cells)} | {matches} |"


def _at_once(one: Outcome) -> bool:
    found, plant = one.found, one.plant
    if found is None or found.stage != KNOWN.get(plant.place):
        return False
    step = 0 if found.stage in ("init", "saved") else plant.step
    return (found.step, found.rank) == (step, 0 if found.stage == "saved" else plant.rank)


def _summary(outcomes: Sequence[Outcome], wanted: int) -> list[str]:
    wrong = [one for one in outcomes if not one.right]
    steps = f"{len(outcomes):,} of {wanted:,} were planted; {len(wrong)} were missed or named wrongly."
    unfinished = " The rest did not fit into the time that was given (`--minutes`)." if len(outcomes) < wanted else ""
    return [steps + unfinished, *(f"- {one}" for one in wrong[:20])]


def _promise(labels: Mapping[str, Mapping[str, Any]], measured: Mapping[str, Mapping[str, Any]]) -> list[str]:
    counted = [measured[name]["bare"] for name, label in labels.items() if label["none"] == "N" and name in measured]
    found = [rates.kept(one, runs) for one in counted for runs in rates.RUNS]
    covered = [one for one in found if one is not None]
    broken = covered.count(False)
    held = "The promise held in all" if not broken else f"The promise did not hold in {broken} of"
    return [f"{held} {len(covered)} cells that it covers, those of the first row included."]
