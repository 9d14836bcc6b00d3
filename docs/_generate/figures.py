"""The figures of the page on statistics, drawn from the code and the data that they show."""

import re
from collections import Counter

import yaml

from detaudit.judge.verdict import ERROR_RATE, LEVEL, RAREST, confidence, differing_share, miss_probability
from docs._generate.markdown import table
from docs._generate.places import DOCS
from docs._generate.plot import WIDTH, Axis, Plot, figure

SHOWN = ((2, "a"), (5, "b"), (30, "c"))
"""Numbers of runs, each with the class of its curve."""

_SHARES = [(share / 4, f"{share * 25}%") for share in range(5)]


def bound(runs: int) -> float:
    """Return the rate above which matching runs would have caught a difference, at the level of detaudit's reports."""
    found = confidence(runs)
    assert found is not None  # noqa: S101  # two runs or more
    return found.max_differing_rate


def missed() -> str:
    """Return how probably runs match by chance, by the rate at which a run differs."""
    plot = Plot(Axis(0, 1, _SHARES, "share of runs that differ from the first"), Axis(0, 1, _SHARES, "all runs match"))
    rates = [place / 100 for place in range(101)]
    parts = [plot.curve([(0, 1 - LEVEL), (1, 1 - LEVEL)], "limit"), plot.label(0.62, 0.07, "5%", "quiet")]
    for runs, kind in SHOWN:
        at = bound(runs)
        parts.append(plot.curve([(rate, miss_probability(runs, rate)) for rate in rates], kind))
        parts.append(plot.dot(at, miss_probability(runs, at), kind))
    places = {2: (0.42, 0.62), 5: (0.2, 0.46), 30: (0.1, 0.3)}
    parts += [plot.label(*places[runs], f"{runs} runs", kind) for runs, kind in SHOWN]
    bounds = ", ".join(f"{bound(runs):.0%} with {runs} runs" for runs, _ in SHOWN)
    caption = (
        f"The chance that all runs match although the training is nondeterministic. It falls below 5% at {bounds}."
    )
    return figure(caption, caption, plot, parts)


def bounds() -> str:
    """Return the rate that a number of runs would catch, beside the rule of three."""
    ticks = [(float(runs), str(runs)) for runs in (2, 5, 10, 20, 30, 40, 60)]
    plot = Plot(Axis(2, 60, ticks, "matching runs"), Axis(0, 1, _SHARES, "rate that would be caught"))
    numbers = range(2, 61)
    parts = [
        plot.curve([(runs, bound(runs)) for runs in numbers], "b"),
        plot.curve([(runs, 3 / (runs - 1)) for runs in numbers if runs > 3], "c dashed"),
        *(plot.dot(runs, bound(runs), "b") for runs in (5, 30)),
        plot.label(8, bound(5) + 0.05, f"5 runs: {bound(5):.0%}", "b"),
        plot.label(30, bound(30) + 0.05, f"30 runs: {bound(30):.0%}", "b"),
        plot.label(13, 0.34, "rule of three: 3 / (runs - 1)", "c"),
    ]
    caption = "What matching runs would have caught with 95% confidence, beside the rule of three, its approximation."
    return figure(caption, caption, plot, parts)


def shares() -> str:
    """Return between which rates the true one lies if one in ten runs differs, by the number of runs."""
    numbers = (10, 20, 50, 100)
    ticks = [(float(place), f"{runs // 10} of {runs}") for place, runs in enumerate(numbers)]
    plot = Plot(Axis(-0.4, 3.9, ticks, "runs that differ"), Axis(0, 0.5, _SHARES[:3], "rate of runs that differ"))
    parts = []
    for place, runs in enumerate(numbers):
        found = differing_share([1] * (runs - runs // 10) + [2] * (runs // 10))
        assert found is not None  # noqa: S101  # ten runs or more, of which some differ
        parts.append(plot.curve([(place, found.least), (place, found.most)], "b wide"))
        parts.append(plot.dot(place, 0.1, "a"))
        parts.append(plot.label(place + 0.12, found.most - 0.02, f"{found.least:.1%} to {found.most:.0%}", "quiet"))
    caption = "If one run in ten differs: the rates that 10, 20, 50 and 100 runs leave possible, with 95% confidence."
    return figure(caption, caption, plot, parts)


def needed() -> str:
    """Return the number of matching runs that a bisection asks for, by the rate of differing runs."""
    rates = (0.5, RAREST, 0.1, 0.05)
    rows = [[f"{rate:.0%}", str(_fewest(rate, ERROR_RATE)), str(_fewest(rate, ERROR_RATE / 3))] for rate in rates]
    return table(
        ["a run differs in", "runs that miss it in 5% of audits", "in 1.7% (5% shared by three matches)"], rows
    )


def _fewest(rate: float, error: float) -> int:
    return next(runs for runs in range(2, 1000) if miss_probability(runs, rate) <= error)


def measured() -> list[float]:
    """Return how many of 20 runs of each nondeterministic script of the corpus differ from the most frequent result."""
    read = yaml.safe_load((DOCS.parent / "tests" / "corpus" / "measured.yaml").read_text())
    alone = [rows["bare"] for rows in read.values() if "bare" in rows]
    return [1 - one["commonest"] / one["runs"] for one in alone if one["distinct"] > 1]


def corpus() -> str:
    """Return how often runs of real trainings differ."""
    found = measured()
    counts = Counter(round(rate * 10) / 10 for rate in found)
    most = max(counts.values())
    ticks = [(0.0, "0"), (most / 2, f"{most / 2:.0f}"), (float(most), str(most))]
    plot = Plot(Axis(0, 1.05, _SHARES, "share of runs that differ from the most frequent result"),
                Axis(0, most * 1.08, ticks, "scripts"))  # fmt: skip
    width = (WIDTH - 60) / 16
    parts = [plot.bar(rate, number, width, "fill-b") for rate, number in sorted(counts.items())]
    parts += [plot.label(rate, number + 1, str(number), "quiet", "middle") for rate, number in sorted(counts.items())]
    caption = (
        f"{len(found)} small trainings that are nondeterministic, each run 20 times alone: most differ in nearly every "
        f"run, and the rarest in {min(found):.0%} of them."
    )
    return figure(caption, caption, plot, parts)


def contention() -> str:
    """Return which races show with one run at a time and with two at once, as docs/lab/jobs.md has it."""
    rows = races((DOCS / "lab" / "jobs.md").read_text())
    scripts = [(float(place), str(place + 1)) for place in range(len(rows))]
    x = Axis(-0.5, len(rows) - 0.5, scripts, "training, as listed below")
    plot = Plot(x, Axis(0, 3.6, [(float(number), f"{number} of 3") for number in range(4)], "runs that differ"))
    parts = []
    for place, (_, alone, together) in enumerate(rows):
        parts.append(plot.bar(place - 0.17, max(alone, 0.04), 14, "fill-b"))
        parts.append(plot.bar(place + 0.17, max(together, 0.04), 14, "fill-a"))
    parts.append(plot.label(-0.4, 3.2, "left: one run at a time", "b"))
    parts.append(plot.label(len(rows) - 0.6, 3.2, "right: two at once", "a", "end"))
    hidden = sum(alone > together for _, alone, together in rows)
    caption = (
        f"Races in {len(rows)} trainings on two cores, of 3 runs after the first: "
        f"{hidden} of them do not show if two runs at once have one core each."
    )
    listed = table(["", "training"], [[str(place), f"`{name}`"] for place, (name, _, _) in enumerate(rows, 1)])
    return f"{figure(caption, caption, plot, parts)}\n\n{listed}"


def races(text: str) -> list[tuple[str, int, int]]:
    """Return from docs/lab/jobs.md how many runs of each script differ, alone and with two runs at once."""
    found = re.findall(r"^\| (\w+) \| (\d+): [^|]+ \| (\d+): ", text, re.MULTILINE)
    return [(name, int(alone), int(together)) for name, alone, together in found]


FIXES = {
    "seeds": "seeds for Python, NumPy and the framework, and PYTHONHASHSEED",
    "deterministic": "the same seeds, and the framework's own deterministic mode",
    "hash-seed": "PYTHONHASHSEED alone",
    "fixed-addresses": "PYTHONHASHSEED and fixed memory addresses",
    "numpy-entropy": "a seed for `default_rng()` calls that pass none",
    "all": "all of these together",
    "one-thread": "the same seeds, and one thread",
    "fresh-folder": "a folder without files of earlier runs",
    "": "only an edit of the script",
}
"""The fixes that tests/corpus/measure.py applies."""


def fixed_by() -> str:
    """Return what fixes the nondeterministic scripts of the corpus. Raises ValueError for a fix without a text."""
    labels = yaml.safe_load((DOCS.parent / "tests" / "corpus" / "labels.yaml").read_text())
    counts = Counter(one.get("fix", [""])[0] for one in labels.values() if one["none"] == "N")
    rows = [[FIXES[fix], str(counts[fix])] for fix in sorted(counts, key=list(FIXES).index)]
    return table(["fixed by", "scripts"], [*rows, ["in total", str(counts.total())]])
