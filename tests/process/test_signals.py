"""What a signal handler of the script raises while the recorder is at work, such as a timeout, reaches the script."""

import json

import pytest

from tests.process.conftest import Project
from tests.process.test_neutral import bare_and_recorded

TIMEOUTS = """
    import functools, signal
    import training

    class Timeout(Exception):
        pass

    class Alarm:
        def handle(self, *_):
            raise Timeout

        __call__ = handle

    def handle(number, frame, why=""):
        raise Timeout

    training.train(steps=1, seed=0)
    caught = 0
    for number in range(60):
        handlers = handle, functools.partial(handle, why="late"), Alarm().handle, Alarm()
        signal.signal(signal.SIGALRM, handlers[number % 4])
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.002 + 0.0001 * number)
            while True:
                training.train(steps=1, seed=0)
        except Timeout:
            caught += 1
    print(caught)
"""


def test_what_a_signal_handler_raises_in_a_hook_reaches_the_script(project: Project) -> None:
    project.write("train.py", TIMEOUTS)
    bare, recorded = bare_and_recorded(project, "train.py")
    assert (bare.stdout, recorded.stdout) == ("60\n", "60\n")


FITS = """
    import signal
    import numpy as np
    from sklearn.naive_bayes import GaussianNB

    class Timeout(Exception):
        pass

    def handle(number, frame):
        raise Timeout

    x = np.random.default_rng(0).normal(size=(400_001, 7))
    y = x[:, 0] > 0
    GaussianNB().fit(x[:101], y[:101])
    signal.signal(signal.SIGALRM, handle)
    caught = 0
    for number in range(40):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.002 + 0.001 * number)
            for _ in range(300):
                GaussianNB().fit(x, y)
        except Timeout:
            caught += 1
    print(caught)
"""


def test_what_a_signal_handler_raises_in_a_fit_reaches_the_script(project: Project) -> None:
    project.write("train.py", FITS)
    bare, recorded = bare_and_recorded(project, "train.py")
    assert (bare.stdout, recorded.stdout) == ("40\n", "40\n")


LINES = """
    import builtins, os, signal, sys
    import training

    Late = type("Late", (getattr(builtins, sys.argv[1]),), {})

    def handle(number, frame):
        raise Late

    def traced(reached):
        '''Train three steps, and one more at whose lines ``reached`` is called with each line.'''
        def trace(frame, event, arg):
            file = frame.f_code.co_filename
            if event in ("line", "call") and "detaudit" in file and file != __file__:
                reached((os.path.basename(file), frame.f_lineno), frame)
            return trace
        training.train(steps=3, seed=0)
        sys.settrace(trace)
        try:
            training.train(steps=1, seed=0)
        finally:
            sys.settrace(None)

    def of_a_child(work):
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, repr(work()).encode())
            os._exit(0)
        os.close(write)
        with open(read) as file:
            found = eval(file.read())
        os.wait()
        return found

    def lines():
        seen = {}
        traced(lambda line, _: seen.setdefault(line))
        return list(seen)

    def is_lost(line):
        raised = []  # nothing if the line is not reached again, since what a seed is compared with is the clock
        def reached(found, frame):
            if found == line:
                sys.settrace(None)
                raised.append(line)
                handle(signal.SIGALRM, frame)
        try:
            traced(reached)
        except Late:
            return False
        return bool(raised)

    signal.signal(signal.SIGALRM, handle)
    training.train(steps=1, seed=0)
    found = of_a_child(lines)
    print(len({file for file, _ in found}), [line for line in found if of_a_child(lambda: is_lost(line))])
"""


@pytest.mark.parametrize("kind", ["Exception", pytest.param("TimeoutError", marks=pytest.mark.full)])
def test_no_line_of_the_recorder_keeps_it_from_the_script(project: Project, kind: str) -> None:
    project.write("train.py", LINES)
    bare, recorded = bare_and_recorded(project, "train.py", kind)
    assert bare.stdout == "1 []\n"
    files, _, lost = recorded.stdout.partition(" ")
    assert int(files) > 10, recorded.stderr
    assert lost == "[]\n"


NESTED = """
    import faulthandler, os, sys, threading

    faulthandler.dump_traceback_later(100, exit=True)
    import torch

    torch.set_num_threads(1)

    def training(seed, inputs):
        torch.manual_seed(seed)
        parts = torch.nn.Linear(inputs, 80), torch.nn.BatchNorm1d(80), torch.nn.Linear(80, 1)
        model = torch.nn.Sequential(*parts)
        optimizer, x = torch.optim.SGD(model.parameters(), lr=0.01), torch.randn(16, inputs)

        def step():
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

        return model, step

    (model, step), (other, handled), (_, beside) = training(0, 20), training(1, 30), training(2, 40)
    last = training(3, 50)[0].eval()

    def handle():
        with open("beats.txt", "a") as file:
            print("beat", file=file)
        torch.save(other.state_dict(), "other.pt")
        with torch.enable_grad():
            last(torch.ones(1, 50))
            torch.nn.Linear(50, 30)(torch.ones(1, 50))  # which is freed
            handled()

    def traced(reached):
        '''Take a step at whose lines in the recorder ``reached`` is called with each line.'''
        def trace(frame, event, arg):
            file = frame.f_code.co_filename
            if event in ("line", "call") and "detaudit" in file and file != __file__:
                reached((os.path.basename(file), frame.f_lineno))
            return trace
        sys.settrace(trace)
        try:
            step()
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    step()
    seen = {}
    traced(lambda line: seen.setdefault(line))
    for line in list(seen):
        def reached(now):
            if now == line:
                sys.settrace(None)
                faulthandler.dump_traceback_later(20, exit=True)
                handle()
        traced(reached)
    for _ in range(1000 - len(seen)):
        step()
    print(sum([one.double().sum().item() for one in model.parameters()]).hex())
    print(len({file for file, _ in seen}), len(seen), file=sys.stderr)
"""


@pytest.mark.slow
def test_a_signal_handler_may_come_at_any_line_of_the_recorder_and_use_torch(project: Project) -> None:
    project.write("train.py", NESTED)
    bare, recorded = bare_and_recorded(project, "train.py")
    assert (recorded.returncode, recorded.stdout) == (0, bare.stdout), recorded.stderr
    files, lines = map(int, recorded.stderr.split())
    assert (files > 10, 200 < lines < 1000) == (True, True)
    (log,) = (project.folder / "logs").glob("*.jsonl")
    written = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line for line in written if line["k"] in ("trouble", "undigested")] == []
    assert [line["how"] for line in written if line["k"] == "bye"] == ["exit"]
