"""What is sent to MLflow, by a server in memory. test_mlflow_server.py sends it to a real one."""

from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.cli.report import destination
from detaudit.errors import ExportError, UsageError
from detaudit.exports import Value
from detaudit.exports.mlflow import MOST_IN_TAG, MOST_VALUES, MOST_WORDS, MLflow, batches
from detaudit.model import Status
from tests.exports.audits import BEGAN, a_run, an_audit
from tests.exports.fake_server import FakeServer

DOCUMENTS = {"report.json": "{}", "report.html": "<p>"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    return FakeServer()


def test_an_audit_is_a_run_and_each_run_of_the_script_is_nested_in_it(server: FakeServer) -> None:
    assert MLflow(server).send([an_audit()], DOCUMENTS) == ["http://x/#/experiments/0/runs/run0"]
    parent, *children = server.stored.values()
    assert server.experiments == ["examples/train.py"]
    assert parent.tags["detaudit.verdict"] == "nondeterministic"
    assert parent.tags["mlflow.note.content"].startswith("**nondeterministic**")
    assert parent.params == {"script": "examples/train.py", "torch": "2.13.0"}
    assert parent.metrics == {"runs": 2, "duration_s": 3.0}
    assert parent.files == DOCUMENTS
    assert (parent.began, parent.ended) == (BEGAN, ("FINISHED", BEGAN + 3000))
    assert [child.name for child in children] == ["none, run 1", "none, run 2"]
    assert {child.tags["mlflow.parentRunId"] for child in children} == {"run0"}
    assert children[1].tags["detaudit.digest"] == "20abcdef"
    assert children[1].metrics["sum_of_weights"] == 243.42266417505016
    losses = [(one.step, one.value) for one in children[1].history if one.name == "loss"]
    assert losses == [(1, 2.0), (2, 1.0), (3, 2 / 3)]
    assert children[1].ended == ("FINISHED", children[1].began + 1500)


def test_a_second_export_makes_no_second_copy(server: FakeServer) -> None:
    MLflow(server).send([an_audit()], DOCUMENTS)
    first = deepcopy(server.stored)
    MLflow(server).send([an_audit()], DOCUMENTS)
    assert server.stored == first


def test_an_export_that_was_cut_off_anywhere_is_completed(server: FakeServer) -> None:
    MLflow(server).send([an_audit()], DOCUMENTS)
    whole = server.requests
    assert whole > 10
    for fails in range(1, whole + 1):
        cut = FakeServer()
        cut.fails = fails
        with pytest.raises(ExportError):
            MLflow(cut).send([an_audit()], DOCUMENTS)
        cut.fails = None
        MLflow(cut).send([an_audit()], DOCUMENTS)
        assert cut.stored == server.stored, f"cut off at request {fails}"


def test_an_audit_that_went_on_updates_its_run(server: FakeServer) -> None:
    early = an_audit(
        [a_run(1)], verdict="inconclusive", note="**inconclusive**", interrupted=True, reason="interrupted"
    )
    MLflow(server).send([early], DOCUMENTS)
    assert server.stored["run0"].ended == ("KILLED", BEGAN + 3000)
    server.stored["run0"].tags |= {"team": "vision"}
    MLflow(server).send([an_audit()], DOCUMENTS)
    parent, *children = server.stored.values()
    assert len(children) == 2
    assert parent.metrics["runs"] == 2
    assert parent.tags["detaudit.verdict"] == "nondeterministic"
    assert parent.tags["mlflow.note.content"].startswith("**nondeterministic**")
    assert "detaudit.reason" not in parent.tags
    assert parent.tags["team"] == "vision"
    assert parent.ended == ("FINISHED", BEGAN + 3000)


def test_a_parameter_is_sent_once_because_mlflow_refuses_to_change_one(server: FakeServer) -> None:
    MLflow(server).send([an_audit()], {})
    MLflow(server).send([replace(an_audit(), params={"torch": "2.14.0", "seed": "0"})], {})
    assert server.stored["run0"].params == {"script": "examples/train.py", "torch": "2.13.0", "seed": "0"}


def test_a_run_that_was_done_again_replaces_the_interrupted_one(server: FakeServer) -> None:
    cut = replace(a_run(2, steps=2, status=Status.STOPPED), seconds=0.5)
    MLflow(server).send([an_audit([a_run(1), cut], interrupted=True)], {})
    server.create("0", "somebody's", BEGAN, {"mlflow.parentRunId": "run0"})
    MLflow(server).send([an_audit()], {})
    _, first, others, second = server.stored.values()
    assert [first.name, others.name, second.name] == ["none, run 1", "somebody's", "none, run 2"]
    assert second.ended == ("FINISHED", BEGAN + 1 + 1500)
    assert second.metrics["steps"] == 3


def test_a_description_that_somebody_edited_is_kept(server: FakeServer) -> None:
    MLflow(server).send([an_audit()], DOCUMENTS)
    server.stored["run0"].tags["mlflow.note.content"] = "see the meeting of Monday"
    MLflow(server).send([an_audit(note="**deterministic**", verdict="deterministic")], DOCUMENTS)
    assert server.stored["run0"].tags["mlflow.note.content"] == "see the meeting of Monday"
    assert server.stored["run0"].tags["detaudit.verdict"] == "deterministic"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (Status.OK, "FINISHED"),
        (Status.ENDED, "FINISHED"),
        (Status.STOPPED, "KILLED"),
        (Status.FAILED, "FAILED"),
        (Status.TIMEOUT, "FAILED"),
        (Status.NOT_RECORDED, "FAILED"),
    ],
)
def test_a_run_has_the_status_that_mlflow_knows(status: Status, expected: str, server: FakeServer) -> None:
    MLflow(server).send([an_audit([a_run(1, status=status)])], {})
    assert server.stored["run1"].ended == (expected, server.stored["run1"].began + 1500)


def test_the_variable_of_mlflow_names_the_experiment(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "/Users/me/audits")
    MLflow(server).send([an_audit()], {})
    assert server.experiments == ["/Users/me/audits"]


def test_a_long_description_ends_with_where_the_rest_is(server: FakeServer) -> None:
    note = "\n\n".join(["## detaudit", "```sh", *["a command"] * 1000, "```", "end"])
    MLflow(server).send([an_audit(note=note, sources="x" * 9000)], {})
    tags = server.stored["run0"].tags
    shown = tags["mlflow.note.content"]
    assert max(map(len, tags.values())) <= MOST_IN_TAG
    assert shown.startswith("## detaudit")
    assert shown.endswith("report.html.")
    assert shown.count("```") == 2


@given(st.integers(0, 5000), st.integers(0, 350), st.integers(0, 350))
def test_requests_are_as_large_as_mlflow_takes_and_leave_nothing_out(values: int, params: int, tags: int) -> None:
    given_ = [Value("loss", 0.5, step, 0) for step in range(values)]
    named = {str(number): "" for number in range(params)}
    found = list(batches(given_, named, {str(number): "" for number in range(tags)}))
    assert [one for some, _, _ in found for one in some] == given_
    assert sum(len(some) for _, some, _ in found) == params
    assert sum(len(some) for _, _, some in found) == tags
    assert all(len(a) <= MOST_VALUES and len(b) <= MOST_WORDS and len(c) <= MOST_WORDS for a, b, c in found)
    assert len(found) == max(-(-values // MOST_VALUES), -(-params // MOST_WORDS), -(-tags // MOST_WORDS))


def test_without_an_address_that_of_mlflows_own_variable_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(UsageError) as found:
        destination("mlflow")
    assert "MLFLOW_TRACKING_URI" in found.value.hint
