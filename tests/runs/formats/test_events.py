"""Event files are compared by tags, steps and values."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detaudit.model.outputs import File, Role, RunFacts
from detaudit.runs import values as file_values
from detaudit.runs.formats import events
from tests.runs.formats.reading import differing, is_refused_or_read, mutated, mutations, parts, texts, written


def field(number: int, value: bytes | str | int | float, single: bool = False) -> bytes:
    """Encode a field of a message: https://protobuf.dev/programming-guides/encoding/."""
    if isinstance(value, float):
        return varint(number << 3 | (5 if single else 1)) + struct.pack("<f" if single else "<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (2**64 - 1))
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])


def record(data: bytes) -> bytes:
    size = struct.pack("<Q", len(data))
    return size + struct.pack("<I", events._checksum(size)) + data + bytes(4)


def event(step: int, content: bytes, time: float = 1e9) -> bytes:
    return record(field(1, time) + field(2, step) + content)


def value(tag: str, content: bytes) -> bytes:
    return field(5, field(1, field(1, tag) + content))


def scalar(tag: str, step: int, loss: float, time: float = 1e9) -> bytes:
    return event(step, value(tag, field(2, loss, single=True)), time)


def tensor(kind: int, content: bytes, *sizes: int) -> bytes:
    shape = b"".join(field(2, field(1, size)) for size in sizes)
    return field(8, field(1, kind) + field(2, shape) + content)


def start(time: float = 1e9) -> bytes:
    return record(field(1, time) + field(3, "brain.Event:2") + field(10, field(1, f"writer {time}")))


def test_the_checksum_is_that_of_tensorflow() -> None:
    # CRC-32C of 32 bytes of zero, RFC 3720, B.4, masked
    crc = 0x8A9136AA
    assert events._checksum(bytes(32)) == ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


FILE = start() + scalar("loss", 1, 0.1) + scalar("loss", 2, 0.05) + scalar("acc", 2, 0.5)


def test_values_are_named_by_tag_and_step(tmp_path: Path) -> None:
    by, found = parts(written(tmp_path / "a", FILE))
    assert by == "events"
    assert found == {
        "loss at step 1": ("number", "0.1", b"0.1"),
        "loss at step 2": ("number", "0.05", b"0.05"),
        "acc at step 2": ("number", "0.5", b"0.5"),
    }


def test_a_change_is_named_and_times_do_not_count(tmp_path: Path) -> None:
    one = written(tmp_path / "1", FILE)
    later = start(2e9) + scalar("loss", 1, 0.1, 2e9) + scalar("loss", 2, 0.05, 3e9) + scalar("acc", 2, 0.5, 4e9)
    assert differing(one, written(tmp_path / "2", later)) == []
    changed = FILE.replace(struct.pack("<f", 0.05), struct.pack("<f", 0.050000004))
    assert differing(one, written(tmp_path / "3", changed)) == ["loss at step 2"]


def test_a_file_in_which_nothing_was_logged_has_a_part_that_says_so(tmp_path: Path) -> None:
    assert texts(written(tmp_path / "a", start(2e9))) == {"events": "none"}  # or its bytes would decide, which differ


def test_a_record_that_was_cut_off_is_the_end(tmp_path: Path) -> None:
    assert list(texts(written(tmp_path / "a", FILE[:-9]))) == ["loss at step 1", "loss at step 2"]


def test_what_tensors_hold_is_read(tmp_path: Path) -> None:
    contents = {
        "scalar": tensor(1, field(4, struct.pack("<f", 0.1))),
        "packed": tensor(1, field(5, struct.pack("<f", 0.1))),
        "int": tensor(9, field(10, -5)),
        "text": tensor(7, field(8, "hello"), 1),
        "image": tensor(7, field(8, "2") + field(8, "3") + field(8, b"\x89PNG\xff"), 3),
        "vector": tensor(1, field(4, struct.pack("<2f", 1, 2)), 2),
        "histogram": field(5, field(1, 0.5)),
        "picture": field(4, field(1, 2) + field(4, b"\x89PNG")),
    }
    data = start() + b"".join(event(3, value(tag, content)) for tag, content in contents.items())
    found = parts(written(tmp_path / "a", data))[1]
    assert {name: text for name, (kind, text, _) in found.items() if kind in ("number", "text")} == {
        "scalar at step 3": "0.1",
        "packed at step 3": "0.1",
        "int at step 3": "-5",
        "text at step 3": "hello",
        "image at step 3[0]": "2",
        "image at step 3[1]": "3",
    }
    assert found["image at step 3[2]"] == ("", "", b"\x89PNG\xff")
    assert found["vector at step 3"] == ("<f4", "", struct.pack("<2f", 1, 2))
    assert found["picture at step 3"] == ("", "", b"\x89PNG")
    assert "histogram at step 3" in found


def test_hyperparameters_have_no_order_and_no_time(tmp_path: Path) -> None:
    def session(entries: list[bytes], time: float) -> bytes:
        plugin = field(1, 0) + field(3, b"".join(entries) + field(4, f"group {time}") + field(5, time))
        metadata = field(1, field(1, "hparams") + field(2, plugin))
        return start() + event(0, value("_hparams_/session_start_info", field(9, metadata)))

    lr = field(1, field(1, "lr") + field(2, field(2, 0.1)))
    name = field(1, field(1, "name") + field(2, field(3, "sgd")))
    one = written(tmp_path / "1", session([lr, name], 1e9))
    assert texts(one) == {"hparams: lr": "0.1", "hparams: name": "sgd"}
    assert differing(one, written(tmp_path / "2", session([name, lr], 2e9))) == []


def test_a_list_of_words_names_no_numbers_in_another_hyperparameter(tmp_path: Path) -> None:
    def logged(path: Path, *names: str) -> File:
        path.mkdir()
        lists = {"kinds": "['a', 'b', 'b']", "sizes": "[4, 2, 1]"}
        entries = [field(1, field(1, name) + field(2, field(3, lists[name]))) for name in names]
        plugin = field(1, 0) + field(3, b"".join(entries))
        data = start() + event(0, value("session", field(9, field(1, field(1, "hparams") + field(2, plugin)))))
        return file_values.read(written(path / "events", data), "events", RunFacts(started=0.0, ended=1.0))

    one, other = logged(tmp_path / "1", "kinds", "sizes"), logged(tmp_path / "2", "sizes", "kinds")
    assert [v.shown for v in one.values if v.name.startswith("hparams: sizes, value")] == ["4", "2", "1"]
    assert {*one.values} == {*other.values}


def test_a_tag_says_what_its_value_is_whatever_the_step(tmp_path: Path) -> None:
    tags = {
        "charts/SPS": 532.0,
        "eval/runtime": 0.5,
        "time/fps": 1153.0,
        "episodic_return": 12.0,
        "fps_loss": 0.5,
        "val_loss": 0.25,
    }
    steps = (0, 100, 100)  # again in a validation
    data = start() + b"".join(scalar(tag, step, value) for step in steps for tag, value in tags.items())
    name = "events.out.tfevents.1.gpu01.3.0"  # a host has any name
    read = file_values.read(written(tmp_path / name, data), name, RunFacts(started=0.0, ended=1.0))
    assert {v.role for v in read.values if "loss" in v.name or "return" in v.name} == {Role.RESULT}
    measured = {value.name for value in read.values if value.role is Role.MEASUREMENT}
    assert measured == {f"{tag} at step {step}" for tag in list(tags)[:3] for step in ("0", "100", "100#2")}


def test_the_attributes_of_a_graph_have_no_order(tmp_path: Path) -> None:
    def graph(*attributes: bytes, operation: str = "Add") -> bytes:
        node = field(1, "a") + field(2, operation) + b"".join(field(5, one) for one in attributes)
        return start() + record(field(4, field(1, node)))

    one = written(tmp_path / "1", graph(b"\n\1T", b"\n\1U"))
    assert differing(one, written(tmp_path / "2", graph(b"\n\1U", b"\n\1T"))) == []
    assert differing(one, written(tmp_path / "3", graph(b"\n\1T", b"\n\1U", operation="Mul"))) == ["graph at step 0"]


def test_the_features_of_an_example_have_no_order(tmp_path: Path) -> None:
    def example(*features: tuple[str, bytes]) -> bytes:
        return record(field(1, b"".join(field(1, field(1, name) + field(2, value)) for name, value in features)))

    x, y = ("x", field(2, field(1, struct.pack("<2f", 1, 2)))), ("y", field(3, field(1, b"\3")))
    one = written(tmp_path / "1", example(x, y) + example(x))
    assert differing(one, written(tmp_path / "2", example(y, x) + example(x))) == []
    assert differing(one, written(tmp_path / "3", example(("y", x[1]), ("x", y[1])) + example(x))) == ["record 1"]
    assert differing(one, written(tmp_path / "4", example(x, y) + example(y))) == ["record 2"]
    other = record(field(1, field(2, b"a") + field(2, b"b")))  # of which nothing is known
    swapped = record(field(1, field(2, b"b") + field(2, b"a")))
    assert differing(written(tmp_path / "5", other), written(tmp_path / "6", swapped)) == ["record 1"]


def test_other_records_are_read_one_by_one(tmp_path: Path) -> None:
    by, found = parts(written(tmp_path / "a", record(b"one") + record(b"two")))
    assert by == "records"
    assert found == {"record 1": ("", "", b"one"), "record 2": ("", "", b"two")}


@pytest.mark.full
@pytest.mark.launches  # TensorFlow asks uname when it is imported
def test_what_tensorflow_writes_is_read(tmp_path: Path) -> None:
    tensorflow = pytest.importorskip("tensorflow")
    writer = tensorflow.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        tensorflow.summary.write("loss", tensorflow.constant(0.1), step=3)
    writer.close()
    (path,) = tmp_path.iterdir()
    by, found = parts(path)
    assert by == "events"
    assert found == {"loss at step 3": ("number", "0.1", b"0.1")}


@given(st.floats(width=32, allow_nan=False))
def test_digits_are_those_of_one_float(loss: float) -> None:
    digits = events._digits(loss)
    assert struct.pack("<f", float(digits)) == struct.pack("<f", loss)


@given(
    st.lists(
        st.tuples(st.text(max_size=9), st.integers(-9, 2**40), st.floats(width=32, allow_nan=False)),
        min_size=1,
        max_size=9,
    )
)
def test_any_scalars_are_read(tmp_path_factory: pytest.TempPathFactory, scalars: list[tuple[str, int, float]]) -> None:
    data = start() + b"".join(scalar(*one) for one in scalars)
    found = texts(written(tmp_path_factory.mktemp("a") / "a", data))
    assert [struct.pack("<f", float(text)) for text in found.values()] == [struct.pack("<f", one[2]) for one in scalars]


@given(mutations())
def test_a_damaged_event_file_is_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    is_refused_or_read(written(tmp_path_factory.mktemp("a") / "a", mutated(FILE, changes)))


def test_events_without_a_version_are_read(tmp_path: Path) -> None:
    data = scalar("loss", 1, 0.5, time=1.8e9) + scalar("loss", 2, 0.4, time=1.8e9)
    path = written(tmp_path / "events", data)
    assert events.is_events(data, path)
    assert not events.is_events(record(b"\x09" + b"a" * 30), path)
