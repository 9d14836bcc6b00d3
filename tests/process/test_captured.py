"""What a run prints is read to the last byte, whatever it does with its output."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import msgspec
import pytest

from detaudit.errors import StorageError
from detaudit.launch import EnoughError, RunSpec, local
from detaudit.launch.local import LocalLauncher, Log, was_cut
from detaudit.model.outputs import STDOUT, OutputKind
from detaudit.outputs import text
from detaudit.outputs.text import Recorder


def run(
    tmp_path: Path, script: str, name: str = "1", tick: Callable[[], None] = lambda: None, timeout: float | None = None
) -> Path:
    """Run a script, and return the folder of the run."""
    mark = f"log{os.getpid()}{name}"
    spec = RunSpec(
        argv=(sys.executable, "-c", script),
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "DETAUDIT_MARK": mark},
        folder=tmp_path / "runs" / name,
        live=tmp_path / f"live-{name}",
        mark=mark,
        timeout=timeout,
    )
    LocalLauncher().launch(spec, tick)
    return spec.folder


def lines(folder: Path) -> tuple[str, ...]:
    stdout, _ = text.load(folder)
    assert stdout is not None
    return stdout.lines


def test_what_a_run_prints_is_beside_its_logs(tmp_path: Path) -> None:
    folder = run(tmp_path, "import sys; print('a\\rb'); print('\\x1b[31mred\\x1b[0m', file=sys.stderr)")
    stdout, stderr = text.load(folder)
    assert stdout is not None
    assert stderr is not None
    assert (stdout.lines, stdout.count, stdout.size, stderr.lines) == (("b",), 1, 4, ("red",))
    assert (folder / "stdout.log").read_bytes() == b"a\rb\n"
    assert (folder / text.NAME).stat().st_mode & 0o777 == 0o600


def test_a_script_that_opens_its_stdout_again_overwrites_nothing(tmp_path: Path) -> None:
    script = "print('first', flush=True)\nwith open('/dev/stdout', 'w') as f: f.write('second\\n')\nprint('third')"
    folder = run(tmp_path, script)
    assert lines(folder) == ("first", "second", "third")
    assert (folder / "stdout.log").read_text() == "first\nsecond\nthird\n"


def test_the_last_words_of_a_run_that_is_killed_are_kept(tmp_path: Path) -> None:
    script = "import os\nos.write(1, b'x' * 200000 + b'\\nlast')\nos.kill(os.getpid(), 9)"
    assert lines(run(tmp_path, script))[-1] == "last"


def test_a_process_that_outlives_the_run_and_holds_its_output_is_not_awaited(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys\nprint('out', flush=True)\nsubprocess.Popen(['sleep', '60'], start_new_session=True)"
    )
    started = time.monotonic()
    assert lines(run(tmp_path, script)) == ("out",)
    assert time.monotonic() - started < 20


def test_a_stranger_that_holds_the_pipe_and_goes_on_printing_is_not_awaited(tmp_path: Path) -> None:
    with mock.patch.object(local, "_DRAIN_S", 0.2):
        with Log(tmp_path / "log", Recorder()) as log:
            stranger = subprocess.Popen(["yes"], stdout=log.input)
            log.started()
            time.sleep(0.1)
        stranger.wait(10)
    assert stranger.returncode == -signal.SIGPIPE
    assert log.text is not None
    assert log.text.count > 0


def test_binary_garbage_is_kept_as_it_came(tmp_path: Path) -> None:
    script = "import os, sys; data = bytes(range(256)) * 20; os.write(1, data)"
    folder = run(tmp_path, script)
    assert (folder / "stdout.log").read_bytes() == bytes(range(256)) * 20
    assert len(lines(folder)) > 1


def test_a_run_that_is_ended_leaves_what_it_printed(tmp_path: Path) -> None:
    def enough() -> None:
        if (tmp_path / "printed").exists():
            raise EnoughError

    script = "import pathlib, time\nprint('so far', flush=True)\npathlib.Path('printed').touch()\ntime.sleep(60)"
    assert lines(run(tmp_path, script, tick=enough)) == ("so far",)


def test_an_interrupted_run_leaves_its_log(tmp_path: Path) -> None:
    def interrupt() -> None:
        if (tmp_path / "printed").exists():
            raise KeyboardInterrupt

    script = "import pathlib, time\nprint('so far', flush=True)\npathlib.Path('printed').touch()\ntime.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, script, tick=interrupt)
    assert (tmp_path / "runs" / "1" / "stdout.log").read_text() == "so far\n"


def test_a_full_disk_ends_the_run(tmp_path: Path) -> None:
    def full(self: object, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        mock.patch.object(local._BoundedFile, "write", full),
        pytest.raises(StorageError, match="No space left"),
    ):
        run(tmp_path, "import time\nprint('x', flush=True)\ntime.sleep(60)")


LONG = """
import sys
out = sys.stdout
for i in range(1_000_000):
    out.write("step %07d loss 0.6931471805599453 accuracy 0.5000000000000 time 0.01s\\n" % i)
    if i == 700_000:
        out.write("{}\\n")
"""


@pytest.mark.slow
def test_a_difference_in_what_the_log_does_not_keep_is_found(tmp_path: Path) -> None:
    folders = [run(tmp_path, LONG.format(f"sum {number}"), str(number)) for number in (1, 2)]
    assert all(was_cut(folder / "stdout.log") for folder in folders)
    assert all((folder / "stdout.log").stat().st_size <= local.LIMIT for folder in folders)
    (a, _), (b, _) = map(text.load, folders)
    assert a is not None
    assert b is not None
    (found,) = text.compare(a, b, STDOUT, None, None)
    assert (found.kind, found.at) == (OutputKind.VALUE, "lines 700,001 to 701,000")
    assert text.compare(a, msgspec.structs.replace(a, size=0), STDOUT, None, None) == []


def test_runs_at_once_have_their_own_output(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        script = "for i in range(2000): print('{}' * 20, flush=i % 100 == 0)"
        folders = list(pool.map(lambda n: run(tmp_path, script.format(n), str(n)), range(4)))
    for number, folder in enumerate(folders):
        assert set(lines(folder)) == {str(number) * 20}
        assert len(lines(folder)) == 2000
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("live")]
