"""The page of a comparison: both recordings, their losses, and the weights that differ."""

from collections.abc import Iterator

from detaudit.model import Comparison
from detaudit.model.figures import Figures
from detaudit.report import checks
from detaudit.report.document import Items, Notes, Text, section
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
        *_losses(drawn),
        *blocks("values", "Losses around the first difference", [section(checks.losses(comparison))]),
        *blocks("weights", "Weights", [section(Text([tensors]), checks.weights(comparison)) if tensors else []]),
        *blocks("outputs", "Files and printed text that differ", [section(Items(checks.outputs_lines(comparison)))]),
        *blocks("changes", "Changes of the environment", [section(Items(changes))]),
        *blocks("compared", "What was compared", [section(Notes([checks.stages_line(comparison)]))]),
    ]


def _losses(drawn: Figures) -> Iterator[Part]:
    for one in drawn.groups:
        if one.losses is not None:
            panel = Panel("A, B", one.losses, _KINDS, {1: "A", 2: "B"})
            yield Part("losses", "Loss", "losses.html", ([panel], [], captions.LOSSES, captions.DISTANCES_A_B))
