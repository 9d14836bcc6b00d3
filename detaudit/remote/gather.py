"""Take the archives of a plan's runs from where workers store them: each run once, and nothing that is not whole."""

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from detaudit import redact
from detaudit.auditor.evidence import folded
from detaudit.errors import AuditNotFoundError, StorageError, UsageError
from detaudit.model import Warning  # the term for it
from detaudit.model.enums import ArchiveFlaw
from detaudit.model.warnings import ArchiveFlawed, ArchivesOfOtherPlans, RunStoredTwice
from detaudit.remote.archive import SUFFIX, ArchiveError, Attempt, logs_of, name_of, unpack
from detaudit.remote.plan import Plan
from detaudit.remote.storage import Storage

POLL_S = 2.0

_SHOWN = 5


@dataclass
class Gathered:
    """The runs of one plan that came back, by number, each with the folder of what it recorded.

    ``logs`` fetches the event logs of a run to its folder if the plan wants trees; see Gatherer.logs. ``interrupted``:
    the user ended the wait for more.
    """

    plan: Plan
    runs: dict[int, tuple[Attempt, Path]]
    logs: Callable[[Attempt, Path], None]
    warnings: tuple[Warning, ...] = ()
    interrupted: bool = False


@dataclass
class _Taken:
    attempt: Attempt
    folder: Path


@dataclass
class Gatherer:
    """Takes what ``storage`` has below ``into``. With ``plan_id``, or its beginning, only that plan counts.

    ``plan`` is one that is known although none of its runs may be there. ``waiting`` gets the numbers of the runs that
    are not there yet, whenever that changes.
    """

    storage: Storage
    into: Path
    plan_id: str = ""
    plan: Plan | None = None
    waiting: Callable[[Collection[int]], None] = lambda _: None
    _taken: dict[str, _Taken] = field(default_factory=dict)
    _flaws: dict[str, ArchiveFlaw] = field(default_factory=dict)

    def gather(self, wait_s: float = 0.0) -> Gathered:
        """Return what there is; for up to ``wait_s`` seconds, wait until all runs of the plan are.

        Raises UsageError if there are several plans and none was chosen, AuditNotFoundError if no run is there,
        StorageError or RemoteStorageError if the archives cannot be read or written.
        """
        end, interrupted = time.monotonic() + wait_s, False
        try:
            self._look()
            missing: set[int] | None = set()
            while time.monotonic() < end and (now := self._missing()) != set():
                if now != missing and now is not None:
                    self.waiting(sorted(now))
                missing = now
                time.sleep(min(POLL_S, max(0.0, end - time.monotonic())))
                self._look()
        except KeyboardInterrupt:
            interrupted = True
        return self._found(interrupted=interrupted)

    def logs(self, attempt: Attempt, folder: Path) -> None:
        """Fetch the event logs that the trees in the folder of a run belong to.

        Raises StorageError if they are not stored whole, or the storage fails.
        """
        name = logs_of(attempt)
        needed = f"the step at which run {attempt.run} differs is in it"
        if name not in self.storage.names():
            hint = f"Copy it back to {self.storage.url}, from where it was moved or kept; or do all runs again."
            raise StorageError(f"{name} is not in {self.storage.url}, and {needed}", hint)
        with tempfile.TemporaryDirectory(dir=self.into) as place:
            copy, taken = Path(place) / "archive", Path(place) / "logs"
            self.storage.fetch(name, copy)
            try:
                found = unpack(copy, taken)
                if found.id != attempt.id:
                    raise ArchiveError(ArchiveFlaw.CHANGED)
                for file in found.files:
                    if folded.tree_file(folder / file).exists():
                        (taken / file).replace(folder / file)
            except ArchiveError as error:
                hint = f"Store the whole file in {self.storage.url} again, or do all runs again."
                raise StorageError(f"{name} in {self.storage.url} is {error.flaw}, and {needed}", hint) from error
            except OSError as error:
                raise StorageError.of(f"write {folder}", error) from error

    def _look(self) -> None:
        """Take each archive that is new, and again each that was not whole: it may be on its way."""
        for name in self.storage.names():
            if not name.endswith(SUFFIX) or name in self._taken:
                continue
            with tempfile.TemporaryDirectory(dir=self.into) as folder:
                copy = Path(folder) / "archive"
                self.storage.fetch(name, copy)
                place = self.into / f"taken-{len(self._taken)}"
                try:
                    self._taken[name] = _Taken(unpack(copy, place), place)
                    self._flaws.pop(name, None)
                except ArchiveError as error:
                    self._flaws[name] = error.flaw
                except OSError as error:
                    raise StorageError.of(f"write {place}", error) from error

    def _plans(self) -> dict[str, Plan]:
        found = {taken.attempt.plan.id: taken.attempt.plan for taken in self._taken.values()}
        return {**found, **({self.plan.id: self.plan} if self.plan is not None else {})}

    def _missing(self) -> set[int] | None:
        """Return the numbers of the runs that are not there, None if the plan is not known yet."""
        plans = {name: plan for name, plan in self._plans().items() if name.startswith(self.plan_id)}
        if len(plans) != 1:
            return None
        [(chosen, plan)] = plans.items()
        there = {one.attempt.run for one in self._taken.values() if one.attempt.plan.id == chosen}
        return {*range(1, plan.total + 1)} - there

    def _found(self, *, interrupted: bool) -> Gathered:
        plan = self._chosen()
        warnings: list[Warning] = [ArchiveFlawed(archive=name, flaw=flaw) for name, flaw in sorted(self._flaws.items())]
        runs: defaultdict[int, list[tuple[str, _Taken]]] = defaultdict(list)
        others: list[str] = []
        for name, taken in sorted(self._taken.items()):
            if taken.attempt.plan.id == plan.id:
                runs[taken.attempt.run].append((name, taken))
            else:
                others.append(name)
        if others:
            warnings.append(ArchivesOfOtherPlans(archives=tuple(others[:_SHOWN]), more=max(0, len(others) - _SHOWN)))
        found = {}
        for number, attempts in sorted(runs.items()):
            attempts.sort(key=lambda one: (one[0] != name_of(plan, one[1].attempt.run), one[0]))
            (counted, first), *more = attempts
            found[number] = first.attempt, first.folder
            warnings += [
                RunStoredTwice(archive=name, counted=counted, is_copy=other.attempt.id == first.attempt.id)
                for name, other in more
            ]
        if not found:
            raise self._nothing(f" of plan {plan.id}")
        return Gathered(plan, found, self.logs, tuple(warnings), interrupted)

    def _chosen(self) -> Plan:
        plans = self._plans()
        if self.plan_id:
            matching = [plan for name, plan in plans.items() if name.startswith(self.plan_id)]
        else:
            matching = list(plans.values())
        if len(matching) > 1:
            listed = ", ".join(f"{plan.id} ({' '.join(redact.command(plan.command))})" for plan in matching)
            message = f"{self.storage.url} has runs of {len(matching)} plans: {listed}"
            raise UsageError(message, f"Choose one: --plan {matching[0].id}")
        if not matching:
            raise self._nothing(f" of plan {self.plan_id}" if self.plan_id else "")
        return matching[0]

    def _nothing(self, of: str) -> AuditNotFoundError:
        flawed = [f"{name} is {flaw}" for name, flaw in sorted(self._flaws.items())]
        message = "; ".join([f"no run{of} in {self.storage.url}", *flawed[:_SHOWN]])
        return AuditNotFoundError(message, "Start workers, or wait for them with --wait 1h.")
