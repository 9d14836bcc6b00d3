"""The engine of Ray without Ray: which node gets a job, what becomes of it, and what its driver asks of Ray."""

import io
import queue
import subprocess
import sys
import time
from types import SimpleNamespace as Fake
from typing import Any

import msgspec
import pytest

from detaudit.errors import EngineError, UsageError
from detaudit.remote.engine import Job, Lost, Refused, Returned
from detaudit.remote.engines import ray as engine_module
from detaudit.remote.engines.in_worker import Done
from detaudit.remote.engines.ray import RayEngine, _Driver, connect
from detaudit.remote.engines.ray_driver import (
    Answer,
    Cancel,
    Do,
    Driver,
    Ended,
    Failed,
    Nodes,
    NotDone,
    read,
    without_reports,
    write,
)
from detaudit.remote.worker import frame

TWO = Nodes({"id-a": "a", "id-b": "b"})


def job(name: str) -> Job:
    return Job(id=name, run=1, plan=b"plan", code=b"code", digest="d")


class FakeDriver:
    """Notes what it is asked; the test answers."""

    def __init__(self, *answers: Answer | None) -> None:
        self.answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        self.asked: list[tuple[str, str]] = []
        self.ended: list[float] = []
        for answer in answers:
            self.answers.put(answer)

    def ask(self, request: Do | Cancel | None) -> None:
        assert request is not None
        if isinstance(request, Do):
            assert msgspec.msgpack.decode(request.data, type=Job).id == request.job
        self.asked.append((request.job, request.node if isinstance(request, Do) else "cancel"))

    def why(self) -> str:
        return "it ended"

    def end(self, seconds: float) -> None:
        self.ended.append(seconds)


def started(*answers: Answer | None) -> tuple[RayEngine, FakeDriver]:
    driver = FakeDriver(*(answers or (TWO,)))
    engine = RayEngine(driver)  # type: ignore[arg-type]
    engine.await_nodes()
    return engine, driver


def test_a_node_does_one_job_at_a_time_in_their_order() -> None:
    engine, driver = started()
    assert engine.at_once == 2
    for name in ("1", "2", "3"):
        engine.submit(job(name))
    assert driver.asked == [("1", "id-a"), ("2", "id-b")]
    driver.answers.put(Ended("2", Done("host", 0, frame(b"Aarchive"), "")))
    assert engine.poll() == [Returned("2", b"archive", "b")]
    assert driver.asked[2:] == [("3", "id-b")]
    assert engine.poll() == []


def test_a_lost_job_avoids_its_node_and_nodes_that_are_gone() -> None:
    engine, driver = started()
    engine.submit(job("1"))
    driver.answers.put(NotDone("1", True, "node died"))
    assert engine.poll() == [Returned("1", Lost("node died"), "a")]
    engine.submit(job("again"), frozenset({"a"}))
    driver.answers.put(Nodes({"id-a": "a"}))
    driver.answers.put(NotDone("again", True, "node died"))
    assert engine.poll() == [Returned("again", Lost("node died"), "b")]
    engine.submit(job("third"), frozenset({"a", "b"}))
    assert driver.asked == [("1", "id-a"), ("again", "id-b"), ("third", "id-a")]


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (Ended("1", Done("h", -9, b"", "")), Lost("a job was ended (SIGKILL)")),
        (Ended("1", Done("h", 1, b"", "no room")), Refused("a job failed (exit status 1): no room")),
        (NotDone("1", False, "ValueError: bad"), Refused("Ray cannot do the job: ValueError: bad")),
    ],
)
def test_what_came_of_a_job_is_judged(answer: Answer, result: Lost | Refused) -> None:
    engine, driver = started()
    engine.submit(job("1"))
    driver.answers.put(answer)
    assert engine.poll() == [Returned("1", result, "a")]


def test_a_node_without_detaudit_is_named() -> None:
    engine, driver = started()
    engine.submit(job("1"))
    driver.answers.put(NotDone("1", False, "ModuleNotFoundError: x", "detaudit.remote"))
    (found,) = engine.poll()
    assert isinstance(found.result, Refused)
    assert found.result.hint.startswith("Install detaudit")


def test_nothing_is_returned_of_a_cancelled_job_and_its_node_is_free_once_it_has_ended() -> None:
    engine, driver = started(Nodes({"id-a": "a"}))
    for name in ("1", "2", "3"):
        engine.submit(job(name))
    engine.cancel("1")
    engine.cancel("2")
    engine.cancel("unknown")
    assert engine.poll() == []
    assert driver.asked == [("1", "id-a"), ("1", "cancel")]
    driver.answers.put(NotDone("1", True, "cancelled"))
    assert engine.poll() == []
    assert driver.asked[2:] == [("3", "id-a")]


@pytest.mark.parametrize(("answer", "failure"), [(Failed("no centre"), "no centre"), (None, "it ended")])
def test_a_cluster_or_a_driver_that_fails_is_a_failure(answer: Answer | None, failure: str) -> None:
    engine, driver = started()
    assert engine.failure() == ""
    driver.answers.put(answer)
    assert engine.failure() == failure


def test_silence_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, driver = started()
    monkeypatch.setattr(engine_module, "SILENT_S", 0.2)
    time.sleep(0.3)
    driver.answers.put(TWO)
    assert engine.failure() == ""
    time.sleep(0.3)
    assert engine.failure().startswith("nothing was heard")


def test_a_cluster_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match="cannot connect to a Ray cluster: refused"):
        started(Failed("refused"))
    with pytest.raises(EngineError, match="cannot connect to a Ray cluster: it ended"):
        started(None)
    with pytest.raises(UsageError, match="no node"):
        started(Nodes({}))
    monkeypatch.setattr(engine_module, "START_S", 0.1)
    with pytest.raises(EngineError, match="does not answer"):
        RayEngine(FakeDriver()).await_nodes()  # type: ignore[arg-type]


def test_closing_ends_the_driver_once() -> None:
    engine, driver = started()
    engine.close()
    engine.close()
    assert driver.ended == [engine_module.CLOSE_S]


@pytest.mark.launches
def test_a_driver_that_hangs_is_killed_and_one_that_ends_says_why() -> None:
    deaf = _Driver([sys.executable, "-c", "import time; time.sleep(60)"])
    deaf.ask(Do("1", "a", b"x" * 2**20))  # more than a pipe takes
    began = time.monotonic()
    deaf.end(0.2)
    assert time.monotonic() - began < 10
    ended = _Driver([sys.executable, "-c", "import sys; sys.exit('version\\nmismatch\\n')"])
    assert ended.answers.get(timeout=30) is None
    assert ended.why() == "Ray's driver ended (exit status 1): mismatch"
    ended.end(0)


def test_messages_are_read_whole_or_not_at_all() -> None:
    file = io.BytesIO()
    write(file, TWO)
    data = file.getvalue()
    assert read(io.BytesIO(data)) == msgspec.msgpack.encode(TWO)
    for cut in (0, 3, 8, len(data) - 1):
        assert read(io.BytesIO(data[:cut])) is None


class TaskError(Exception):
    """Stands in for RayTaskError."""

    cause: BaseException


class FakeRay:
    """What a driver uses of the module."""

    def __init__(self, outcome: Any = None) -> None:
        self.outcome = outcome
        self.options: dict[str, object] = {}
        self.exceptions = Fake(RayTaskError=TaskError)
        strategy = Fake(NodeAffinitySchedulingStrategy=lambda node, soft: (node, soft))
        self.util = Fake(scheduling_strategies=strategy)

    def remote(self, function: object) -> Any:
        def with_options(**options: object) -> Any:
            self.options = options
            return Fake(remote=lambda data: ("job", data))

        return Fake(options=with_options)

    def nodes(self) -> list[dict[str, Any]]:
        def node(name: str, alive: bool = True, **resources: float) -> dict[str, Any]:
            return {"NodeID": f"id-{name}", "NodeName": name, "Alive": alive, "Resources": resources}

        return [node("head", CPU=0), node("gone", alive=False, CPU=8), node("a", CPU=4, GPU=2), node("b", CPU=1)]

    def get(self, job: object) -> object:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def cancel(self, job: object, force: bool) -> None:
        assert not force, "a run has to be ended in order"


def answered(ray: FakeRay) -> Answer:
    out = io.BytesIO()
    driver = Driver(ray, out)
    assert driver.nodes() == TWO
    driver.begin(Do("1", "id-a", b"data"))
    driver.end()
    out.seek(0)
    data = read(out)
    assert data is not None
    found: Answer = msgspec.msgpack.decode(data, type=Answer)
    return found


def test_a_job_is_done_once_on_its_node_with_all_its_gpus() -> None:
    ray = FakeRay(("host", 0, b"output", ""))
    assert answered(ray) == Ended("1", Done("host", 0, b"output", ""))
    assert ray.options == {"num_cpus": 1, "num_gpus": 2, "max_retries": 0, "scheduling_strategy": ("id-a", False)}


def test_errors_of_a_job_would_come_again_and_those_of_ray_would_not() -> None:
    error = TaskError("traceback")
    error.cause = ModuleNotFoundError("No module named 'detaudit'", name="detaudit")
    why = "ModuleNotFoundError: No module named 'detaudit'"
    assert answered(FakeRay(error)) == NotDone("1", False, why, "detaudit")
    assert answered(FakeRay(OSError("worker\ndied"))) == NotDone("1", True, "worker died")


def test_nothing_is_reported_to_others_and_no_folder_is_sent() -> None:
    found = without_reports({"RAY_USAGE_STATS_ENABLED": "1", "HOME": "/"})
    assert found == {"HOME": "/", "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}


def test_without_ray_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        connect("", "")
    assert "pip install 'detaudit[ray]'" in caught.value.hint


@pytest.mark.launches
def test_ray_is_imported_by_the_driver_alone() -> None:
    code = "import sys; import detaudit.remote.engines.ray; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
