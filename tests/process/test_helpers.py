"""Processes that import a framework and train nothing are no ranks, however they start and end."""

from pathlib import Path

import pytest

from tests.process.conftest import Project

TRAIN = """
    import multiprocessing, os, time, torch, torch._inductor.config
    from torch._inductor.async_compile import AsyncCompile
    from torch.utils.data import DataLoader, TensorDataset

    def wait(queue):
        queue.put(torch.ones(1).item())
        time.sleep(600)

    def main():
        # What the first compilation for a GPU does: torch starts its compile workers where Triton is installed.
        torch._inductor.config.compile_threads = 2
        AsyncCompile.warm_pool()
        assert AsyncCompile.process_pool().submit(os.getpid).result() != os.getpid()
        context = multiprocessing.get_context("forkserver")
        queue = context.Queue()
        helper = context.Process(target=wait, args=(queue,))
        helper.start()
        queue.get()
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        compiled = torch.compile(model)
        x = torch.randn(64, 8)
        rows = TensorDataset(x, x.sum(1, keepdim=True))
        for x, y in DataLoader(rows, 16, shuffle=True, num_workers=2):
            loss = torch.nn.functional.mse_loss(compiled(x), y)
            optimizer.zero_grad(); loss.backward(); optimizer.step()
        helper.kill()  # an event log without its end, but of no training
        helper.join()

    if __name__ == "__main__":
        main()
"""


@pytest.mark.slow
def test_compile_workers_loaders_and_servers_are_no_ranks(project: Project, tmp_path: Path) -> None:
    project.write("train.py", TRAIN)
    done = project.run(
        "train.py", "--runs", "2", "--out", "results", env={"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    )
    assert done.code == 0, done.out
    run = done.json["groups"][0]["runs"][0]
    assert [(rank["rank"], rank["steps"]) for rank in run["ranks"]] == [(0, 4)]
    assert run["warnings"] == []
    # The code that torch compiled was kept for run 2, in the folder that a variable names: it is a cache.
    assert (done.json["warnings"], done.json["groups"][0]["left_state"]) == ([], None)
    event_logs = [path.read_text() for path in (project.folder / "results/runs/none/1/logs").glob("*.jsonl")]
    assert len(event_logs) >= 4  # the script, the killed helper, and two loaders at the least
    assert sum('"k":"bye"' not in log for log in event_logs) >= 1
