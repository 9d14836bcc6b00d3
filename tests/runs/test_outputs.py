"""Which of the files that a run wrote are read, by which names they are compared, and what of them the run added."""

import logging.handlers
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from detaudit.config.outputs import Listed
from detaudit.launch.workspace import Prefixes, Stamps, links, stamps
from detaudit.launch.workspace import written as scanned
from detaudit.model.outputs import File, FileBudget, ListedFile, OutputRules, Outputs, RunFacts, Unread
from detaudit.outputs import compare
from detaudit.outputs.measurements import masked
from detaudit.runs import files
from detaudit.runs.files import Change, Changes, Collector, Databases, changes_of, is_ignored, numbered
from detaudit.runs.log import Process
from detaudit.runs.log_records import Hello, Left, Wrote

NONE_LISTED = Listed({}, ())
FACTS = RunFacts(started=0.0, ended=1.0)


def save(path: Path, value: float) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.array([value]))
    return str(path)


def new(*paths: str) -> Changes:
    return Changes(tuple(Change(path, existed=False) for path in paths))


def collect(collector: Collector, cwd: Path, *paths: str, unchanged: tuple[str, ...] = ()) -> tuple[File, ...]:
    return collector.collect(cwd, new(*paths), unchanged, listed=NONE_LISTED, facts=FACTS).files


def names(files: tuple[File, ...]) -> list[str]:
    return [file.name for file in files]


def process(*lines: Wrote, left: tuple[Left, ...] = ()) -> Process:
    return Process(Hello(1, 7, 1, (), "", None, ()), wrote=list(lines), left=list(left))


def line(path: Path | str, *, append: bool = False, size: int = -1, at: int = 1, **more: object) -> Wrote:
    return Wrote(str(path), append=append, size=size, at=at, **more)  # type: ignore[arg-type]


def test_files_have_the_names_of_the_first_run(tmp_path: Path) -> None:
    collector = Collector()
    first = collect(collector, tmp_path, save(tmp_path / "run-1" / "a.npy", 1))
    second = collect(collector, tmp_path, save(tmp_path / "run-2" / "a.npy", 1))
    assert (names(first), names(second)) == (["run-1/a.npy"], ["run-1/a.npy"])
    assert second[0].path == "run-2/a.npy"
    assert compare.digest(first[0]) == compare.digest(second[0])


def test_a_file_that_was_only_read_counts_as_written(tmp_path: Path) -> None:
    collector, cache = Collector(), save(tmp_path / "cache.npy", 1)
    first = collect(collector, tmp_path, cache)
    assert collect(collector, tmp_path, unchanged=(cache,)) == first
    assert collect(collector, tmp_path) == ()


def test_what_is_left_out_is_listed_with_its_row(tmp_path: Path) -> None:
    paths = [save(tmp_path / name, 1) for name in (".git/a.npy", "named.npy", "logs/ignored.npy", "kept/a.npy")]
    collector = Collector(OutputRules(ignore=("ignored.*",)))
    found = collector.collect(tmp_path, new(*paths), (), {paths[1]}, listed=Listed({}), facts=FACTS)
    assert (names(found.files), found.listed) == (["kept/a.npy"], (ListedFile(".git/a.npy", "git"),))


@pytest.mark.parametrize(
    ("pattern", "ignored"),
    [
        ("*.csv", True),
        ("b.csv", True),
        ("a", True),
        ("a/", True),
        ("a/*.csv", True),
        ("./a/b.csv", True),
        ("**/b.csv", True),
        ("*.cs", False),
        ("b.csv/", False),
        ("b", False),
        ("c/*.csv", False),
    ],
)
def test_patterns_are_as_in_gitignore(pattern: str, ignored: bool) -> None:
    assert is_ignored("a/b.csv", (pattern,)) is ignored


def test_the_budget_reads_small_files_first_and_names_the_others(tmp_path: Path) -> None:
    for name, size in (("big.bin", 5000), ("small.bin", 10), ("middle.bin", 100)):
        (tmp_path / name).write_bytes(b"x" * size)
    paths = [str(tmp_path / name) for name in ("big.bin", "small.bin", "middle.bin")]
    budget = FileBudget(60.0, 1000)
    found = Collector(OutputRules(file_budget=budget)).collect(
        tmp_path, new(*paths), (), listed=NONE_LISTED, facts=FACTS
    )
    assert names(found.files) == ["middle.bin", "small.bin"]
    assert found.unread == Unread(budget=budget, count=1, size=5000, files=("big.bin",))
    found = Collector(OutputRules(file_budget=FileBudget(-1.0))).collect(
        tmp_path, new(*paths), (), listed=NONE_LISTED, facts=FACTS
    )
    assert found.files == ()
    assert found.unread is not None
    assert (found.unread.count, found.unread.files) == (3, ("small.bin", "middle.bin", "big.bin"))


def test_a_recorder_that_ran_out_of_lines_is_said(tmp_path: Path) -> None:
    changes = changes_of((), Stamps({}), [process(line("", spent=True))])
    assert changes.spent
    unread = Collector().collect(tmp_path, changes, (), listed=NONE_LISTED, facts=FACTS).unread
    assert unread == Unread(budget=FileBudget())


@pytest.mark.parametrize(("before", "after", "spent"), [(True, True, False), (False, True, True), (True, False, True)])
def test_a_complete_search_has_what_the_recorder_left_out_of_it(before: bool, after: bool, spent: bool) -> None:
    lines = [process(line("", spent=True, seen=True))]
    assert changes_of((), Stamps({}, before), lines, complete=after).spent is spent
    assert changes_of((), Stamps({}), [*lines, process(line("", spent=True))]).spent


def test_what_has_no_line_may_have_been_overwritten_by_more_of_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1")
    before, prefixes = stamps(tmp_path, tmp_path / "none"), Prefixes([str(path)])
    path.write_text("11")
    changed = scanned(before, stamps(tmp_path, tmp_path / "none"))
    for lines, kept in (([], 1), ([process(line("", spent=True, seen=True))], 0)):
        assert changes_of(changed, before, lines, prefixes).files == (Change(str(path), existed=True, kept=kept),)


def test_what_was_read_is_kept(tmp_path: Path) -> None:
    found = Collector().collect(tmp_path, new(save(tmp_path / "a.npy", 1)), (), listed=NONE_LISTED, facts=FACTS)
    files.keep(found, tmp_path)
    assert files.kept(tmp_path) == found
    assert files.kept(tmp_path / "none") is None


def test_names_that_are_gone_and_second_names_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "final.txt").write_text("1")
    os.link(tmp_path / "final.txt", tmp_path / "second.txt")
    (tmp_path / "link.txt").symlink_to("final.txt")
    lines = [line(tmp_path / name) for name in ("final.txt.tmp", "final.txt", "second.txt", "link.txt")]
    changes = changes_of((), Stamps({}), [process(*lines)])
    assert changes.files == (Change(str(tmp_path / "final.txt"), existed=False),)


def test_a_folder_that_was_made_or_renamed_counts_with_all_that_is_in_it(tmp_path: Path) -> None:
    save(tmp_path / "out" / "deep" / "a.npy", 1)
    changes = changes_of((), Stamps({}), [process(line(tmp_path / "out", folder=True))])
    assert changes.files == (Change(str(tmp_path / "out" / "deep" / "a.npy"), existed=False),)
    assert changes.folders == (str(tmp_path / "out"),)


def test_a_file_that_was_opened_and_not_changed_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    path.write_text("1")
    stat = path.stat()
    opened = Wrote(str(path), size=stat.st_size, changed=stat.st_ctime_ns, at=1)
    assert changes_of((), Stamps({}), [process(opened)]).files == ()


def test_temporary_files_that_are_left_may_be_new(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    left = (Left(str(tmp_path / "a"), True), Left(str(tmp_path / "b"), False))
    changes = changes_of((), Stamps({}), [process(left=left)])
    assert sorted((Path(one.path).name, one.existed) for one in changes.files) == [("a", False), ("b", True)]


def test_of_a_log_that_is_appended_to_only_the_end_counts(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("before\n")
    lines = [line(log, append=True, size=7)]
    before = stamps(tmp_path, tmp_path / "none")
    with log.open("a") as file:
        file.write("added\n")
    changed = scanned(before, stamps(tmp_path, tmp_path / "none"))
    changes = changes_of(changed, before, [process(*lines)])
    assert changes.files == (Change(str(log), existed=True, kept=7),)
    (found,) = Collector().collect(tmp_path, changes, (), listed=NONE_LISTED, facts=FACTS).files
    other = tmp_path / "alone" / "log.txt"
    other.parent.mkdir()
    other.write_text("added\n")
    (alone,) = collect(Collector(), other.parent, str(other))
    assert found.added_only
    assert found.sha256 == alone.sha256


@pytest.mark.parametrize("how", ["overwritten", "by one process", "cut", "replaced", "by native code", "to its size"])
def test_a_file_that_may_have_been_overwritten_counts_as_a_whole(tmp_path: Path, how: str) -> None:
    log = tmp_path / "log.txt"
    log.write_text("before\n")
    before = stamps(tmp_path, tmp_path / "none")
    if how == "replaced":
        (tmp_path / "log.new").write_text("before\nadded\n")
        (tmp_path / "log.new").replace(log)
    else:
        log.write_text("" if how == "cut" else "before\nadded\n")
    changed = scanned(before, stamps(tmp_path, tmp_path / "none"))
    first = line(log, append=True, size=7)
    processes = {
        "overwritten": [process(first, line(log, at=2))],
        "by one process": [process(first), process(line(log, size=7, at=2))],
        "by native code": [process(line(log, append=True, size=9))],
        "to its size": [process(line(log, append=True, size=7, changed=before.files[str(log)][1] + 1))],
    }.get(how, [process(first)])
    assert changes_of(changed, before, processes).files == (Change(str(log), existed=True),)


def test_without_a_recorder_the_content_shows_what_was_appended(tmp_path: Path) -> None:
    logs = [tmp_path / name for name in ("appended", "changed", "same")]
    for log in logs:
        log.write_text("before\n")
    prefixes, before = Prefixes(map(str, logs)), stamps(tmp_path, tmp_path / "none")
    for log, text in zip(logs, ("before\nadded\n", "behind\nadded\n", "before\n"), strict=True):
        log.write_text(text)
    changed = scanned(before, stamps(tmp_path, tmp_path / "none"))
    found = changes_of(changed, before, (), prefixes).files
    assert {Path(one.path).name: one.kept for one in found} == {"appended": 7, "changed": 0, "same": 0}


@pytest.mark.launches  # a database is read in a process of its own
@pytest.mark.parametrize("how", ["added to", "changed"])
def test_of_a_database_only_the_rows_that_were_added_count(tmp_path: Path, how: str) -> None:
    path, fresh = tmp_path / "a" / "runs.db", tmp_path / "b" / "runs.db"

    def run(place: Path, *statements: str) -> None:
        place.parent.mkdir(exist_ok=True)
        database = sqlite3.connect(place)
        for one in ("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY AUTOINCREMENT, x REAL)", *statements):
            database.execute(one)
        database.commit()
        database.close()

    inserts = ("INSERT INTO t (x) VALUES (0.5)", "INSERT INTO t (x) VALUES (0.25)")
    run(path, *inserts)
    run(fresh, *inserts)
    known, before = Databases().before([str(path), str(tmp_path / "none")]), stamps(path.parent, tmp_path / "none")
    run(path, *inserts, *(["UPDATE t SET x = 1 WHERE id = 1"] if how == "changed" else []))
    changed = scanned(before, stamps(path.parent, tmp_path / "none"))
    changes = changes_of(changed, before, (), databases=known)
    (found,) = Collector().collect(path.parent, changes, (), listed=NONE_LISTED, facts=FACTS).files
    (first,) = collect(Collector(), fresh.parent, str(fresh))
    assert found.added_only is (how == "added to")
    assert (found.values == first.values) is (how == "added to")


@pytest.mark.launches  # a database is read in a process of its own
def test_rows_that_are_only_in_the_log_of_a_database_count(tmp_path: Path) -> None:
    """The databases are the same bytes; a process that ends without closing one leaves its log."""
    collector, found = Collector(), list[File]()
    for accuracy in (0.5, 0.25):
        place = tmp_path / str(accuracy)
        place.mkdir()
        database = sqlite3.connect(place / "runs.db", isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA wal_autocheckpoint = 0")
        database.execute("CREATE TABLE t (accuracy REAL)")
        database.execute("INSERT INTO t VALUES (?)", [accuracy])
        found += collect(collector, place, str(place / "runs.db"))
        database.close()
    assert [one.values[-1].shown for one in found] == ["0.5", "0.25"]
    (difference,) = compare.differences(*(Outputs(files=(one,), facts=FACTS) for one in found))
    assert difference.decides


def test_rows_that_are_appended_to_a_table_have_names(tmp_path: Path) -> None:
    table = tmp_path / "history.csv"
    table.write_text("model,loss\nmlp,0.5\n")
    before = stamps(tmp_path, tmp_path / "none")
    with table.open("a") as file:
        file.write("mlp,0.25\n")
    changed = scanned(before, stamps(tmp_path, tmp_path / "none"))
    changes = changes_of(changed, before, [process(line(table, append=True, size=19))])
    (found,) = Collector().collect(tmp_path, changes, (), listed=NONE_LISTED, facts=FACTS).files
    assert [(value.name, value.shown) for value in found.values if value.name.startswith("row")] == [
        ("row 1, model", "mlp"),
        ("row 1, loss", "0.25"),
    ]


def test_what_a_run_makes_and_appends_to_again_did_not_exist_before(tmp_path: Path) -> None:
    before = stamps(tmp_path, tmp_path / "none")
    log = tmp_path / "log.jsonl"
    log.write_text('{"epoch": 1}\n{"epoch": 2}\n')
    changed = scanned(before, stamps(tmp_path, tmp_path / "none"))
    changes = changes_of(changed, before, [process(line(log, append=True, size=13))])
    assert changes.files == (Change(str(log), existed=False),)


@pytest.mark.parametrize("mark", ["", "-", "_"])
def test_folders_of_a_series_count_as_the_first(mark: str) -> None:
    cwd = Path("/w")
    before = {"/w/runs", "/w/runs/exp", "/w/runs/lr_0.1"}
    after = {*before, f"/w/runs/exp{mark}2", "/w/runs/lr_0.2", "/w/other3"}
    assert numbered(before, after, cwd) == ((f"runs/exp{mark}2", "runs/exp"),)
    facts = RunFacts(started=0, ended=1, numbered=((f"runs/exp{mark}2", "runs/exp"),))
    assert masked(f"to runs/exp{mark}2, not runs/exp{mark}21", facts) == f"to runs/exp, not runs/exp{mark}21"
    assert masked(f"exp{mark}2", facts) == "exp"


def logged(folder: Path, lines: Sequence[str]) -> tuple[Changes, Stamps]:
    """Write lines to a log that is rotated, as a run does, and return what changed."""
    before = stamps(folder, folder / "none")
    handler = logging.handlers.RotatingFileHandler(folder / "train.log", maxBytes=90, backupCount=3)
    for text in lines:
        handler.emit(logging.LogRecord("a", logging.INFO, "", 0, text, None, None))
    handler.close()
    changed = scanned(before, stamps(folder, folder / "none"))
    return changes_of(changed, before, [process(line(path, append=True, size=0)) for path in changed]), before


@pytest.mark.parametrize("earlier", [[], ["older line"], [f"older line {number}" for number in range(40)]])
def test_a_log_that_each_run_cuts_elsewhere_is_one_file(tmp_path: Path, earlier: list[str]) -> None:
    logged(tmp_path, earlier)
    collector, files = Collector(), []
    for loss in (0.25, 0.25, 0.25, 0.25, 0.75):
        lines = [f"epoch {number} loss {loss if number == 9 else 0.5}" for number in range(12)]
        changes, _ = logged(tmp_path, lines)
        found = collector.collect(tmp_path, changes, (), listed=NONE_LISTED, facts=FACTS).files
        files.append({file.name: file for file in found})
    assert [list(one) for one in files] == [["train.log"]] * 5
    *equal, other = [compare.digest(one["train.log"]) for one in files]
    assert len(set(equal)) == 1
    assert other not in equal


def test_files_named_as_a_rotated_log_that_each_run_overwrites_are_whole(tmp_path: Path) -> None:
    collector, digests = Collector(), []
    for second in ("0.5", "0.5", "0.7"):
        before = stamps(tmp_path, tmp_path / "none")
        for name, loss in (("a.log", "0.25"), ("a.log.1", second)):
            (tmp_path / name).write_text(f"loss {loss}\n")
        changed = scanned(before, stamps(tmp_path, tmp_path / "none"))
        changes = changes_of(changed, before, [process(*(line(path, size=10) for path in changed))])
        (file,) = collector.collect(tmp_path, changes, (), listed=NONE_LISTED, facts=FACTS).files
        digests.append(compare.digest(file))
    assert [one == digests[0] for one in digests] == [True, True, False]


def test_files_with_numbers_that_are_no_rotated_log_are_compared_alone(tmp_path: Path) -> None:
    for name in ("model.pt", "model.pt.1", "only.log.1", "pred.out", "pred.out.1"):
        (tmp_path / name).write_text(name)
    names_of = [str(path) for path in sorted(tmp_path.iterdir())]
    found = changes_of(names_of, Stamps({}), ()).files
    assert sorted(change.path for change in found) == names_of
    assert not any(change.older for change in found)


def test_a_link_says_what_it_leads_to(tmp_path: Path) -> None:
    """By the names by which runs are compared; one that an earlier run made and this one found is there, too."""
    collector = Collector()

    def left(run: str, best: str, *, new: bool = True) -> dict[str, tuple[str, ...]]:
        saved = [save(tmp_path / run / f"epoch-{at}.npy", at) for at in (1, 2)]
        links = ((str(tmp_path / "best.npy"), f"{run}/{best}.npy", new), (str(tmp_path / "latest"), run, True))
        changes = Changes(tuple(Change(path, existed=False) for path in saved), links=links)
        outputs = collector.collect(tmp_path, changes, (), listed=NONE_LISTED, facts=FACTS)
        return {file.name: tuple(one.digest for one in file.values) for file in outputs.files if file.by == "link"}

    first = left("calm-fox", "epoch-1")
    assert first.keys() == {"best.npy", "latest"}
    assert left("shy-owl", "epoch-1", new=False) == first
    other = left("old-cat", "epoch-2")
    assert (other["best.npy"] == first["best.npy"], other["latest"] == first["latest"]) == (False, True)


def test_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "kept").symlink_to("a")
    before = stamps(tmp_path, Path())
    (tmp_path / "best").symlink_to("b")
    assert links(before, stamps(tmp_path, Path())) == [
        (str(tmp_path / "best"), "b", True),
        (str(tmp_path / "kept"), "a", False),
    ]
