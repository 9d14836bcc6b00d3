"""What a training script does to itself; this file is copied beside the script.

``FAULT`` names a function here, and ``AT`` the point at which the script calls it.
"""

import atexit
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

NOT_AGAIN = "FAULT_DONE"


def at(point: str) -> None:
    if os.environ.get("AT") == point and NOT_AGAIN not in os.environ:
        os.environ[NOT_AGAIN] = "1"
        globals()[os.environ["FAULT"]]()


def _signal(number: int) -> Callable[[], None]:
    def send() -> None:
        os.kill(os.getpid(), number)
        time.sleep(60)

    return send


segv, kill, term = _signal(signal.SIGSEGV), _signal(signal.SIGKILL), _signal(signal.SIGTERM)
abort, interrupt = _signal(signal.SIGABRT), _signal(signal.SIGINT)
stop = _signal(signal.SIGSTOP)


def hang() -> None:
    time.sleep(1000)


def hang_and_ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(1000)


def hang_in_a_thread() -> None:
    threading.Thread(target=time.sleep, args=(1000,)).start()


def raise_an_error() -> None:
    raise ValueError("a fault of the script")


def exit_with_3() -> None:
    os._exit(3)


def sys_exit() -> None:
    sys.exit("enough")


def leave_at_once() -> None:
    os._exit(0)


def run_out_of_memory() -> None:
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (size + 2**24,) * 2)
    held = []
    while True:
        held.append(bytearray(2**22))


def recurse_for_ever() -> None:
    def recurse() -> None:
        recurse()

    recurse()


def fork_and_leave() -> None:
    if os.fork():
        os._exit(0)


def daemonize() -> None:
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 1024)
    for _ in range(3):
        os.open(os.devnull, os.O_RDWR)


def close_all_descriptors() -> None:
    os.closerange(3, 4096)


def close_stdout() -> None:
    os.close(1)


def print_gigabytes() -> None:
    line = b"x" * 2**20 + b"\n"
    for _ in range(1100):
        os.write(1, line)


def print_control_characters() -> None:
    os.write(2, b"\x1b]0;title\x07\x1b[2J\r\x00\xff\xfe\n" * 50)


def change_directory() -> None:
    os.makedirs("elsewhere", exist_ok=True)
    os.chdir("elsewhere")


def remove_the_working_directory() -> None:
    os.makedirs("gone", exist_ok=True)
    os.chdir("gone")
    os.rmdir("../gone")


def replace_meta_path() -> None:
    sys.meta_path[:] = []


def exec_itself() -> None:
    os.execv(sys.executable, [sys.executable, *sys.argv])


def exec_something_else() -> None:
    os.execv("/bin/true", ["true"])


def clear_the_environment() -> None:
    os.environ.clear()


def forbid_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


def forbid_writing() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def forbid_cpu_time() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
    while True:
        pass


def set_umask() -> None:
    os.umask(0o777)


def leave_a_child() -> None:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)


def leave_a_child_without_variables() -> None:
    words = ["/usr/bin/env", "-i", f"FAULT_ID={os.environ['FAULT_ID']}", "setsid", "sh", "-c"]
    subprocess.Popen([*words, "trap '' TERM; sleep 1000; sleep 1000"])


def leave_children_that_fork() -> None:
    code = "import os, time\nfor _ in range(200):\n    time.sleep(0.02)\n    os.fork() and os._exit(0)"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True)


def leave_a_zombie() -> None:
    if not os.fork():
        os._exit(0)


def delete_the_logs() -> None:
    folder = os.environ["DETAUDIT_LOGS"]
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))


def damage_the_logs() -> None:
    folder = os.environ["DETAUDIT_LOGS"]
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "r+b") as file:
            file.truncate(max(0, os.path.getsize(file.name) - 7))


def litter_the_logs() -> None:
    for number in range(20):
        for end in ("jsonl", "rows"):
            with open(os.path.join(os.environ["DETAUDIT_LOGS"], f"{number}.0.{end}"), "wb") as file:
                file.write(os.urandom(4096))


def remove_the_results() -> None:
    import shutil

    shutil.rmtree("results", ignore_errors=True)


def replace_open() -> None:
    import builtins

    builtins.open = os.open = raise_an_error  # type: ignore[assignment]


def jump_the_clock() -> None:
    real = time.time
    time.time = lambda: real() - 10**8


def register(point: str) -> None:
    atexit.register(at, point)


def fill_the_disk() -> None:
    with open(os.environ["FILL"], "wb", buffering=0) as file:
        for size in (4096, 256, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
