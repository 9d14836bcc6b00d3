"""What to type next, and what casts doubt on a result."""

import dataclasses
import itertools
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from detaudit import redact, wire
from detaudit.config.flags import COUNTED_CLOCK
from detaudit.config.options import words as inherited
from detaudit.config.recipes import Recipe
from detaudit.config.variations import ALL, load_variations
from detaudit.launch.plan import Settings
from detaudit.launch.target import other_python
from detaudit.model import (
    Audit,
    Check,
    Culprit,
    FlagOutcome,
    Group,
    NextStep,
    Purpose,
    Run,
    Source,
    Stage,
    Status,
    Verdict,
    Warning,
)
from detaudit.model.outputs import Compare
from detaudit.model.problems import EarlierRunsDiffer, OutputsOpen
from detaudit.model.warnings import FailedAfterLeftovers, FlagNotApplied, LeftoverFilesRead

_SHOWN = 5
"""Files that a warning names."""


def command(settings: Settings, *options: str, verb: str = "run") -> str:
    """Return a command, by default ``detaudit run``, for the same target with these options."""
    target = settings.target
    words = ["detaudit", verb, *([target.script] if target.script else [])]
    words += ["-m", target.module] if target.module else []
    words += options
    named = settings.target.python != sys.executable and not settings.target.python_found
    if named and "--python" not in (*options, *settings.engine_options):
        words += ["--python", shown(Path(settings.target.python))]
    words += settings.jobs.options if verb == "run" else ()
    words += [*settings.engine_options, *inherited(settings, verb)]
    if target.arguments:
        words += ["--", *target.arguments]
    return shlex.join(redact.command(words))


def _same_recipes(settings: Settings) -> tuple[str, ...]:
    """Return the options that select the same recipes."""
    if len(settings.recipes) == 1:
        return settings.recipes[0].options
    pairs = dict[tuple[str, str], None]()
    for options in (one.options for one in settings.recipes):
        named = options if "--recipe" in options else ("--recipe", "none", *options)
        pairs.update(dict.fromkeys(zip(named[::2], named[1::2], strict=True)))
    recipes_first = sorted(pairs, key=lambda pair: pair[0] != "--recipe")
    return tuple(itertools.chain.from_iterable(recipes_first))


def next_steps(
    settings: Settings, groups: Sequence[Group], leftovers: Sequence[str] = (), reads: Sequence[Source] = ()
) -> tuple[NextStep, ...]:
    """Return the commands that follow from these groups.

    ``leftovers`` are files of one run that a later one read, ``reads`` what the script reads of its machine.
    """
    pairs = list(zip(settings.recipes, groups, strict=False))
    fixing = next((recipe for recipe, group in pairs if group.verdict is Verdict.DETERMINISTIC), None)
    steps, named = list(_after_failure(settings, groups)), settings
    comparable = not recorded_nothing(settings, groups)
    if not comparable and (file := _differing_file(groups)):  # other commands compare such runs if they are told a file
        named, comparable = dataclasses.replace(settings, artifacts=(file,)), True
    doubts = (one for group in groups for one in _doubts(group))
    failed_after = next((one for one in doubts if isinstance(one, FailedAfterLeftovers) and not one.outside), None)
    if (leftovers or failed_after is not None) and not settings.isolate:
        words = ("--runs", str(settings.runs), *_same_recipes(settings))
        isolated = command(dataclasses.replace(settings, isolate=True), *words)
        if failed_after is not None and not failed_after.more:  # a copy of the folder would have them too
            isolated = f"rm -r {shlex.join(failed_after.files)} && {isolated}"
        steps.append((isolated, Purpose.ISOLATE))
    elif any(map(_differs, groups)):
        steps += _after_difference(named, groups, fixed=fixing is not None) if comparable else ()
        if comparable or not settings.engine_options:  # here, a trace finds by itself what differs
            traced = named if settings.engine_options else settings
            differing = next((recipe.options for recipe, group in pairs if _differs(group)), ())
            steps.append((command(traced, *differing, verb="trace"), Purpose.TRACE))
        steps += [(step.command, step.purpose) for step in fix_step(settings)]
        steps += _with_counted_clock(settings, groups)
    elif _open(groups):
        steps += _with_counted_clock(settings, groups)
        counted = dataclasses.replace(settings, compare=Compare.ALL)
        open_one = next(recipe for recipe, group in pairs if _open([group]))
        steps.append((command(counted, *open_one.options, verb="trace"), Purpose.TRACE))
        steps += [(step.command, step.purpose) for step in fix_step(counted)]
    elif any(one.may_decide for group in groups for one in group.output_differences):
        counted = dataclasses.replace(settings, compare=Compare.ALL)
        steps.append((command(counted, "--runs", str(settings.runs), *_same_recipes(settings)), Purpose.COUNT_ALL))
    if fixing is not None:
        words = ("--runs", str(settings.runs), *fixing.options)
        if may_vary(settings, reads, (flag.id for flag in fixing.flags)):
            steps.append((command(settings, *words, "--vary", ALL), Purpose.VARY))
        steps.append((command(settings, *words), Purpose.USE_IN_CI))
    steps.append((f"detaudit report {shlex.quote(shown(settings.out))}", Purpose.PRINT_AGAIN))
    failed = _failed(groups)
    return tuple(
        NextStep(command=text, purpose=purpose, run=failed.id if failed and purpose is Purpose.READ_STDERR else None)
        for text, purpose in steps
    )


def _differs(group: Group) -> bool:
    return group.verdict is Verdict.NONDETERMINISTIC or isinstance(group.reason, EarlierRunsDiffer)


def _doubts(group: Group) -> Iterator[Warning]:
    """Yield what runs warn of, but for what a later run refuted: that one fails on what earlier ones left."""
    last = max((run.id for run in group.runs if run.status is Status.OK), default=0)
    for run in group.runs:
        yield from (one for one in run.warnings if run.id > last or not isinstance(one, FailedAfterLeftovers))


def may_vary(settings: Settings, reads: Sequence[Source], flags: Iterable[str] = ()) -> bool:
    """Whether a variation of the environment changes what the script reads of its machine, and no flag pins it.

    Variations are made on this machine, so runs elsewhere have none, and runs that varied were asked about already.
    """
    if not reads or settings.vary or settings.engine_options:
        return False
    pinned = set(flags)
    rows = [row for row in load_variations() if pinned.isdisjoint(row.flags)]
    return any(row.matches.matches(source) for row in rows for source in reads)


_Steps = Iterator[tuple[str, Purpose]]


def _failed(groups: Sequence[Group]) -> Run | None:
    fine = (Status.OK, Status.ENDED, Status.STOPPED)
    return next((run for group in groups for run in group.runs if run.status not in fine), None)


def _after_failure(settings: Settings, groups: Sequence[Group]) -> _Steps:
    failed = _failed(groups)
    if failed is None:
        return
    yield _log(settings.out / failed.log_dir), Purpose.READ_STDERR
    if any("ModuleNotFoundError" in line for line in failed.stderr_tail):
        yield from _use_training_python(settings)
    if failed.status is Status.NOT_RECORDED and not settings.artifacts:
        words = ("--runs", str(settings.runs), *_same_recipes(settings), "--artifact", _file(groups))
        yield command(settings, *words), Purpose.COMPARE_ARTIFACT


def comparing_step(settings: Settings, groups: Sequence[Group], verb: str) -> tuple[NextStep, ...]:
    """Return the same command told to compare what makes runs inconclusive, none if something else does.

    That is a file, where runs recorded no training, or what differs in the first of ``groups`` and may be a result.
    """
    recipe = _same_recipes(settings) if verb == "trace" else ()
    if _open(groups[:1]):
        words = command(dataclasses.replace(settings, compare=Compare.ALL), *recipe, verb=verb)
        return (NextStep(command=words, purpose=Purpose.COUNT_ALL),)
    if not recorded_nothing(settings, groups):
        return ()
    words = command(settings, *recipe, "--artifact", _file(groups), verb=verb)
    return (NextStep(command=words, purpose=Purpose.COMPARE_ARTIFACT),)


def _open(groups: Sequence[Group]) -> bool:
    """Whether something that was read of the runs differs and may be a result, while their trainings match."""
    return any(isinstance(group.reason, OutputsOpen) and group.reason.first.may_decide for group in groups)


def _counts_clock(recipe: Recipe) -> bool:
    return any(flag.id == COUNTED_CLOCK for flag in recipe.flags)


def _with_counted_clock(settings: Settings, groups: Sequence[Group]) -> _Steps:
    """Yield the command that tells whether numbers that differ, while trainings match, are times that Python measured.

    It is asked of the first recipe whose runs did so.
    """
    for recipe, group in zip(settings.recipes, groups, strict=False):
        open_one = group.reason.first if isinstance(group.reason, OutputsOpen) else None
        first = group.first_difference.output if group.first_difference is not None else open_one
        if first is not None and first.may_be_measured and not _counts_clock(recipe):
            words = ("--runs", str(settings.runs), *recipe.options, "--flag", COUNTED_CLOCK)
            yield command(settings, *words), Purpose.COUNT_CLOCK
            return


def _file(groups: Sequence[Group]) -> str:
    """Return a file that the runs wrote, the first that differs if one does."""
    return _differing_file(groups) or next(iter(sorted(_written_by_all(groups))), "PATH/TO/MODEL")


def recorded_nothing(settings: Settings, groups: Sequence[Group]) -> bool:
    """Whether nothing was compared but what left the runs."""
    runs = [run for group in groups for run in group.runs]
    return not settings.artifacts and bool(runs) and all(run.status is Status.NOT_RECORDED for run in runs)


def _differing_file(groups: Sequence[Group]) -> str:
    """Return the first file that differs between runs, ``""`` if no file does that each of them wrote."""
    paths = (one.path for group in groups for one in group.output_differences if one.decides)
    written = _written_by_all(groups)
    return next((path for path in paths if path in written), "")


def _written_by_all(groups: Sequence[Group]) -> set[str]:
    """Return the files that the next run writes too: all runs did, or a single one under a name without a number."""
    names = [{file.path for file in run.saved} for group in groups for run in group.runs]
    written = set.intersection(*names) if names else set()
    return written if len(names) > 1 else {name for name in written if not any(map(str.isdigit, name))}


def _use_training_python(settings: Settings) -> _Steps:
    """Yield the same with a different Python, which a command names by its first word, if at all."""
    target = settings.target
    other = other_python(settings.cwd, target.program)
    python = shown(Path(other)) if other else "PATH/TO/python"
    if not target.is_command:
        yield command(settings, *_same_recipes(settings), "--python", python), Purpose.USE_TRAINING_PYTHON
    elif Path(target.arguments[0]).name.startswith("python"):
        changed = dataclasses.replace(target, arguments=(python, *target.arguments[1:]))
        same = command(dataclasses.replace(settings, target=changed), *_same_recipes(settings))
        yield same, Purpose.USE_TRAINING_PYTHON


def _after_difference(settings: Settings, groups: Sequence[Group], *, fixed: bool) -> _Steps:
    if any(_spread(group) for group in groups):
        every = dataclasses.replace(settings, stages=wire.STAGES)
        yield command(every, "--runs", str(settings.runs), *_same_recipes(settings)), Purpose.FIND_RANK
    tried_all = any(group.recipe.name.startswith("all") for group in groups)
    if not fixed and not tried_all:
        recipes = [word for name in ("none", "seeds", "all") for word in ("--recipe", name)]
        yield command(settings, "--runs", str(settings.runs), *recipes), Purpose.TRY_RECIPES
    if settings.vary:
        one = settings.recipes[0].options if len(settings.recipes) == 1 else ()
        yield command(settings, "--over", "variations", *one, verb="bisect"), Purpose.FIND_VARIATIONS
    else:
        yield command(settings, verb="bisect"), Purpose.BISECT


def fix_step(settings: Settings) -> tuple[NextStep, ...]:
    """Return the command that finds edits, none if that cannot judge such runs, or not here."""
    if settings.vary or settings.engine_options:
        return ()
    return (NextStep(command=command(settings, verb="fix"), purpose=Purpose.FIX),)


def _spread(group: Group) -> bool:
    """Whether several ranks first differ in their updates, and what each computed before that was not recorded."""
    first_difference = group.first_difference
    return (
        first_difference is not None
        and bool(first_difference.also)
        and first_difference.stage is Stage.UPDATE
        and Stage.BACKWARD not in group.stages
    )


def in_folder(report: Audit | Check, folder: Path) -> Audit | Check:
    """Return a report whose suggested commands name the results ``folder`` where it is now, if it was moved."""
    if isinstance(report, Check):
        audits = [(one, in_folder(one.audit, folder / one.name)) for one in report.audits]
        moved = {old: str(folder / one.name) for one in report.audits if (old := _own_folder(one.audit))}
        checked = tuple(replace(one, audit=audit) for one, audit in audits)
        return replace(report, audits=checked, next_steps=_renamed(report.next_steps, moved))
    old = _own_folder(report)
    return replace(report, next_steps=_renamed(report.next_steps, {old: str(folder)})) if old else report


def _own_folder(audit: Audit) -> str:
    """Return the results folder of an audit as its suggested commands name it, ``""`` if none does."""
    options = {Purpose.PRINT_AGAIN: "report", Purpose.RESUME: "--resume"}
    for step in audit.next_steps:
        words = shlex.split(step.command)
        before = options.get(step.purpose, "")
        if before in words[:-1]:
            return words[words.index(before) + 1]
    return ""


def _renamed(steps: Sequence[NextStep], folders: Mapping[str, str]) -> tuple[NextStep, ...]:
    """Return commands in which words that are one of these folders, or in one, name its new place."""

    def renamed(word: str) -> str:
        old = next((one for one in folders if word == one or word.startswith(f"{one}/")), None)
        return word if old is None else folders[old] + word.removeprefix(old)

    return tuple(
        replace(step, command=shlex.join(map(renamed, words)))
        if (words := shlex.split(step.command)) != [*map(renamed, words)]
        else step
        for step in steps
    )


def resume_step(settings: Settings) -> tuple[NextStep, ...]:
    """Return the command that resumes an interrupted bisection; one with artifacts cannot be resumed."""
    if settings.artifacts:
        return ()
    arguments = settings.target.arguments
    hidden = ["--", *redact.command(arguments)] if redact.command(arguments) != arguments else []
    text = shlex.join(["detaudit", "bisect", "--resume", shown(settings.out), *hidden])
    return (NextStep(command=text, purpose=Purpose.RESUME),)


def flag_step(settings: Settings, culprit: Culprit | None) -> tuple[NextStep, ...]:
    """Return the command that checks in more runs the flag of a culprit with which all runs match, if there is one.

    Runs that train nothing prove nothing if they match, unless ``fix`` does them.
    """
    flags = culprit.flags if culprit is not None and not settings.outputs_suffice else ()
    for flag in (one.flag for one in flags if one.trial is not None and one.trial.matched):
        text = command(settings, "--runs", str(settings.runs), *_same_recipes(settings), "--flag", flag)
        return (NextStep(command=text, purpose=Purpose.CHECK_FLAG),)
    return ()


def _log(folder: Path) -> str:
    return f"less {shlex.quote(shown(folder / 'stderr.log'))}"


def shown(path: Path) -> str:
    """Return a path as people type it: relative if it is below the working directory."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def warnings(
    groups: Sequence[Group], leftovers: Sequence[str], unnoticed: Sequence[Warning], *, isolated: bool = False
) -> tuple[Warning, ...]:
    """Return what casts doubt on these groups.

    ``leftovers`` are files that one run wrote and a later one read, of runs that may be ``isolated``; ``unnoticed`` is
    what else the runner has to say.
    """
    doubts: list[Warning] = []
    for group in groups:
        name = group.recipe.name
        doubts += [
            FlagNotApplied(recipe=name, flag=flag.id, reason=flag.reason)
            for flag in group.flags
            if flag.state in (FlagOutcome.FAILED, FlagOutcome.UNAVAILABLE)
        ]
        doubts += [replace(one, recipe=name) for one in group.warnings]
        doubts += [replace(one, recipe=name) for one in _doubts(group)]
    if leftovers:
        shown_ = tuple(leftovers[:_SHOWN])
        doubts.append(LeftoverFilesRead(files=shown_, more=len(leftovers) - len(shown_), isolated=isolated))
    return tuple(dict.fromkeys((*doubts, *unnoticed)))
