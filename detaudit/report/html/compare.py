"""The page of a comparison: both recordings, their losses, and the weights that differ."""

from collections.abc import Iterator

from detaudit.model import Comparison, Group
from detaudit.model.figures import Figures
from detaudit.report import checks, groups
from detaudit.report.document import Items, Notes, Section, Text, section
from detaudit.report.html import captions
from detaudit.report.html.figures import Panel, Part, blocks

_KINDS = {1: "k-A", 2: "k-B"}
"""The classes that color A and B."""


def overview(comparison: Comparison) -> Part | None:
    """Return what is compared."""
    both = section(Text(checks.heading(comparison)), checks.recordings(comparison))
    return next(iter(blocks("recordings", "Recordings", [both])), None)


def parts(comparison: Comparison, drawn: Figures) -> list[Part]:
    """Return the other parts of the page."""
    changes, tensors = checks.environment_lines(comparison), checks.weights_line(comparison)
    return [
        *_parting(comparison),
        *_losses(drawn),
        *blocks("values", "Losses around the first difference", [section(checks.losses(comparison))]),
        *blocks("weights", "Weights", [section(Text([tensors]), checks.weights(comparison)) if tensors else []]),
        *blocks("outputs", "Files and printed text that differ", [section(Items(checks.outputs_lines(comparison)))]),
        *blocks("changes", "Changes of the environment", [section(Items(changes))]),
        *blocks("sides", "The runs of each side", [_runs(group) for group in comparison.groups]),
        *blocks(
            "compared",
            "What was compared",
            [section(Notes([checks.stages_line(comparison), checks.code_line(comparison)]))],
        ),
    ]


def _losses(drawn: Figures) -> Iterator[Part]:
    for one in drawn.groups:
        if one.losses is not None:
            panel = Panel("A, B", one.losses, _KINDS, {1: "A", 2: "B"})
            yield Part("losses", "Loss", "losses.html", ([panel], [], captions.LOSSES, captions.DISTANCES_A_B))


def _parting(comparison: Comparison) -> list[Part]:
    parting = comparison.parting
    if parting is None:
        return []
    return blocks(
        "parting", "Where the codes part", [section(Text([parting.text()]), Items(parting.places(), code=True))]
    )


def _runs(group: Group) -> Section:
    return section(groups.runs_table(group), Text([groups.evidence_line(group)]), groups.stderr(group))
