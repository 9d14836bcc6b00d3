"""What reports say about the runs of one recipe."""

from collections.abc import Sequence

from detaudit.model import (
    UNHOOKED,
    AppliedRecipe,
    Change,
    Group,
    Source,
    Stage,
    Status,
    Verdict,
)
from detaudit.model.number import count
from detaudit.model.reasons import OutputsOpen
from detaudit.report import machines, probes, run_table
from detaudit.report.blocks import Stderr
from detaudit.report.messages import (
    applicability,
    differences,
    evidence,
    explanations,
    outputs,
    problems,
    sources,
)
from detaudit.report.messages.flags import OUTCOMES
from detaudit.report.messages.wording import every, shortened, shown_first

_OF_CALLS = (Stage.RNG, Stage.BATCH, Stage.OUTPUT)
MOST_SOURCES = 5
MOST_FILES = 5


def recipe_summary(recipe: AppliedRecipe) -> str:
    """Return the name of a recipe and what it sets."""
    if not recipe.flags:
        return f"{recipe.name}: no flags"
    return f"{recipe.name}: {count(len(recipe.flags), 'flag')}, seed {recipe.seed}"


def verdict(group: Group) -> str:
    """Return the verdict on a group, and how far it goes if the runs were ended early."""
    if group.verdict is not Verdict.DETERMINISTIC or group.through is None:
        return group.verdict
    return f"{group.verdict} through step {group.through:,}, where every run was ended"


def sentence(group: Group) -> str:
    """Return what the verdict on a group means."""
    match group.verdict:
        case Verdict.NONDETERMINISTIC:
            results = f"{count(group.compared, 'run')} gave {count(group.distinct_results, 'different result')}"
            return "; ".join(filter(None, [_only_outputs(group), results, machines.disagreeing(group)]))
        case Verdict.MACHINE_DEPENDENT:
            return machines.sentence(group)
        case Verdict.INCONCLUSIVE:
            reason = _reason(group) if group.reason else "nothing to compare"
            through = f" through step {group.through:,}" if group.through is not None else ""
            matching = f"; the {group.compared:,} finished runs are bit-identical{through}"
            return reason + (matching if group.compared > 1 else "")
        case Verdict.DETERMINISTIC:
            later = ". Nothing is known of later steps" if group.through is not None else ""
            return f"{every(group.compared, 'run')} are bit-identical{later}"


def _only_outputs(group: Group) -> str:
    """Return that the trainings match if only what left the runs differs, ``""`` otherwise."""
    found = group.first_difference
    if found is None or found.output is None or all(stage in UNHOOKED for stage in found.explanation.matching):
        return ""
    deciding = [one for one in group.output_differences if one.decides]
    return outputs.trainings_match(found.output, outputs.names(deciding, found.output))


def _reason(group: Group) -> str:
    """Return why a group is inconclusive, with all files that are open."""
    if isinstance(group.reason, OutputsOpen):
        others = [one for one in group.output_differences if one.open]
        return outputs.open_reason(group.reason.first, group.reason.more, outputs.names(others, group.reason.first))
    return problems.reason(group.reason) if group.reason else ""


def evidence_line(group: Group) -> str:
    """Return how rare a difference matching runs would have caught, ``""`` if the group is not deterministic."""
    if group.verdict is not Verdict.DETERMINISTIC or group.confidence is None:
        return ""
    return evidence.would_catch(group.confidence, group.compared, group.through)


def where(group: Group) -> str:
    """Return where two runs first differ and what that points to, ``""`` if all match."""
    found = group.first_difference
    if found is None:
        return ""
    a, b = found.runs
    several = probes.several_ranks(group) and found.stage not in UNHOOKED and not found.difference.of_fit
    place = differences.where_of(found)
    place += f" on {differences.ranks(found.difference)}" if several else ""
    return f"runs {a} and {b} first differ {place}: {explanations.sentence(found.stage, found.explanation)}"


def source_lines(found: Sequence[Source]) -> list[str]:
    """Return the first lines of the user's code that may be why."""
    lines = [sources.with_place(source) for source in shown_first(found, MOST_SOURCES)]
    more = len(found) - len(lines)
    return lines + ([f"and {more:,} more in audit.json"] if more > 0 else [])


def stderr(group: Group) -> Stderr | None:
    """Return the last lines of the first run that failed with any: most others fail with the same."""
    run = next((run for run in group.runs if run.status is not Status.OK and run.stderr_tail), None)
    return Stderr(f"last lines of stderr from run {run.id}:", run.stderr_tail) if run else None


def stderr_lines(group: Group) -> list[str]:
    """Return the same as lines of text."""
    found = stderr(group)
    return [found.caption, *found.lines] if found else []


def details(group: Group) -> list[str]:
    """Return all that is known about a group besides its sentence and its first difference."""
    lines = [evidence_line(group), probes.sentence(group), *source_lines(group.sources), *notes(group)]
    return [line for line in lines if line] + stderr_lines(group)


def notes(group: Group) -> list[str]:
    """Return what became of the flags, what varied, what was compared, and whether the ranks match."""
    lines = (_ended_line(group), _flags_line(group), _varied_line(group), _stages_line(group), _replicas_line(group))
    return [line for line in (*lines, *outputs.notes(group)) if line]


def _ended_line(group: Group) -> str:
    """Return which runs were ended before others, and where all were ended if they differ."""
    early = group.shorter
    lines = [f"run {run.id} after step {run.through:,}" for run in early]
    if group.verdict is Verdict.NONDETERMINISTIC and group.through is not None:
        lines.append(f"{'the others' if early else 'every run'} after step {group.through:,}")
    return f"ended early: {', '.join(lines)}" if lines else ""


def _flags_line(group: Group) -> str:
    by_state = {state: [flag.id for flag in group.flags if flag.state is state] for state in OUTCOMES}
    return "; ".join(f"{OUTCOMES[state]}: {', '.join(ids)}" for state, ids in by_state.items() if ids)


def _varied_line(group: Group) -> str:
    lines = []
    if group.varied:
        lines.append(f"varied between runs (run 1 is the control): {', '.join(one.id for one in group.varied)}")
    lines += [f"not varied: {name} ({applicability.not_varied(reason)})" for name, reason in group.not_varied.items()]
    return "; ".join(lines)


def _stages_line(group: Group) -> str:
    if not group.stages:
        return ""
    calls = run_table.calls_only(rank for run in group.runs for rank in run.ranks)
    others = (Stage.HYPERPARAMETERS, Stage.OUTPUT, *UNHOOKED, Stage.STEPS, *(() if group.replicas else (Stage.REDUCE,)))
    possible = _OF_CALLS if calls else [one for one in Stage if one not in others]
    missing = [stage for stage in possible if stage not in group.stages]
    end = "end" if group.through is None else "last one"
    large = f" (large weights: at steps 1, 2, 4, 8, … and at the {end})" if group.weights_sampled else ""
    not_recorded = f"; not recorded: {', '.join(missing)}" if missing else ""
    recorded = ", ".join(stage for stage in group.stages if stage not in UNHOOKED)
    compared = "; ".join(filter(None, [recorded + large, *_unhooked(group)]))
    ended = "; not compared, since the runs were ended: what they save or print, and how they end"
    return f"compared: {compared}{not_recorded}{probes.summary(group)}{ended if group.through is not None else ''}"


def _unhooked(group: Group) -> list[str]:
    run = group.first_finished
    named = [f"{file.path} ({file.by})" for file in run.artifacts] if run else []
    saved = [f"{file.path} ({file.by})" for file in run.saved] if run else []
    printed = ["losses from stdout (--loss-pattern)"] if Stage.STDOUT in group.stages else []
    returned = ["the value returned by the test"] if Stage.RETURNED in group.stages else []
    tensors = "" if group.outputs_compared else "tensors in the "
    left = [f"the {tensors}files {shortened(saved, most=MOST_FILES)}"] if saved else []
    left += ["printed text", "the exit status"] if group.outputs_compared else []
    return printed + returned + ([f"--artifact {shortened(named, most=MOST_FILES)}"] if named else []) + left


def _replicas_line(group: Group) -> str:
    found = group.replicas
    if found is None:
        return ""
    if found.first_difference is None:
        return f"replicas: {every(found.ranks, 'rank')} of each run hold identical weights at every step"
    differs = found.first_difference
    return (
        f"replicas: in run {found.run}, the weights of rank {differs.rank} differ from those of rank 0 at step "
        f"{differs.step:,}: they are sharded or not synchronized"
    )


def changes(found: Sequence[Change], most: int | None = None, listed_in: str = "") -> list[str]:
    """Return how two environments differ, at most ``most`` changes; ``listed_in`` is where the others are."""
    lines = [f"{one.name}: {one.a or 'none'} → {one.b or 'none'}" for one in shown_first(found, most)]
    more = len(found) - len(lines)
    return lines + ([f"and {more:,} more {listed_in}"] if more > 0 else [])
