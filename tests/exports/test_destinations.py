"""What ``--to`` accepts, without the packages that it needs."""

import sys
from pathlib import Path

import pytest

from detaudit import entry_points
from detaudit.cli import main
from detaudit.cli.report import destination
from detaudit.errors import UnknownNameError, UsageError
from detaudit.model import to_json
from tests.report.test_reporters import AUDITS


@pytest.mark.parametrize("name", entry_points.names(entry_points.DESTINATIONS))
def test_a_package_that_is_missing_is_named_with_the_command_that_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [one for one in sys.modules if one.startswith("detaudit.exports")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError) as found:
        destination(f"{name}:http://127.0.0.1:1" if name == "mlflow" else f"{name}:logs")
    assert found.value.message.startswith(f"--to {name} needs a package that is not installed: ")
    assert found.value.hint == f"Run `pip install 'detaudit[{name}]'` where detaudit is installed."


@pytest.mark.parametrize("text", ["tensorbord:logs", "tensorbord", "TensorBoard:logs"])
def test_an_unknown_destination_is_an_error_with_the_nearest_name(text: str) -> None:
    with pytest.raises(UnknownNameError) as found:
        destination(text)
    assert found.value.hint == "Did you mean 'tensorboard'? Available: mlflow, tensorboard."


def test_a_wrong_destination_is_refused_before_anything_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "audit.json").write_bytes(to_json(AUDITS["nondeterministic"]))
    assert main(["report", str(tmp_path), "--to", "http://me:secret-word@host:5000"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: unknown destination 'http'")
    assert "secret-word" not in shown.err
