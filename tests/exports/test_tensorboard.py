"""Event files, read with TensorBoard's own reader."""

import json
import math
import os
import resource
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from detaudit.cli.report import destination
from detaudit.errors import StorageError, UsageError
from tests.exports.audits import a_run, an_audit
from tests.process.conftest import Project
from tests.words import different

pytestmark = [pytest.mark.exports, pytest.mark.launches]

FILE = "events.out.tfevents.detaudit"
FOLDER = "train.py/2026-11-23-01234567"


def read(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    found.Reload()
    return found


def scalars(folder: Path, tag: str = "loss") -> dict[int, float]:
    return {one.step: one.value for one in read(folder).Scalars(tag)}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_audit_is_read_back(audited: Project) -> None:
    done = audited.detaudit("report", "out", "--to", "tensorboard:logs")
    assert done.code == 0
    (audit,) = (audited.folder / "logs/train.py").iterdir()
    assert f"exported to logs/train.py/{audit.name}\n" == done.err
    own = read(audit)
    (text,) = own.Tensors("report")
    assert text.tensor_proto.string_val[0].decode().startswith(f"**nondeterministic**: {different(3, 3)}")
    assert own.SummaryMetadata("report").plugin_data.plugin_name == "text"
    assert sorted(path.name for path in (audit / "none").iterdir()) == ["run-1", "run-2", "run-3"]
    (group,) = json.loads((audited.folder / "out/audit.json").read_text())["groups"]
    for run in group["runs"]:
        found = scalars(audit / "none" / f"run-{run['id']}")
        assert sorted(found) == list(range(1, 30))
        assert found[29] == pytest.approx(run["ranks"][0]["final_loss"], rel=1e-7)
    apart = scalars(audit / "none/run-2", "loss_distance")
    assert next(step for step, distance in apart.items() if distance) == 5


def test_a_second_export_replaces_its_own_files_only(tmp_path: Path) -> None:
    theirs = tmp_path / FOLDER / "none/run-1/events.out.tfevents.1700000000.host.1.0"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"theirs")
    to = destination(f"tensorboard:{tmp_path}")
    assert to.send([an_audit()], {}) == [str(tmp_path / FOLDER)]
    first = files(tmp_path)
    to.send([an_audit()], {})
    assert files(tmp_path) == first
    to.send([an_audit(note="another"), an_audit([a_run(1), a_run(2), a_run(3, steps=9)])], {})
    assert theirs.read_bytes() == b"theirs"
    assert set(files(tmp_path)) == {*first, f"{FOLDER}/none/run-3/{FILE}"}
    assert len(scalars(tmp_path / FOLDER / "none/run-3")) == 9


def test_losses_that_are_not_finite_are_read_back(tmp_path: Path) -> None:
    run = a_run(1)
    values = [(1, math.nan), (2, math.inf), (3, 1e300), (4, 0.5)]
    odd = replace(run, curves={"loss": values})
    destination(f"tensorboard:{tmp_path}").send([an_audit([odd])], {})
    found = scalars(tmp_path / FOLDER / "none/run-1")
    assert math.isnan(found[1])
    assert (found[2], found[3], found[4]) == (math.inf, math.inf, 0.5)


def test_no_name_leaves_the_folder(tmp_path: Path) -> None:
    run = a_run(1)
    odd = replace(run, recipe="../../../x")
    audit = an_audit([odd])
    hostile = replace(audit, script="/etc/../..", started="../../../..")
    destination(f"tensorboard:{tmp_path / 'logs'}").send([hostile], {})
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]
    assert len(files(tmp_path / "logs")) == 2


def test_neither_tensorflow_nor_torch_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from detaudit.cli.report import destination; from tests.exports.audits import an_audit\n"
        f"destination('tensorboard:{tmp_path}').send([an_audit()], {{}})\n"
        "print(sorted({'tensorflow', 'torch'} & set(sys.modules)))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("place", ["", "s3://bucket/logs", "gs://bucket"])
def test_what_is_no_folder_is_refused(place: str) -> None:
    with pytest.raises(UsageError, match="does not name a folder"):
        destination(f"tensorboard:{place}")


def test_a_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    with pytest.raises(StorageError) as found:
        destination(f"tensorboard:{tmp_path / 'logs'}").send([an_audit()], {})
    assert found.value.hint.endswith("hoose another folder.")


def test_a_full_disk_is_an_error_and_leaves_the_old_files(audited: Project) -> None:
    words = audited.command("report", "out", "--to", "tensorboard:logs")
    assert subprocess.run(words, cwd=audited.folder, capture_output=True, check=False).returncode == 0
    first = files(audited.folder / "logs")
    done = subprocess.run(
        words, cwd=audited.folder, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )  # fmt: skip
    assert done.returncode == 125
    assert f"nondeterministic: {different(3, 3)}" in done.stdout
    assert done.stderr.startswith("error: cannot write logs/train.py/")
    assert files(audited.folder / "logs") == first


def test_the_files_have_the_mode_of_any_new_file(tmp_path: Path) -> None:
    destination(f"tensorboard:{tmp_path}").send([an_audit()], {})
    mask = os.umask(0)
    os.umask(mask)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob(FILE)}
    assert modes == {0o666 & ~mask}
