"""Trainings in threads and in pools are matched by what they trained, and none is compared without a whole record."""

import pytest

from tests.process.conftest import Project

FIT = """
    import random, sys, time, torch

    def fit(seed):
        time.sleep(random.random() / 20)
        generator = torch.Generator().manual_seed(seed)
        weight = torch.randn(4, 1, generator=generator).requires_grad_()
        optimizer = torch.optim.SGD([weight], 0.1)
        for _ in range(3 + seed % 2):
            loss = (torch.randn(8, 4, generator=generator) @ weight).pow(2).mean()
            optimizer.zero_grad(); loss.backward(); optimizer.step()
            time.sleep(random.random() / 100)
        return seed
"""

POOLS = {
    "multiprocessing": """
        import multiprocessing, fits
        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(sorted(pool.imap_unordered(fits.fit, range(5))))
    """,
    "chunks": """
        from concurrent.futures import ProcessPoolExecutor
        import fits
        if __name__ == "__main__":
            with ProcessPoolExecutor(2) as pool:
                print(list(pool.map(fits.fit, range(5), chunksize=2)))
    """,
    "joblib": """
        import joblib, fits
        if __name__ == "__main__":
            print(joblib.Parallel(n_jobs=2)(joblib.delayed(fits.fit)(seed) for seed in range(5)))
    """,
    "executor": """
        from concurrent.futures import ThreadPoolExecutor
        import fits
        with ThreadPoolExecutor(2) as pool:
            print(list(pool.map(fits.fit, range(5))))
    """,
    "threads": """
        import threading, fits
        threads = [threading.Thread(target=fits.fit, args=(seed,)) for seed in range(5)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", POOLS)
def test_equal_trainings_match_whoever_trains_them(project: Project, kind: str) -> None:
    project.write("fits.py", FIT)
    project.write("train.py", POOLS[kind])
    done = project.run("train.py", "--runs", "2", "--full")
    assert done.code == 0, done.out
    for run in done.json["groups"][0]["runs"]:
        assert sorted(rank["steps"] for rank in run["ranks"]) == [3, 3, 3, 4, 4]


@pytest.mark.slow
def test_one_different_training_among_equal_ones_is_found(project: Project) -> None:
    project.write("fits.py", FIT.replace("manual_seed(seed)", "manual_seed(seed if seed != 3 else time.time_ns())"))
    project.write("train.py", POOLS["threads"])
    done = project.run("train.py", "--runs", "2")
    assert done.code == 1, done.out
    first, second = ({rank["digest"] for rank in run["ranks"]} for run in done.json["groups"][0]["runs"])
    assert len(first & second) == 4


@pytest.mark.full
def test_a_probe_for_a_batch_size_is_no_broken_record(project: Project, seeded: str) -> None:
    project.write(
        "model/difference.py",
        """
        import torch
        weight = torch.ones(4, requires_grad=True)
        optimizer = torch.optim.SGD([weight], 0.1)
        weight.sum().backward()
        optimizer.zero_grad()
        """,
    )
    project.write(
        "main.py",
        f"import subprocess, sys, runpy\nsubprocess.run([sys.executable, 'model/difference.py'], check=True)\n"
        f"runpy.run_path({seeded!r})\n",
    )
    done = project.run("main.py", "--runs", "2")
    assert done.code == 0, done.out
    assert [rank["framework"] for rank in done.json["groups"][0]["runs"][0]["ranks"]] == ["script"]


THROWN_AWAY = {
    "zero_grad": "optimizer.zero_grad()",
    "by hand": "for p in model.parameters(): p.grad = None",
    "accumulated": "pass",  # then the gradients of the probe are part of the first step
}


@pytest.mark.slow
@pytest.mark.parametrize("way", THROWN_AWAY)
@pytest.mark.parametrize("before", [0, 2])
def test_a_probe_on_noise_before_a_step_is_no_part_of_it(project: Project, way: str, before: int) -> None:
    project.write(
        "train.py",
        f"""
        import os, torch
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(4):
            if step == {before}:
                for size in (2, 4):
                    model(torch.full((size, 4), float(os.getpid()))).sum().backward()
                {THROWN_AWAY[way]}
            model(torch.randn(8, 4)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        """,
    )
    done = project.run("train.py", "--runs", "2")
    group = done.json["groups"][0]
    assert group["runs"][0]["steps"] == 4
    if way == "accumulated":
        found = group["first_difference"]
        assert (done.code, found["step"], found["stage"]) == (1, before + 1, "batch")
    else:
        assert done.code == 0, done.out


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["joblib.Parallel(2, prefer='threads')", "joblib.Parallel(2)"])
def test_equal_fits_in_threads_and_workers_match(project: Project, threads: str) -> None:
    project.write(
        "fits.py",
        """
        import random, time
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.datasets import load_digits
        x, y = load_digits(return_X_y=True)
        def fit(seed):
            time.sleep(random.random() / 10)
            return RandomForestClassifier(3, random_state=seed).fit(x[:200], y[:200])
        """,
    )
    project.write(
        "train.py",
        f"""
        import joblib, fits
        if __name__ == "__main__":
            {threads}(joblib.delayed(fits.fit)(seed) for seed in range(4))
        """,
    )
    done = project.run("train.py", "--runs", "3")
    assert done.code == 0, done.out
    assert sum(rank["steps"] for rank in done.json["groups"][0]["runs"][0]["ranks"]) == 4


@pytest.mark.full
@pytest.mark.parametrize("library", ["joblib", pytest.param("sklearn.utils.parallel", marks=pytest.mark.slow)])
@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_one_different_fit_in_workers_of_the_script_is_found(project: Project, library: str, backend: str) -> None:
    project.write(
        "fits.py",
        """
        import os
        from sklearn.datasets import load_iris
        from sklearn.linear_model import SGDClassifier
        x, y = load_iris(return_X_y=True)
        def fit(seed):
            seed = int.from_bytes(os.urandom(4), "little") if seed == 2 else seed
            SGDClassifier(random_state=seed, max_iter=3, tol=None).fit(x, y)
        """,
    )
    project.write(
        "train.py",
        f"""
        import fits
        from {library} import Parallel, delayed
        if __name__ == "__main__":
            fits.SGDClassifier(random_state=0, max_iter=3, tol=None).fit(fits.x, fits.y)
            Parallel(2, backend="{backend}")(delayed(fits.fit)(seed) for seed in range(4))
        """,
    )
    done = project.run("train.py", "--runs", "2")
    (group,) = done.json["groups"]
    assert (done.code, group["first_difference"]["site"]) == (1, "SGDClassifier.fit"), done.out
    for run in group["runs"]:
        assert [rank["steps"] for rank in run["ranks"]] == [1] * 5


IN_THREADS = {
    "fit": """
        class Wait(keras.callbacks.Callback):
            def on_train_batch_end(self, *_, **__): time.sleep(random.random() / 100)
        def train(seed):
            kernel = keras.initializers.GlorotUniform(seed)
            model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1, kernel_initializer=kernel)])
            model.compile("sgd", "mse")
            model.fit(x, y, batch_size=16, shuffle=False, verbose=0, callbacks=[Wait()])
    """,
    "tape": """
        def train(seed):
            weight, optimizer = tf.Variable(tf.random.stateless_normal((8, 1), (seed, 0))), keras.optimizers.SGD(0.01)
            for i in range(8):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((x @ weight - y) ** 2)
                optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
                time.sleep(random.random() / 100)
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("way", IN_THREADS)
def test_equal_trainings_of_tensorflow_in_threads_match(project: Project, way: str) -> None:
    head = """
        import random, threading, time, keras, numpy as np, tensorflow as tf
        x = np.random.default_rng(0).normal(size=(128, 8)).astype("float32")
        y = x.sum(1, keepdims=True)
    """
    end = """
        threads = [threading.Thread(target=train, args=(seed,)) for seed in (1, 2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    """
    project.write("train.py", head + IN_THREADS[way] + end)
    done = project.run("train.py", "--runs", "3")
    assert done.code == 0, done.out
    assert [rank["steps"] for rank in done.json["groups"][0]["runs"][0]["ranks"]] == [8, 8]


def test_a_generator_that_python_seeds_in_a_forked_child_explains_nothing(project: Project) -> None:
    project.write(
        "train.py",
        """
        import multiprocessing, os, random
        import detaudit

        def train():
            for step in range(1, 4):
                detaudit.record(loss=1.0 if step < 2 else os.getpid(), weights=[1.0])

        child = multiprocessing.get_context("fork").Process(target=train)
        child.start()
        child.join()
        """,
    )
    found = project.run("train.py", "--runs", "2").json["groups"][0]["first_difference"]
    assert (found["step"], found["stage"]) == (2, "forward")


BUSY = """
    import threading, torch

    def train(seed):
        generator = torch.Generator().manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
        with torch.no_grad():
            for p in model.parameters():
                p.uniform_(-0.25, 0.25, generator=generator)
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(600):
            x = torch.randn(64, 16, generator=generator)
            loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
            optimizer.zero_grad(); loss.backward(); optimizer.step()

    threads = [threading.Thread(target=train, args=(seed,)) for seed in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""


@pytest.mark.slow
def test_threads_that_train_without_a_pause_are_not_disturbed(project: Project) -> None:
    # To read a gradient that another thread is replacing crashes the process.
    project.write("train.py", BUSY)
    done = project.run("train.py", "--runs", "2", "--full")
    assert done.code == 0, done.out
    assert [len(run["ranks"]) for run in done.json["groups"][0]["runs"]] == [4, 4]


EVALUATED = """
    import copy, os, threading, torch

    def main(again):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(3):
            optimizer.zero_grad(); model(torch.ones(8, 4)).pow(2).mean().backward(); optimizer.step()
            snapshot = copy.deepcopy(model)
            if again and step < 2:
                thread = threading.Thread(target=lambda: snapshot(torch.ones(8, 4)).sum().item())
                thread.start()
                thread.join()

    again = os.path.exists("again")
    open("again", "w").close()
    main(again)
"""


@pytest.mark.slow
def test_what_a_thread_evaluates_beside_a_training_is_chance(project: Project) -> None:
    project.write("train.py", EVALUATED)
    done = project.run("train.py", "--runs", "2")
    assert done.code == 0, done.out
    (project.folder / "again").unlink()
    project.write("train.py", EVALUATED.replace("thread.start()", "thread.run()").replace("thread.join()", "pass"))
    assert project.run("train.py", "--runs", "2").code == 1


SHARED = """
    import random, time, torch
    from concurrent.futures import ThreadPoolExecutor

    torch.manual_seed(0)
    torch.set_num_threads(1)
    weight = torch.nn.Parameter(torch.randn(4, 1))
    batches = torch.randn(6, 8, 4)

    def gradient(batch):
        time.sleep(random.random() / 50)
        loss = (batch @ weight - batch.sum(1, keepdim=True)).pow(2).mean()
        return torch.autograd.grad(loss, [weight])[0]

    with ThreadPoolExecutor(3) as pool:
        for step in range(4):
            total = sum(pool.map(gradient, batches))
            with torch.no_grad():
                weight -= 0.1 * total
"""


def test_gradients_that_threads_compute_for_one_step_have_no_order(project: Project) -> None:
    project.write("train.py", SHARED)
    done = project.run("train.py", "--runs", "3")
    assert done.code == 0, done.out
    assert [run["steps"] for run in done.json["groups"][0]["runs"]] == [4, 4, 4]
