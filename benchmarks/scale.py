"""Compute what 1,000 runs of 1,024 ranks and a million steps weigh, and where that is reduced.

``make bench-scale`` runs it and writes docs/lab/scale.md. Sizes and rates are those that `python -m benchmarks folding`
measured; the digests of all ranks are simulated.
"""

import re
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from benchmarks.comparison import STAGES
from benchmarks.horizon import table
from benchmarks.reduction import (
    ALL,
    DIFFERENT,
    DISK,
    HEAD,
    LISTED,
    MEMORY,
    NETWORK,
    PER_MACHINE,
    RANKS,
    REQUEST_S,
    RUNS,
    STEPS,
    Measured,
    duration,
    joins,
    leaves,
    levels,
    limits,
    reads,
    simulated,
    size,
    sizes,
)
from benchmarks.results import stored
from benchmarks.rows import Result, number
from detaudit.model.blocks import BLOCK, FAN_OUT
from detaudit.remote.archive import MOST_BYTES
from detaudit.remote.join import POLL_S
from detaudit.runs.log import SUFFIX


def assumptions(found: Measured) -> str:
    """Return what the figures rest on."""
    return f"""\
# What a thousand runs of a thousand ranks weigh

{RUNS:,} runs of {RANKS:,} ranks and {STEPS:,} steps: how large their records are, where they are reduced, and what
breaks first. `make bench-scale` computes this page from what `python -m benchmarks folding` measured on generated event
logs of {found.ranks} ranks ([benchmarks.md](benchmarks.md#folding-event-logs)), and simulates the digests of all ranks.

## Assumptions

- A rank is one training whose steps have {len(STAGES)} events ({", ".join(STAGES)}). Its event log has
  {found.log / STEPS:.0f} bytes per step, compressed {found.packed / STEPS:.0f}: digests are random.
- A machine has {PER_MACHINE} ranks. The machine that joins has {MEMORY / 2**30:.0f} GiB of memory, {DISK / 1e12:.0f} TB
  of disk, and a network of {NETWORK * 8 / 1e9:.0f} Gbit/s. One of its cores decodes {found.events_per_s:,.0f} events
  per second.
- The head of a rank (below) has {size(HEAD)}: the command, settings and versions of a process, and some hundred
  weights at the end. Generated event logs have no settings; their heads have {size(found.head)}.
- To list objects takes {REQUEST_S * 1000:.0f} ms for each {LISTED:,} names. Whoever waits for runs lists every
  {POLL_S:.0f} s.
- Nearly all runs match. Of one that differs, the first difference is wanted.
"""


def weights(found: Measured) -> str:
    """Return how large records are, and what a tree is."""
    head = ["what", "one for each", "of a rank", "of a run", "of all runs", "time on the network"]
    return f"""\
## Sizes

{table(head, list(sizes(found)))}
A digest of each step saves too little: most of an event log is digests. But a block of {BLOCK:,} steps has one digest
for each stage, which the auditor computes anyway when it reads an event log. These are the leaves of a tree with a
fan-out of {FAN_OUT}, aligned on the numbers of the steps. Its root stands for all steps of a stage.

There is a tree for each stage, because not all that is recorded is a result: runs match if the ends of their trainings
and the roots of the stages that are results do. The roots of generators and of batches only explain a difference, see
[promises.md](../promises.md). The comparison itself is the one of all other runs; it reads digests from trees.
"""


def differences(found: Measured) -> str:
    """Return what a first difference takes."""
    return f"""\
## A first difference

What is read of each of two runs, for one stage: a node of each level, then one block of the event log.

{table(["steps", "levels", "nodes", "block", "instead of"], list(reads(found)))}
Only the rank that differs is read below its head. Measured on {found.ranks} ranks, of which one differs in all stages:
{found.nodes} nodes, and with the blocks {size(found.read)} of both runs together. To read all heads and find the step
took {number(2 * found.ranks / found.heads_per_s)} s; to read the event logs of that rank alone
{number(found.slower)} times as long.

Smaller leaves would make the last read smaller, and the trees larger:

{table(["steps of a leaf", "levels", "trees of all runs", "last read"], list(leaves(found)))}"""


def places(found: Measured) -> str:
    """Return where digests are reduced."""
    roots = simulated()
    return f"""\
## Where it is reduced

{table(["digests of each", "reduced by", "number", "they decide"], list(levels()))}
1. **By the rank**, once its training has ended, where the event log is: {found.fold_s:.1f} s of one core. It is the
   reduction that counts, because nothing after it depends on the number of steps.
2. **By the run**: one digest of all ranks says whether any of them has to be looked at.
3. Not by the machine. There, bytes do not matter any more; it is files that a machine saves, with one archive for its
   {PER_MACHINE} ranks.

Simulated: {ALL:,} digests of ranks, of which one differs in each of {DIFFERENT} runs. To fold those of each run into a
tree, compare the runs and name the {DIFFERENT} ranks takes {roots.seconds:.1f} s and {roots.nodes} nodes. The digests
of all ranks take {size(roots.held)} of memory, those of two runs {size(roots.held / RUNS * 2)}.
"""


def joined(found: Measured, result: Result) -> str:
    """Return what join does, what breaks, and what of this is there."""
    head = ["of each rank, join reads", "moved", "in", "on disk", "core time", "in memory"]
    return f"""\
## What join reads and holds

It keeps on disk what it unpacked of all runs. In memory it holds the digests of the first run and of the one that is
compared with it, and the settings of each process of one run: heads, in round figures. Settings that are equal to those
of the first run are held once. Heads and digests take at least that much time and memory: the heads that were measured
are smaller, and all of it is larger once it is decoded.

{table(head, list(joins(found)))}
With heads it can report of runs that match all that it reports today but the losses of each step, which charts show:
settings, versions, flags and fingerprints of each rank are there. Of runs that differ it needs the trees, and a block
of the event logs to name the step. With digests alone it can say which runs match, and has to ask for the heads of
those that do not.

## What breaks first

If join reads event logs, each limit is reached at this number of ranks of {STEPS:,} steps:

{table(["ranks", "limit", "beyond it"], list(limits(found)))}
With trees, two of these would still be reached at {RANKS:,} ranks. To list an object for each rank takes too long, so a
worker stores two for each run. And memory does not hold the settings of all runs if every process has other ones in
every run. What remains is one core's {duration(ALL / found.heads_per_s)} for the heads of all runs, or nothing of it
for a run whose digest is that of another.

## What there is

With `detaudit plan --records trees`, `detaudit worker` writes the trees of a run beside its event logs (`*{SUFFIX}`),
and stores the event logs in an archive of their own, before that of the run. `detaudit join` reads the trees, on one
core, and keeps them. When a step is asked for, it fetches the event logs of that run: those of all its ranks at once.
So the limit of {MOST_BYTES // 2**30} GiB of an archive holds for event logs too, but only if runs differ. There is no
digest of a run: join reads the heads of all.

Measured at commit {result.commit} on {result.machine}.
"""


def wrapped(text: str) -> str:
    """Return a text in Markdown with lines of up to 120 characters; tables and headings are left as they are."""
    parts = []
    for part in text.strip().split("\n\n"):
        items = [part] if part[0] in "|#" else re.split(r"\n(?=- |\d\. )", part)
        for item in items:
            mark = re.match(r"- |\d\. |", item)
            indent, words = " " * len(mark[0] if mark else ""), " ".join(item.split())
            lines = textwrap.fill(words, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
            parts.append(item if item[0] in "|#" else lines)
            parts.append("\n" if item is not items[-1] else "\n\n")
    return "".join(parts).strip() + "\n"


def main(words: Sequence[str]) -> None:
    """Write the document. Raises SystemExit if what it rests on was not measured."""
    result = stored().get("folding")
    if result is None:
        raise SystemExit("measure first: python -m benchmarks folding")
    found = Measured.of(result)
    parts = [assumptions(found), weights(found), differences(found), places(found), joined(found, result)]
    Path(words[0]).write_text(wrapped("\n".join(parts)))


if __name__ == "__main__":
    main(sys.argv[1:])
