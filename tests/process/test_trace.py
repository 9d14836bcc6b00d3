"""detaudit trace as a real process: the line, the operation and the tensors, or why there is no culprit."""

from pathlib import Path

import numpy as np
import pytest

from tests.process.conftest import Project
from tests.words import different, same

RACE = """
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(4)  # so that they race on a single processor too
    to = torch.randint(0, 500, (200_000,))
    x, y = torch.randn(200_000, 8), torch.randn(500, 1)
    model = nn.ModuleDict({"encoder": nn.Linear(8, 8), "head": nn.Linear(8, 1)})
    for _ in range(4):
        summed = torch.zeros(500, 8).index_put_((to,), model["encoder"](x), accumulate=True) / 20
        F.mse_loss(model["head"](summed), y).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.002 * p.grad
                p.grad = None
"""

GRADIENT_DESCENT = """
    import os, random, detaudit, numpy as np
    x = np.linspace(0, 1, 200).reshape(50, 4)
    HERE
    w = np.zeros(4)
    for _ in range(5):
        w -= 0.1 * (x * order[:, None]).T @ (x @ w - 1) / 50
        detaudit.record(loss=float(w.sum()), weights=w)
"""


def script(here: str) -> str:
    return GRADIENT_DESCENT.replace("HERE", here)


def line_of(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


@pytest.mark.full
def test_a_race_is_reported_with_its_operation_its_line_and_its_tensors(project: Project) -> None:
    path = project.write("train.py", RACE)
    kept = ("--dump", "kept/two.npz", "--repro", "race")
    done = project.detaudit("trace", "train.py", "--format", "json", *kept, "--out", "results")
    assert done.code == 1, done.err
    found = done.json["culprit"]
    assert (found["file"], found["line"]) == ("train.py", line_of(path, "index_put_"))
    ran = found["operation"]
    assert (ran["name"], found["how"], found["cause"]) == ("aten.index_put_.default", "output", "kernel")
    assert ran["inputs_equal"] is True
    assert [fix["flag"] for fix in found["flags"]] == ["torch-deterministic-algorithms"]
    tensor = ran["tensor"]
    assert (tensor["dtype"], tensor["shape"], tensor["difference"]["total"]) == ("float32", [500, 8], 4000)
    with np.load(project.folder / "kept" / "two.npz") as kept:
        assert int((kept["a"] != kept["b"]).sum()) == tensor["difference"]["mismatched"]
    replay = ran["replay"]
    assert (replay["own"]["verdict"], replay["own"]["mode"]) == ("races", "fixes")
    assert replay["gradient"]["verdict"] == "deterministic"
    assert not list((project.folder / "results").rglob("*.storage*.bin"))
    script = project.folder / "race" / "repro.py"
    assert "aten.index_put_.default" in script.read_text()
    assert "train.py" not in script.read_text()
    again = project.detaudit("report", "results")
    assert "replayed: it races by itself\n" in again.out
    place = f"train.py:{found['line']} (aten.index_put_.default) at step {found['step']} ({found['stage']})"
    assert f"culprit: {place}, cause: nondeterministic kernel\n" in again.out
    assert "identical inputs, different output\n" in again.out
    assert "fix with --flag torch-deterministic-algorithms\n" in again.out


LATE = """
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.head = nn.Linear(8, 8), nn.Linear(8, 1)

        def forward(self, x, late):
            x = self.encoder(x)
            if late:
                return self.head(torch.zeros(500, 8).index_put_((to,), x, accumulate=True) / 20)
            return self.head(x.view(500, -1, 8).sum(1) / 400)

    torch.manual_seed(0)
    torch.set_num_threads(4)
    to = torch.randint(0, 500, (200_000,))
    x, y = torch.randn(200_000, 8), torch.randn(500, 1)
    model = Graph()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.002)
    for step in range(1, 5):
        optimizer.zero_grad()
        F.mse_loss(model(x, step >= 3), y).backward()
        optimizer.step()
"""


@pytest.mark.slow
def test_the_user_selects_the_steps_and_the_module_on_the_cpu(project: Project) -> None:
    path = project.write("train.py", LATE)
    chosen = ("--from-step", "3", "--window", "2", "--on-cpu", "encoder")
    done = project.detaudit("trace", "train.py", "--no-replay", *chosen, "--format", "json")
    assert done.code == 1, done.err
    found, first = done.json["culprit"], done.json["passes"][0]
    assert found["step"] in (3, 4)  # on a busy machine, the threads may add in the same order at step 3
    assert found["line"] == line_of(path, "index_put_")
    assert (first["level"], first["first_step"], first["last_step"]) == ("ops", 3, 4)
    (flag,) = done.json["groups"][0]["flags"]
    assert (flag["id"], flag["state"]) == ("torch-on-cpu=encoder", "applied")


RANKS = """
    import os, tempfile
    import numpy as np
    import torch, torch.distributed as dist
    from torch import nn

    def train(rank, meeting):
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=f"file://{meeting}/gloo", rank=rank, world_size=2)
        torch.manual_seed(0)
        model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        generator = np.random.default_rng(rank)
        for step in range(4):
            if rank == 1 and step == 1:
                generator = np.random.default_rng()  # without a seed
            x = torch.from_numpy(generator.normal(size=(8, 4)).astype("f4"))
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        os._exit(0)  # taking the group apart can deadlock

    if __name__ == "__main__":
        with tempfile.TemporaryDirectory() as meeting:
            torch.multiprocessing.spawn(train, (meeting,), nprocs=2)
"""


@pytest.mark.slow
def test_the_rank_where_runs_diverge_is_named(project: Project) -> None:
    path = project.write("train.py", RANKS)
    done = project.detaudit("trace", "train.py", "--format", "json")
    assert done.code == 1, done.err
    found = done.json["culprit"]
    assert (found["rank"], found["step"], found["cause"]) == (1, 2, "seed")
    assert (found["file"], found["line"]) == ("train.py", line_of(path, "without a seed"))


def test_matching_runs_leave_nothing_to_trace(project: Project, seeded: str) -> None:
    done = project.detaudit("trace", seeded, "--runs", "2")
    assert done.code == 0
    assert f"nothing to trace: {same()}\n" in done.out


def test_what_trains_nothing_is_run_as_often_as_what_trains(project: Project) -> None:
    project.write("score.py", "import json\njson.dump({'score': 3.5}, open('score.json', 'w'))\n")
    done = project.detaudit("trace", "score.py", "--runs", "4")
    assert done.code == 125
    assert "5 runs in total\n" in done.out, "one to see that nothing is trained, and four to compare"


def test_a_differing_variable_is_named_without_a_hooked_framework(project: Project) -> None:
    path = project.write("train.py", script("order = np.frombuffer(os.urandom(50), 'u1') / 255"))
    done = project.detaudit("trace", "train.py", "--format", "json")
    found = done.json["culprit"]
    assert (found["file"], found["line"]) == ("train.py", line_of(path, "os.urandom"))
    assert found["cause"] == "seed"


def test_a_differing_value_without_a_known_source_is_reported_by_its_variable(project: Project) -> None:
    path = project.write("train.py", script("order = np.full(50, float(os.stat('/proc/self').st_ctime_ns % 1000))"))
    done = project.detaudit("trace", "train.py", "--format", "json", "--out", "results")
    found = done.json["culprit"]
    assert (found["file"], found["line"]) == ("train.py", line_of(path, "st_ctime_ns"))
    assert (found["how"], found["name"], found["source"]) == ("variable", "order", None)
    shown = project.detaudit("report", "results")
    assert "  order has a different value\n" in shown.out


def test_runs_that_take_different_code_paths_diverge_at_a_line(project: Project) -> None:
    path = project.write(
        "train.py",
        """
        import os, detaudit
        w = [1.0]
        for step in range(2 + os.getpid() % 7919 % 50):
            w = [w[0] * 0.9]
            detaudit.record(loss=w[0], weights=w)
        """,
    )
    done = project.detaudit("trace", "train.py", "--format", "json", "--runs", "9")
    found = done.json["culprit"]
    assert (found["how"], found["line"]) == ("control-flow", line_of(path, "for step"))


def test_an_edit_that_fixes_it_is_shown(project: Project) -> None:
    project.write("train.py", script("order = np.random.default_rng().random(50)"))
    done = project.detaudit("trace", "train.py")
    assert f"nondeterministic: {different()}" in done.out, "the one that was ended counts"
    assert "+ order = np.random.default_rng(0).random(50)" in done.out


def test_what_a_run_is_called_is_no_culprit_of_a_result_that_differs(project: Project) -> None:
    text = """
        import json, random, uuid, training
        name = uuid.uuid4().hex
        training.train(seed=1)
        score = random.Random().random()
        json.dump({"run_id": name, "score": score}, open("metrics.json", "w"))
        """
    path = project.write("train.py", text)
    found = project.detaudit("trace", "train.py", "--format", "json").json["culprit"]
    assert (found["file"], found["line"]) == ("train.py", line_of(path, "Random()"))


UNSUPPORTED = "error: detaudit trace does not support --stages\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--stages", "init"), UNSUPPORTED),
        (("--runs", "1"), "1 is not at least 2"),
        (("--flag", "torch-sed"), "torch-seed"),
    ],
)
def test_unsupported_options_are_refused(project: Project, seeded: str, options: tuple[str, ...], message: str) -> None:
    done = project.detaudit("trace", seeded, *options)
    assert done.code == 2
    assert message in done.err


def test_unsupported_options_are_not_in_the_help(project: Project) -> None:
    offered = project.detaudit("trace", "--help").out
    assert "--window" in offered
    assert "--artifact" in offered
    assert "--stages" not in offered


def test_a_failing_script_is_inconclusive(project: Project) -> None:
    project.write("train.py", "raise SystemExit(3)\n")
    done = project.detaudit("trace", "train.py", "--format", "json")
    assert done.code == 125
    assert done.json["culprit"] is None


@pytest.mark.slow
def test_every_format_names_the_line(project: Project) -> None:
    project.write("train.py", script("order = np.random.default_rng().random(50)"))
    project.detaudit("trace", "train.py", "--out", "results")
    for format_ in ("markdown", "junit", "github", "gitlab", "sarif"):
        done = project.detaudit("report", "results", "--format", format_)
        assert "train.py" in done.out, format_
        assert "default_rng" in done.out, format_


NUMBER = """
    import time
    import torch
    from torch import nn

    torch.manual_seed(0)
    model, x = nn.Linear(8, 1), torch.randn(16, 8)
    started = time.perf_counter()

    def ramp():
        return 0.5 + time.time() % 60

    for _ in range(2):
        loss = ramp() * model(x).square().mean()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad = None
    print(time.perf_counter() - started)
"""


@pytest.mark.slow
def test_a_number_from_the_clock_is_no_kernel(project: Project) -> None:
    path = project.write("train.py", NUMBER)
    done = project.detaudit("trace", "train.py", "--format", "json")
    assert done.code == 1, done.err
    found = done.json["culprit"]
    assert (found["how"], found["cause"], found["flags"]) == ("argument", "data", [])
    assert (found["file"], found["line"]) == ("train.py", line_of(path, "return 0.5"))
    assert (found["source"]["kind"], found["source"]["call"]) == ("system-value", "time.time")
    argument = found["operation"]["argument"]
    assert argument["name"] == "2"
    assert len({float(value) for value in argument["values"]}) == 2


HASHED = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    model, x = nn.Linear(8, 1), torch.randn(16, 8)
    rate = 0.01 * (1 + hash("run") % 1000)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(2):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
"""


@pytest.mark.slow
def test_a_variation_is_traced_to_where_it_first_changes_a_number(project: Project) -> None:
    path = project.write("train.py", HASHED)
    done = project.detaudit("trace", "train.py", "--vary", "hash-seed", "--format", "json")
    assert done.code == 1, done.err
    found = done.json["culprit"]
    assert (found["cause"], found["line"]) == ("hash", line_of(path, "rate = "))
    assert found["operation"]["argument"]["name"] == "alpha"
    (fix,) = found["flags"]
    assert fix["flag"] == "python-hash-seed"
    assert (fix["trial"]["runs"], fix["trial"]["first_difference"], fix["trial"]["failed"]) == (2, None, False)
