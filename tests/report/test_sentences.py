"""Sentences of groups, bisections and traces that the golden reports do not have."""

from typing import Any

import pytest
from msgspec.structs import replace

from detaudit.model import (
    ALL_STEPS,
    BisectOutcome,
    Cause,
    Culprit,
    Difference,
    Edit,
    EffectExample,
    Evidence,
    FailingFlag,
    FlagFix,
    Group,
    How,
    OutputDifference,
    OutputKind,
    Pass,
    RemedyTrial,
    RunError,
    Stage,
    Trace,
    VaryOutcome,
    Verdict,
)
from detaudit.model.problems import Failed, OutputsOpen, RunsMissing, RunUnusable
from detaudit.model.sources import NoGpu
from detaudit.report import groups, searches, traces
from tests.report.bisections import BISECTIONS, a_trial
from tests.report.checks import THREADS, varied
from tests.report.test_reporters import AUDITS
from tests.report.traces import TRACES

FIXED, NOT_FIXED = BISECTIONS["fixed"], BISECTIONS["not-fixed"]
FAILED: tuple[RunError, ...] = (Failed(exit_code=3),)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"needed": (FIXED.needed or ())[:1], "groups": FIXED.groups[:1], "total_runs": 1}, "1 flag makes it"),
        ({"outcome": BisectOutcome.ALREADY_DETERMINISTIC, "needed": ()}, "no flag is needed (5 trials, 25 runs)"),
        ({"outcome": BisectOutcome.INCONCLUSIVE, "needed": None}, "no answer (5 trials, 25 runs)"),
        ({"outcome": BisectOutcome.INCONCLUSIVE, "best_so_far": ("a", "b")}, "with a, b, all runs so far match ("),
        ({"outcome": BisectOutcome.INCONCLUSIVE, "best_so_far": ()}, "with no flags, all runs so far match ("),
    ],
)
def test_the_answer_of_a_bisection(fields: dict[str, Any], expected: str) -> None:
    assert searches.bisection_result(replace(FIXED, **fields)).sentence.startswith(expected)


def test_an_interrupted_bisection_says_how_far_its_runs_went() -> None:
    interrupted = replace(BISECTIONS["fixed-long"], outcome=BisectOutcome.INCONCLUSIVE, interrupted=True)
    for flags, far in (("numpy-default-rng", ", 2 to the end"), ("torch-seed", ", through step 225")):
        found = searches.bisection_result(replace(interrupted, best_so_far=(flags,))).sentence
        assert found == f"with {flags}, all runs so far match{far} (4 trials, 18 runs)"


@pytest.mark.parametrize(("needed", "expected"), [(0, "without flags"), (1, "with this flag"), (2, "with these flags")])
def test_the_evidence_of_a_bisection(needed: int, expected: str) -> None:
    found = searches.bisection_result(replace(FIXED, needed=(FIXED.needed or ())[:needed]))
    assert found.evidence.startswith(f"evidence: 17 runs {expected} are bit-identical; ")


def test_a_flag_whose_need_is_unproven() -> None:
    needed = tuple(replace(one, left_out=None, cost=None) for one in FIXED.needed or ())
    lines = searches.bisection_result(replace(FIXED, needed=needed)).details[0][1]
    assert lines[0] == "without it: the training fails, so whether it is needed is unproven"
    assert not [line for line in lines if line.startswith("cost")]


def test_files_and_lines_that_differ_and_do_not_decide() -> None:
    group = replace(
        AUDITS["nondeterministic"].groups[0],
        verdict=Verdict.DETERMINISTIC,
        output_differences=(
            OutputDifference(path="log.csv", kind=OutputKind.MEASUREMENT, at="row 1, seconds", values=("1.2", "1.3")),
            OutputDifference(path="model.pt", kind=OutputKind.GENERATOR, at="rng.torch", more=2),
            OutputDifference(path="log.csv", kind=OutputKind.IDENTIFIER, at="row 1, pid", values=("17", "18")),
            OutputDifference(path="stderr", kind=OutputKind.STDERR_LINES, at="line 3", only_run=2, runs=(1, 3)),
        ),
    )
    assert groups.notes(group)[-4:] == [
        "differs, and does not decide (measurements): log.csv (row 1, seconds: 1.2 and 1.3)",
        "differs, and does not decide (what a run is known by): log.csv (row 1, pid: 17 and 18)",
        "differs, and does not decide (states of random generators): model.pt (rng.torch, and 2 more values)",
        "differs, and does not decide (lines on stderr that only some runs have): stderr (line 3: only run 3 has it)",
    ]
    assert not any("decide" in note for note in groups.notes(replace(group, verdict=Verdict.NONDETERMINISTIC)))


def test_notes_of_a_bisection() -> None:
    failing = FailingFlag(flag="f", message="", errors=FAILED)
    found = replace(FIXED, not_needed=(), failing_flags=(failing,), not_applicable={"g": NoGpu()})
    assert searches.bisection_result(found).notes == [
        "the training fails with f: the script failed with exit status 3",
        "skipped 1 flag that does not apply: no weights on a GPU (1) (listed in audit.json)",
    ]


def test_only_what_is_not_fixed_has_a_difference_to_explain() -> None:
    assert searches.last_unfixed(FIXED) is None
    assert searches.last_unfixed(NOT_FIXED) is NOT_FIXED.groups[1]


def test_an_interrupted_bisection_has_no_failure() -> None:
    failed = BISECTIONS["bisection-failed"]
    assert searches.bisection_result(failed).failed is failed.groups[0]
    assert searches.bisection_result(replace(failed, interrupted=True)).failed is None


def test_sentences_of_a_bisection_over_variations() -> None:
    found = replace(THREADS, example=EffectExample(trial="trial-3", runs=(1, 4), values=(), errors=FAILED))
    result = searches.variations_result(varied(sensitive_to=(found,)))
    assert result.sentence.startswith("1 variation changes the training: threads (")
    expected = "run 4 of trial 3 fails, but the control does not: the script failed with exit status 3"
    assert result.details[0][1][0] == expected
    assert searches.variations_result(varied(outcome=VaryOutcome.INCONCLUSIVE)).sentence.startswith("no answer (")


def test_the_evidence_if_every_variation_has_an_effect() -> None:
    few = Evidence(runs=5, confidence=None, assumed_rate=0.25, miss_probability=0.3)
    found = searches.variations_result(varied(no_effect=(), evidence=few))
    assert found.evidence == "evidence: 5 runs at control values are bit-identical"


def a_trace(**fields: Any) -> Trace:
    return replace(TRACES["traced-kernel"], **fields)


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (a_trial(1, (), 1.5), ("nothing to trace", "both runs are bit-identical")),
        (a_trial(1, (), 1.5, Stage.UPDATE), ("no culprit found", "2 runs gave 2 different results")),
        (
            replace(AUDITS["inconclusive"].groups[0], reason=RunUnusable(run=1, errors=FAILED)),
            ("inconclusive", "run 1: the script failed with exit status 3"),
        ),
    ],
)
def test_a_trace_without_a_culprit(group: Group, expected: tuple[str, str]) -> None:
    answer = traces.answer(a_trace(culprit=None, groups=(group,)))
    assert (answer.word, answer.sentence) == expected


def test_a_culprit_outside_the_users_code() -> None:
    found = Culprit(how=How.INPUT, cause=Cause.DATA, rank=0, step=0, stage=Stage.INIT)
    assert traces.answer(a_trace(culprit=found)).sentence == (
        "outside your code before the first step (init), cause: input data"
    )


def test_values_of_a_culprit_and_where_it_ran() -> None:
    found = TRACES["traced-kernel"].culprit
    assert found is not None
    lines = list(traces.lines(a_trace(culprit=replace(found, values=("3", "4"), thread="loader", rank=1))))
    assert "one run: 3; other run: 4" in lines
    operation = next(line for line in lines if line.startswith("operation: "))
    assert operation.endswith("module encoder.layers.3, thread loader, rank 1")


@pytest.mark.parametrize(
    ("first", "last", "level", "expected"),
    [
        (3, 3, "ops", "recorded ops at step 3 in 2 runs: all match"),
        (3, 5, "modules", "recorded modules at steps 3 to 5 in 2 runs: all match"),
        (0, ALL_STEPS, "racing", "recorded racing ops at all steps in 2 runs: all match"),
        (3, ALL_STEPS, "lines", "recorded lines from step 3 on in 2 runs: all match"),
    ],
)
def test_what_was_recorded(first: int, last: int, level: str, expected: str) -> None:
    one = Pass(level=level, first_step=first, last_step=last, runs=2, first_difference=None)
    assert traces.notes(a_trace(passes=(one,), total_runs=1)) == [expected, "1 run in total"]


def test_the_finished_runs_of_an_inconclusive_group() -> None:
    group = replace(
        a_trial(1, (), 1.5, runs=4), verdict=Verdict.INCONCLUSIVE, reason=RunsMissing(finished=4, planned=5)
    )
    assert groups.verdict_sentence(group) == "4 of 5 runs finished; the 4 finished runs are bit-identical"
    assert groups.evidence_line(group) == ""


def test_the_rank_of_a_difference_is_named_if_there_are_several() -> None:
    several = replace(
        AUDITS["nondeterministic"].groups[1], first_difference=a_trial(1, (), 1, Stage.BATCH).first_difference
    )
    assert groups.where(several).startswith("runs 1 and 2 first differ at step 1 (batch) on rank 0: the model's inputs")
    assert groups.where(AUDITS["nondeterministic"].groups[1]) == ""


@pytest.mark.parametrize(
    ("stage", "site", "cell", "sentence"),
    [
        (
            Stage.ARTIFACT,
            "model.pt",
            "model.pt",
            "first differ in model.pt: a file the script wrote differs",
        ),
        (
            Stage.RETURNED,
            "[0]",
            "returned [0]",
            "first differ in the returned value [0]: the value returned",
        ),
        (Stage.RETURNED, None, "returned", "first differ in the returned value: the value returned"),
        (Stage.STEPS, None, "step 1, steps", "first differ at step 1: only one run has this step"),
        (Stage.STDOUT, None, "step 1, stdout", "first differ at step 1 (stdout): a printed loss differs"),
    ],
)
def test_differences_without_a_stage_of_training(stage: Stage, site: str | None, cell: str, sentence: str) -> None:
    group = a_trial(1, (), 1.5, Stage.BATCH)
    assert group.first_difference is not None
    run = replace(group.runs[1], first_difference=Difference(rank=0, step=1, stage=stage, site=site))
    first = replace(group.first_difference, stage=stage, site=site)
    group = replace(group, runs=(group.runs[0], run), first_difference=first)
    assert groups.runs_table(group).rows[1][-1] == cell
    assert sentence in groups.where(group)


def test_many_sources_are_cut() -> None:
    source = a_trial(1, (), 1.5, Stage.BATCH).sources[0]
    lines = groups.source_lines([source] * (groups.MOST_SOURCES + 2))
    assert (len(lines), lines[-1]) == (groups.MOST_SOURCES + 1, "and 2 more in audit.json")


@pytest.mark.parametrize(
    ("trial", "expected"),
    [
        (RemedyTrial(runs=2), ["fix with --flag f", "with --flag f, 2 runs match"]),
        (
            RemedyTrial(runs=2, through=1248),
            ["fix with --flag f", "with --flag f, 2 runs match through step 1,248"],
        ),
        (RemedyTrial(runs=1, failed=True), ["with --flag f, a run failed"]),
        (
            RemedyTrial(runs=2, first_difference=Difference(rank=0, step=3, stage=Stage.BATCH)),
            ["with --flag f, 2 runs still differ at step 3 (batch)"],
        ),
        (
            RemedyTrial(runs=2, first_difference=Difference(rank=0, step=3, stage=Stage.UPDATE)),
            ["fix with --flag f", "with --flag f, 2 runs still differ, but later: at step 3 (update)"],
        ),
    ],
)
def test_a_flag_that_was_tried(trial: RemedyTrial, expected: list[str]) -> None:
    fix = FlagFix(flag="f", title="", trial=trial)
    found = Culprit(how=How.OUTPUT, cause=Cause.KERNEL, rank=0, step=3, stage=Stage.FORWARD, flags=(fix,))
    said = list(traces.lines(replace(TRACES["traced-order"], culprit=found)))
    assert said[-len(expected) :] == expected
    assert len(said) == len(expected) + 1


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            OutputDifference(path="stdout", kind=OutputKind.WORDS, at="line 3", values=("cat", "dog"), runs=(1, 2)),
            "the trainings match, but the words on stdout (line 3: cat and dog) differ. --ignore-text REGEX leaves "
            "such text out; --compare training compares the trainings alone, --compare all counts it as a result",
        ),
        (
            OutputDifference(path="a b.csv", kind=OutputKind.AMBIGUOUS, at="row 1", values=("1.5", "1.6")),
            "the trainings match, but a b.csv (row 1: 1.5 and 1.6) differs, which may be a measurement or a result. "
            "--ignore 'a b.csv' leaves the file out, --artifact 'a b.csv' compares its bytes; --compare training "
            "compares the trainings alone, --compare all counts it as a result",
        ),
        (
            OutputDifference(path="a.csv", kind=OutputKind.AMBIGUOUS, at="row 1, T [1]", values=("1.5", "1.6")),
            "the trainings match, but a.csv (row 1, T [1]: 1.5 and 1.6) differs, which may be a measurement or a "
            "result. --measured 'T [[]1]' says that it is a measurement, --ignore a.csv leaves the file out, "
            "--artifact a.csv compares its bytes; --compare training compares the trainings alone, --compare all "
            "counts it as a result",
        ),
        (
            OutputDifference(path="stdout", kind=OutputKind.AMBIGUOUS, at="line 4, T1/sec", values=("1.5", "1.6")),
            "the trainings match, but stdout (line 4, T1/sec: 1.5 and 1.6) differs, which may be a measurement or a "
            "result. --measured T1/sec says that it is a measurement; --compare training compares the trainings alone, "
            "--compare all counts it as a result",
        ),
        (
            OutputDifference(path="a.npz", kind=OutputKind.UNREADABLE, problem="is cut off"),
            "the trainings match, but a.npz differs and cannot be read: is cut off. --ignore a.npz leaves the file "
            "out, --artifact a.npz compares its bytes; --compare training compares the trainings alone, "
            "--compare all counts it as a result",
        ),
    ],
)
def test_what_is_open_comes_with_the_option_that_settles_it(found: OutputDifference, said: str) -> None:
    assert OutputsOpen(first=found).text() == said


def test_a_verdict_on_the_result_alone_says_that_the_trainings_match() -> None:
    group = AUDITS["nondeterministic"].groups[0]
    first = group.first_difference
    assert first is not None
    output = OutputDifference(path="a.csv", kind=OutputKind.VALUE, at="row 1, target", values=("3.41", "3.39"))
    differs = replace(first, stage=Stage.SAVED, step=0, site="a.csv", output=output)
    group = replace(group, first_difference=differs, stages=(Stage.UPDATE, Stage.SAVED))
    assert groups.verdict_sentence(group).startswith("the trainings match, a.csv differs (row 1, target); ")
    assert groups.where(group).startswith("runs 1 and 2 first differ in a.csv: row 1, target: 3.41 and 3.39: ")


EDIT = Edit(file="train.py", line=3, old=("x = f()",), new=("x = f(0)",))


@pytest.mark.parametrize(
    ("trial", "expected"),
    [
        (None, []),
        (
            RemedyTrial(runs=2),
            ["suggested edit, train.py:3, with which 2 runs match:", "  - x = f()", "  + x = f(0)"],
        ),
        (
            RemedyTrial(runs=2, first_difference=Difference(rank=0, step=3, stage=Stage.FORWARD)),
            ["with an edit of this line, 2 runs still differ at step 3 (forward)"],
        ),
        (RemedyTrial(runs=1, failed=True), ["with an edit of this line, a run failed"]),
        (
            RemedyTrial(runs=2, repeats=True),
            ["with an edit of this line, batches are equal that were not: it would do harm"],
        ),
    ],
)
def test_an_edit_is_advised_if_it_was_tried_and_helps(trial: RemedyTrial | None, expected: list[str]) -> None:
    culprit = Culprit(
        how=How.SOURCE, cause=Cause.SEED, rank=0, step=3, stage=Stage.FORWARD, suggested_edit=EDIT, edit_trial=trial
    )
    said = list(traces.lines(replace(TRACES["traced-order"], culprit=culprit)))
    assert said[1:] == expected


def test_a_line_that_may_run_more_than_once_is_told_in_words() -> None:
    found = Culprit(how=How.SOURCE, cause=Cause.SEED, rank=0, step=1, stage=Stage.BATCH, repeated=True)
    assert "make the generator once, outside" in " ".join(traces.about(found))
