"""The page of a comparison: both recordings, their losses, and the weights that differ."""

from collections.abc import Iterator

from detaudit.model import Comparison
from detaudit.model.figures import Figures
from detaudit.report import checks
from detaudit.report.document import Items, Notes, Text, section
from detaudit.report.html.figures import Panel, Part, blocks
from detaudit.report.messages import figures

_KINDS = {1: "k-A", 2: "k-B"}
"""The classes that color A and B."""


def overview(found: Comparison) -> Part | None:
    """Return what is compared."""
    both = section(Text(checks.heading(found)), checks.recordings(found))
    return next(iter(blocks("recordings", "Recordings", [both])), None)


def parts(found: Comparison, drawn: Figures) -> list[Part]:
    """Return the other parts of the page."""
    changes, tensors = checks.environment_lines(found), checks.weights_line(found)
    return [
        *_losses(drawn),
        *blocks("values", "Losses around the first difference", [section(checks.losses(found))]),
        *blocks("weights", "Weights", [section(Text([tensors]), checks.weights(found)) if tensors else []]),
        *blocks("outputs", "Files and printed text that differ", [section(Items(checks.outputs_lines(found)))]),
        *blocks("changes", "Changes of the environment", [section(Items(changes))]),
        *blocks("compared", "What was compared", [section(Notes([checks.stages_line(found)]))]),
    ]


def _losses(drawn: Figures) -> Iterator[Part]:
    for one in drawn.groups:
        if one.losses is not None:
            panel = Panel("A, B", one.losses, _KINDS, {1: "A", 2: "B"})
            yield Part("losses", "Loss", "losses.html", ([panel], [], figures.LOSSES, figures.DISTANCES_A_B))
