"""The runs of a recipe, as a page shows them."""

from dataclasses import dataclass

from detaudit.model import Group, Verdict
from detaudit.model.figures import GroupFigures
from detaudit.report import machines, run_table, words
from detaudit.report.blocks import Answer, Stderr, Table
from detaudit.report.html import groups
from detaudit.report.html.parts import MOODS
from detaudit.report.layout import MOODS as MOOD_OF
from detaudit.report.messages import differences, figures


@dataclass(frozen=True)
class GroupView:
    """The runs of a recipe, as the page shows them."""

    group: Group
    figures: GroupFigures

    @property
    def name(self) -> str:
        """The recipe."""
        return self.group.recipe.name

    @property
    def summary(self) -> str:
        """What the recipe sets."""
        return words.recipe_summary(self.group.recipe).partition(": ")[2]

    @property
    def mood(self) -> str:
        """The class that colors the verdict."""
        return MOODS[MOOD_OF[self.group.verdict]]

    @property
    def answer(self) -> Answer:
        """The verdict in words."""
        group = self.group
        return Answer(words.verdict(group), MOOD_OF[group.verdict], words.sentence(group), words.evidence_line(group))

    @property
    def evidence(self) -> str:
        """What the verdict rests on."""
        return figures.PROOF if self.group.verdict is Verdict.NONDETERMINISTIC else self.answer.evidence

    @property
    def rows(self) -> list[groups.Row]:
        """A row for each run, or for each result if there are many runs."""
        found = groups.rows(self.group)
        return found if len(found) <= groups.MOST_RUNS else groups.by_result(found)[: groups.MOST_RESULTS]

    @property
    def more(self) -> str:
        """How many results have no row."""
        more = self.group.distinct_results - groups.MOST_RESULTS
        return figures.more_results(more) if len(self.group.runs) > groups.MOST_RUNS and more > 0 else ""

    @property
    def table(self) -> Table | None:
        """All runs and ranks, if a row for each of them is not shown already."""
        found = run_table.table(self.group)
        hidden = len(self.group.runs) > groups.MOST_RUNS or not {run_table.RANK, run_table.PART}.isdisjoint(
            found.headers
        )
        return found if hidden and found.rows else None

    @property
    def machines(self) -> Table | None:
        """The machines that did the runs, if there were several."""
        return machines.table(self.group)

    @property
    def between_machines(self) -> list[str]:
        """In what the machines differ."""
        return machines.differences(self.group.machines)

    @property
    def stderr(self) -> Stderr | None:
        """The last lines of the first run that failed."""
        return words.stderr(self.group)

    @property
    def notes(self) -> list[str]:
        """What was compared, and what became of the flags."""
        return words.notes(self.group)

    @property
    def where(self) -> str:
        """Where runs first differ, in few words."""
        found = self.group.first_difference
        return differences.in_table(found.difference) if found else ""

    @property
    def seconds(self) -> float:
        """How long a run takes."""
        times = sorted(run.wall_s for run in self.group.runs if run.finished)
        return times[len(times) // 2] if times else 0.0
