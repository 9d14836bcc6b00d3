"""The diagnosis of a machine, for a terminal or as JSON."""

import click
import msgspec
from tabulate import tabulate

from detaudit.model import Diagnosis
from detaudit.report.messages import risks
from detaudit.report.plain import line

FORMATS = ("table", "json")


def render(found: Diagnosis, format_: str) -> str:
    """Return a diagnosis in one of FORMATS."""
    if format_ == "json":
        return msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"
    lines = [
        "Expect bit-identical results only between environments where all of this matches:",
        "",
        tabulate(
            [[line(name), line(value)] for name, value in found.relevant.items()],
            tablefmt="plain",
            disable_numparse=True,
        ),
        "",
        click.style("Risks on this machine:" if found.risks else "No risks found on this machine.", bold=True),
    ]
    for risk in found.risks:
        lines += ["", f"- {line(risks.sentence(risk))}", f"    {line(risks.fix(risk))}"]
    if found.risks:
        lines += ["", "Run `detaudit run train.py` to see whether they affect your training."]
    return "\n".join(lines) + "\n"
