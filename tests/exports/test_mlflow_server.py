"""Exports to a real MLflow server, read back with MLflow's own client."""

import http.server
import json
import math
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from detaudit.report.tracked import TrackedAudit
from tests.exports.audits import a_run, an_audit
from tests.exports.conftest import RealServer, free_port
from tests.process.conftest import Finished, Project
from tests.words import different

pytestmark = [pytest.mark.exports, pytest.mark.launches]

SECRET = "planted-in-an-option"


def client(server: RealServer) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(server.uri)


def children(server: RealServer, parent: Any) -> list[Any]:
    wanted = f"tags.mlflow.parentRunId = '{parent.info.run_id}'"
    found = client(server).search_runs([parent.info.experiment_id], wanted, order_by=["start_time"])
    return list(found)


def sent(server: RealServer, done: Finished) -> list[Any]:
    """Return the runs whose addresses were printed."""
    addresses = [line for line in done.err.splitlines() if line.startswith("exported to ")]
    return [client(server).get_run(address.rpartition("/")[2]) for address in addresses]


def losses(server: RealServer, run: Any, name: str = "loss") -> dict[int, float]:
    found = client(server).get_metric_history(run.info.run_id, name)
    assert len({one.step for one in found}) == len(found)
    return {one.step: one.value for one in found}


def test_an_audit_is_read_back(real_server: RealServer, audited: Project) -> None:
    done = audited.detaudit("report", "out", "--to", f"mlflow:{real_server.uri}")
    assert done.code == 0
    assert f"nondeterministic: {different(3, 3)}" in done.out
    (parent,) = sent(real_server, done)
    report = json.loads((audited.folder / "out/audit.json").read_text())
    (group,) = report["groups"]
    assert client(real_server).get_experiment(parent.info.experiment_id).name == "train.py"
    assert parent.info.status == "FINISHED"
    assert parent.data.tags["detaudit.verdict"] == "nondeterministic"
    assert parent.data.tags["detaudit.first_difference"].startswith("runs 1 and 2 first differ at step 5 (")
    assert parent.data.tags["mlflow.note.content"].startswith(f"**nondeterministic**: {different(3, 3)}")
    assert parent.data.params["recipe"] == "none"
    assert parent.data.params["python"] == report["environment"]["python"]
    assert parent.data.metrics["distinct_results"] == 3
    files = {one.path: one.file_size for one in client(real_server).list_artifacts(parent.info.run_id)}
    assert set(files) == {"report.html", "report.json"}
    (kept,) = real_server.folder.rglob(f"{parent.info.run_id}/**/report.json")
    assert json.loads(kept.read_text()) == report
    runs = children(real_server, parent)
    assert [run.info.run_name for run in runs] == ["none, run 1", "none, run 2", "none, run 3"]
    for run, own in zip(runs, group["runs"], strict=True):
        (rank,) = own["ranks"]
        assert run.data.metrics["sum_of_weights"] == rank["sum_of_weights"]
        assert run.data.tags["detaudit.digest"] == rank["digest"]
        assert abs(run.info.end_time - run.info.start_time - 1000 * own["wall_s"]) < 1
        found = losses(real_server, run)
        assert sorted(found) == list(range(1, 30))
        assert found[29] == rank["final_loss"]
    first, second, _ = (losses(real_server, run) for run in runs)
    apart = losses(real_server, runs[1], "loss_distance")
    assert apart == {step: abs(first[step] - loss) for step, loss in second.items()}
    assert next(step for step, distance in apart.items() if distance) == 5


def test_a_second_export_makes_no_second_copy(real_server: RealServer, audited: Project) -> None:
    words = ("report", "out", "--to", f"mlflow:{real_server.uri}", "--format", "json")
    (parent,) = sent(real_server, audited.detaudit(*words))
    before = [(run.info.run_id, losses(real_server, run)) for run in children(real_server, parent)]
    client(real_server).set_tag(parent.info.run_id, "team", "vision")
    client(real_server).set_tag(parent.info.run_id, "mlflow.note.content", "see the meeting of Monday")
    (again,) = sent(real_server, audited.detaudit(*words))
    assert again.info.run_id == parent.info.run_id
    assert again.data.tags["team"] == "vision"
    assert again.data.tags["mlflow.note.content"] == "see the meeting of Monday"
    assert [(run.info.run_id, losses(real_server, run)) for run in children(real_server, again)] == before
    assert len(client(real_server).get_metric_history(parent.info.run_id, "runs")) == 1


def test_an_audit_in_a_folder_that_was_moved_is_the_same_one(real_server: RealServer, audited: Project) -> None:
    (parent,) = sent(real_server, audited.detaudit("report", "out", "--to", f"mlflow:{real_server.uri}"))
    (audited.folder / "out").rename(audited.folder / "moved")
    (again,) = sent(real_server, audited.detaudit("report", "moved", "--to", f"mlflow:{real_server.uri}"))
    assert again.info.run_id == parent.info.run_id
    client(real_server).delete_run(parent.info.run_id)
    (new,) = sent(real_server, audited.detaudit("report", "moved", "--to", f"mlflow:{real_server.uri}"))
    assert new.info.run_id != parent.info.run_id


@pytest.mark.parametrize("command", ["bisect", "trace", "vary", "check"])
def test_other_reports_are_runs_too(command: str, real_server: RealServer, project: Project) -> None:
    project.write("train.py", "import training\ntraining.train()\n")
    project.write("same.py", "import training\ntraining.train(seed=0)\n")
    project.write("detaudit.yaml", "audits:\n  mine:\n    command: train.py\n    runs: 2\n    baseline: false\n")
    words = {
        "bisect": ("bisect", "train.py"),
        "trace": ("trace", "train.py"),
        "vary": ("bisect", "same.py", "--over", "variations", "--vary", "hash-seed"),
        "check": ("check",),
    }[command]
    project.detaudit(*words, "--out", "out", "-q")
    (parent,) = sent(real_server, project.detaudit("report", "out", "--to", f"mlflow:{real_server.uri}"))
    expected = {
        "bisect": ("needed_flags", "python-random-seed"),
        "trace": ("culprit", "training.py:8: "),
        "vary": ("kind", "Bisection over variations"),
        "check": ("gate.repeatable", "failed: "),
    }[command]
    assert parent.data.tags[f"detaudit.{expected[0]}"].startswith(expected[1])
    runs = children(real_server, parent)
    assert runs
    assert all(losses(real_server, run) for run in runs if run.info.status == "FINISHED")


def send(server: RealServer, audit: TrackedAudit) -> None:
    from detaudit.cli.report import destination

    destination(f"mlflow:{server.uri}").send([audit], {})


def test_losses_that_are_not_finite_and_long_texts_are_taken(real_server: RealServer) -> None:
    run = a_run(1, steps=2000)
    values = [(1, math.nan), (2, math.inf), (3, -math.inf), (4, 1e-300)]
    odd = replace(run, curves={"loss": [*values, *run.curves["loss"][4:]]})
    audit = an_audit([odd], note="## x\n\n" * 5000, words="x" * 20_000)
    send(real_server, audit)
    send(real_server, audit)
    experiment = client(real_server).get_experiment_by_name("examples/train.py")
    (parent,) = client(real_server).search_runs([experiment.experiment_id], "tags.detaudit.id = '0123456789abcdef'")
    (child,) = children(real_server, parent)
    found = losses(real_server, child)
    assert len(found) == 2000
    assert math.isnan(found[1])
    assert (found[2] > 1e308, found[3] < -1e308, found[4]) == (True, True, 1e-300)


def test_no_secret_reaches_the_server(real_server: RealServer, project: Project) -> None:
    project.write("train.py", "import training\ntraining.train()\n")
    project.run("train.py", "--runs", "2", "--out", "out", "--", "--api-key", SECRET, f"http://me:{SECRET}@host/x")
    done = project.detaudit("report", "out", "--to", f"mlflow:{real_server.uri}")
    assert done.code == 0
    assert "***" in sent(real_server, done)[0].data.tags["detaudit.command"]
    for file in real_server.folder.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file


class Recorder(threading.Thread):
    """A listener on loopback that notes what connects to it, and answers nothing."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.received: list[bytes] = []
        self.held: list[socket.socket] = []

    def run(self) -> None:
        while True:
            try:
                taken, _ = self.listener.accept()
            except OSError:
                return
            self.held.append(taken)
            self.received.append(taken.recv(200))


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    found = Recorder()
    found.start()
    yield found
    found.listener.close()
    for one in found.held:
        one.close()


def test_nobody_but_the_server_is_contacted(
    real_server: RealServer, audited: Project, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI", "GITHUB_ACTIONS", "PYTEST_CURRENT_TEST", "MLFLOW_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
        monkeypatch.delenv(name, raising=False)  # MLflow reports no use of it in tests
    proxies = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "ALL_PROXY"), recorder.uri)
    done = audited.detaudit(
        "report", "out", "--to", f"mlflow:{real_server.uri}", env={**proxies, "NO_PROXY": "127.0.0.1"}
    )
    assert done.code == 0
    assert recorder.received == []


def test_a_server_that_cannot_be_reached_is_an_error_and_the_report_is_printed(audited: Project) -> None:
    uri = f"http://me:{SECRET}@127.0.0.1:{free_port()}"
    began = time.monotonic()
    done = audited.detaudit("report", "out", "--to", f"mlflow:{uri}", "--to", "tensorboard:logs")
    assert time.monotonic() - began < 60
    assert done.code == 125
    assert f"nondeterministic: {different(3, 3)}" in done.out
    assert "error: cannot send to MLflow at http://***@127.0.0.1:" in done.err
    assert "Connection refused" in done.err
    assert SECRET not in done.err
    assert "exported to logs/train.py/" in done.err
    assert len(done.err.splitlines()) == 3


def test_a_server_that_never_answers_is_waited_for_as_long_as_is_set(audited: Project, recorder: Recorder) -> None:
    env = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "1", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
    began = time.monotonic()
    done = audited.detaudit("report", "out", "--to", f"mlflow:{recorder.uri}", env=env)
    assert time.monotonic() - began < 30
    assert done.code == 125
    assert "timed out" in done.err


def test_a_server_that_is_not_mlflow_is_an_error(audited: Project) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        done = audited.detaudit("report", "out", "--to", f"mlflow:http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
    assert done.code == 125
    assert "501" in done.err


@pytest.mark.parametrize("uri", ["htp://127.0.0.1:5000", "localhost:5000"])
def test_an_address_of_an_unknown_kind_is_refused(uri: str, audited: Project) -> None:
    done = audited.detaudit("report", "out", "--to", f"mlflow:{uri}")
    assert (done.code, done.out) == (2, "")
    assert f"error: --to mlflow cannot use {uri}: " in done.err
    assert "hint: Name a server, as in --to mlflow:http://127.0.0.1:5000." in done.err


def test_an_experiment_that_was_deleted_is_an_error(real_server: RealServer, project: Project) -> None:
    project.write("gone.py", "import training\ntraining.train()\n")
    project.run("gone.py", "--runs", "2", "--out", "out")
    words = ("report", "out", "--to", f"mlflow:{real_server.uri}")
    (parent,) = sent(real_server, project.detaudit(*words))
    client(real_server).delete_experiment(parent.info.experiment_id)
    done = project.detaudit(*words)
    assert done.code == 125
    assert "error: the experiment gone.py was deleted in MLflow" in done.err
