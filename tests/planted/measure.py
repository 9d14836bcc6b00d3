"""Plant perturbations in recorded and in live trainings, audit controls, and write docs/lab/planted.md.

Results are kept below .detaudit/, for one state of detaudit and of the trainings: it can be interrupted and resumed.
"""

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import yaml

from tests.corpus.measure import HERE
from tests.planted import audits, live
from tests.planted.forked import ForkLauncher, serving
from tests.planted.kept import Kept
from tests.planted.plants import TAPE, TRAININGS, Training, draw
from tests.planted.table import covered, document

PER_AUDIT = {"recorded": 20, "tensorflow": 20, "live": 10}
COUNTS = {"recorded": 4700, "tensorflow": 300, "live": 500, "controls": 1000, "live controls": 50}

# How often each of TRAININGS comes in a round: those with several processes take longer, and live also those in torch.
_RECORDED = (6, 5, 4, 4, 2, 2, 1, 1)
_LIVE = (1, 1, 2, 1, 18, 1, 1, 0)
_CONTROLS = (4, 3, 3, 3, 3, 2, 1, 1)

_IMPORTED = ("torch", "sklearn", "python")
"""What the names of the scripts begin with that need no more than what the process with the forked children has."""


def _round(shares: tuple[int, ...]) -> list[Training]:
    """Return the trainings of a round, mixed."""
    found = [((place + 0.5) / share, training) for training, share in zip(TRAININGS, shares, strict=True)
             for place in range(share)]  # fmt: skip
    return [training for _, training in sorted(found, key=lambda one: one[0])]


def _scripts() -> list[str]:
    labels = yaml.safe_load((HERE / "labels.yaml").read_text())
    controls = [name for name, label in labels.items() if label["cause"] == "control"]
    return [name for name in controls if name.split("_")[0] in _IMPORTED]


def _audit(part: str, number: int, launcher: ForkLauncher | None, folder: Path) -> object:
    """Return the result of one audit: outcomes of plants, or what was audited and its verdict."""
    shares = {"recorded": _RECORDED, "controls": _CONTROLS}.get(part, _LIVE)
    trainings = _round(shares) if part != "tensorflow" else [TAPE]
    training = trainings[number % len(trainings)]
    if launcher is None:
        if part == "live":
            return live.planted(training, draw(training, number, PER_AUDIT[part]))
        return training.name, live.verdict(training)
    if part in PER_AUDIT:
        return audits.planted(launcher, folder, training, draw(training, number, PER_AUDIT[part]))
    if number % 5 == 4:
        script = _scripts()[number // 5 % len(_scripts())]
        return script, audits.control(launcher, folder, script)
    return training.name, audits.control(launcher, folder, training)


def _measure(kept: Kept, part: str, count: int, minutes: float) -> None:
    """Do the audits of a part that are not done yet."""
    started, done, so_far = time.monotonic(), kept.numbers(part), kept.count(part)
    if so_far >= count:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        forks = not part.startswith("live")
        serve: Callable[[], AbstractContextManager[ForkLauncher | None]]
        modules = ("tensorflow",) if part == "tensorflow" else ()
        serve = (lambda: serving(folder / "out", os.environ, *modules)) if forks else nullcontext
        with serve() as launcher:
            for number in (one for one in itertools.count() if one not in done):
                if so_far >= count or time.monotonic() - started > 60 * minutes:
                    return
                kept.add(part, number, _audit(part, number, launcher, folder))
                so_far = kept.count(part)
                taken = f"{time.monotonic() - started:.0f} s"
                print(part, so_far, "of", count, taken, file=sys.stderr, flush=True)


def main() -> int:
    """Measure what is not measured yet; the exit status is 1 if anything was missed or named wrongly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(COUNTS)}; all of them by default")
    parser.add_argument("--minutes", type=float, default=600, help="the longest time for each part")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    kept = Kept()
    for part in options.parts or COUNTS:
        _measure(kept, part, COUNTS[part], options.minutes)
    labels, measured = (yaml.safe_load((HERE / f"{name}.yaml").read_text()) for name in ("labels", "measured"))
    planted = {part: kept.outcomes(part) for part in PER_AUDIT}
    planted["recorded"] += planted.pop("tensorflow")
    controls = {part: [verdict for _, verdict in kept.results(part)] for part in COUNTS if part not in PER_AUDIT}
    wanted = {**COUNTS, "recorded": COUNTS["recorded"] + COUNTS["tensorflow"]}
    text = document(planted, controls, wanted, labels, measured)
    print(text)
    if options.write:
        options.write.write_text(text)
    right = all(one.right for part in planted.values() for one in part if covered(one))
    return 0 if right and {verdict for part in controls.values() for verdict in part} == {"deterministic"} else 1


if __name__ == "__main__":
    sys.exit(main())
