"""Read models that are graphs in protocol buffers: ONNX and TensorFlow's SavedModel.

The numbers of fields are those of onnx/onnx.proto, and of saved_model.proto, meta_graph.proto, graph.proto,
function.proto and node_def.proto in tensorflow/core. What has a name by a counter, and what documents a graph, is left
out.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from detaudit.runs.formats import Part, Start, extents, number, opaque, pieces, text, unique
from detaudit.runs.formats.protobuf import BYTES, VARINT, Span, fields, signed, spans, varint
from detaudit.runs.formats.tensorflow import object_graph

MOST_MESSAGE = 64 * 2**20
"""Bytes of a message that is read at once."""

MOST_FIELDS = 1_000_000
MOST_VERSION = 100

_GRAPH, _OPSETS, _PROPERTIES, _FUNCTIONS, _IR = 7, 8, 14, 25, 1
_LIKE_ONNX = {1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26}


def is_onnx(start: Start) -> bool:
    """Return whether the fields of a file are those of an ONNX model: its version, and one graph."""
    if start.size < 2 or start.head[0] != 0x08 or not 0 < start.head[1] < MOST_VERSION:
        return False
    field_numbers = _top(start)
    return _IR in field_numbers and field_numbers.count(_GRAPH) == 1 and set(field_numbers) <= _LIKE_ONNX


def is_saved_model(start: Start) -> bool:
    """Return whether the fields of a file are those of a SavedModel: version 1, and graphs that say what they are."""
    return start.head.startswith(b"\x08\x01\x12") and set(_top(start)) == {1, 2}


def is_fingerprint(start: Start) -> bool:
    """Return whether the fields of a file are those of a SavedModel's fingerprint, and it lies beside one."""
    has_model = (start.path.parent / "saved_model.pb").is_file()
    return (
        has_model
        and start.size < 200
        and start.path.name == "fingerprint.pb"
        and set(_top(start)) <= {1, 2, 3, 4, 5, 6, 7}
    )


def _top(start: Start) -> list[int]:
    """Return the numbers of the fields of a file, none if it is no message."""
    field_numbers = []
    try:
        with start.path.open("rb") as file:
            for span in spans(file, 0, start.size):
                field_numbers.append(span.number)
                if len(field_numbers) > 10_000:
                    return []
    except (ValueError, EOFError):
        return []
    return field_numbers


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts."""
    start = Start(path)
    if is_saved_model(start):
        return _saved_model(path)
    # All that a fingerprint has is computed from files that are compared themselves, or a random number.
    return iter([text("", "is computed from saved_model.pb")]) if is_fingerprint(start) else unique(_onnx(path))


def _read(file: IO[bytes], span: Span) -> bytes:
    if span.size > MOST_MESSAGE:
        raise ValueError("a message in it is too large")
    file.seek(span.start)
    return b"".join(pieces(file, span.size))


def _onnx(path: Path) -> Iterator[Part]:
    with path.open("rb") as file:
        for span in spans(file, 0, path.stat().st_size):
            if span.number == _GRAPH and span.kind == BYTES:
                yield from _graph(file, span)
            elif span.number == _IR and span.kind == VARINT:
                yield number("ir_version", span.value)
            elif span.number == _OPSETS:
                opset = {one.number: one for one in fields(_read(file, span))}
                name = opset[1].text if 1 in opset else ""
                yield number(f"opset {name}".strip(), opset[2].value if 2 in opset else 0)
            elif span.number == _PROPERTIES:
                entry = {one.number: one for one in fields(_read(file, span))}
                yield text(f"metadata.{entry[1].text if 1 in entry else ''}", entry[2].text if 2 in entry else "")
            elif span.number == _FUNCTIONS:
                yield opaque("function", _without(_read(file, span), _FUNCTION))


# For each message: the fields that are left out (doc_string, metadata_props), and the messages in it.
_ATTRIBUTE: dict[str, Any] = {"out": {13}, "in": {}}
_NODE: dict[str, Any] = {"out": {3, 6, 9}, "in": {5: _ATTRIBUTE}}
_SUBGRAPH: dict[str, Any] = {"out": {10, 16}, "in": {1: _NODE}}
_ATTRIBUTE["in"] = {6: _SUBGRAPH, 11: _SUBGRAPH}
_FUNCTION: dict[str, Any] = {"out": {8, 14}, "in": {7: _NODE}}
_VALUE: dict[str, Any] = {"out": {3, 4}, "in": {}}


def _without(data: bytes | memoryview, layout: dict[str, Any], depth: int = 0) -> bytes:
    """Return the fields of a message without those that its layout leaves out."""
    if depth > 50:
        raise ValueError("it is nested too deeply")
    kept = bytearray()
    for field in fields(data):
        if field.number in layout["out"]:
            continue
        inside = layout["in"].get(field.number)
        value = _without(field.data, inside, depth + 1) if inside and field.kind == BYTES else bytes(field.data)
        kept += b"%d %d %d %d " % (field.number, field.kind, field.value, len(value)) + value
    return bytes(kept)


def _graph(file: IO[bytes], graph: Span) -> Iterator[Part]:
    digest = hashlib.sha256()
    for count, span in enumerate(spans(file, graph.start, graph.size)):
        if count > MOST_FIELDS:
            raise ValueError("its graph has too many nodes")
        if span.number == 5:
            yield _initializer(file, span)
        elif span.number in (1, 11, 12, 13, 15):
            digest.update(_without(_read(file, span), _NODE if span.number == 1 else _VALUE))
            digest.update(b"%d;" % span.number)
    yield opaque("graph", digest.digest())


_ONNX_DTYPES = {1: "f4", 2: "u1", 3: "i1", 4: "u2", 5: "i2", 6: "i4", 7: "i8", 9: "b1", 10: "f2", 11: "f8", 12: "u4"}
_ONNX_DTYPES |= {13: "u8", 14: "c8", 15: "c16", 16: "bf16"}
_FIXED = {4: "f4", 10: "f8"}
"""Fields with floats, four or eight bytes each, as raw data has them."""


def _initializer(file: IO[bytes], tensor: Span) -> Part:
    name, kind, dims = "", 0, list[int]()
    raw: Span | None = None
    others = bytearray()
    for span in spans(file, tensor.start, tensor.size):
        if span.number == 1 and span.kind == VARINT:
            dims.append(signed(span.value))
        elif span.number == 1:
            at, data = 0, _read(file, span)
            while at < len(data):
                value, at = varint(data, at)
                dims.append(signed(value))
        elif span.number == 2:
            kind = span.value
        elif span.number == 8:
            name = _read(file, span).decode("utf-8", "backslashreplace")
        elif span.number == 9 or (span.number in _FIXED and span.kind == BYTES and raw is None):
            raw = span
        elif span.number not in (12, 16):
            others += b"%d %d " % (span.number, span.value) + (_read(file, span) if span.kind == BYTES else b"")
    shape = extents(dims)
    if raw is not None and not others:
        file.seek(raw.start)
        return Part(name, pieces(file, raw.size), f"<{_ONNX_DTYPES.get(kind, f'type {kind}')}", shape)
    data = bytes(others) + (_read(file, raw) if raw is not None else b"")
    return Part(name, iter([data]), "", shape)  # packed numbers, texts, or where the data is in another file


def _saved_model(path: Path) -> Iterator[Part]:
    """Yield the operations of each graph, and the constants in it, without the names, which have counters.

    The variables are in files of their own.
    """
    with path.open("rb") as file:
        for index, span in enumerate(spans(file, 0, path.stat().st_size)):
            if span.number != 2 or span.kind != BYTES:
                continue
            label = f"graph {index}" if index > 1 else "graph"
            operations, constants = list[bytes](), list[bytes]()
            for inner in spans(file, span.start, span.size):
                if inner.number == 2 and inner.kind == BYTES:
                    _take_graph(_read(file, inner), operations, constants)
            yield opaque(f"{label} operations", b"\n".join(sorted(operations)))
            yield opaque(f"{label} constants", b"".join(sorted(constants)))


def _take_graph(graph: bytes, operations: list[bytes], constants: list[bytes]) -> None:
    for field in fields(graph):
        if field.number == 1 and field.kind == BYTES:
            _take_node(field.data, operations, constants)
        elif field.number == 2 and field.kind == BYTES:
            for function in fields(field.data):
                if function.number == 1 and function.kind == BYTES:
                    for one in fields(function.data):
                        if one.number == 3 and one.kind == BYTES:
                            _take_node(one.data, operations, constants)


def _take_node(node: memoryview, operations: list[bytes], constants: list[bytes]) -> None:
    operation, value = b"", b""
    for field in fields(node):
        if field.number == 2:
            operation = bytes(field.data)
        elif field.number == 5 and field.kind == BYTES:
            attribute = {one.number: one.data for one in fields(field.data)}
            if bytes(attribute.get(1, b"")) == b"value":
                value = bytes(attribute.get(2, b""))
    operations.append(operation)
    if operation == b"Const":
        constants.append(len(value).to_bytes(8, "little") + _constant(value))


def _constant(value: bytes) -> bytes:
    """Return a message AttrValue, without the order of the objects if its tensor is the text that describes them."""
    for tensor in (one for one in fields(value) if one.number == 8):
        for described in (one for one in fields(tensor.data) if one.number == 8 and one.kind == BYTES):
            try:
                return object_graph(described.data) or value
            except ValueError:
                return value
    return value
