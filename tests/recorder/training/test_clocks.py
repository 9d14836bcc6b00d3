"""A time that a fit took is recognized by its name and its value together."""

import datetime
import time
from typing import Any

import numpy as np
import pytest

from detaudit.recorder.training import clocks

CLOCKS: dict[str, Any] = {  # a function is asked when the test runs
    "fit_time": 0.1,
    "mean_fit_time": np.array([0.1, 0.2]),
    "refit_time_": 0.3,
    "generation_time": [0.1, 0.2],
    "elapsed_seconds": 0.2,
    "fitTime": 0.1,
    "sec_per_epoch": 0.1,
    "started_at": time.time,
    "start_time_": time.perf_counter,
    "fit_ms": 120.0,
    "score_times_": [0.1, float("nan")],
    "trained_at_": datetime.datetime.now,
}
RESULTS: dict[str, Any] = {
    "mean_lifetime_": 0.1,
    "half_time_": 0.1,
    "arrival_time_": 0.1,
    "event_times_": np.array([0.1]),
    "fit_time": 1e9,
    "duration_": 3000.0,
    "fit_times_": 3,
    "elapsed": "yes",
    "started_at": 5e9,
    "cutoff_": datetime.datetime(2020, 1, 1),
    "time": 0.1,
}


@pytest.mark.parametrize("name", CLOCKS)
def test_a_clock(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(clocks, "spent", 0.5)
    value = CLOCKS[name]
    assert clocks.is_clock(name, value() if callable(value) else value)


@pytest.mark.parametrize("name", RESULTS)
def test_a_result(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(clocks, "spent", 0.5)
    assert not clocks.is_clock(name, RESULTS[name])


@pytest.mark.parametrize("name", ["elapsed", "time", "time_ms", "total_time", "latency_ms", "samples_per_sec", "fps"])
def test_what_a_test_measures_of_itself(name: str) -> None:
    assert clocks.is_measured(name, 0.25)
    assert not clocks.is_measured(name, -1.0)
    assert not clocks.is_measured(name, "text")


@pytest.mark.parametrize("name", ["arrival_time", "lifetime", "mean_lifetime_", "loss", "half_time", "times_seen"])
def test_what_only_sounds_like_it(name: str) -> None:
    assert not clocks.is_measured(name, 0.25)
