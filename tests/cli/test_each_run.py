"""What --verbose says about a run."""

from pathlib import Path
from unittest import mock

import pytest

from detaudit.cli.progress import ProgressLine, finished, started
from detaudit.launch import RunSpec, Slot
from detaudit.launch.plan import BOOTSTRAP
from detaudit.model import Run, Status
from detaudit.model.problems import TimedOut

SLOW = TimedOut(seconds=10, step=1, hung=False)


def a_spec(folder: Path, **fields: object) -> RunSpec:
    values = {
        "argv": ("python", "train.py", "--name", "a b"),
        "cwd": folder,
        "env": {"HOME": "/home/me", "DETAUDIT_LOGS": "/x", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"},
        "folder": folder / "results" / "runs" / "none" / "2",
        "live": folder / "results" / "live",
        "mark": "0",
    }
    return RunSpec(**{**values, **fields})  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def said(spec: RunSpec) -> list[str]:
    """Return what is said of a run of a user whose environment has one variable."""
    with mock.patch("os.environ", {"HOME": "/home/me"}):
        return list(started("none: run 2 of 5", spec))


def test_a_run_is_described_by_what_it_takes_to_repeat_it(tmp_path: Path) -> None:
    assert said(a_spec(tmp_path)) == [
        "none: run 2 of 5: python train.py --name 'a b'",
        "  set: OMP_NUM_THREADS=1 PYTHONHASHSEED=0",
        "  logs: results/runs/none/2",
    ]


def test_a_folder_a_timeout_and_a_slot_of_its_own(tmp_path: Path) -> None:
    slot = Slot(name="slot-1", cpus=(0, 1), devices=("3",))
    spec = a_spec(tmp_path, cwd=Path("/elsewhere"), timeout=5400.0, slot=slot, env={})
    assert said(spec)[1:] == [
        "  in: /elsewhere",
        "  timeout: 1 h 30 min",
        "  unset: HOME",
        "  CPUs: 0, 1",
        "  devices: 3",
        "  logs: results/runs/none/2",
    ]


def test_what_loads_the_recorder_is_left_out(tmp_path: Path) -> None:
    for own, shown in (("", []), ("/mine:/other", ["  set: PYTHONPATH=/mine:/other"])):
        env = {"HOME": "/home/me", "PYTHONPATH": f"{BOOTSTRAP}{f':{own}' if own else ''}"}
        assert said(a_spec(tmp_path, env=env))[1:-1] == shown
    assert said(a_spec(tmp_path, env={"HOME": "/home/me", "PYTHONPATH": "/a:/b"}))[1] == "  set: PYTHONPATH=/a:/b"


def test_secrets_are_left_out(tmp_path: Path) -> None:
    spec = a_spec(tmp_path, argv=("x", "--api-key", "hunter22"), env={"DB_PASSWORD": "hunter22"})
    assert "hunter22" not in "\n".join(said(spec))


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (Run(id=1, status=Status.OK, exit_code=0, wall_s=63.2, steps=12000), "finished after 1 min 03 s, 12,000 steps"),
        (
            Run(id=1, status=Status.TIMEOUT, exit_code=None, wall_s=10, steps=1, errors=(SLOW,)),
            "timed out after 10.0 s, 1 step (timed out after 10 s, at step 1)",
        ),
    ],
)
def test_how_a_run_ended(run: Run, expected: str) -> None:
    assert finished("none: run 1 of 2", run) == f"none: run 1 of 2: {expected}"


@pytest.mark.parametrize("silent", [False, True])
def test_it_is_printed_without_a_terminal_and_with_quiet(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, silent: bool
) -> None:
    with ProgressLine(silent, verbose=True) as line:
        line.group_started("none", 2)
        line.run_started(1, None)
        line.run_prepared(1, a_spec(tmp_path))
        line.run_finished(Run(id=1, status=Status.OK, exit_code=0, wall_s=3.2, steps=36))
    err = capsys.readouterr().err.splitlines()
    assert err[0].startswith("none: run 1 of 2: python train.py")
    assert err[-1] == "none: run 1 of 2: finished after 3.2 s, 36 steps"
