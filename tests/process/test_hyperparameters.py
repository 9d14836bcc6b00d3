"""A hyperparameter that differs is named, with the line that set it, and does not decide by itself."""

import pytest

from tests.process.conftest import Project

BEGIN = """
    import random
    import torch
    torch.manual_seed(0)
    number = {number}
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
"""
LOOP = """
    for step in range(4):
        model(torch.randn(8, 4)).pow(2).mean().backward()
        {before}
        optimizer.step()
        optimizer.zero_grad()
        {after}
"""
MADE = "    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=number)\n" + LOOP.format(before="", after="")
SCHEDULED = (
    "    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 1 / (1 + n * number))\n"
    + LOOP.format(before="", after="scheduler.step()")
)
ASSIGNED = LOOP.format(before='if step == 2: optimizer.param_groups[0]["lr"] = 0.03 * number', after="")

SYSTEM = "random.SystemRandom().random()"


@pytest.mark.full
@pytest.mark.parametrize(
    ("code", "name", "step", "line"),
    [(MADE, "momentum", 1, "torch.optim.SGD(model.parameters(), 0.1, momentum=number)"),
     pytest.param(SCHEDULED, "lr", 2, "scheduler.step()", marks=pytest.mark.slow),
     pytest.param(ASSIGNED, "lr", 3, 'param_groups[0]["lr"]', marks=pytest.mark.slow)],
    ids=["made", "scheduled", "assigned"],
)  # fmt: skip
@pytest.mark.parametrize("number", ["0.5", SYSTEM], ids=["equal", "differs"])
def test_what_differs_is_named(project: Project, code: str, name: str, step: int, line: str, number: str) -> None:
    path = project.write("train.py", BEGIN.replace("{number}", number) + code)
    done = project.run("train.py", "--runs", "2")
    assert done.code == (number == SYSTEM), done.out
    if number != SYSTEM:
        return
    group = done.json["groups"][0]
    found = group["first_difference"]
    assert (found["step"], found["stage"]) == (step, "hyperparameters")
    assert found["site"].startswith(f"{name} 0.")
    assert found["explanation"]["likely"] == ["hyperparameters"]
    (place,) = [source["line"] for source in group["sources"] if source["kind"] == "hyperparameter"]
    assert line in path.read_text().splitlines()[place - 1]


@pytest.mark.full
def test_one_that_has_no_effect_does_not_decide(project: Project) -> None:
    last = "    optimizer.param_groups[0]['lr'] = number\n    optimizer.step()\n"  # without gradients
    text = BEGIN.replace("{number}", SYSTEM) + LOOP.format(before="", after="") + last
    project.write("train.py", text)
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0, done.out


@pytest.mark.slow
def test_a_trace_names_the_line_that_set_it(project: Project) -> None:
    project.write("train.py", BEGIN.replace("{number}", SYSTEM) + ASSIGNED)
    done = project.detaudit("trace", "train.py", "--runs", "2", "--format", "json")
    culprit = done.json["culprit"]
    assert culprit["cause"] == "hyperparameter", culprit


SEARCHED = """
    import numpy as np
    import torch
    torch.manual_seed(0)
    {drawn}
    model = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Linear(width, 1))
    optimizer = torch.optim.SGD(model.parameters(), rate)
"""


@pytest.mark.slow
def test_what_draws_the_size_of_a_model_comes_before_a_rate_that_differs_too(project: Project) -> None:
    drawn = "rng = np.random.default_rng(); width, rate = int(rng.integers(8, 10**4)), rng.uniform()"
    project.write("train.py", SEARCHED.replace("{drawn}", drawn) + LOOP.format(before="", after=""))
    done = project.run("train.py", "--runs", "2")
    group = done.json["groups"][0]
    assert group["first_difference"]["stage"] == "init"
    assert [one["kind"] for one in group["sources"]] == ["unseeded", "hyperparameter"]
