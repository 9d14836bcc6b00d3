"""Write a script that repeats one operation on its recorded inputs, with nothing of the user's in it."""

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from detaudit import private
from detaudit.auditor import store
from detaudit.auditor.evidence.formats import npy, npz
from detaudit.auditor.trace.replay_call import Call, Saved, Storage
from detaudit.model import ReplayedPass, ReplayVerdict

SCRIPT, INPUTS = "repro.py", "inputs.npz"
_SIZES = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "float16": 2, "float32": 4, "float64": 8}
"""Bytes of an element of the dtypes that both NumPy and torch have."""

_FILLED = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0 "


def write(folder: Path, saved: Saved, place: int, found: ReplayedPass) -> str:
    """Write a script and its inputs into a folder, and return its path. Raises StorageError."""
    call, reads_memory = saved.call, found.verdict is ReplayVerdict.MEMORY
    private.make_folder(folder)
    store.write(folder / INPUTS, npz.written(dict(_arrays(saved))))
    parts = _of_torch(call) if call.framework == "torch" else _of_tensorflow(call)
    template = resources.files(__package__).joinpath(f"repro_{call.framework}.txt").read_text("utf-8")
    text = Template(template).substitute(
        parts,
        op=call.op,
        place=place,
        prefix=_FILLED if reads_memory else "",
        fills="(0xAA, 0x55, 0x00)" if reads_memory else "()",
    )
    store.write(folder / SCRIPT, text.encode())
    return str(folder)


def _arrays(saved: Saved) -> Iterator[tuple[str, bytes]]:
    for place, storage in enumerate(saved.call.storages):
        dtype, size = _dtype(storage)
        yield f"memory{place}", npy.written(dtype, (storage.bytes // size,), saved.bytes_of(storage.file))
    for place, given in enumerate(saved.call.inputs):
        yield f"in{place}", npy.written(given.dtype, given.shape, saved.bytes_of(given.file))


def _dtype(storage: Storage) -> tuple[str, int]:
    """Return as which dtype memory is saved, and the bytes of an element."""
    size = _SIZES.get(storage.dtype, 0)
    return (storage.dtype, size) if size and storage.bytes % size == 0 else ("uint8", 1)


def _of_torch(call: Call) -> dict[str, object]:
    given = [f"    {expression(one)}," for one in call.args]
    given += [f"    {name}={expression(one)}," for name, one in call.kwargs["dict"]]
    devices = {f"memory{place}": storage.device for place, storage in enumerate(call.storages)}
    return {
        "threads": call.settings["threads"],
        "imports": "".join(f"import {name}\n" for name in call.modules),
        "libraries": "".join(f"torch.ops.load_library({path!r})\n" for path in call.libraries),
        "devices": devices,
        "arguments": "\n".join(f"    {line}" for line in given),
    }


def expression(value: Any) -> str:
    """Return an argument of an operation of torch as Python, from the JSON that the recorder made of it."""
    if isinstance(value, list):
        return f"[{', '.join(map(expression, value))}]"
    if not isinstance(value, dict):
        return repr(value)
    ((kind, held),) = value.items()
    match kind:
        case "tensor":
            shape, stride = tuple(held["shape"]), tuple(held["stride"])
            view = f'view("memory{held["storage"]}", torch.{held["dtype"]}, {shape}, {stride}, {held["offset"]})'
            return f"{view}{''.join(f'.{bit}()' if bit == 'conj' else '._neg_view()' for bit in held['bits'])}"
        case "float":
            number = float.fromhex(held)
            return repr(number) if number == number and abs(number) != float("inf") else f'float("{number}")'
        case "complex":
            return repr(complex(*map(float.fromhex, held)))
        case "device":
            return f'torch.device("{held}")'
        case _:
            return f"torch.{held}"


def _of_tensorflow(call: Call) -> dict[str, object]:
    return {
        "intra": call.settings["intra"],
        "inter": call.settings["inter"],
        "node": call.node.replace("\\", "\\\\"),
        "inputs": [(given.kind, given.dtype) for given in call.inputs],
    }
