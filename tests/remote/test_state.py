"""Runs start from the same state wherever they are done."""

import os
import resource
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.remote import plan as state
from tests.remote.attempts import plan

ENGINES = {
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "6640",
    "PARSL_WORKER_RANK": "3",
    "SLURM_JOB_ID": "12345",
    "RAY_JOB_ID": "1",
    "TMPDIR": "/scratch/job-12345",
    "PYTHONBREAKPOINT": "ray.util.rpdb.set_trace",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "SSH_CONNECTION": "10.0.0.1 22",
}
"""Variables of schedulers and engines, some of which change results; measured with real ones."""


def test_nothing_of_what_called_the_worker_reaches_a_run() -> None:
    found = state.variables(plan(), {**ENGINES, "PATH": "/bin", "HOME": "/root"})
    assert not {*found} & {*ENGINES}
    assert (found["PATH"], found["HOME"]) == ("/bin", "/root")


def test_the_plan_decides_about_settings_that_change_results() -> None:
    here = {"OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": "0", "SECRET": "x", "PATH": "/bin"}
    made = plan(variables=state.planned_variables(here))
    found = state.variables(made, {**ENGINES, "CUDA_VISIBLE_DEVICES": "5", "PATH": "/usr/bin"})
    assert found["OMP_NUM_THREADS"] == "2"
    assert found["CUDA_VISIBLE_DEVICES"] == "5", "a scheduler hands out devices"
    assert "SECRET" not in found


def test_variables_that_are_passed_are_those_of_the_machine() -> None:
    found = state.variables(plan(passed=("DATA_DIR",), variables={"MODE": "x"}), {"DATA_DIR": "/data", "PATH": "/bin"})
    assert (found["DATA_DIR"], found["MODE"]) == ("/data", "x")


@given(st.dictionaries(st.sampled_from((*state.OWN, *ENGINES, "DATA")), st.text(max_size=5)))
def test_there_are_equally_many_everywhere(env: dict[str, str]) -> None:
    made = plan(passed=("DATA", "HOME"))
    assert len(state.variables(made, env)) == len(state.variables(made, {}))


@pytest.mark.launches
def test_the_process_is_reset() -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            _, hard = resource.getrlimit(resource.RLIMIT_STACK)
            resource.setrlimit(resource.RLIMIT_STACK, (min(2**24, hard) if hard > 0 else 2**24, hard))
            state.reset_process()
            ok = resource.getrlimit(resource.RLIMIT_STACK)[0] == state.STACK
            code = 0 if ok and not signal.pthread_sigmask(signal.SIG_BLOCK, ()) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
