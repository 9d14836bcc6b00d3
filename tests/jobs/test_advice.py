"""Next steps are commands without secrets."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from detaudit import advice
from detaudit.audit import Auditor
from detaudit.config.flags import load_catalogue
from detaudit.config.recipes import load_recipe
from detaudit.launch.target import Target
from detaudit.model import Purpose, Stage
from detaudit.runner import Observer
from tests.fakes import FakeLauncher, hello, run, settings, training


def test_the_command_that_resumes_asks_for_the_arguments_if_they_had_secrets(tmp_path: Path) -> None:
    plain = settings(tmp_path)
    (step,) = advice.resume_step(plain)
    assert step.command == f"detaudit bisect --resume {plain.out}"
    (step,) = advice.resume_step(replace(plain, target=Target(("--api-key=abc", "--lr", "1"), script="train.py")))
    assert step.command == f"detaudit bisect --resume {plain.out} -- '--api-key=***' --lr 1"


def test_other_commands_name_no_secret(tmp_path: Path) -> None:
    asked = replace(settings(tmp_path), target=Target(("--token", "abc"), script="train.py"))
    assert advice.command(asked).endswith(" -- --token '***'")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (Target((), script="train.py"), ["detaudit run train.py --python PATH/TO/python"]),
        (Target(("python3", "train.py")), ["detaudit run -- PATH/TO/python train.py"]),
        (Target(("torchrun", "train.py")), []),
    ],
    ids=["script", "python", "command"],
)
def test_a_missing_module_asks_for_a_different_python_where_it_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: Target, expected: list[str]
) -> None:
    monkeypatch.setattr(advice, "other_python", lambda cwd, python: "")
    failed = run([hello()], exit_code=1, stderr="ModuleNotFoundError: No module named 'torch'\n")
    asked = replace(settings(tmp_path), target=target)
    audit = Auditor(asked, FakeLauncher(failed, failed), Observer()).run()
    steps = [step.command for step in audit.next_steps if step.purpose is Purpose.USE_TRAINING_PYTHON]
    assert steps == expected


def test_ranks_that_differ_at_once_ask_for_what_each_computed(tmp_path: Path) -> None:
    asked = replace(settings(tmp_path, runs=2), target=Target(("torchrun", "train.py")))
    audit = Auditor(asked, FakeLauncher(run(training()), run(training("other"))), Observer()).run()
    (group,) = audit.groups
    found = group.first_difference
    assert found is not None

    def purposes(**changed: Any) -> list[Purpose]:
        spread = structs.replace(group, first_difference=structs.replace(found, **changed))
        return [step.purpose for step in advice.next_steps(asked, [spread])]

    assert Purpose.FIND_RANK not in purposes()
    assert purposes(also=(1,))[0] is Purpose.FIND_RANK
    assert Purpose.FIND_RANK not in purposes(also=(1,), stage=Stage.INIT)
    spread = structs.replace(group, first_difference=structs.replace(found, also=(1,)))
    assert advice.next_steps(asked, [spread])[0].command == "detaudit run --runs 2 --stages all -- torchrun train.py"
    known = structs.replace(spread, stages=(*group.stages, Stage.BACKWARD))
    assert Purpose.FIND_RANK not in [step.purpose for step in advice.next_steps(asked, [known])]


@pytest.mark.parametrize(
    ("text", "recipe", "vary", "expected"),
    [
        ("import os\nnames = os.listdir('.')\n", "none", (), True),
        ("import os\nnames = os.listdir('.')\n", "none", ("all",), False),
        ("import os\nnames = os.listdir('.')\n", "all", (), False),
        ("names = sorted(f())\n", "none", (), False),
    ],
)
def test_after_runs_that_match_what_the_script_reads_of_its_machine_is_varied(
    tmp_path: Path, text: str, recipe: str, vary: tuple[str, ...], expected: bool
) -> None:
    asked = replace(settings(tmp_path, recipe, runs=2), vary=vary)
    (asked.cwd / "train.py").write_text(text)
    read = {"k": "settings", "values": {}, "environ": {}, "files": [str(asked.cwd / "train.py")], "versions": {}}
    lines = training()
    same = run([*lines[:2], read, *lines[2:]])
    audit = Auditor(asked, FakeLauncher(same, same), Observer()).run()
    steps = [step.command for step in audit.next_steps if step.purpose is Purpose.VARY]
    assert steps == (["detaudit run train.py --runs 2 --vary all --python python"] if expected else [])


@pytest.mark.parametrize(
    ("recipes", "verb", "expected"),
    [
        (("none",), "trace", ""),
        (("seeds",), "trace", " --recipe seeds"),
        (("seeds", "all"), "trace", " --recipe all"),  # the first that differs
        (("none", "seeds"), "run", " --recipe none --recipe seeds --flag python-counted-clock"),
        (("seeds",), "run", " --recipe seeds --flag python-counted-clock"),
    ],
)
def test_what_follows_from_a_recipe_is_asked_of_the_same_recipe(
    tmp_path: Path, recipes: tuple[str, ...], verb: str, expected: str
) -> None:
    catalogue, clock = load_catalogue(), ["python-counted-clock"] if verb == "run" else []
    loaded = tuple(load_recipe(name, catalogue, add=clock) for name in recipes)
    asked = replace(settings(tmp_path, runs=2), recipes=loaded, isolate=verb == "trace")
    runs = [run(training()), run(training())] * (len(recipes) - 1) + [run(training()), run(training("other"))]
    audit = Auditor(asked, FakeLauncher(*runs), Observer()).run()
    steps = advice.next_steps(asked, audit.groups, leftovers=["state.pt"])
    wanted = Purpose.TRACE if verb == "trace" else Purpose.ISOLATE
    (step,) = [step.command for step in steps if step.purpose is wanted]
    words = "detaudit trace train.py" if verb == "trace" else "detaudit run train.py --runs 2"
    assert step.startswith(f"{words}{expected} --python python")
