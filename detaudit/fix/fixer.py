"""The job behind ``fix``, in order: trace a difference, try what may fix it, go on with the next, reduce, and prove."""

import math
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from msgspec import structs

from detaudit import advice, store
from detaudit.config.flags import Catalogue
from detaudit.config.options import Until
from detaudit.config.recipes import Recipe
from detaudit.fix.candidates import Candidate, Training, candidates
from detaudit.fix.changes import AFTER_IMPORTS, Text, all_applied, applied, diff, hunk_lines, write_all
from detaudit.fix.trials import AGAIN, repeats_more, tree_of
from detaudit.launch import Launcher
from detaudit.launch.plan import Settings, in_copy, plan_group
from detaudit.launch.target import Target
from detaudit.model import (
    SCHEMA_VERSION,
    UNHOOKED,
    Culprit,
    Difference,
    Fix,
    Group,
    Hunk,
    NextStep,
    Purpose,
    Refusal,
    Refused,
    RunRecord,
    Trace,
    Variable,
    Verdict,
)
from detaudit.model.fact import now
from detaudit.notebooks.cells import SCRIPTS, is_notebook
from detaudit.runner import Observer, Runner
from detaudit.trace.tracer import Tracer, TraceRequest
from detaudit.trial import Trial, tried

DIFF, UNDO = "fix.diff", "undo.diff"
"""The changes in the results folder, and what takes them back once they were applied."""

MOST_ROUNDS = 25
"""Differences that are fixed one after another."""

MOST_ALONE = 12
"""Candidates that are tried by themselves; the others only together with them."""

FURTHER = 4
"""How many times as far as the first difference runs with a change go, if the training is longer than that."""

FEWEST, MOST = 2, 5
"""Runs with a change: as many as it took to see the difference."""

EVIDENCE, MORE_EVIDENCE, OTHER_EVIDENCE = 5, 12, 3
"""Runs without a change, those if only some of them differ, and others that are compared among themselves."""

MOST_PROOF, CHANCE = 30, 0.05
"""Runs that prove changes, at most, and the probability that they match although nothing is fixed."""


@dataclass(frozen=True)
class FixRequest:
    """What to fix: only files below ``only``, all if that is empty; ``apply`` writes what was proven."""

    settings: Settings
    recipe: Recipe
    catalogue: Catalogue
    only: tuple[str, ...] = ()
    apply: bool = False


@dataclass(frozen=True)
class Chosen:
    """A candidate that moved the first difference, which was here without it; runs with it go ``until``.

    So many ``runs`` have to match to prove it.
    """

    candidate: Candidate
    without: Difference
    until: Until | None
    runs: int = 0


class Fixer:
    """Fixes one training. After an interruption, ``result`` has what is known by then."""

    def __init__(self, request: FixRequest, launcher: Launcher, observer: Observer | None = None) -> None:
        self._request, self._launcher, self._observer = request, launcher, observer or Observer()
        settings = request.settings
        self._tree = tree_of(settings)
        self._main = _main(settings.target, settings.cwd)
        self._chosen: list[Chosen] = []
        self._refused: list[tuple[Chosen, Refusal]] = []
        self._trace: Trace | None = None
        self._first_trace: Trace | None = None
        self._base: RunRecord | None = None
        self._last: RunRecord | None = None
        self._rounds, self._trials, self._runs = 0, 0, 0
        self._applied = False

    def run(self) -> Fix:
        """Find what fixes the training, and prove it."""
        store.prepare(self._request.settings.out)
        self._tree.make()
        try:
            self._fix()
            if self._chosen:
                self._weigh()
            self._refuse_what_repeats()
            self._save()
            if self._request.apply and self._matches():
                after = self._after()
                write_all(self._request.settings.cwd, self._tree.before, after)
                self._applied = bool(after)
        finally:
            self._tree.remove()
        return self.result()

    def _fix(self) -> None:
        """Trace a difference and choose what fixes it, until runs match or nothing does."""
        for _ in range(MOST_ROUNDS):
            tracer = self._traced()
            first = _first(self._trace)
            if self._trace is None or first is None:
                return
            chosen = self._choose(tracer, self._trace, first)
            if not chosen:
                return
            self._chosen += chosen
            self._make(self._chosen)

    def _traced(self, runs: int | None = None) -> Tracer:
        """Trace what differs with all that was chosen, in so many runs at most."""
        self._rounds += 1
        settings = replace(
            self._settings(self._chosen),
            stepwise=True,
            out=self._request.settings.out / f"round-{self._rounds}",
            runs=runs or self._request.settings.runs,
        )
        request = TraceRequest(settings, self._request.recipe, self._request.catalogue, try_remedies=False)
        tracer = Tracer(request, self._launcher, self._observer)
        trace = tracer.run()
        self._trace = structs.replace(trace, groups=tuple(_below(settings.out.name, one) for one in trace.groups))
        self._runs += self._trace.total_runs
        self._first_trace = self._first_trace or self._trace
        self._base = self._base or tracer.record
        self._last = tracer.record
        settings = replace(self._request.settings, outputs_suffice=tracer.outputs_suffice)
        self._request = replace(self._request, settings=settings)
        return tracer

    def _matches(self) -> bool:
        return self._trace is not None and self._trace.groups[0].verdict is Verdict.DETERMINISTIC

    def _choose(self, tracer: Tracer, trace: Trace, first: Difference) -> list[Chosen]:
        """Return the first candidate that moves the first difference further or ends it, nothing if none does.

        Several causes may show in one place: if no candidate moves it alone, all of them together are tried.
        """
        group = trace.groups[0]
        runs = min(MOST, max(FEWEST, len(group.runs)))
        until = _horizon(first, group.through)
        devices = [device for run in group.runs for device in run.devices] or ["cpu"]
        training = Training(self._main, tracer.files, tracer.frameworks, devices)
        together, alone = list[Chosen](), 0
        for candidate in candidates(trace, self._request.catalogue, self._tree, training, self._request.only):
            chosen = Chosen(candidate, first, until)
            if not self._make([*self._chosen, chosen]):
                continue
            alone += 1
            if alone > MOST_ALONE and candidate.changes:
                together.append(chosen)
                continue
            why = self._why_not(self._tried([*self._chosen, chosen], runs, until), candidate, first, until)
            if why is None:
                return [chosen]
            self._refuse(chosen, why)
            together += [chosen] if why is Refusal.NO_EFFECT and candidate.changes else []
        if len(together) > 1 and self._make([*self._chosen, *together]):
            everything = Candidate(tuple(change for one in together for change in one.candidate.changes))
            if self._why_not(self._tried([*self._chosen, *together], runs, until), everything, first, until) is None:
                return together
        self._make(self._chosen)
        return []

    def _refuse(self, chosen: Chosen, why: Refusal) -> None:
        self._refused += [(chosen, why)]
        self._make(self._chosen)

    def _why_not(self, trial: Trial, candidate: Candidate, first: Difference, until: Until | None) -> Refusal | None:
        """Return why a candidate is no fix of a first difference, None if it is one."""
        if trial.failed:
            return Refusal.FAILS
        if trial.loaded and any(change.file not in trial.loaded for change in candidate.changes):
            return Refusal.NOT_LOADED
        divergence = trial.group.first_difference
        if divergence is not None and divergence.order <= first.order:
            return Refusal.NO_EFFECT
        if trial.record is None or candidate.runs_first:
            return None
        again = (self._one_run(self._chosen, until) for _ in AGAIN)
        return Refusal.REPEATS_BATCHES if repeats_more(chain([self._base], again), trial.record) else None

    def _tried(self, chosen: Sequence[Chosen], runs: int, until: Until | None, *, follow: bool = True) -> Trial:
        """Run the training with some of the changes, which are made already; if they ``follow``, until two differ."""
        self._trials += 1
        out = self._request.settings.out / "trials"
        settings = replace(self._settings(chosen), out=out)
        runner = Runner(settings, self._launcher, self._observer)
        recipe = structs.replace(self._request.recipe, name=f"trial-{self._trials}")
        plan = plan_group(settings, recipe, runner.space, runner.refused(recipe.flags))
        trial = tried(runner, plan, settings.cwd, range(1, runs + 1), self._observer, until, follow=follow)
        self._runs += len(trial.group.runs)
        return replace(trial, loaded=set(map(self._tree.name, trial.loaded)))

    def _weigh(self) -> None:
        """Leave out what is not needed, note where runs differ without each of the others, and prove what remains.

        A difference that shows in some runs only is gone by chance in a few others: then more runs have to match.
        """
        first_left, chosen, refused = _first(self._trace), self._chosen, list(self._refused)
        needed = self._needed(chosen, first_left)
        runs = max((one.runs for one in needed), default=0)
        known = len(self._trace.groups[0].runs) if self._trace is not None else 0
        if len(needed) == len(chosen) and (first_left is not None or runs <= known):
            self._settle(needed)
            return
        self._settle(needed, max(runs, self._request.settings.runs))
        if first_left is not None or self._matches():
            return
        kept = [one.candidate for one in needed]
        if any(one.until is not None for one in chosen if one.candidate not in kept):  # they may show further on
            self._refused = refused
            needed = self._needed([replace(one, until=None) for one in chosen], None)
            self._settle(needed, max([self._request.settings.runs, *(one.runs for one in needed)]))
        if not self._matches():  # what shows in some runs only was gone by chance
            certain = [one for one in needed if one.runs <= needed_runs(EVIDENCE - 1, EVIDENCE - 1)]
            self._refused += [(one, Refusal.RARE) for one in needed if one not in certain]
            if len(certain) < len(needed):
                self._settle(certain, self._request.settings.runs)

    def _needed(self, chosen: list[Chosen], first_left: Difference | None) -> list[Chosen]:
        """Return what of the changes is needed, with how runs differ without each; note why the others are not."""
        needed = list(chosen)
        for one in reversed(chosen):
            others = [other for other in needed if other is not one]
            if not self._make(others):  # another change stands on it
                continue
            group = self._tried(others, EVIDENCE, one.until, follow=False).group
            if first_left is None and 0 < _differing(group)[0] < _differing(group)[1]:
                group = self._tried(others, MORE_EVIDENCE, one.until, follow=False).group
            differing, compared = _differing(group, first_left)
            weighed = replace(one, without=_first_of(group) or one.without, runs=needed_runs(differing, compared))
            if weighed.runs > MOST_PROOF or (first_left is not None and differing < compared):
                needed = others
                self._refused += [(one, Refusal.RARE if differing else Refusal.NO_EFFECT)]
            elif first_left is not None and self._moves(group, others, one, first_left):
                needed = others
                self._refused += [(one, Refusal.CHANCE)]
            else:
                needed[needed.index(one)] = weighed
        return needed

    def _moves(self, group: Group, others: Sequence[Chosen], one: Chosen, first_left: Difference) -> bool:
        """Return whether what differs without a change is of the stage that is left, and elsewhere in other runs.

        Then nobody knows whether the change moved it. All runs of a ``group`` are compared with the same one, which may
        be the one that differs, so the others have one of their own.
        """
        without = _first_of(group)
        if without is None or without.stage is not first_left.stage:
            return False
        again = self._tried(others, OTHER_EVIDENCE, one.until, follow=False).group
        compared = [run for runs in (group.runs, again.runs) for run in [run for run in runs if run.counts][1:]]
        return len({run.first_difference and run.first_difference.order for run in compared}) > 1

    def _refuse_what_repeats(self) -> None:
        """Leave out seeds with which batches repeat later than runs with a change go, as in the second epoch."""
        seeds = [one for one in self._chosen if not one.candidate.runs_first and one.candidate.seeds]
        if not (seeds and self._matches() and self._last is not None):
            return
        before = [self._one_run([])]
        if not repeats_more(before, self._last):
            return
        before += [self._one_run([]) for _ in AGAIN]
        if not repeats_more(before, self._last):
            return
        others = {id(one): self._one_run([other for other in self._chosen if other is not one]) for one in seeds}
        guilty = [one for one in seeds if (record := others[id(one)]) is None or not repeats_more(before, record)]
        self._refused += [(one, Refusal.REPEATS_BATCHES) for one in guilty or seeds]
        self._settle([one for one in self._chosen if one not in (guilty or seeds)], self._request.settings.runs)

    def _one_run(self, chosen: list[Chosen], until: Until | None = None) -> RunRecord | None:
        """Return what one run with these changes recorded, None if they cannot be made."""
        return self._tried(chosen, 1, until).record if self._make(chosen) else None

    def _settle(self, chosen: list[Chosen], runs: int | None = None) -> None:
        """Go on with these changes alone, traced again in so many runs; without any, runs differ as at first."""
        self._chosen = chosen
        self._make(chosen)
        if not chosen:
            self._trace = self._first_trace
        elif runs is not None:
            self._traced(runs)

    def _make(self, chosen: Iterable[Chosen]) -> bool:
        return self._tree.change([change for one in chosen for change in one.candidate.changes])

    def _settings(self, chosen: Iterable[Chosen]) -> Settings:
        """Return the settings of runs in the copy, with the variables of what was chosen."""
        variables = {name: value for one in chosen for name, value in one.candidate.variables.items()}
        return in_copy(self._request.settings, self._tree, variables)

    def _save(self) -> None:
        text = self._diff()
        if text:
            store.write(self._request.settings.out / DIFF, text.encode())
            after = self._after()
            undo = diff(after, {file: self._tree.before[file] for file in after}, self._prefix)
            store.write(self._request.settings.out / UNDO, undo.encode())
            for file in filter(is_notebook, after):
                store.write(self._request.settings.out / _kept(file), self._tree.before[file].data)

    def _after(self) -> dict[str, Text]:
        """Return the texts of the files with what was chosen, whatever is being tried."""
        changes = [change for one in self._chosen for change in one.candidate.changes]
        return all_applied({one.file: self._tree.text(one.file) for one in changes}, changes) or {}

    def _diff(self) -> str:
        return diff(self._tree.before, self._after(), self._prefix)

    @property
    def _prefix(self) -> str:
        """The working directory as seen from the root of the repository, as a diff names it."""
        relative = os.path.relpath(self._request.settings.cwd, self._tree.user_root)
        return "" if relative == os.curdir else f"{relative}/"

    def _hunks(self) -> tuple[Hunk, ...]:
        """Return what each change does to the user's files."""
        hunks = []
        for one in self._chosen:
            for change in one.candidate.changes:
                before = self._tree.text(change.file)
                after = applied(before, change) or before
                for line, old, new in hunk_lines(before, after):
                    if not old and set(new) <= set(change.needs):
                        continue
                    hunks.append(
                        Hunk(
                            file=change.file,
                            line=line,
                            old=old,
                            new=new,
                            flag=change.flag,
                            rule=change.rule,
                            without=one.without,
                        )
                    )
        return tuple(hunks)

    def result(self, interrupted: bool = False) -> Fix:
        """Return what is known so far."""
        settings, trace = self._request.settings, self._trace
        variables = tuple(
            Variable(name=name, value=value, flag=one.candidate.flag, without=one.without)
            for one in self._chosen
            for name, value in one.candidate.variables.items()
        )
        matches = self._matches() and not interrupted
        verdict = trace.groups[0].verdict if trace is not None else Verdict.INCONCLUSIVE
        if interrupted and verdict is Verdict.DETERMINISTIC and self._chosen:
            verdict = Verdict.INCONCLUSIVE
        return Fix(
            schema_version=SCHEMA_VERSION,
            command=settings.command,
            environment=trace.environment if trace is not None else {},
            verdict=Verdict.NONDETERMINISTIC if matches and variables else verdict,
            groups=trace.groups if trace is not None else (),
            warnings=trace.warnings if trace is not None else (),
            next_steps=self._next_steps(matches),
            interrupted=interrupted,
            target=settings.target.words,
            started=settings.started,
            ended=now(),
            hunks=self._hunks(),
            variables=variables,
            refused=self._refusals(),
            diff=self._diff(),
            culprit=None if matches or trace is None else self._left(trace.culprit),
            narrowed_to=None if matches or trace is None else trace.narrowed_to,
            rounds=self._rounds,
            total_runs=self._runs,
            applied=self._applied,
        )

    def _left(self, culprit: Culprit | None) -> Culprit | None:
        """Return a culprit without a draw that is not why: a seed for its generators was tried, and moved nothing."""
        tried = [one for one, why in self._refused if why is Refusal.NO_EFFECT and one.without == _first(self._trace)]
        flags = [
            self._request.catalogue.get(change.flag) for one in tried for change in one.candidate.changes if change.flag
        ]
        seeded = {name.removesuffix(".seed") for flag in flags for name in flag.call}
        if culprit is None or culprit.source is None or not culprit.source.generators:
            return culprit
        seeds = set(culprit.source.generators) <= seeded
        return structs.replace(culprit, source=None, flags=()) if seeds else culprit

    def _refusals(self) -> tuple[Refused, ...]:
        """Return what was tried in vain, each once, without what helped together with others."""
        chosen = {change.new for one in self._chosen for change in one.candidate.changes}
        refused: dict[tuple[str, ...], Refused] = {}
        for one, why in self._refused:
            for refusal in _refusals(one.candidate, why):
                if refusal.new not in chosen:
                    refused.setdefault((refusal.file, *refusal.new), refusal)
        return tuple(refused.values())

    def _next_steps(self, matches: bool) -> tuple[NextStep, ...]:
        settings, root = self._request.settings, self._tree.user_root
        if not self._after() or not matches:
            return advice.comparing_step(settings, self._trace.groups if self._trace is not None else (), "fix")
        notebooks = [file for file in self._after() if is_notebook(file)]
        if notebooks and not self._applied:  # git takes no diff of cells
            only = [word for path in self._request.only for word in ("--only", path)]
            return (
                NextStep(command=advice.command(settings, "--apply", *only, verb="fix"), purpose=Purpose.APPLY_FIX),
            )
        if notebooks:
            commands = (["cp", advice.shown(settings.out / _kept(file)), file] for file in notebooks)
            return tuple(NextStep(command=shlex.join(words), purpose=Purpose.UNDO_FIX) for words in commands)
        name, purpose = (UNDO, Purpose.UNDO_FIX) if self._applied else (DIFF, Purpose.APPLY_FIX)
        path, words = advice.shown(settings.out / name), ["git"]
        if root != settings.cwd:  # in a folder below the root, git leaves out what is elsewhere
            path, words = os.path.relpath(settings.out / name, root), ["git", "-C", os.path.relpath(root, settings.cwd)]
        return (NextStep(command=shlex.join([*words, "apply", path]), purpose=purpose),)


def _kept(file: str) -> str:
    """Return where a results folder keeps a notebook as it was."""
    return f"before-{file.replace(os.sep, '_')}"


def _main(target: Target, cwd: Path) -> str:
    """Return the file that runs first, as seen from the working directory; ``""`` if that is not known."""
    words = [target.script] if target.script else [*target.arguments] if target.is_command else []
    modules = target.module.replace(".", "/")
    files = [*words, f"{modules}.py", f"{modules}/__main__.py"] if modules else words
    for word in files:
        path = cwd / word
        if path.suffix in SCRIPTS and path.is_file():
            return os.path.relpath(path, cwd)
    return ""


def _first(trace: Trace | None) -> Difference | None:
    return _first_of(trace.groups[0]) if trace is not None and trace.groups else None


def _differing(group: Group, first_left: Difference | None = None) -> tuple[int, int]:
    """Return how many runs differ, and with how many others they were compared.

    Those count that have another result than the most frequent one: the first run may itself be the one that differs.
    If a difference is left, at ``first_left``, those count that differ before it.
    """
    runs = [run for run in group.runs if run.counts]
    if first_left is not None:
        earlier = [run for run in runs if run.first_difference and run.first_difference.order < first_left.order]
        return len(earlier), len(runs) - 1
    results = Counter(run.result for run in runs)
    return len(runs) - max(results.values(), default=0), max(0, len(runs) - 1)


def needed_runs(differing: int, compared: int) -> int:
    """Return how many runs must match to prove a change without which so many differ, of those ``compared``.

    If it did nothing, all that differ would be among those without it by chance with probability
    C(compared, differing) / C(compared + n, differing), where n runs with it were compared with a first one.
    """
    if differing == 0:
        return MOST_PROOF + 1
    least = math.comb(compared, differing) / CHANCE
    n = next((n for n in range(1, MOST_PROOF) if math.comb(compared + n, differing) >= least), MOST_PROOF)
    return n + 1


def _below(folder: str, group: Group) -> Group:
    """Return a group whose logs are in a folder of the results folder."""
    runs = (structs.replace(run, log_dir=f"{folder}/{run.log_dir}") for run in group.runs)
    return structs.replace(group, runs=tuple(runs))


def _first_of(group: Group) -> Difference | None:
    return group.first_difference.difference if group.first_difference is not None else None


def _horizon(first: Difference, through: int | None) -> Until | None:
    """Return how far runs with a change go, None to their ends: FURTHER, if the trace had ended its runs."""
    if through is None or first.at_end or first.stage in UNHOOKED or first.output is not None:
        return None
    step = max(through, FURTHER * max(1, first.step))
    return Until(step=1 << (step - 1).bit_length())  # large weights have a digest at powers of two


def _refusals(candidate: Candidate, why: Refusal) -> list[Refused]:
    changes = [
        Refused(file=one.file, line=max(one.line, AFTER_IMPORTS + 1), new=one.new, why=why, flag=one.flag)
        for one in candidate.changes
    ]
    words = tuple(f"{name}={value}" for name, value in candidate.variables.items())
    return changes or [Refused(file="", line=0, new=words, why=why, flag=candidate.flag)]
