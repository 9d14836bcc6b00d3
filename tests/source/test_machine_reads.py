"""What a script reads of its machine is named; what it reads in a fixed order, or only to measure a time, is not."""

from pathlib import Path

import pytest

from detaudit import advice
from detaudit.model import Source, SourceKind
from detaudit.source.machine_reads import reads
from tests.fakes import settings

LISTING, CLOCK, SET, HASH, ID = (
    SourceKind.LISTING_ORDER,
    SourceKind.CLOCK,
    SourceKind.SET_ORDER,
    SourceKind.HASH,
    SourceKind.ADDRESS,
)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("import os\nfor name in os.listdir('data'): f(name)", [LISTING]),
        ("from pathlib import Path\nfiles = list(Path('data').glob('*.png'))", [LISTING]),
        ("import os\nfor root, _, names in os.walk('data'): f(names)", [LISTING]),
        ("import os\nfiles = sorted(os.listdir('data'))", []),
        ("import os\nfiles = os.listdir('data')\nfiles.sort()", []),
        ("classes = list(set(labels))", [SET]),
        ("classes = sorted(set(labels))", []),
        ("part = hash(name) % 10", [HASH]),
        ("order = sorted(layers, key=id)", [ID]),
        ("import time\nseed = int(time.time())", [CLOCK]),
        ("import datetime\nx = datetime.date.today().year", [CLOCK]),
        ("from datetime import datetime as d\nx = d.now().hour", [CLOCK]),
        ("import time\nstart = time.time()\nf()\nprint(time.time() - start)", []),
        ("import time\nself.start = time.time()\nprint(time.time() - self.start)", []),
        ("import time\nstart = time.time()\nf(start)", [CLOCK]),
        ("import time\nstart = time.perf_counter()\ntime.sleep(1)", []),
        ("x = model.glob_pool(time())", []),
        ("def f(:", []),
    ],
)
def test_what_a_script_reads(tmp_path: Path, text: str, kinds: list[SourceKind]) -> None:
    (tmp_path / "train.py").write_text(text)
    found = reads(tmp_path, ["missing.py", "train.py"])
    assert [one.kind for one in found] == kinds
    assert {one.file for one in found} <= {"train.py"}


@pytest.mark.parametrize(
    ("kind", "flags", "varies"),
    [
        (LISTING, [], True),
        (LISTING, ["python-sorted-listings"], False),
        (SET, [], True),
        (SET, ["python-hash-seed"], False),
        (ID, ["python-hash-seed"], True),
        (ID, ["system-aslr-off"], False),
        (CLOCK, ["python-hash-seed", "system-aslr-off"], True),
    ],
)
def test_what_a_flag_pins_does_not_vary(tmp_path: Path, kind: SourceKind, flags: list[str], varies: bool) -> None:
    asked = settings(tmp_path)
    assert advice.may_vary(asked, [Source(file="train.py", line=1, kind=kind)], flags) == varies
    assert not advice.may_vary(asked, [], flags)
