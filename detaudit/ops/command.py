"""detaudit ops."""

import os
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from detaudit import store
from detaudit.cli import completion
from detaudit.cli.execute import print_python
from detaudit.cli.options import TargetCommand, format_option, option, out_option, python_option, quiet_option
from detaudit.cli.progress import ProgressLine
from detaudit.cli.screen import width
from detaudit.cli.settings import settings_of
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.errors import UsageError
from detaudit.launch.local import LocalLauncher
from detaudit.launch.packages import installed
from detaudit.launch.processes import Reaper, shielded
from detaudit.launch.target import outer_environment, training_python
from detaudit.model import Compare
from detaudit.model.fact import count
from detaudit.ops import scan
from detaudit.ops.scan import SCAN, Request, Scanner, Watcher, read_request
from detaudit.report import operations

# ``detaudit ops --script``: record what one step of a script calls, before it is repeated.


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
        option_name = next((name for name, value in needing.items() if value is not None), None)
        if option_name or after_dashes:
            what = option_name or "arguments after --"
            raise UsageError(f"{what} without --script", "Name the script, as in: detaudit ops --script train.py.")
        return
    if resume is not None:
        raise UsageError("--resume with --script", "Leave --script out: the results folder has what it called.")
    option_name = next((name for name, value in excluded.items() if value), None)
    if option_name == "--framework":
        raise UsageError(
            "--script records what torch calls, not TensorFlow",
            "Use `detaudit trace`, or `detaudit ops --framework tensorflow` without --script.",
        )
    if option_name:
        raise UsageError(
            f"{option_name} with --script, which has the inputs of the script",
            f"Leave {option_name} out; --op selects operations.",
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
        files=False, compare=Compare.TRAINING,
    )  # fmt: skip
    settings = replace(settings, out=folder)
    print_python([settings.target], quiet)
    with ProgressLine(quiet) as progress, Reaper(settings.mark):
        log, about = scan.record(settings, at_step, LocalLauncher(), progress)
    device = scan.device(scan.read(log)[0]) if log else request.device
    return msgspec.structs.replace(
        request, python=settings.target.python, device=device, dtypes=(), script=about, log=str(log or "")
    )


# ``detaudit ops``: find the operations of a framework that differ on the same inputs.


_EXAMPLES = (
    ("which operations of torch differ on this machine?", "detaudit ops"),
    ("operations that write by an index", "detaudit ops --op '*put*' --op '*scatter*'"),
    ("one sample of one operation again", "detaudit ops --op torch.Tensor.index_put_ --dtype float32 --sample 2"),
    ("before a long training: what one of its steps calls", "detaudit ops --script train.py -- --lr 0.1"),
    ("go on after an interruption", "detaudit ops --resume .detaudit/20261121-145042-24652d70"),
)
_SCAN = "What is repeated"
_TORCH, _TENSORFLOW = "torch", "tensorflow"
_DTYPES = ("float32", "bfloat16", "float16", "float64", "complex64", "complex128")
_DEFAULT = ("float32", "bfloat16")
_EVERY_S = 60.0


class _Progress(Watcher):
    """Prints how far a scan is on stderr: a line that is rewritten, or one each minute without a terminal."""

    def __init__(self, silent: bool) -> None:
        self._silent, self._next, self._written = silent, 0.0, False

    def progress(self, name: str, done: int, of: int) -> None:
        """See Watcher."""
        if self._silent or time.monotonic() < self._next:
            return
        terminal = sys.stderr.isatty()
        self._next = time.monotonic() + (0.5 if terminal else _EVERY_S)
        text = f"{name}: {done:,} of {count(of, 'operation')}" if of else "listing operations"
        click.echo(f"\r\x1b[K{text}" if terminal else text, err=True, nl=not terminal)
        self._written = terminal

    def close(self) -> None:
        """Remove the line."""
        if self._written:
            click.echo("\r\x1b[K", err=True, nl=False)


@click.command(cls=TargetCommand, examples=_EXAMPLES)
@option("--framework", group=_SCAN, type=click.Choice([_TORCH, _TENSORFLOW]), metavar="NAME",
        help="torch or tensorflow. [default: the first of these that is installed]")  # fmt: skip
@option("--script", group=_SCAN, metavar="FILE", shell_complete=completion.script,
        help="Repeat only what one step of this script calls, on the inputs that it has there. The script is run "
        "until that step is over; its arguments follow --. torch only.")  # fmt: skip
@option("--at-step", group=_SCAN, type=click.IntRange(1), metavar="N",
        help=f"Step of --script; step 1 includes what runs before it. [default: {AT_STEP}]")  # fmt: skip
@option("--device", group=_SCAN, metavar="NAME", help="Device, such as cpu or cuda. [default: cpu]")
@option("--op", "patterns", group=_SCAN, multiple=True, metavar="PATTERN",
        help="Repeat only operations with such a name, as in '*scatter*'. Repeatable.")  # fmt: skip
@option("--dtype", "dtypes", group=_SCAN, multiple=True, type=click.Choice(_DTYPES), metavar="NAME",
        help=f"Type of elements: {', '.join(_DTYPES)}. Repeatable. [default: {', '.join(_DEFAULT)}]")  # fmt: skip
@option("--sample", "samples", group=_SCAN, multiple=True, type=click.IntRange(0), metavar="N",
        help="Repeat only this sample of each operation, by its number in a report. Repeatable.")  # fmt: skip
@option("--repeats", group=_SCAN, type=click.IntRange(2), default=10, show_default=True, metavar="N",
        help="Repetitions in each process; five times as many of what differs.")  # fmt: skip
@option("--resume", group=_SCAN, type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
        help="Resume an interrupted scan from its results folder.")  # fmt: skip
@python_option
@out_option
@format_option(operations.FORMATS)
@quiet_option
def command(
    framework: str | None,
    script: str | None,
    at_step: int | None,
    device: str | None,
    patterns: tuple[str, ...],
    dtypes: tuple[str, ...],
    samples: tuple[int, ...],
    repeats: int,
    resume: Path | None,
    python: str | None,
    out: Path | None,
    format_: str,
    quiet: bool,
    after_dashes: tuple[str, ...],
) -> int:
    """Find the operations of a framework that differ on the same inputs.

    Repeats each operation, forward and backward, in several processes: with different numbers of threads, under load,
    with memory filled differently, and with the framework's deterministic switch. Compares all bits.

    Exit status: 0 all match, 1 some differ.
    """
    excluded = {"--framework": framework == _TENSORFLOW, "--device": device, "--dtype": dtypes, "--sample": samples}
    refuse(script, after_dashes, {"--at-step": at_step}, excluded, resume)
    request = Request(
        python="",
        framework=framework or _TORCH,
        device=device or "cpu",
        patterns=patterns or ("*",),
        dtypes=dtypes or _DEFAULT,
        repeats=repeats,
        samples=samples,
    )
    mark = secrets.token_hex(4)
    signal.signal(signal.SIGTERM, _interrupt)
    if resume is not None:
        request, folder = read_request(resume), resume.resolve()
    else:
        folder = (out or store.new_folder(mark)).resolve()
        store.prepare(folder)
        if script is not None:
            request = recorded(request, script, after_dashes, at_step or AT_STEP, python, folder, quiet)
        else:
            request = _of_database(request, framework, python)
        store.write(folder / SCAN, msgspec.json.encode(request))
    return _carry_out(request, folder, mark, quiet, format_)


def _of_database(request: Request, framework: str | None, python: str | None) -> Request:
    """Return the request with the Python that scans, and its framework."""
    interpreter = shutil.which(python or training_python(Path.cwd())) or python or sys.executable
    return msgspec.structs.replace(
        request, python=os.path.abspath(interpreter), framework=framework or _installed(interpreter)
    )


def _carry_out(request: Request, folder: Path, mark: str, quiet: bool, format_: str) -> int:
    progress = _Progress(quiet)
    scanner = Scanner(
        request, folder, mark, LocalLauncher(), outer_environment(), len(os.sched_getaffinity(0)), progress
    )
    with Reaper(mark):
        try:
            report = scanner.run()
        except KeyboardInterrupt:
            with shielded():
                report = scanner.result(interrupted=True)
        finally:
            progress.close()
    click.echo(operations.render(report, format_, width()), nl=False)
    if report.interrupted:
        click.echo(f"resume with: detaudit ops --resume {scanner.out}", err=True)
    return report.exit_code


def _installed(python: str) -> str:
    """Return the framework that this Python has. Raises UsageError if it has neither."""
    _, packages = installed(python)
    names = {name.removesuffix("-cpu") for name in packages}
    for framework in (_TORCH, _TENSORFLOW):
        if framework in names:
            return framework
    raise UsageError(f"{python} has neither torch nor TensorFlow", "Name the Python that has with --python.")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
