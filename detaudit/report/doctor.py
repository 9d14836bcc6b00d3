"""The diagnosis of a machine, for a terminal or as JSON."""

from collections.abc import Iterator

import click
import msgspec

from detaudit.model import Diagnosis
from detaudit.report.fill import filled
from detaudit.report.messages import risks
from detaudit.report.plain import line

FORMATS = ("table", "json")


def render(found: Diagnosis, format_: str, width: int | None = None) -> str:
    """Return a diagnosis in one of FORMATS; ``width`` is that of the terminal, if there is one."""
    if format_ == "json":
        return msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"
    return "\n".join(_lines(found, width)) + "\n"


def _lines(found: Diagnosis, width: int | None) -> Iterator[str]:
    yield filled("Expect bit-identical results only between environments where all of this matches:", width, "", "")
    yield ""
    longest = max(map(len, found.relevant), default=0)
    for name, value in found.relevant.items():
        yield filled(line(value), width, f"{line(name):<{longest}}  ", " " * (longest + 2)).rstrip()
    yield ""
    yield click.style("Risks on this machine:" if found.risks else "No risks found on this machine.", bold=True)
    for risk in found.risks:
        yield ""
        yield filled(line(risks.sentence(risk)), width, "- ", "  ")
        yield filled(line(risks.fix(risk)), width, "    ", "    ")
    if found.risks:
        yield ""
        yield filled("Run `detaudit run train.py` to see whether they affect your training.", width, "", "")
