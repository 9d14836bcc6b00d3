"""What a worker stores of a run, and in which order."""

from pathlib import Path
from unittest import mock

import pytest

from detaudit.errors import StorageError
from detaudit.model.stage import Records
from detaudit.remote.archive import logs_of, name_of, read_attempt
from detaudit.remote.plan import Plan
from detaudit.remote.storage import open_storage
from detaudit.remote.worker import Worker, store
from tests.remote.attempts import all_stored, attempt, plan


def worker(tmp_path: Path, of: Plan) -> Worker:
    """Return a worker whose runs are made up."""
    made = Worker(of, tmp_path, mock.Mock(), mock.Mock(), "mark", scratch=tmp_path)

    def archive(number: int, attempt_id: str, into: Path) -> list[Path]:
        return all_stored(into.parent, attempt(of, number, attempt_id), steps=600)

    object.__setattr__(made, "archive", archive)
    return made


@pytest.mark.parametrize("records", Records)
def test_a_run_that_is_seen_has_its_event_logs(tmp_path: Path, records: Records) -> None:
    made, storage = plan(records=records), open_storage(str(tmp_path / "shared"))
    with mock.patch.object(storage, "put_new", side_effect=storage.put_new) as put:
        assert store(worker(tmp_path, made), 1, storage).run is not None
    names = [call.args[0] for call in put.call_args_list]
    found = read_attempt(tmp_path / "shared" / name_of(made, 1))
    assert names == ([logs_of(found)] if records is Records.TREES else []) + [name_of(made, 1)]
    logs = "logs/7.0.jsonl"
    if records is Records.TREES:
        assert list(found.files) == ["logs/7.0.blocks", logs, "stderr.log", "stdout.log"]
        assert list(read_attempt(tmp_path / "shared" / names[0]).files) == ["logs/7.0.rows"]
    else:
        assert list(found.files) == [logs, "logs/7.0.rows", "stderr.log", "stdout.log"]
    assert [path.name for path in tmp_path.iterdir()] == ["shared"], "nothing is left in the scratch folder"


def test_a_run_that_cannot_be_stored_is_kept_with_its_event_logs(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "shared"))
    with (
        mock.patch.object(storage, "put_new", side_effect=[True, StorageError("no space", "Free some.")]),
        pytest.raises(StorageError, match="no space") as caught,
    ):
        store(worker(tmp_path, plan(records=Records.TREES)), 1, storage)
    logs, archive = (next(tmp_path.rglob(f"*.{end}")) for end in ("logs", "detaudit"))
    assert f"{logs}, then {archive}" in caught.value.hint
