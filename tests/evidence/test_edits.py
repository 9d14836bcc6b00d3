"""Whatever is edited is noticed: each field of the report and of the statement, each member, each byte."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from detaudit.errors import DetauditError
from detaudit.evidence.recompute import TAKEN
from detaudit.evidence.statement import NAME
from detaudit.model import Audit
from tests.evidence.conftest import Kept

Path_ = tuple[str | int, ...]


def leaves(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Yield the paths of all values that are no containers, or empty ones."""
    if isinstance(value, dict) and value:
        for name, one in value.items():
            yield from leaves(one, (*path, name))
    elif isinstance(value, list) and value:
        for number, one in enumerate(value):
            yield from leaves(one, (*path, number))
    else:
        yield path, value


def with_value(value: Any, path: Path_, new: Any) -> Any:
    """Return a copy with another value at a path."""
    if not path:
        return new
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_value(value[path[0]], path[1:], new)
    return copy


def edits(value: Any) -> list[Any]:
    """Return other values of about the same type."""
    match value:
        case bool():
            return [not value]
        case int() | float():
            return [value + 1, value / 2]
        case str():
            return [value + "x", value[:-1]] if value else ["x"]
        case None:
            return [1, "x", 0.5]
        case list():
            return [["x"], [1]]
        case _:
            return [{"x": "y"}]


def is_taken(path: Path_) -> bool:
    """Whether the value at this path of a report is one that logs do not show."""
    names = [part for part in path if isinstance(part, str)]
    if names[0] in TAKEN["audit"]:
        return True
    if names[0] == "environment":
        return names[1] in TAKEN["environment"]
    if names[0] != "groups" or len(names) < 2:
        return False
    return names[1] in TAKEN["group"] or (names[1] == "runs" and len(names) > 2 and names[2] in TAKEN["of_run"])


def decoded(document: Any) -> Audit | None:
    """Return a report, None if no detaudit would read it."""
    try:
        return msgspec.json.decode(msgspec.json.encode(document), type=Audit)
    except msgspec.MsgspecError:
        return None


@pytest.mark.full
@pytest.mark.parametrize("name", ["matching", "differing"])
def test_an_edit_of_the_report_is_noticed_even_if_the_hashes_are_made_to_fit(
    name: str, request: pytest.FixtureRequest
) -> None:
    kept: Kept = request.getfixturevalue(name)
    document = msgspec.json.decode(kept.members()["results/audit.json"])
    assert not kept.check(kept.forged(kept.report)).edited
    missed, tried = [], 0
    for path, value in leaves(document):
        if is_taken(path):
            continue
        for new in edits(value):
            report = decoded(with_value(document, path, new))
            if report is None or report == kept.report:
                continue
            tried += 1
            try:
                if not kept.check(kept.forged(report)).edited:
                    missed.append((path, value, new))
            except DetauditError:
                pass  # the report is none at all any more
            break
    assert not missed
    assert tried > 30


@pytest.mark.full
def test_an_edit_of_any_field_of_the_statement_is_noticed(matching: Kept) -> None:
    contents = matching.members()
    document = msgspec.json.decode(contents[NAME])
    paths = [path for path, _ in leaves(document)]
    # Of the long list of packages, a few stand for all.
    packages = [path for path in paths if path[:2] == ("predicate", "materials")]
    for path in [one for one in paths if one not in packages] + packages[:20]:
        for new in edits(dict(leaves(document))[path])[:1]:
            edited = msgspec.json.format(msgspec.json.encode(with_value(document, path, new)), indent=2) + b"\n"
            assert matching.check(matching.packed({**contents, NAME: edited})).edited, path


def test_a_confidence_that_was_edited_is_named(matching: Kept) -> None:
    group = matching.report.groups[0]
    assert group.confidence is not None
    better = msgspec.structs.replace(group.confidence, max_differing_rate=0.01)
    report = msgspec.structs.replace(matching.report, groups=(msgspec.structs.replace(group, confidence=better),))
    [edited] = matching.check(matching.forged(report)).edited
    assert edited.startswith("groups.0.confidence.max_differing_rate: 0.01 in the report, 0.776")


def test_a_run_that_differs_cannot_be_left_out_of_the_report(differing: Kept) -> None:
    group, replace = differing.report.groups[0], msgspec.structs.replace
    report = replace(differing.report, groups=(replace(group, runs=(group.runs[0], group.runs[2])),))
    edited = differing.check(differing.forged(report)).edited
    assert "runs/none/2 is of no run in the report" in edited
    assert any(text.startswith("groups.0.verdict: nondeterministic in the report, ") for text in edited)


def test_each_member_that_is_changed_or_left_out_is_noticed(matching: Kept) -> None:
    contents = matching.members()
    for name, data in contents.items():
        flipped = bytes([data[0] ^ 1]) + data[1:] if data else b"x"
        others = {one: other for one, other in contents.items() if one != name}
        for edited in ({**contents, name: flipped}, others):
            assert is_noticed(matching, matching.packed(edited)), name
    assert "extra.txt is not in the statement" in matching.check(matching.packed({**contents, "extra.txt": b""})).edited


@pytest.mark.slow
def test_each_byte_of_the_file_that_is_flipped_is_noticed(matching: Kept) -> None:
    data, path = matching.zip.read_bytes(), matching.folder / "flipped.zip"
    with zipfile.ZipFile(matching.zip) as opened:
        last = max(opened.infolist(), key=lambda one: one.header_offset)
        heads = [place for one in opened.infolist() for place in range(one.header_offset, one.header_offset + 40)]
    directory = range(last.header_offset + 30 + len(last.filename) + last.file_size, len(data))
    for place in [*heads[::7], *directory[::5], *range(0, len(data), max(1, len(data) // 40))]:
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert is_noticed(matching, path), place
    for edited in (data + b"\0", b"\0" + data, data[:-1]):
        path.write_bytes(edited)
        assert is_noticed(matching, path)


def is_noticed(kept: Kept, path: Path) -> bool:
    try:
        return bool(kept.check(path).edited)
    except DetauditError:
        return True


def test_what_another_program_packed_again_is_noticed_and_still_read(matching: Kept, tmp_path: Path) -> None:
    path = tmp_path / "again.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in matching.members().items():
            file.writestr(name, data)
    assert matching.check(path).edited == ["the zip file is not as detaudit packs these members"]


def test_all_that_logs_do_not_show_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text()
    for name in {name for names in TAKEN.values() for name in names}:
        assert f"`{name}`" in page
