"""The page of a comparison: both recordings, their losses, and the weights that differ."""

from collections.abc import Iterator

from detaudit.model import Comparison
from detaudit.model.figures import Figures
from detaudit.report import comparison
from detaudit.report.blocks import Items, Notes, Text, section
from detaudit.report.html.figures import Panel
from detaudit.report.html.parts import Part, blocks
from detaudit.report.messages import figures

_KINDS = {1: "k-A", 2: "k-B"}
"""The classes that color A and B."""


def overview(found: Comparison) -> Part | None:
    """Return what is compared."""
    both = section(Text(comparison.heading(found)), comparison.recordings(found))
    return next(iter(blocks("recordings", "Recordings", [both])), None)


def parts(found: Comparison, drawn: Figures) -> list[Part]:
    """Return the other parts of the page."""
    changes, tensors = comparison.environment_lines(found), comparison.weights_line(found)
    return [
        *_losses(drawn),
        *blocks("values", "Losses around the first difference", [section(comparison.losses(found))]),
        *blocks("weights", "Weights", [section(Text([tensors]), comparison.weights(found)) if tensors else []]),
        *blocks("outputs", "Files and printed text that differ", [section(Items(comparison.outputs_lines(found)))]),
        *blocks("changes", "Changes of the environment", [section(Items(changes))]),
        *blocks("compared", "What was compared", [section(Notes([comparison.stages_line(found)]))]),
    ]


def _losses(drawn: Figures) -> Iterator[Part]:
    for one in drawn.groups:
        if one.losses is not None:
            panel = Panel("A, B", one.losses, _KINDS, {1: "A", 2: "B"})
            yield Part("losses", "Loss", "losses.html", ([panel], [], figures.LOSSES, figures.DISTANCES_A_B))
