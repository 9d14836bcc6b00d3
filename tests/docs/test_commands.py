"""Every command on the pages is one that detaudit has, and those with their output do what the pages show."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from detaudit.cli import cli
from tests.docs.blocks import Block, Command, blocks, calls
from tests.docs.shown import missing

pytestmark = pytest.mark.launches

ROOT = Path(__file__).parents[2]
PAGES = {
    str(page.relative_to(ROOT)): blocks(page, ROOT)
    for page in (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md")))
}
CALLS = [(block.place, call) for page in PAGES.values() for block in page for call in calls(block)]
SHORT = [name for name, page in PAGES.items() if any(block.runs and not block.full for block in page)]
LONG = [name for name, page in PAGES.items() if any(block.runs and block.full for block in page)]
LENGTHY = {
    "docs/evidence.md",
    "docs/how-to/another-machine.md",
    "docs/how-to/ci.md",
    "docs/how-to/dataloader-workers.md",
    "docs/how-to/ddp.md",
    "docs/how-to/once-in-twenty-runs.md",
    "docs/how-to/resume.md",
    "docs/how-to/takes-a-day.md",
    "docs/resuming.md",
    "docs/tutorial.md",
}
"""Pages whose short commands take half a minute and more together, so that only ``make test-pages`` runs them."""
WITH_FULL = {"docs/how-to/cluster.md"}
"""Pages whose short commands take a quarter of a minute, so that ``make test-full`` runs them."""

NOT_HERE = [block for page in PAGES.values() for block in page if block.not_here]


class Reader:
    """Someone who types the commands of a page into a shell, in an empty folder with the examples."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        shutil.copytree(ROOT / "examples", self.folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        programs = folder / "bin"
        programs.mkdir()
        (programs / "detaudit").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m detaudit "$@"\n')
        (programs / "detaudit").chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if name not in ("CI", "GITHUB_ACTIONS")}
        self.env = kept | {
            "PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            **{
                f"GIT_{who}_{what}": "reader@example.org"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
        }

    def does(self, page: Sequence[Block]) -> None:
        """Write the files of a page and run its commands, in their order."""
        for block in page:
            if block.file:
                path = self.folder / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text)
            elif block.runs:
                *before, last = block.commands
                for command in before:
                    self._runs(command, block, 0)
                self._runs(last, block, block.exit_code)

    def _runs(self, command: Command, block: Block, expected: int) -> None:
        done = subprocess.run(
            ["bash", "-c", command.text],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1800,
            check=False,
        )
        where = f"{block.place}: $ {command.text}\n{done.stdout}"
        assert done.returncode == expected, f"exit status {done.returncode}, not {expected}: {where}"
        lost = missing(command.shown, done.stdout)
        assert lost is None, f"the page shows {lost!r}: {where}"


def _ring(page: str) -> Sequence[pytest.MarkDecorator]:
    return [pytest.mark.pages] if page in LENGTHY else [pytest.mark.full] if page in WITH_FULL else []


@pytest.mark.parametrize("page", [pytest.param(page, marks=_ring(page)) for page in SHORT])
def test_the_commands_of_a_page_do_what_it_shows(page: str, tmp_path: Path) -> None:
    Reader(tmp_path).does([block for block in PAGES[page] if not block.full])


@pytest.mark.pages
@pytest.mark.parametrize("page", LONG)
def test_with_its_long_commands_a_page_does_what_it_shows(page: str, tmp_path: Path) -> None:
    Reader(tmp_path).does(PAGES[page])


@pytest.mark.parametrize("block", NOT_HERE, ids=[block.place for block in NOT_HERE])
def test_a_block_that_cannot_be_run_here_is_counted(block: Block) -> None:
    pytest.skip(f"{block.place} is not run: {block.not_here}")


@pytest.mark.parametrize(("place", "words"), CALLS, ids=[f"{place} {' '.join(call)}" for place, call in CALLS])
def test_detaudit_has_a_command_and_its_options(place: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click.Path, "convert", lambda self, value, param, ctx: value)
    _parse(cli, words)


def _parse(command: click.Command, words: list[str], parent: click.Context | None = None) -> None:
    if not words:  # it shows its help
        return
    with command.make_context(command.name or "detaudit", list(words), parent=parent) as context:
        if isinstance(command, click.Group) and context.args:
            _, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            assert found is not None
            _parse(found, rest, context)
