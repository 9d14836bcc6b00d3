"""The rules that findings keep or break: what each requires, and what to do if it is broken."""

from typing import NamedTuple


class Rule(NamedTuple):
    """What is required, and the help, in Markdown."""

    requirement: str
    help: str


RULES = {
    "repeatable": Rule(
        "All runs of a training must be bit-identical.",
        "`detaudit bisect SCRIPT` finds a minimal set of flags that fixes it, `detaudit trace SCRIPT` the line where "
        "the runs diverge.",
    ),
    "same-as-baseline": Rule(
        "A training must match its baseline in the lock file, bit for bit.",
        "`detaudit compare` shows where they first differ; `detaudit check --update` accepts the new result as the "
        "baseline.",
    ),
    "same-after-resume": Rule(
        "A training that is stopped and resumed must match an uninterrupted one, bit for bit.",
        "Look for state that the checkpoint does not contain: the optimizer, a random generator, the position in the "
        "data.",
    ),
    "identical": Rule(
        "Two recordings must match, bit for bit.",
        "Start with the first step and stage that differ.",
    ),
    "fixable": Rule(
        "A set of flags must make the training deterministic.",
        "The finding names lines that may be the cause and that no set of flags tried fixes.",
    ),
    "no-divergence": Rule(
        "No line may introduce a difference between runs.",
        "The finding names the line, and a fix if one is known.",
    ),
    "robust": Rule(
        "Variations of the environment must not change the training.",
        "The finding says how to fix or pin each variation that does.",
    ),
    "complete": Rule(
        "An audit must run to its end.",
        "It was interrupted: run it again.",
    ),
}
