"""What a file holds: which values decide, what is shown of them, and how much of a large file is kept."""

import hashlib
import json
import math
import os
import pickle
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from detaudit.model.outputs import Declared, File, OutputKind, Outputs, Role, RunFacts, Value
from detaudit.outputs import compare
from detaudit.redact import HIDDEN
from detaudit.runs import formats, values
from detaudit.runs.formats import BROKEN, Part, Rows, apart, documents, protobuf
from detaudit.runs.values import Budget, BudgetSpentError, known_as, read

NOW = 1_800_000_000.0
FACTS = RunFacts(started=NOW, ended=NOW + 60)


def saved(folder: Path, value: Any, name: str = "state.any", **options: Any) -> File:
    path = folder / name
    path.write_bytes(pickle.dumps(value))
    return read(path, name, FACTS, **options)


def by_name(file: File) -> dict[str, Value]:
    return {value.name: value for value in file.values}


def test_a_file_has_the_digest_of_its_bytes_and_its_values(tmp_path: Path) -> None:
    file = saved(tmp_path, {"loss": 0.25, "w": np.ones(2)}, "out.pkl")
    data = (tmp_path / "out.pkl").read_bytes()
    assert (file.path, file.name, file.size, file.by) == ("out.pkl", "out.pkl", len(data), "pickle")
    assert file.sha256 == hashlib.sha256(data).hexdigest()
    assert [(one.name, one.role, one.shown) for one in file.values[:2]] == [
        ("loss", Role.RESULT, "0.25"),
        ("w", Role.RESULT, ""),
    ]


@pytest.mark.parametrize(
    ("name", "value", "role"),
    [
        ("fit_time", 3.5, Role.MEASUREMENT),
        ("fit_time", np.array([3.5, 4.5]), Role.MEASUREMENT),
        ("fit_time", np.array([3.5, -2]), Role.RESULT),
        ("fit_time", np.array([3.5, -1]), Role.OPEN),
        ("fit_time", np.array([3.5, np.nan]), Role.MEASUREMENT),
        ("fit_time", np.array([3, 4], ">i4"), Role.MEASUREMENT),
        ("arrival_time", np.array([3.5, 4.5]), Role.RESULT),
        ("threshold", 0.5, Role.RESULT),
        ("rng", torch.get_rng_state(), Role.GENERATOR),
        ("state", random.getstate(), Role.GENERATOR),
        ("random_state", 3, Role.RESULT),
        ("model._listener_handle", ("/tmp/pymp-d5ebpfxk/listener-obx3geoc", b"key"), Role.IDENTIFIER),
    ],
)
def test_the_roles_of_values(name: str, value: Any, role: Role, tmp_path: Path) -> None:
    found = saved(tmp_path, {name: value}).values
    assert {one.role for one in found if one.name in (name, f"{name}.1")} - {Role.RESULT} == {role} - {Role.RESULT}
    assert found


def test_the_name_of_the_file_says_what_its_values_are(tmp_path: Path) -> None:
    for name, role in (("epoch_times.npy", Role.MEASUREMENT), ("weights.npy", Role.RESULT)):
        np.save(tmp_path / name, np.array([1.5, 2.5]))
        assert [one.role for one in read(tmp_path / name, name, FACTS).values] == [role]


def test_the_elements_of_a_large_array_with_the_name_of_a_time_are_not_known(tmp_path: Path) -> None:
    file = saved(tmp_path, {"fit_time": np.ones(100_000)})
    assert by_name(file)["fit_time"].role is Role.OPEN


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    held = {"api_key": "sk-1", "nested": {"password": "p", "x": 1}, "url": "https://me:pw@host/a", "mine": "m"}
    shown = {name: one.shown for name, one in by_name(saved(tmp_path, held, secret_names=["mine"])).items()}
    assert shown["api_key"] == shown["nested.password"] == shown["mine"] == HIDDEN
    assert shown["nested.x"] == "1"
    assert "pw" not in shown["url"]
    assert "pw" not in json.dumps(shown)


def test_long_texts_are_not_shown(tmp_path: Path) -> None:
    assert by_name(saved(tmp_path, {"a": "x" * 500}))["a"].shown == ""


def test_what_decides_comes_first(tmp_path: Path) -> None:
    file = saved(tmp_path, {"fit_time": 1.5, "r": random.getstate(), "loss": 0.5})
    assert [one.role for one in file.values] == sorted((one.role for one in file.values), key=[*Role].index)
    assert file.values[0].name == "loss"


def test_values_beyond_a_number_are_folded_by_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MOST_VALUES", 10)
    rows: list[dict[str, Any]] = [{"loss": 0.5 + place, "fit_time": 1.5, "tag": "x"} for place in range(30)]
    first = saved(tmp_path, rows)
    assert len(first.values) == 10 + 3
    rows[20]["loss"] += 1
    found, again = by_name(first), by_name(saved(tmp_path, rows))
    assert {name for name in found if found[name] != again[name]} == {"*.loss (further values)"}
    assert found["*.fit_time (further values)"].role is Role.MEASUREMENT


def test_a_budget_ends_reading(tmp_path: Path) -> None:
    budget = Budget(bytes=3000)
    saved(tmp_path, {"a": bytes(1000)}, budget=budget)
    with pytest.raises(BudgetSpentError, match="bytes"):
        saved(tmp_path, {"a": bytes(4000)}, budget=budget)
    with pytest.raises(BudgetSpentError, match="time"):
        saved(tmp_path, {}, budget=Budget(seconds=-1))


def test_the_time_between_files_is_not_that_of_reading(tmp_path: Path) -> None:
    budget = Budget(seconds=0.5)
    saved(tmp_path, {}, budget=budget)
    time.sleep(0.6)
    saved(tmp_path, {}, budget=budget)


def test_what_an_archive_unpacks_to_counts(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a", a=np.zeros(100_000))
    budget = Budget(bytes=100_000)
    file = read(tmp_path / "a.npz", "a", FACTS, budget=budget)
    assert ("--file-budget" in file.problem, file.values, len(file.sha256)) == (True, (), 64)  # equal bytes are equal
    with pytest.raises(BudgetSpentError, match="bytes"):
        read(tmp_path / "a.npz", "a", FACTS, budget=budget)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(99)}, tmp_path / "a")
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:-40])
    file = read(tmp_path / "a", "a", FACTS)
    assert (file.by, file.values) == ("torch", ())
    assert "cannot be read as torch" in file.problem
    (tmp_path / "manifest.ocdbt").write_bytes(b"\x0c\xdb\x3a\x2a")
    assert "tensorstore" in read(tmp_path / "manifest.ocdbt", "m", FACTS).problem
    with pytest.raises(OSError, match="gone"):
        read(tmp_path / "gone", "gone", FACTS)


def test_the_interpreter_is_asked_only_while_its_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def library(kind: str, path: Path) -> Iterator[Part]:
        asked.append(apart.interpreter.get())
        yield formats.number("x", 1)

    monkeypatch.setattr(apart, "by_library", library)
    (tmp_path / "manifest.ocdbt").write_bytes(b"\x0c\xdb\x3a\x2a")
    read(tmp_path / "manifest.ocdbt", "m", FACTS, python="/usr/bin/python3")
    assert (asked, apart.interpreter.get()) == (["/usr/bin/python3"], "")


def test_the_same_bytes_are_not_read_again_below_a_name_that_means_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = saved(tmp_path, {"w": 1}, "w-1.any")
    known = {known_as(first.path, first.sha256): first}
    monkeypatch.setattr(formats, "format_of", None)
    assert saved(tmp_path, {"w": 1}, "seconds-2.any", known=known).problem
    nothing: tuple[Rows | None, ...] = None, {}
    for without in nothing:
        again = saved(tmp_path, {"w": 1}, "w-2.any", known=known, without=without)
        assert (again.path, again.values) == ("w-2.any", first.values)


def test_an_empty_file_has_no_values_but_a_digest(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    file = read(tmp_path / "a", "a", FACTS)
    assert (file.size, file.problem) == (0, "")


SAMPLES = {
    "pickle": pickle.dumps({"a": [1, 2.5, "x"], "s": {1, 2}, "w": np.arange(9.0)}),
    "old pickle": pickle.dumps({"a": [1, 2.5, "x"], "s": {1, 2}}, 0),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bent")
    torch.save({"w": torch.arange(4.0)}, folder / "torch", _use_new_zipfile_serialization=False)
    SAMPLES["legacy"] = (folder / "torch").read_bytes()
    torch.save({"w": torch.arange(4.0)}, folder / "torch")
    SAMPLES["torch"] = (folder / "torch").read_bytes()
    SAMPLES["two torch"] = SAMPLES["torch"] * 2
    return folder


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_bent_bytes_never_raise_anything_else(folder: Path, data: st.DataObject) -> None:
    """A file that is bent anywhere is read, or says why not."""
    content = bytearray(SAMPLES[data.draw(st.sampled_from(sorted(SAMPLES)))])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    (folder / "bent").write_bytes(bytes(content[:cut] if data.draw(st.booleans()) else content))
    read(folder / "bent", "bent", FACTS)


@settings(deadline=None, max_examples=300)
@given(
    st.binary(max_size=300), st.sampled_from([b"\x08\x08", b"\x82\xa1a", b"\x80\x02", b"CBM1", b"\x08\x01\x12", b""])
)
def test_any_bytes_are_read(folder: Path, data: bytes, mark: bytes) -> None:
    (folder / "any").write_bytes(mark + data)
    read(folder / "any", "any", FACTS)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_a_protocol_buffer_is_walked_or_refused(data: bytes) -> None:
    try:
        for field in protobuf.fields(data):
            assert field.number
    except BROKEN:
        pass


@pytest.mark.parametrize("protocol", [2, 4, 5])
@torch.no_grad()
def test_a_model_of_torch_in_a_pickle(tmp_path: Path, protocol: int) -> None:
    def found(last: float, unseen: float = 0.0) -> File:
        layers = torch.nn.Sequential(torch.nn.Linear(30, 2), torch.nn.BatchNorm1d(2))
        for name, tensor in layers.state_dict().items():
            tensor.copy_(torch.arange(tensor.numel()).reshape(tensor.shape) + len(name))
        layers.state_dict()["0.bias"][-1] = last
        memory = torch.tensor([unseen, 1, 2, unseen])
        small = torch.arange(24, dtype=torch.bfloat16).reshape(4, 6)
        tensors = {"view": memory[1:3], "turned": small.T, "of unknown size": small.to(torch.float8_e4m3fn)}
        path = tmp_path / "model.pkl"
        path.write_bytes(pickle.dumps({"net": layers, **tensors}, protocol=protocol))
        return read(path, "model.pkl", FACTS)

    first, again = found(1.0), found(1.0, unseen=5.0)  # each with storages at addresses of its own
    assert again.values == first.values
    tensors = {value.name for value in first.values if value.tensor}
    assert {"view", "turned", "of unknown size"} < tensors
    assert any("bias" in name for name in tensors)
    changed = {*first.values} ^ {*found(2.0).values}
    assert len({value.name for value in changed}) == 1
    assert all("bias" in value.name for value in changed)


def text_file(folder: Path, name: str, text: str, facts: RunFacts = FACTS) -> File:
    (folder / name).write_text(text)
    return read(folder / name, name, facts)


def between(ours: File, theirs: File) -> list[tuple[OutputKind, str]]:
    found = compare.differences(Outputs(files=(ours,)), Outputs(files=(theirs,)))
    return [(one.kind, one.at) for one in found if one.decides or one.open]


LATER = RunFacts(started=NOW + 100, ended=NOW + 160, names=("/work/two",))
AT, AT_LATER = (time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(NOW + shift)) for shift in (30, 130))


@pytest.mark.parametrize(
    ("name", "ours", "theirs", "differences"),
    [
        ("train.log", f"{AT},123 loss 0.5\n", f"{AT_LATER},456 loss 0.5\n", []),
        ("a.txt", f"{AT},1,1 {{/work/one/a.py}} loss 0.5\n", f"{AT_LATER},456,456 {{/work/two/a.py}} loss 0.5\n", []),
        ("train.log", f"{AT} loss 0.5\n", f"{AT_LATER} loss 0.6\n", [(OutputKind.VALUE, "line 1, loss")]),
        ("train.log", "a 1\nb 2\n", "b 2\na 1\n", []),
        ("notes", f"{AT} started\n", f"{AT_LATER} ended\n", [(OutputKind.AMBIGUOUS, "line 1")]),
        ("split.txt", "a.png\nb.png\n", "b.png\na.png\n", [(OutputKind.VALUE, "line 1")]),
        ("notes.txt", "the best epoch\n", "the worst epoch\n", [(OutputKind.VALUE, "line 1")]),
        ("notes.txt", "took 3.5 s, loss 0.5\n", "took 3.6 s, loss 0.5\n", []),
        ("scores.csv", f"# written {AT}\nid,score\n1,0.5\n", f"# written {AT_LATER}\nid,score\n1,0.5\n", []),
        ("out.txt", "0.5\n", "0.6\n", [(OutputKind.AMBIGUOUS, "line 1, value")]),
        ("loss.txt", "0.5\n", "0.6\n", [(OutputKind.VALUE, "line 1, value")]),
        ("loss", f"{NOW * 1000:.0f} 0.5 2\n", f"{(NOW + 130) * 1000:.0f} 0.5 2\n", []),
        ("a.json", '{"text": "process 4242 took 3.5 s"}', '{"text": "process 4343 took 3.6 s"}', []),
        ("a.json", '{"text": "a score of 3"}', '{"text": "a score of 4"}', [(OutputKind.VALUE, "text, a score of")]),
        ("a.json", '{"hex": "2f1d6b9a8c4e4f0ab1c2d3e4f5a6b7c8"}', '{"hex": "3f1d6b9a8c4e4f0ab1c2d3e4f5a6b7c8"}', []),
        (
            "a.json",
            '{"md5": "2f1d6b9a8c4e4f0ab1c2d3e4f5a6b7c8"}',
            '{"md5": "3f1d6b9a8c4e4f0ab1c2d3e4f5a6b7c8"}',
            [(OutputKind.VALUE, "md5")],
        ),
        ("a.json", '{"best": "runs/version_0/a"}', '{"best": "runs/version_1/a"}', []),
        ("a.json", '{"best": "runs/version_0/a"}', '{"best": "runs/version_1/b"}', [(OutputKind.VALUE, "best")]),
    ],
)
def test_texts_are_read_as_printed_lines(
    name: str, ours: str, theirs: str, differences: list[tuple[OutputKind, str]], tmp_path: Path
) -> None:
    facts = RunFacts(started=NOW, ended=NOW + 60, names=("/work/one",))
    one, two = text_file(tmp_path, name, ours, facts), text_file(tmp_path, name, theirs, LATER)
    assert between(one, two) == differences
    thin = compare.thinned(Outputs(files=(one,))), compare.thinned(Outputs(files=(two,)))
    decides = any(kind is OutputKind.VALUE for kind, _ in differences)
    assert any(one.decides for one in compare.differences(*thin)) is decides


def test_lines_of_a_log_are_named_by_those_that_they_belong_to(tmp_path: Path) -> None:
    ours = text_file(tmp_path, "a.log", "loss 0.5\nlr 1\nepoch 2\n")
    theirs = text_file(tmp_path, "a.log", "lr 1\nloss 0.7\nepoch 2\n")
    (found,) = compare.differences(Outputs(files=(ours,)), Outputs(files=(theirs,)))
    assert (found.kind, found.at, found.values, found.more) == (OutputKind.VALUE, "line 1, loss", ("0.5", "0.7"), 0)


def test_what_follows_many_lines_is_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_SINGLE", 2)
    lines = [f"{{at}} step {step} loss 0.{step}" for step in range(9)]
    one = text_file(tmp_path, "a.log", "\n".join(lines).replace("{at}", AT))
    equal = text_file(tmp_path, "a.log", "\n".join([*lines[:3], *lines[:2:-1]]).replace("{at}", AT_LATER), LATER)
    other = text_file(tmp_path, "a.log", "\n".join(lines).replace("{at}", AT_LATER).replace("0.8", "0.9"), LATER)
    assert between(one, equal) == []
    assert between(one, other) == [(OutputKind.VALUE, "lines 3 to 9")]


def test_the_order_of_many_lines_counts_where_it_is_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_SINGLE", 1)
    one, two = (text_file(tmp_path, "split.txt", text) for text in ("a\nb\nc\n", "a\nc\nb\n"))
    assert between(one, two) == [(OutputKind.VALUE, "lines 2 to 3")]


def test_secrets_in_lines_are_not_shown(tmp_path: Path) -> None:
    file = text_file(tmp_path, "notes.txt", "api_key=1234567890 loss 0.5\n")
    assert not any("1234567890" in value.shown for value in file.values)


def test_durations_that_no_run_had_the_time_for_may_be_results(tmp_path: Path) -> None:
    def roles(name: str, column: str, numbers: list[float]) -> set[Role]:
        path = tmp_path / name
        path.write_text("\n".join([f"item,{column}", *(f"a{n},{number}" for n, number in enumerate(numbers))]))
        facts = RunFacts(started=0.0, ended=8.0)
        return {one.role for one in read(path, name, facts).values if one.name.endswith(column)}

    cores = os.cpu_count() or 1
    long = [3.5, 1.25, 4.5] * 4 * cores
    assert roles("cohort.csv", "duration", long) == {Role.OPEN}
    assert roles("epochs.csv", "duration", [0.5, 0.25, 0.75]) == {Role.MEASUREMENT}
    assert roles("log.csv", "time", sorted(long)) == {Role.MEASUREMENT}
    assert roles("simulated.csv", "duration", [0.5, 0.25]) == {Role.OPEN}


def test_more_numbers_of_processes_than_a_run_has_may_be_of_participants(tmp_path: Path) -> None:
    def roles(count: int, pids: set[int]) -> set[Role]:
        path = tmp_path / "review.csv"
        path.write_text("\n".join(["pid,site", *(f"{1000 + 3 * n},A" for n in range(count))]))
        facts = RunFacts(started=0.0, ended=8.0, pids=frozenset(pids))
        return {one.role for one in read(path, path.name, facts).values if one.name.endswith("pid")}

    assert roles(20, {77}) == {Role.OPEN}
    assert roles(20, {1003}) == roles(4, {77}) == {Role.IDENTIFIER}


@pytest.mark.parametrize(
    ("column", "numbers", "role"),
    [
        ("session_id", [1018, 1447, 1002], Role.OPEN),
        ("worker_id", [5, 28, 24], Role.OPEN),
        ("worker_id", [2, 0, 1, 3], Role.IDENTIFIER),  # of a pool
        ("job_id", [81231] * 3, Role.IDENTIFIER),  # that of the run
        ("job_id", [*range(20)], Role.IDENTIFIER),
        ("job_id", [*range(20, 0, -1)], Role.OPEN),  # in the order of a schedule
        ("session_id", [4242, 4250], Role.IDENTIFIER),  # the process is one of the run
        ("request_id", [2**60, 2**61], Role.IDENTIFIER),
        ("port", [3, 3], Role.RESULT),
        ("port", [40231, 39111], Role.IDENTIFIER),
    ],
)
def test_numbers_that_rows_are_known_by_may_be_results(
    column: str, numbers: list[int], role: Role, tmp_path: Path
) -> None:
    path = tmp_path / "queue.csv"
    path.write_text("\n".join([f"{column},site", *(f"{number},A" for number in numbers)]))
    facts = RunFacts(started=0.0, ended=8.0, pids=frozenset({4242}))
    assert {one.role for one in read(path, path.name, facts).values if one.name.endswith(column)} == {role}


@pytest.mark.parametrize(
    ("name", "header", "row"),
    [
        ("table.txt", "Model & auc & time \\\\", "rf & 0.93 & 0.5 \\\\"),
        ("table.txt", " & auc & time \\\\ \\midrule", "0 & 0.93 & 0.5 \\\\ \\bottomrule"),
        ("table.tex", "Model & auc & time \\\\ \\hline", "rf & 0.93 & 0.5 \\\\"),
        ("table.tex", " & auc & time \\\\", "0&0.93&0.5\\\\ \\hline"),
        ("table.tex", "&auc&time\\\\", "rf & 0.93 & 0.5\\\\"),
    ],
)
def test_each_cell_of_a_table_of_latex_is_of_its_own_column(name: str, header: str, row: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(f"\\toprule\n{header}\n\\midrule\n{row}\n")
    values = read(path, name, RunFacts(started=0.0, ended=8.0)).values
    found = {one.shown: (one.name.rpartition(", ")[2], one.role) for one in values if "," in one.name}
    assert found["0.93"] == ("auc", Role.RESULT)
    assert found["0.5"] == ("time", Role.MEASUREMENT)


@pytest.mark.parametrize(
    ("name", "text", "measured", "listed"),
    [
        ("m.csv", "epoch,whirl,p50,p90\n1,0.31,0.4,0.5\n", ("WHIRL",), {"0.31"}),
        ("m.csv", "epoch,whirl,p50,p90\n1,0.31,0.4,0.5\n", ("p50", "wh*"), {"0.31", "0.4"}),
        ("m.json", '{"a": [{"whirl": 0.31, "auc": 0.5}], "whirl_auc": 0.6}', ("whirl",), {"0.31"}),
        ("m.json", '{"fit": {"x": 0.31}, "auc": {"x": 0.5}}', ("fit.x",), {"0.31"}),
        ("m.json", '{"whirl": [0.31, [0.32]], "auc": [0.5]}', ("whirl",), {"0.31", "0.32"}),
        ("m.json", '{"fit/whirl": 0.31, "fit/auc": 0.5}', ("whirl",), {"0.31"}),
        ("m.yaml", "whirl: 0.31\nauc: 0.5\n", ("whirl",), {"0.31"}),
        ("m.txt", "whirl 0.31 auc 0.5\nwhirl 0.32 auc 0.6\n", ("whirl",), {"0.31", "0.32"}),
        ("m.log", "fold 1: whirl 0.31 auc 0.5\n", ("whirl",), {"0.31"}),
    ],
)
def test_what_its_user_says_is_measured_is_a_measurement(
    name: str, text: str, measured: tuple[str, ...], listed: set[str], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    facts = RunFacts(started=0.0, ended=8.0, declared=Declared(measured))
    found = {one.shown for one in read(path, name, facts).values if one.role is Role.MEASUREMENT}
    assert found == listed
    assert not [one for one in read(path, name, RunFacts(started=0.0, ended=8.0)).values if one.role in _LISTED]


_LISTED = (Role.MEASUREMENT, Role.IDENTIFIER)


def test_what_its_user_says_is_a_result_is_one(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("pick,p_time,fit_time\n1,0.31,0.4\n")
    facts = RunFacts(started=0.0, ended=8.0, declared=Declared(measured=("*time",), results=("p_time",)))
    found = {one.shown: one.role for one in read(tmp_path / "m.csv", "m.csv", facts).values}
    assert (found["0.31"], found["0.4"]) == (Role.RESULT, Role.MEASUREMENT)


@pytest.mark.parametrize("name", ["m.csv", "m.txt"])
def test_so_is_what_is_folded_into_one_digest(name: str, tmp_path: Path) -> None:
    rows = [f"{1000 + n / 7:.3f}" for n in range(200)]

    def deciding(*found: str) -> str:
        before = "1," if name == "m.csv" else "x 1 whirl "
        lines = [*(["x,whirl"] if name == "m.csv" else []), *(before + one for one in found)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        with mock.patch.object(values, "MOST_VALUES", 50):
            file = read(tmp_path / name, name, RunFacts(started=0.0, ended=8.0, declared=Declared(("whirl",))))
        return compare.digest(file, Role.RESULT, Role.OPEN)

    assert deciding(*rows) == deciding(*reversed(rows))
    assert deciding(*rows) != deciding(*rows[1:])


def test_an_array_of_moments_of_the_run_is_a_measurement(tmp_path: Path) -> None:
    def role_of(*values: float) -> Role:
        np.save(tmp_path / "stamps.npy", np.array(values))
        (value,) = read(tmp_path / "stamps.npy", "stamps.npy", RunFacts(started=NOW, ended=NOW + 60)).values
        return value.role

    assert role_of(NOW + 1.25, NOW + 7.5) is Role.MEASUREMENT
    assert role_of(NOW + 1.25, NOW + 700.5) is role_of(0.5, 0.25) is role_of() is role_of(math.nan) is Role.RESULT
