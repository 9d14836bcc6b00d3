"""The table of docs/lab/corpus-verdicts.md: the verdicts on each script, beside what was measured without detaudit."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

RECIPES = ("none", "seeds", "all")

_HEAD = """# Corpus results: verdicts

Written by `make test-corpus`: each script of tests/corpus/scripts/ audited with each recipe and `--runs {runs}
--fail-fast`. N is nondeterministic, D deterministic, ? inconclusive (the script fails with that recipe); one letter for
each audit, in bold if one misses its label. *Alone* is the number of different final weights of that many runs of the
unmodified script without detaudit (`make measure-corpus`, tests/corpus/measured.yaml). *Named* is what the first audit
that found a difference named: the first stage that differs, and lines of the script that introduce randomness, by kind
and call.
"""


class Audited(NamedTuple):
    """The result of one audit: a letter for each of RECIPES, or only for the first, and what it names."""

    letters: str
    named: str


def expected(label: Mapping[str, Any], recipe: str) -> str:
    """Return the letters of the verdicts that are right: those of the result, if it is not that of the training."""
    letters: str = label.get("result", label)[recipe]
    return letters


def right(label: Mapping[str, Any], audits: Sequence[Audited]) -> bool:
    """Return whether every verdict is the label's; a rare difference may be missed, a match never."""
    return not any(
        letter not in expected(label, recipe) and not (label.get("rare") and (label[recipe], letter) == ("N", "D"))
        for audited in audits
        for recipe, letter in zip(RECIPES, audited.letters, strict=False)
    )


def table(
    seen: Mapping[str, Sequence[Audited]],
    labels: Mapping[str, Mapping[str, Any]],
    measured: Mapping[str, Mapping[str, Any]],
    runs: int,
) -> str:
    """Return the results as Markdown, with recall and precision; rare races have a table of their own."""
    usual = {script: audits for script, audits in seen.items() if not labels[script].get("rare")}
    rare = {script: audits for script, audits in seen.items() if labels[script].get("rare")}
    controls = sum(labels[script]["cause"] == "control" for script in seen)
    lines = [_HEAD.format(runs=runs)]
    lines += [f"{len(seen)} scripts, {controls} of them controls. {_machine(measured['machine'])}", ""]
    lines += [
        "| script | cause | alone | none | seeds | all | fixed by | named |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [_row(script, audits, labels[script], measured[script]) for script, audits in usual.items()]
    lines += ["", *_score(usual, labels)]
    if rare:
        lines += [
            "",
            "## Rare differences",
            "",
            "They show up in fewer than 1 run in 3, so five runs may all match.",
            "",
        ]
        lines += ["| script | cause | alone | runs that differ | caught without flags |", "|---|---|---|---|---|"]
        lines += [_rare_row(script, audits, labels[script], measured[script]) for script, audits in rare.items()]
    return "\n".join([*lines, ""])


def differing_share(found: Mapping[str, int]) -> float:
    """Return the share of runs whose weights are not the most common ones."""
    return 1 - found["commonest"] / found["runs"]


def _machine(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items()) + "."


def _row(script: str, audits: Sequence[Audited], label: Mapping[str, Any], measured: Mapping[str, Any]) -> str:
    cells = []
    for place, recipe in enumerate(RECIPES):
        letters = "".join(audited.letters[place : place + 1] for audited in audits)
        cells.append(letters if set(letters) <= {*expected(label, recipe)} else f"**{letters}**")
    fix = ", ".join(label.get("fix", ())) or ("" if label["cause"] == "control" else "an edit")
    named = next((audited.named for audited in audits if audited.named), "")
    return f"| {script} | {label['cause']} | {_alone(measured)} | {' | '.join(cells)} | {fix} | {named} |"


def _rare_row(script: str, audits: Sequence[Audited], label: Mapping[str, Any], measured: Mapping[str, Any]) -> str:
    caught = sum(audited.letters[0] == "N" for audited in audits)
    rate = f"{differing_share(measured['bare']):.0%}"
    return f"| {script} | {label['cause']} | {_alone(measured)} | {rate} | {caught} of {len(audits)} audits |"


def _alone(measured: Mapping[str, Any]) -> str:
    return f"{measured['bare']['distinct']} of {measured['bare']['runs']}"


def _score(seen: Mapping[str, Sequence[Audited]], labels: Mapping[str, Mapping[str, Any]]) -> list[str]:
    pairs = Counter(
        (labels[script][recipe], letter)
        for script, audits in seen.items()
        for audited in audits
        for recipe, letter in zip(RECIPES, audited.letters, strict=False)
    )
    caught = pairs["N", "N"]
    wanted = {want: sum(n for (label, _), n in pairs.items() if label == want) for want in "ND?"}
    called = sum(n for (_, letter), n in pairs.items() if letter == "N")
    return [
        f"Recall {_share(caught, wanted['N'])}; precision {_share(caught, called)}; "
        f"{pairs['D', 'D']} of {wanted['D']} deterministic scripts confirmed; "
        f"{pairs['?', '?']} of {wanted['?']} failing scripts reported as inconclusive.",
    ]


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.1%})" if whole else "0 of 0"
