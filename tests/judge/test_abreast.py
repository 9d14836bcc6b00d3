"""Two runs that go on are compared as far as both have got."""

from pathlib import Path
from typing import Any

from detaudit.judge import live
from detaudit.judge.live import Abreast
from tests.logs import news, row


def event(step: int, digest: str, stage: str = "update", fw: str = "torch", lane: int = 0) -> dict[str, Any]:
    return row(step, stage, digest, fw=fw, lane=lane)


ONE, TWO = Path("1/7.0.jsonl"), Path("2/8.0.jsonl")


def test_the_step_is_that_of_the_first_difference(tmp_path: Path) -> None:
    abreast = Abreast()
    abreast.take(1, ONE, news(tmp_path, *[event(step, f"w{step}") for step in range(1, 6)]))
    abreast.take(2, TWO, news(tmp_path, event(1, "w1"), event(2, "w2")))
    steps = [abreast.step]
    abreast.take(2, TWO, news(tmp_path, event(3, "other")))
    steps.append(abreast.step)
    abreast.take(3, TWO, news(tmp_path, event(1, "other")))
    assert [*steps, abreast.step] == [None, 3, 3]


def test_initial_weights_that_differ_show_after_the_first_step(tmp_path: Path) -> None:
    abreast = Abreast()
    abreast.take(1, ONE, news(tmp_path, event(0, "a", "init"), event(0, "b", "init")))
    abreast.take(2, TWO, news(tmp_path, event(0, "a", "init")))
    steps = [abreast.step]
    abreast.take(2, TWO, news(tmp_path, event(0, "c", "init")))
    assert [*steps, abreast.step] == [None, 1]


def test_what_explains_does_not_end_a_run(tmp_path: Path) -> None:
    abreast = Abreast()
    for run, log in ((1, ONE), (2, TWO)):
        abreast.take(run, log, news(tmp_path, *[event(1, str(run), stage) for stage in ("rng", "batch", "backward")]))
        abreast.take(
            run, log, news(tmp_path, event(1, str(run), "output", "torch inference"), event(1, str(run), fw="sklearn"))
        )
    assert abreast.step is None


def test_several_processes_that_train_are_not_followed(tmp_path: Path) -> None:
    abreast = Abreast()
    abreast.take(1, ONE, news(tmp_path, event(1, "a")))
    abreast.take(1, TWO, news(tmp_path, event(1, "b")))
    abreast.take(2, ONE, news(tmp_path, event(1, "c")))
    assert abreast.step is None
    lanes = Abreast()
    lanes.take(1, ONE, news(tmp_path, event(1, "a"), event(1, "b", lane=1), event(1, "c")))
    lanes.take(2, ONE, news(tmp_path, event(1, "x")))
    assert lanes.step is None


def test_stages_that_alternate_within_a_step_are_counted_each(tmp_path: Path) -> None:
    abreast = Abreast()
    lines = [event(1, "a", "forward"), event(1, "b"), event(1, "c", "forward"), event(1, "d")]
    abreast.take(1, ONE, news(tmp_path, *lines))
    abreast.take(2, TWO, news(tmp_path, *lines))
    assert abreast.step is None


def test_a_second_training_of_a_process_is_not_followed(tmp_path: Path) -> None:
    abreast = Abreast()
    lines = [event(step, f"{training} {step}") for training in "ab" for step in (1, 2)]
    abreast.take(1, ONE, news(tmp_path, *lines))
    abreast.take(2, TWO, news(tmp_path, *lines))
    assert abreast.step is None


def test_memory_is_bounded(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(live, "MOST", 3)
    abreast = Abreast()
    abreast.take(1, ONE, news(tmp_path, *[event(step, f"w{step}") for step in range(1, 10)]))
    assert len(abreast._seen) == 3
    abreast.take(2, TWO, news(tmp_path, event(1, "forgotten")))
    assert abreast.step is None
