"""Measure, print one table, and write docs/lab/benchmarks.md: ``python -m benchmarks [NAME…]``."""

import argparse
import sys
import traceback
from collections.abc import Sequence

from benchmarks.catalogue import MEASUREMENTS, Measurement
from benchmarks.page import print_table, write
from benchmarks.results import measured, store, stored
from benchmarks.rows import Result, Scale


def options(words: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="measurements or modules; default: what takes minutes")
    parser.add_argument("--long", action="store_true", help="measure what takes hours")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that all works; nothing is kept")
    parser.add_argument("--repeats", type=int, metavar="N", help="take N turns instead of the usual number")
    parser.add_argument("--list", action="store_true", help="list the measurements, and measure nothing")
    parser.add_argument("--page", action="store_true", help="write the page of what is kept, and measure nothing")
    return parser.parse_args(words)


def chosen(names: Sequence[str], long: bool) -> list[Measurement]:
    """Return the measurements to carry out. Raises SystemExit for a name that none has."""
    unknown = set(names) - {name for one in MEASUREMENTS for name in (one.name, one.module)}
    if unknown:
        raise SystemExit(f"no measurement has the name {', '.join(sorted(unknown))}; see --list")
    return [one for one in MEASUREMENTS if ({one.name, one.module} & set(names) if names else one.long == long)]


def main(words: Sequence[str]) -> int:
    """Return the exit status: 1 if a measurement failed. A goal that is missed is shown, and is no failure."""
    asked = options(words)
    found: dict[str, Result] = {}
    failed = 0
    for one in [] if asked.page or asked.list else chosen(asked.names, asked.long):
        print(f"{one.name}: ", end="", file=sys.stderr, flush=True)
        try:
            found[one.name] = measured(one, Scale(asked.quick, asked.repeats))
        except Exception:  # noqa: BLE001  # whatever fails, the others are measured
            traceback.print_exc()
            failed = 1
            continue
        print(f"{found[one.name].took_s:.0f} s", file=sys.stderr, flush=True)
        if not asked.quick:
            store(one.name, found[one.name])
            write(stored())
    if asked.list:
        print("\n".join(f"{one.name:22}{'long' if one.long else '':6}{one.what}" for one in MEASUREMENTS))
        return 0
    if asked.page:
        write(stored())
    print_table(found if asked.quick else stored(), whole=not asked.quick)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
