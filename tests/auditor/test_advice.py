"""Next steps are commands without secrets."""

from dataclasses import replace
from pathlib import Path

from detaudit.auditor import advice
from detaudit.launch.target import Target
from tests.auditor.fakes import settings


def test_the_command_that_resumes_asks_for_the_arguments_if_they_had_secrets(tmp_path: Path) -> None:
    plain = settings(tmp_path)
    (step,) = advice.resume_step(plain)
    assert step.command == f"detaudit bisect --resume {plain.out}"
    (step,) = advice.resume_step(replace(plain, target=Target(("--api-key=abc", "--lr", "1"), script="train.py")))
    assert step.command == f"detaudit bisect --resume {plain.out} -- '--api-key=***' --lr 1"


def test_other_commands_name_no_secret(tmp_path: Path) -> None:
    asked = replace(settings(tmp_path), target=Target(("--token", "abc"), script="train.py"))
    assert advice.command(asked).endswith(" -- --token '***'")
