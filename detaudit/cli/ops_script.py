"""``detaudit ops --script``: record what one step of a script calls, before it is repeated."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from detaudit import wire
from detaudit.cli.output import print_python
from detaudit.cli.progress import ProgressLine
from detaudit.cli.settings import settings_of
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.errors import UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.launch.processes import Reaper
from detaudit.model import Compare
from detaudit.ops import scan
from detaudit.ops.scan import Request

AT_STEP = 2
"""The step that is recorded by default: the first one also has what is done once."""


def refuse(
    script: str | None,
    after_dashes: tuple[str, ...],
    needing: Mapping[str, object],
    excluded: Mapping[str, object],
    resume: Path | None,
) -> None:
    """Raise UsageError for options that need --script, or that are ``excluded`` with it."""
    if script is None:
        given = next((name for name, value in needing.items() if value is not None), None)
        if given or after_dashes:
            what = given or "arguments after --"
            raise UsageError(f"{what} without --script", "Name the script, as in: detaudit ops --script train.py.")
        return
    if resume is not None:
        raise UsageError("--resume with --script", "Leave --script out: the results folder has what it called.")
    given = next((name for name, value in excluded.items() if value), None)
    if given == "--framework":
        raise UsageError(
            "--script records what torch calls, not TensorFlow",
            "Use `detaudit trace`, or `detaudit ops --framework tensorflow` without --script.",
        )
    if given:
        raise UsageError(
            f"{given} with --script, which has the inputs of the script", f"Leave {given} out; --op selects operations."
        )


def recorded(
    request: Request,
    script: str,
    arguments: tuple[str, ...],
    at_step: int,
    python: str | None,
    folder: Path,
    quiet: bool,
) -> Request:
    """Run the script through a step, and return the request to scan what that called."""
    settings = settings_of(
        arguments, (load_recipe("none", load_catalogue()),), 1, words=(script,), module="", python=python, out=folder,
        isolate=False, isolate_root=None, timeout=None, stages=wire.DEFAULT_STAGES, loss_pattern=None, artifacts_=(),
        no_files=True, compare=Compare.TRAINING.value, ignore=(), ignore_text=(), redact=(), file_budget=None,
    )  # fmt: skip
    settings = replace(settings, out=folder)
    print_python([settings.target], quiet)
    with ProgressLine(quiet) as progress, Reaper(settings.mark):
        log, about = scan.record(settings, at_step, LocalLauncher(), progress)
    device = scan.device(scan.read(log)[0]) if log else request.device
    return msgspec.structs.replace(
        request, python=settings.target.python, device=device, dtypes=(), script=about, log=str(log or "")
    )
