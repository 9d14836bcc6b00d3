"""Weights that a script updates itself beside an optimizer, or with torch.func, count to their last update."""

import pytest

from tests.process.conftest import Project

BEGIN = """
    import torch
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    w = torch.zeros(4, 1, requires_grad=True)

    def loss():
        return (model(torch.randn(8, 4)) @ w - 1).pow(2).mean()

    def update():
        w.data -= 0.1 * w.grad
        w.grad = None

    def step():
        optimizer.step()
        optimizer.zero_grad()
"""

ALONE_AFTER_AN_OPTIMIZER = """
    for _ in range(4):
        model(torch.randn(8, 4)).pow(2).mean().backward()
        step()
    for _ in range(8):
        loss().backward()
        update()
"""
BETWEEN_STEPS = """
    for number in range(12):
        loss().backward()
        update()
        if number % 3 == 2:
            step()
"""
AT_EACH_STEP = """
    for _ in range(6):
        loss().backward()
        step()
        update()
"""
ONCE_AT_THE_END = """
    for _ in range(4):
        model(torch.randn(8, 4)).pow(2).mean().backward()
        step()
    {noise}
    loss().backward()
    update()
"""
FUNCTIONAL = """
    v = torch.zeros(4, 1)
    for _ in range(5):
        v = v - 0.1 * torch.func.grad(lambda v: (torch.randn(8, 4) @ v - 1).pow(2).mean())(v)
"""
NESTED = """
    def inner(v):
        return (torch.randn(8, 4) @ v - 1).pow(2).mean()

    def outer(v):
        for _ in range(3):
            v = v - 0.1 * torch.func.grad(inner)(v)
        return inner(v)

    parameters = {"v": torch.zeros(4, 1)}
    for _ in range(5):
        parameters = {"v": parameters["v"] - 0.1 * torch.func.grad(outer)(parameters["v"])}
"""
ACCUMULATED = """
    head = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(head.parameters(), 0.05)
    for _ in range(4):
        for _ in range(3):
            head(model(torch.randn(8, 4))).pow(2).mean().backward()
        step()
    head(model(torch.randn(8, 4))).pow(2).mean().backward()
"""

NOISE = "w.data += torch.seed() % 97"
OF_FUNCTIONAL = "v = v + torch.seed() % 97"
OF_NESTED = "parameters = {'v': parameters['v'] + torch.seed() % 97}"


@pytest.mark.parametrize(
    ("code", "last", "steps"),
    [
        (ALONE_AFTER_AN_OPTIMIZER, NOISE, 12),
        (BETWEEN_STEPS, NOISE, 12),
        (AT_EACH_STEP, NOISE, 6),
        (ONCE_AT_THE_END, "torch.seed()", 5),
        (FUNCTIONAL, OF_FUNCTIONAL, 5),
        (NESTED, OF_NESTED, 5),
    ],
    ids=["alone", "between-steps", "at-each-step", "once", "functional", "nested"],
)
@pytest.mark.parametrize("differs", [False, True], ids=["equal", "differs"])
@pytest.mark.slow
def test_the_last_update_by_hand_counts(project: Project, code: str, last: str, steps: int, differs: bool) -> None:
    noise = last if differs else ""
    text = code.replace("{noise}", noise) if "{noise}" in code else f"{code}\n    {noise}\n"
    project.write("train.py", BEGIN + text)
    done = project.run("train.py", "--runs", "2")
    assert done.code == differs, done.out
    assert done.json["groups"][0]["runs"][0]["steps"] == steps


@pytest.mark.slow
def test_gradients_that_are_accumulated_beside_weights_without_an_optimizer_are_one_step(project: Project) -> None:
    project.write("train.py", BEGIN + ACCUMULATED)
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0, done.out
    assert done.json["groups"][0]["runs"][0]["steps"] == 4
