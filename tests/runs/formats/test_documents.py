"""Documents and texts are recognized by their contents, and a difference is named by its path."""

import base64
import datetime
import json
import pickle
import plistlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from detaudit.runs.formats import documents, values
from tests.runs.formats.reading import differing, is_refused_or_read, mutated, mutations, parts, texts, written

EXAMPLES = {
    "json": '{"threshold": 0.50, "layers": [{"units": 3}, {"units": 4}], "on": true, "none": null, "empty": []}',
    "jsonl": '{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.4}\n',
    "yaml": "threshold: 0.50\nlayers:\n- units: 3\n- &a {units: 4}\n- *a\n",
    "toml": "threshold = 0.50\n[[layers]]\nunits = 3\n[when]\nday = 2024-01-01\n",
    "ini": "[model]\nthreshold = 0.50\nname: a b\n; note\n",
    "html": "<!DOCTYPE html>\n<p>a</p>\n",
    "text": "INFO start\nEpoch 1: loss=0.5 (3.2s)\n",
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_document_is_recognized_by_its_contents(kind: str, tmp_path: Path) -> None:
    assert parts(written(tmp_path / "a.bin", EXAMPLES[kind]))[0] == kind


@pytest.mark.parametrize(
    "text",
    [
        "Hello, world\nBye, now\n",
        "2024-01-01 10:00:00,123 - a - INFO - x\n2024-01-01 10:00:01,123 - a - INFO - y\n",
        "[INFO] a\n[INFO] b\n",
        "INFO: starting\nWARNING: careful\n",
        "Epoch 1: loss=0.5\nEpoch 2: loss=0.4\n",
        "time: 12.3 s\nepoch: 3 of 4\n",
        "loss: 0.5\nloss: 0.4\n",
        "0.1 0.2\n0.3 0.4\n",
        "0.25\n",
        "{1: 2}\n",
        "a = b = c\nand so on\n",
        "grüße\n",
    ],
)
def test_logs_and_prose_are_text(text: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", text)
    assert parts(path)[0] == "text"
    assert list(texts(path).values()) == text.splitlines()


@pytest.mark.parametrize("data", [b"a\0b", bytes(range(256)), b"\x80\x81\x82\x83", b"\x01\x02\x03a"])
def test_other_bytes_are_no_text(data: bytes, tmp_path: Path) -> None:
    assert not documents.is_text(data, tmp_path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_other_encodings_are_read(encoding: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", "Verlust über alles: 0.5\nund so weiter\n".encode(encoding))
    assert texts(path) == {"line 1": "Verlust über alles: 0.5", "line 2": "und so weiter"}


def test_values_are_named_by_their_paths(tmp_path: Path) -> None:
    assert parts(written(tmp_path / "a", EXAMPLES["json"]))[1] == {
        "threshold": ("number", "0.50", b"0.50"),
        "layers[0].units": ("number", "3", b"3"),
        "layers[1].units": ("number", "4", b"4"),
        "on": ("text", "true", b"\0true"),
        "none": ("text", "null", b"\0null"),
        "empty": ("text", "[]", b"\0[]"),
    }
    assert texts(written(tmp_path / "a", EXAMPLES["yaml"])) == {
        "threshold": "0.50",
        "layers[0].units": "3",
        "layers[1].units": "4",
        "layers[2]": "*a",
    }
    assert texts(written(tmp_path / "a", EXAMPLES["ini"])) == {
        "model.threshold": "0.50",
        "model.name": "a b",
        "comment 1": "; note",
    }
    assert texts(written(tmp_path / "a", EXAMPLES["toml"]))["layers[0].units"] == "3"
    assert texts(written(tmp_path / "a", EXAMPLES["jsonl"]))["line 2, loss"] == "0.4"


@pytest.mark.parametrize(
    ("kind", "old", "new", "name"),
    [
        ("json", "0.50", "0.51", "threshold"),
        ("json", '"units": 4', '"units": "4"', "layers[1].units"),
        ("json", "true", '"true"', "on"),
        ("json", "0.50", "0.500", "threshold"),
        ("jsonl", "0.4", "0.3", "line 2, loss"),
        ("yaml", "4}", "5}", "layers[1].units"),
        ("toml", "units = 3", "units = 4", "layers[0].units"),
        ("ini", "0.50", "0.51", "model.threshold"),
        ("ini", "note", "other", "comment 1"),
        ("html", "<p>a", "<p>b", "line 2"),
        ("text", "0.5", "0.4", "line 2"),
    ],
)
def test_a_change_is_named(kind: str, old: str, new: str, name: str, tmp_path: Path) -> None:
    before = EXAMPLES[kind]
    assert old in before
    one, other = written(tmp_path / "1", before), written(tmp_path / "2", before.replace(old, new))
    assert differing(one, one) == []
    assert differing(one, other) == [name]


def test_the_order_of_keys_does_not_count_and_each_of_several_equal_keys_does(tmp_path: Path) -> None:
    one = written(tmp_path / "1", '{"a": 1, "b": {"c": 2, "d": 3}}')
    assert differing(one, written(tmp_path / "2", '{"b": {"d": 3, "c": 2}, "a": 1}')) == []
    assert texts(written(tmp_path / "3", '{"a": 1, "a": 2}')) == {"a": "1", "a (2)": "2"}


def test_a_text_beside_a_value_names_it_if_its_key_does_not(tmp_path: Path) -> None:
    document: list[dict[str, object]] = [{"metric": "fit_time", "value": 3.2, "fold": 1}, {"name": "svm", "loss": 0.5}]
    document.append({"metricName": "fit_time", "metricValue": 3.2})
    assert list(texts(written(tmp_path / "a", json.dumps(document)))) == [
        "[0].metric",
        "[0].fit_time.value",
        "[0].fold",
        "[1].name",
        "[1].loss",
        "[2].metricName",
        "[2].fit_time.metricValue",
    ]


@pytest.mark.parametrize("kind", [plistlib.FMT_XML, plistlib.FMT_BINARY])
def test_a_property_list(tmp_path: Path, kind: plistlib.PlistFormat) -> None:
    held = {"loss": 0.25, "steps": [1, 2], "name": "a", "when": datetime.datetime(2026, 1, 2), "data": b"x", "ok": True}
    assert texts(written_plist(tmp_path / "a", held, kind)) == {
        "loss": "0.25",
        "steps[0]": "1",
        "steps[1]": "2",
        "name": "a",
        "when": "2026-01-02 00:00:00",
        "data": "",
        "ok": "true",
    }
    one, other = tmp_path / "a", written_plist(tmp_path / "b", held | {"loss": 0.5}, kind)
    assert differing(one, other) == ["loss"]
    assert not is_refused_or_read(written(tmp_path / "c", one.read_bytes()[:-20]))


def written_plist(path: Path, held: dict[str, Any], kind: plistlib.PlistFormat) -> Path:
    path.write_bytes(plistlib.dumps(held, fmt=kind))
    return path


def test_cells_of_latex_are_apart_and_rows_of_pages_have_rules(tmp_path: Path) -> None:
    table = "&loss&time\\\\\n\\midrule\n0 &0.25 & 3.5 \\\\\na \\& b & 1 \\\\\n"
    assert list(texts(written(tmp_path / "a.tex", table)).values()) == [
        " & loss & time\\\\",
        "\\midrule",
        "0 & 0.25 & 3.5 \\\\",
        "a \\& b & 1 \\\\",
    ]
    page = (
        "<table>\n<tr><th>metric</th><th>value</th></tr>\n<tr><td>fit_time </td><td class='a'>0.5</td></tr>\n</table>\n"
    )
    assert list(texts(written(tmp_path / "b.html", page)).values()) == [
        "<table>",
        "metric | value",
        "metric: fit_time | fit_time: 0.5",
        "</table>",
    ]


def test_a_table_of_a_page_has_its_own_columns(tmp_path: Path) -> None:
    row = "<tr><td>accuracy</td><td>0.93</td></tr>\n"
    head = "<table>\n<tr><th>step</th><th>time</th></tr>\n<tr><td>fit</td><td>0.5</td></tr>\n</table>\n"
    lines = list(texts(written(tmp_path / "a.html", head + "<table>\n" + row + "</table>\n")).values())
    assert (lines[2], lines[5]) == ("step: fit | time: 0.5", "accuracy | accuracy: 0.93")


PAGE = """<!doctype html><html><body>
<div class="top_div" id="top_divTV6VPS2LWY5E355"></div><td style="color: #1f77b4aa">0.5</td>
<script>select('#top_divTV6VPS2LWY5E355'); show("#minitable-3467222670175910984")</script>
"""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("top_divTV6VPS2LWY5E355", "top_divVSA83GXYLHMVHIF", True),
        ("minitable-3467222670175910984", "minitable2329099078453407758", True),
        ("select('#top_divTV6VPS2LWY5E355')", "select('#minitable-3467222670175910984')", False),
        ("1f77b4aa", "1f77b4ab", False),
        ("0.5<", "0.6<", False),
    ],
)
def test_random_ids_of_a_page_count_by_their_order(tmp_path: Path, before: str, after: str, same: bool) -> None:
    assert before in PAGE
    found = differing(written(tmp_path / "1", PAGE), written(tmp_path / "2", PAGE.replace(before, after)))
    assert not found if same else found


def test_a_page_on_one_line_is_read_tag_by_tag(tmp_path: Path) -> None:
    cells = "".join(f"<tr><td>{number}</td></tr>" for number in range(400))
    page = "<html><body><p>Started</p><p>2026-01-02 10:11:12</p>" + cells + "<p>Loss: 0.25</p></body></html>"
    assert len(page) > 4096
    one, other = written(tmp_path / "1", page), written(tmp_path / "2", page.replace("10:11:12", "10:11:14"))
    (name,) = differing(one, other)
    assert texts(one)[name] == "<p>2026-01-02 10:11:12</p>"


def test_names_do_not_meet(tmp_path: Path) -> None:
    found = texts(written(tmp_path / "1", '{"a.b": 1, "a": {"b": 2}, "c[0]": 3, "c": [4], "": 5}'))
    assert found == {'["a.b"]': "1", "a.b": "2", '["c[0]"]': "3", "c[0]": "4", '[""]': "5"}


def test_comments_count(tmp_path: Path) -> None:
    one, other = written(tmp_path / "1", "a: 1\nb: 2 # 3\n"), written(tmp_path / "2", "a: 1\nb: 2 # 4\n")
    assert differing(one, other) == ["comment 1"]


def test_the_ids_of_plots_are_random(tmp_path: Path) -> None:
    page = '<html><div id="{0}"></div><div id="{1}"></div><script>draw("{0}")</script>\n'
    ids = [f"{digit * 8}-1111-2222-3333-444444444444" for digit in "abc"]
    one = written(tmp_path / "1", page.format(ids[0], ids[1]))
    assert differing(one, written(tmp_path / "2", page.format(ids[2], ids[0]))) == []
    assert differing(one, written(tmp_path / "3", page.format(ids[0], ids[0]))) == ["line 1"]


def test_cells_of_a_table_have_the_names_of_their_columns(tmp_path: Path) -> None:
    head = "<thead>\n<tr>\n<th></th>\n<th>loss</th>\n<th>fit_time</th>\n</tr>\n</thead>\n"
    body = "<tbody>\n<tr>\n<th>0</th>\n<td>0.5</td>\n<td>0.25</td>\n</tr>\n</tbody>\n"
    page = written(tmp_path / "a.html", f"<html>\n<table>\n{head}{body}</table>\n</html>")  # as pandas writes it
    assert {"loss: 0.5", "fit_time: 0.25"} <= set(texts(page).values())
    styled = [f'<html>\n<td id="T_{one}_row0_col0" >1</td>\n</html>' for one in ("1a2b3", "c4d5e")]
    assert not differing(*(written(tmp_path / f"{at}.html", one) for at, one in enumerate(styled)))


def test_a_pickle_in_base64_is_read(tmp_path: Path) -> None:
    packed = base64.b64encode(pickle.dumps({"t": 0.25, "r": 9.0})).decode()
    path = written(tmp_path / "data.json", json.dumps({"buffer": {":serialized:": packed}, "other": "gASVno"}))
    assert texts(path) == {"buffer.:serialized:.t": "0.25", "buffer.:serialized:.r": "9.0", "other": "gASVno"}


def test_of_a_line_that_was_written_several_times_the_last_state_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "a", " 10%|#\r 50%|##\r100%|###\ndone\r\nabc\rx\n")
    assert texts(path) == {"line 1": "100%|###", "line 2": "done", "line 3": "xbc"}


def test_a_line_that_was_cut_off_is_a_text(tmp_path: Path) -> None:
    path = written(tmp_path / "a", EXAMPLES["jsonl"] + '{"step": 3, "lo')
    assert parts(path)[0] == "jsonl"
    assert texts(path)["line 3"] == '{"step": 3, "lo'


def test_aliases_are_not_expanded(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    by, found = parts(written(tmp_path / "a", bomb))
    assert by == "yaml"
    assert len(found) == 2 + 29 * 9


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "- " * 100_000, "a:\n" + " [" * 50_000])
def test_deep_nesting_is_text(text: str, tmp_path: Path) -> None:
    assert parts(written(tmp_path / "a", text))[0] == "text"


def test_names_stay_short(tmp_path: Path) -> None:
    document: Any = {"k" * 10_000: 1}
    for _ in range(200):
        document = {"key" * 10: document}
    (name,) = texts(written(tmp_path / "a", json.dumps(document)))
    assert len(name) < 2000


def test_what_follows_many_values_is_folded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MOST_SINGLE", 4)
    monkeypatch.setattr(values, "BLOCK", 2)
    records = [{"loss": n / 10, "name": str(n)} for n in range(6)]
    path = written(tmp_path / "1", json.dumps(records))
    names = ["[0].loss", "[0].name", "[1].loss", "[1].name"]
    blocks = [f"[*].{key}: values {first} to {first + 1}" for first in (3, 5) for key in ("loss", "name")]
    assert list(parts(path)[1]) == names + blocks
    records[4]["loss"] = 0.41
    assert differing(path, written(tmp_path / "2", json.dumps(records))) == ["[*].loss: values 5 to 6"]


def test_what_follows_many_lines_is_folded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_SINGLE", 2)
    monkeypatch.setattr(documents, "BLOCK", 3)
    lines = [f"epoch {n} is over\n" for n in range(7)]
    path = written(tmp_path / "1", "".join(lines))
    assert list(texts(path)) == ["line 1", "line 2", "lines 3 to 5", "lines 6 to 7"]
    lines[6] = "epoch 9 is over\n"
    assert differing(path, written(tmp_path / "2", "".join(lines))) == ["lines 6 to 7"]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
)
DOCUMENTS = st.lists(TREES, min_size=1, max_size=3) | st.dictionaries(st.text(max_size=9), TREES, min_size=1)


def leaves(tree: Any) -> int:
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return sum(map(leaves, inner)) if inner else 1


@given(DOCUMENTS, st.booleans())
def test_any_json_is_read(tmp_path_factory: pytest.TempPathFactory, document: Any, is_ascii: bool) -> None:
    path = written(
        tmp_path_factory.mktemp("a") / "a", json.dumps(document, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    )
    by, found = parts(path)
    if by == "json":
        assert len(found) == leaves(document)
    else:
        assert not is_ascii or "\\ud" in path.read_text()


@given(st.dictionaries(st.from_regex("[a-z]{1,9}", fullmatch=True), st.integers() | st.floats(), min_size=1))
def test_any_settings_in_yaml_are_read(tmp_path_factory: pytest.TempPathFactory, settings: dict[str, float]) -> None:
    by, found = parts(written(tmp_path_factory.mktemp("a") / "a", yaml.safe_dump(settings)))
    assert by == "yaml"
    assert set(found) == set(settings)
    assert {one[0] for one in found.values()} == {"number"}


@given(st.sampled_from(sorted(EXAMPLES)), mutations())
def test_a_damaged_document_is_at_least_a_text(
    tmp_path_factory: pytest.TempPathFactory, kind: str, changes: list[tuple[int, int]]
) -> None:
    is_refused_or_read(written(tmp_path_factory.mktemp("a") / "a", mutated(EXAMPLES[kind].encode(), changes)))


def test_addresses_in_a_line_that_is_too_long_to_be_read_value_by_value(tmp_path: Path) -> None:
    def page(address: str, loss: str) -> str:
        return "<td>" * 2000 + f"RandomState(MT19937) at {address}, loss {loss}\n"

    one = written(tmp_path / "a.md", page("0x7FB261526640", "0.5"))
    assert differing(one, written(tmp_path / "b.md", page("0x7F7CECE2A640", "0.5"))) == []
    assert differing(one, written(tmp_path / "c.md", page("0x7FB261526640", "0.7"))) == ["line 1"]
