"""The questions that a finding answers: what each asks for, and what to do where the answer is no."""

from typing import NamedTuple


class Rule(NamedTuple):
    """What is asked for, and the help, in Markdown."""

    asks: str
    help: str


RULES = {
    "repeatable": Rule(
        "Runs of one training must end alike, bit for bit.",
        "`detaudit bisect SCRIPT` finds the flags that make it so.",
    ),
    "same-as-baseline": Rule(
        "A training must end as its baseline in the lock file did, bit for bit.",
        "`detaudit compare` shows where they part; `detaudit check --update` takes the new one as the baseline.",
    ),
    "same-after-resume": Rule(
        "A training that was stopped and resumed must end as one that was not.",
        "Look for what the checkpoint does not hold: the optimizer, a generator, the place in the data.",
    ),
    "same": Rule(
        "Two recordings must be the same, bit for bit.",
        "The first step and stage that differ say what to look at.",
    ),
    "mendable": Rule(
        "A set of flags must make the training deterministic.",
        "The lines that are named bring what no flag holds still.",
    ),
    "traceable": Rule(
        "No line of a training may bring a difference.",
        "The line, and what mends it, are told with the finding.",
    ),
    "unvarying": Rule(
        "What must not matter to a training must not change it.",
        "Each variation that matters is told with what holds it still.",
    ),
    "complete": Rule("An audit must come to its end.", "It was interrupted: run it again."),
}
