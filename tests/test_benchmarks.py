"""Test the frame of the benchmarks: turns, goals, the table, the page and its charts, not what is measured."""

import importlib.util
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import differs, page, pages
from benchmarks.__main__ import chosen
from benchmarks.catalogue import FOLDER, MEASUREMENTS, SECTIONS, Measurement, about
from benchmarks.chart import BAR_WIDTH, KEPT, MISSED, chart
from benchmarks.commands import seconds
from benchmarks.pace import blocks
from benchmarks.results import RESULTS, commit, machine, store, stored
from benchmarks.rows import Figure, Goal, Result, Row, Scale, in_turn, number, ratios
from detaudit import __version__

SVG = "{http://www.w3.org/2000/svg}"


def row(*ratios: float, goal: Goal | None = None, also: tuple[Figure, ...] = (), what: str = "an <audit>") -> Row:
    return Row(what=what, over="a loop", ratios=ratios, goal=goal, also=also)


def result(*rows: Row) -> Result:
    return Result(commit="1a2b3c4", date="2026-11-23", took_s=90, busy=0.02, machine=machine(), rows=rows)


def test_actions_take_turns() -> None:
    calls: list[str] = []

    def action(name: str, took: float) -> float:
        calls.append(name)
        return took

    turns = in_turn(2, {"a": lambda: action("a", 3.0), "b": lambda: action("b", 2.0)})
    assert calls == ["a", "b", "a", "b"]
    assert ratios(turns, "a", "b") == (1.5, 1.5)


@pytest.mark.parametrize(
    ("goal", "met", "missed"), [(Goal(1.03), 1.03, 1.031), (Goal(0.33, at_least=True), 0.33, 0.329)]
)
def test_a_goal_is_about_the_median(goal: Goal, met: float, missed: float) -> None:
    assert not row(met, 0.0, 9.0, goal=goal).missed
    assert row(missed, 0.0, 9.0, goal=goal).missed
    assert row(1.0, also=(Figure(missed, "s", goal),)).missed
    assert not row(1.0, also=(Figure(missed, "s"),)).missed


def test_numbers_have_three_digits() -> None:
    assert [number(one) for one in (1234.5, 12.34, 1.234, 0.1234, 0.01234, -2.5)] == [
        "1,234",
        "12.3",
        "1.23",
        "0.12",
        "0.012",
        "-2.50",
    ]
    assert str(Figure(7.0, "runs")) == "7 runs"
    assert str(Figure(1.5e6, "events per second", Goal(1_000_000, at_least=True))) == (
        "1,500,000 events per second (goal ≥ 1,000,000)"
    )


def test_a_quick_scale_is_small_and_repeats_win() -> None:
    assert (Scale().turns(5), Scale(quick=True).turns(5), Scale(quick=True, repeats=7).turns(5)) == (5, 2, 7)
    assert (Scale().size(10**6, 10), Scale(quick=True).size(10**6, 10)) == (10**6, 10)


def test_names_choose_measurements_and_sections() -> None:
    assert [one.name for one in chosen(["bisect-hour", "audits"], long=False)] == [
        "audit-gpt",
        "audit-cnn",
        "audit-keras",
        "bisect-hour",
    ]
    assert not [one for one in chosen([], long=False) if one.long]
    assert {one.name for one in [*chosen([], long=True), *chosen([], long=False)]} == {one.name for one in MEASUREMENTS}
    with pytest.raises(SystemExit, match="nonsense"):
        chosen(["start", "nonsense"], long=False)


@pytest.mark.parametrize("one", MEASUREMENTS, ids=lambda one: one.name)
def test_each_measurement_is_in_a_section_that_says_how_it_is_measured(one: Measurement) -> None:
    assert one.module in SECTIONS
    assert len(about(one.module)) > 60
    assert importlib.util.find_spec(f"benchmarks.{one.module}")


def test_results_come_back_from_disk(tmp_path: Path) -> None:
    kept = result(row(1.0, 1.02, goal=Goal(1.03), also=(Figure(25, "s"),)))
    store("start", kept, tmp_path)
    assert stored(tmp_path) == {"start": kept}


def test_the_page_says_what_was_measured_where_and_what_was_not(tmp_path: Path) -> None:
    found = {"audit-cnn": result(row(1.0, 1.05, 1.04, goal=Goal(1.03)), row(2.0, what="a | b"))}
    page.write(found, tmp_path)
    text = (tmp_path / "benchmarks.md").read_text()
    assert "| an <audit> | a loop | ≤ 1.03 | **1.04** | 1.00 to 1.05 | 3 |  |" in text
    assert r"| a \| b | a loop |  | 2.00 |  | 1 |  |" in text
    assert "`python -m benchmarks audit-cnn` measured commit 1a2b3c4 on 2026-11-23, in 1.5 min on machine A." in text
    assert "not measured: `python -m benchmarks audit-gpt`" in text
    assert f"Machine A: {machine()}" in text
    assert [path.name for path in (tmp_path / "benchmarks").iterdir()] == ["audits.svg"]
    page.write({}, tmp_path)
    assert not list((tmp_path / "benchmarks").iterdir())


def test_the_terminal_shows_the_same_rows(capsys: pytest.CaptureFixture[str]) -> None:
    found = {"start": result(row(1.0, 1.05, 1.04, goal=Goal(1.03)))}
    page.print_table(found, whole=False)
    _, line = capsys.readouterr().out.splitlines()
    assert " ".join(line.split()) == "an <audit> a loop ≤ 1.03 1.04 1.00 to 1.05 3"
    page.print_table(found, whole=True)
    assert capsys.readouterr().out.count("not measured") == len(MEASUREMENTS) - 1


def test_a_measurement_that_fails_stops_no_other_and_a_quick_one_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept: dict[str, Result] = {}

    def measured(one: Measurement, _: Scale) -> Result:
        if one.name == "digest":
            raise RuntimeError("no such array")
        return result(row(1.0))

    monkeypatch.setattr(command, "measured", measured)
    monkeypatch.setattr(command, "store", kept.__setitem__)
    monkeypatch.setattr(command, "stored", lambda: kept)
    monkeypatch.setattr(command, "write", lambda results: None)
    assert command.main(["start", "--quick"]) == 0
    assert not kept
    assert command.main(["start", "digest", "distances"]) == 1
    assert list(kept) == ["start", "distances"]
    assert "no such array" in capsys.readouterr().err


def test_the_size_of_a_report_is_known_without_its_data() -> None:
    assert pages.sizes(b"<p data-values='[1, 2]' class='a'>x</p>" * 1000) == (39.0, 19.0)


def test_bars_are_as_long_as_their_medians() -> None:
    goal = Goal(1.5)
    drawn = ET.fromstring(chart("Audits & more", [row(1.0, 1.0, 2.0, goal=goal), row(2.0, goal=goal)]))
    bars = drawn.findall(f"{SVG}rect")
    assert [float(bar.get("width", "")) for bar in bars] == [BAR_WIDTH / 2, BAR_WIDTH]
    assert [bar.get("fill") for bar in bars] == [KEPT, MISSED]
    lines = [path.get("d", "") for path in drawn.findall(f"{SVG}path")]
    assert lines[0].startswith(f"M{BAR_WIDTH / 2:.1f} ")
    assert f"H{BAR_WIDTH:.1f}" in lines[0]
    assert lines[1].startswith(f"M{BAR_WIDTH * 0.75:.1f} ")
    assert "an <audit>" in "".join(drawn.itertext())


def test_the_page_in_the_repository_is_that_of_the_stored_results(tmp_path: Path) -> None:
    kept = {path.stem for path in RESULTS.glob("*.json")}
    assert kept <= {one.name for one in MEASUREMENTS}
    page.write(stored(), tmp_path)
    for path in tmp_path.rglob("*.*"):
        there = page.DOCS / path.relative_to(tmp_path)
        assert there.read_text() == path.read_text(), "python -m benchmarks --page writes it"


@pytest.mark.launches
def test_trainings_wait_until_it_is_their_turn() -> None:
    turns = blocks({"a": ("while True:\n    pace()\n", {}), "b": ("while True:\n    pace()\n", {})}, 3, 2)
    assert [list(turn) for turn in turns] == [["a", "b"], ["a", "b"]]
    assert all(0 <= step_s < 1 for turn in turns for step_s in turn.values())


@pytest.mark.launches
def test_the_error_of_a_training_is_shown() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        blocks({"a": ("pace()\n1 / 0\n", {})}, 3, 2)


@pytest.mark.launches
def test_a_command_that_fails_is_no_measurement(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "raise SystemExit('no such flag')"]
    with pytest.raises(RuntimeError, match="no such flag"):
        seconds(words, tmp_path)
    assert seconds(words, tmp_path, status=1) > 0


@pytest.mark.launches
@pytest.mark.parametrize(("said", "sleeps_s"), [("runs 1 and 2 differ at step 1", 60), ("run 2 of 5", 0)])
def test_a_command_is_interrupted_once_stderr_says_that_runs_differ(tmp_path: Path, said: str, sleeps_s: int) -> None:
    code = f"""
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
print({said!r}, file=sys.stderr, flush=True)
time.sleep({sleeps_s})
sys.exit(1)
"""
    assert differs.known_s([sys.executable, "-c", code], tmp_path) < 60


@pytest.mark.launches
def test_a_commit_is_named() -> None:
    if not (FOLDER.parent / ".git").exists():
        assert commit() == __version__
        return
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=FOLDER, check=True, capture_output=True, text=True).stdout
    assert head.startswith(commit().removesuffix(" with changes"))


@pytest.mark.launches
def test_the_command_line_measures_and_prints() -> None:
    words = [sys.executable, "-m", "benchmarks", "--quick", "--repeats", "3", "distances"]
    done = subprocess.run(words, cwd=FOLDER.parent, check=True, capture_output=True, text=True)
    (line,) = [line for line in done.stdout.splitlines() if "with NumPy" in line]
    assert re.search(r"without NumPy +0\.\d+ +0\.\d+ to 0\.\d+ +3 +0\.\d+ s \(goal ≤ 0\.4\)", line)
