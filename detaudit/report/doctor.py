"""The diagnosis of a machine, for a terminal or as JSON."""

import click
import msgspec
from tabulate import tabulate

from detaudit.model import Diagnosis

FORMATS = ("table", "json")


def render(found: Diagnosis, format_: str) -> str:
    """Return a diagnosis in one of FORMATS."""
    if format_ == "json":
        return msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"
    rows = [(name, value) for name, value in found.bearing.items()]
    lines = [
        "Two trainings can be equal, bit for bit, where all of these are:",
        "",
        tabulate(rows, tablefmt="plain", disable_numparse=True),
        "",
        click.style("What may make runs differ here:", bold=True),
    ]
    for threat in found.threats:
        held = f" (detaudit run --flag {threat.flag})" if threat.flag else ""
        lines += ["", f"- {threat.what}", f"    {threat.cure}{held}"]
    return "\n".join([*lines, "", "Whether they do is for `detaudit run train.py` to say."]) + "\n"
