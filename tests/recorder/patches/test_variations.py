"""Variations inside the process: every directory listing has the chosen order, every clock shows the moved time."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from detaudit import wire
from detaudit.config.variations import load_variations
from detaudit.launch.plan import BOOTSTRAP

pytestmark = pytest.mark.launches
TABLE = {row.id: row for row in load_variations()}


def run(folder: Path, variation: str, number: int, code: str) -> Any:
    """Run Python code in a process with a variation, and return the JSON that it printed."""
    trace = folder / f"trace-{variation}-{number}"
    trace.mkdir()
    env = {
        "PYTHONPATH": str(BOOTSTRAP),
        wire.ENV_LOGS: str(trace),
        wire.ENV_FLAGS: "\n".join(TABLE[variation].orders(number)),
        "TZ": "UTC0",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True, check=True, timeout=60
    )
    states = [line for path in trace.iterdir() for line in map(json.loads, path.read_text().splitlines())]
    assert not [line for line in states if line["k"] == "trouble" or line.get("state") == wire.FLAG_FAILED], states
    return json.loads(done.stdout)


LISTS = """
import glob, json, os, pathlib, shutil
assert os.listdir in os.supports_fd and os.scandir in os.supports_fd
with os.scandir("d") as entries:
    scanned = [entry.name for entry in entries]
    assert list(entries) == []
walked = next(os.walk("d"))[2]
print(json.dumps([os.listdir("d"), scanned, walked, [os.path.basename(p) for p in glob.glob("d/*")],
    [p.name for p in pathlib.Path("d").iterdir()], [os.fsdecode(n) for n in os.listdir(b"d")]]))
shutil.rmtree("e")
"""


def test_each_number_gives_an_order_of_listings(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(8)]
    orders = []
    for number in range(4):
        for folder in ("d", "e"):
            (tmp_path / folder).mkdir(exist_ok=True)
            for name in names:
                (tmp_path / folder / name).touch()
        orders.append(run(tmp_path, "listing-order", number, LISTS))
    for listings in orders:
        assert all(listing == listings[0] for listing in listings)
        assert sorted(listings[0]) == names
    assert orders[0][0] == names
    assert orders[1][0] == names[::-1]
    assert orders[2][0] != orders[3][0]


CLOCK = """
import json, time, datetime, pickle, logging
from datetime import datetime as d
monotonic = time.monotonic()
assert pickle.loads(pickle.dumps(d.now())).__class__ is d
class Own(d): pass
assert type(Own.now()) is Own
readings = [time.time(), time.time_ns() / 1e9, time.mktime(time.localtime()), time.mktime(time.gmtime()),
    time.mktime(time.gmtime(None)), time.clock_gettime(time.CLOCK_REALTIME), d.now().timestamp(), d.today().timestamp(),
    d.now(datetime.timezone.utc).timestamp(), d.utcnow().timestamp(), float(time.strftime("%s")),
    time.mktime(time.strptime(time.ctime())), time.mktime(time.strptime(time.asctime()))]
assert time.gmtime(0).tm_year == 1970 and time.strftime("%Y", time.gmtime(0)) == "1970"
assert d.fromtimestamp(0, datetime.timezone.utc).year == 1970
print(json.dumps([readings, time.monotonic() - monotonic, str(datetime.date.today())]))
"""


def test_every_function_that_reads_the_clock_returns_the_moved_time(tmp_path: Path) -> None:
    control, spent, today = run(tmp_path, "clock", 0, CLOCK)
    moved, spent_too, another_day = run(tmp_path, "clock", 1, CLOCK)
    by = int(TABLE["clock"].at(1))
    assert all(by <= b - a < by + 60 for a, b in zip(control, moved, strict=True))
    assert max(control) - min(control) < 10
    assert today != another_day
    assert max(spent, spent_too) < 60
