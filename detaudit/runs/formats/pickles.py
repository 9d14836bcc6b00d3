"""Read what a pickle holds from its opcodes: nothing that it names is imported or called.

A pickle builds its objects on a stack. Here, the same opcodes build stand-ins: what a function would return is its
name and its arguments, and an array is its dtype, its shape and a digest of its bytes. The opcodes are documented in
the module pickletools of the standard library.
"""

import io
import pickletools
import re
import tempfile
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

from detaudit.runs.formats import BROKEN, NUMBER, TEXT, Part, Start, UnusableError, extents, pieces, storages
from detaudit.runs.formats import parts as file_parts
from detaudit.runs.formats.arrays import contents, item_size, kind_of
from detaudit.runs.formats.standins import Array, Bag, Blob, Call, Global, Mapping, Persistent, digest_of
from detaudit.runs.formats.torch import LEGACY
from detaudit.runs.formats.values import folded

MOST_OPCODES = 4_000_000
MOST_PICKLES = 10_000
_MARK = object()
_MOST_NAME = 1000
_SHORT = 64
"""Of more bytes than these, a digest is kept."""

_SMALL = 2**19
_ROOM = 64 * 2**20
"""Of at most so many bytes each, and so many in all, the bytes are kept too: what a clock shows has such values."""

_PICKLES = (b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5")
_LIGHTGBM = "tree\nversion="
_FILES = (b"PK\3\4", b"CBM1", b"\x89HDF\r\n\x1a\n", _LIGHTGBM.encode())
"""How files begin that libraries pickle as they are: what torch and Keras save, models of CatBoost and LightGBM."""

_EXACT = re.compile(r"[-+]?(?=.{1,16}\Z)\d*\.?\d+")
"""A number whose digits a float keeps."""

_is_within: ContextVar[bool] = ContextVar("is_within", default=False)

_VIEW = 4
"""Arguments of ``torch._utils._rebuild_tensor`` and its variants: storage, offset, shape, strides."""


def is_pickle(start: Start) -> bool:
    """Return whether a file begins as a pickle; before protocol 2 these have no mark, and all of it is looked at."""
    if start.head[:1] == b"\x80":
        return start.head.startswith(_PICKLES)
    if not start.tail.endswith(b".") or not _OLD.match(start.head):
        return False
    if start.size > len(start.head):
        return True
    try:
        read(io.BytesIO(start.head))
    except BROKEN:
        return False
    return True


# Protocols 0 and 1: a container or a function that is put into the memo, or one number or text.
_OLD = re.compile(
    rb"\(?[dlt]p\d+\n|[\]}]q|c[A-Za-z_][\w.]*\n[A-Za-z_]\w*\n|\(i[A-Za-z_][\w.]*\n|\([(IFLSVKJGMNX]|[FIL][-+.\w]+\n\.\Z"
    rb"|G(?=.*[^ -~]).{8}\.\Z|[SV].*\np\d+\n\.\Z|X.*q.\.\Z",
    re.DOTALL,
)


def parts(path: Path) -> Iterator[Part]:
    """See Format.parts. One file may hold several pickles, one after another."""
    with path.open("rb") as file:
        yield from folded((_DIGITS.sub("*", part.name), part) for part in _all(file, path.stat().st_size))


_DIGITS = re.compile(r"\d+")


def _all(file: IO[bytes], size: int) -> Iterator[Part]:
    count = 0
    while file.tell() < size:
        count += 1
        if count > MOST_PICKLES:
            raise ValueError("it holds too many pickles")
        yield from contents(read(file), prefix=f"pickle {count}" if count > 1 else "")


def read(file: IO[bytes]) -> Any:
    """Return the stand-in for the object that is pickled here. Raises ValueError if the opcodes make no sense."""
    try:
        return _Machine(file).run()
    except (AttributeError, StopIteration) as error:
        raise ValueError("its opcodes do not fit together") from error


class _Machine:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._remembered: set[int] = set()
        self._made: dict[tuple[str, int], tuple[Any, Any]] = {}
        self._room = _ROOM

    def run(self) -> Any:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(self._file)):
            if count > MOST_OPCODES:
                raise ValueError("it holds too many objects to be read")
            if opcode.name == "STOP":
                return self._stack.pop()
            step = _STEPS.get(opcode.name)
            if step is not None:
                step(self, argument)
            elif not opcode.stack_before and len(opcode.stack_after) == 1:
                self._stack.append(self._constant(opcode.name, argument))
            elif opcode.name not in ("PROTO", "FRAME", "READONLY_BUFFER"):
                raise ValueError(f"its opcode {opcode.name} is not supported")
        raise EOFError("it ends too early")

    def _pop(self, count: int) -> list[Any]:
        stack_slice = self._stack[len(self._stack) - count :]
        del self._stack[len(self._stack) - count :]
        if len(stack_slice) < count:
            raise ValueError("its stack is empty")
        return stack_slice

    def _to_mark(self) -> list[Any]:
        mark_index = next(index for index in range(len(self._stack) - 1, -1, -1) if self._stack[index] is _MARK)
        stack_slice = self._stack[mark_index + 1 :]
        del self._stack[mark_index:]
        return stack_slice

    def put(self, argument: int) -> None:
        self._memo[argument] = self._stack[-1]
        self._remembered.add(id(self._stack[-1]))

    def memoize(self, _: None) -> None:
        self.put(len(self._memo))

    def get(self, argument: int) -> None:
        self._stack.append(self._memo[int(argument)])

    def gather(self, make: Callable[[list[Any]], Any], count: int | None = None) -> None:
        self._stack.append(make(self._to_mark() if count is None else self._pop(count)))

    def append(self, items: list[Any]) -> None:
        target = self._stack[-1]
        (target.items if isinstance(target, Call) else target).extend(items)

    def set_items(self, flat: list[Any]) -> None:
        self._stack[-1].pairs.extend(zip(flat[::2], flat[1::2], strict=True))

    def call(self, count: int) -> None:
        function, *arguments = self._pop(count)
        call_arguments = arguments[0] if len(arguments) == 1 else tuple(arguments)
        if function in (_ENCODE, _STORAGE):
            self._stack.append(self._made_once(function.name, call_arguments))
        else:
            self._stack.append(self._result(function, call_arguments))

    def _made_once(self, name: str, arguments: Any) -> Any:
        """Return what is made of bytes, which a few opcodes may ask for a million times."""
        key = (name, id(arguments[0]))
        if key not in self._made:
            self._made[key] = arguments[0], self._result(Global(name), arguments)
        return self._made[key][1]

    def build(self, _: None) -> None:
        (state,) = self._pop(1)
        target = self._stack[-1]
        target.state = state
        if isinstance(target.function, Global) and target.function.name.endswith(" NumpyArrayWrapper"):
            target.state = self._of_joblib(state)

    def glob(self, argument: str | None) -> None:
        if argument is None:
            module, name = self._pop(2)
            argument = f"{module:.{_MOST_NAME}s} {name:.{_MOST_NAME}s}"
        self._stack.append(Global(argument))

    def instance(self, argument: str) -> None:
        self._stack.append(Call(Global(argument), self._to_mark()))

    def object(self, _: None) -> None:
        kind, *arguments = self._to_mark()
        self._stack.append(Call(kind, arguments))

    def take(self, method: str, count: int | None) -> None:
        getattr(self, method)(self._to_mark() if count is None else self._pop(count))

    def drop(self, items: list[Any]) -> None:
        """Forget what was taken from the stack, but for what a call does to an object, as with cloudpickle and dill.

        A function that sets the state of an object is called with it, and its result is dropped: see ``state_setter``
        in https://docs.python.org/3/library/pickle.html#object.__reduce__. What is remembered is not lost.
        """
        for item in items:
            if not isinstance(item, Call) or id(item) in self._remembered:
                continue
            target, *rest = item.arguments if isinstance(item.arguments, tuple) else (item.arguments,)
            if isinstance(target, Call):
                target.items.append(Call(item.function, rest))
            elif isinstance(target, Mapping):
                target.pairs.append((item.function, rest))
            else:
                raise ValueError("it drops what a call returns")

    def mark(self, _: None) -> None:
        self._stack.append(_MARK)

    def persistent(self, argument: str | None) -> None:
        self._stack.append(Persistent(argument if argument is not None else self._pop(1)[0]))

    def duplicate(self, _: None) -> None:
        self._stack.append(self._stack[-1])

    def _result(self, function: Any, arguments: Any) -> Any:
        """Return the stand-in for what a function returns for these arguments."""
        if function == _ENCODE and arguments[1] in _LATIN:  # how protocol 2 writes bytes
            return self._brief(arguments[0].encode("latin1"))
        if isinstance(function, Global) and function.name in _SETS and arguments and isinstance(arguments[0], list):
            return Bag(arguments[0])
        if function == _STORAGE and isinstance(arguments[0], bytes):
            return storages.storage_in(arguments[0], read) or Call(function, arguments)
        if isinstance(arguments, tuple) and len(arguments) >= _VIEW and isinstance(arguments[0], storages.Storage):
            return Call(function, (storages.shown(*arguments[:_VIEW]), *arguments[_VIEW:]))
        return Call(function, arguments)

    def _constant(self, name: str, argument: Any) -> Any:
        if name in _EMPTY:
            return _EMPTY[name]()
        return _CONSTANTS[name] if name in _CONSTANTS else self._brief(argument)

    def _brief(self, argument: Any) -> Any:
        if isinstance(argument, bytes | bytearray) and len(argument) > _SHORT and not argument.startswith(LEGACY):
            data = bytes(argument)
            held = self._file_in(data)
            return held if held is not None else Blob(len(data), digest_of([data]), self._kept(data))
        if isinstance(argument, str) and argument.startswith(_LIGHTGBM):
            return self._file_in(argument.encode("utf-8", "surrogatepass")) or argument
        return argument

    def _file_in(self, data: bytes) -> Any:
        """Return what a file holds that lies in the pickle as bytes, None if it is none, or lies in such a file."""
        is_pickle = data.startswith(_PICKLES) and data.endswith(b".")
        if _is_within.get() or not (is_pickle or data.startswith(_FILES)):
            return None
        mark = _is_within.set(True)
        try:
            if is_pickle:
                return read(io.BytesIO(data))
            with tempfile.NamedTemporaryFile(prefix="detaudit-") as copy:
                copy.write(data)
                copy.flush()
                return Mapping([(part.name, self._value(part)) for part in file_parts(Path(copy.name))[1]])
        except (*BROKEN, ModuleNotFoundError, UnusableError):
            return None
        finally:
            _is_within.reset(mark)

    def _value(self, part: Part) -> Any:
        if part.dtype == NUMBER and _EXACT.fullmatch(part.text):
            return float(part.text)
        if part.dtype in (TEXT, NUMBER) and part.text:
            return part.text
        data = b"".join(part.pieces)
        return Array(part.dtype, part.shape, digest_of([data]), self._kept(data))

    def _kept(self, data: bytes) -> bytes:
        """Return few bytes, none if there are more or no room is left."""
        if len(data) > min(_SMALL, self._room):
            return b""
        self._room -= len(data)
        return data

    def _of_joblib(self, state: Mapping) -> Any:
        """Return the array that joblib writes into the pickle, right after the object that describes it."""
        described = dict(state.pairs)
        dtype, shape = kind_of(described["dtype"]), extents(described["shape"])
        if dtype[1:].startswith("O"):
            return read(self._file)  # a pickle in the pickle
        if described.get("numpy_array_alignment_bytes") is not None:
            self._file.read(self._file.read(1)[0])
        size = item_size(dtype)
        for extent in shape:
            size *= extent
        dtype = f"{dtype}{' F' if described['order'] == 'F' else ''}"
        if size <= _SMALL:
            data = b"".join(pieces(self._file, size))
            return Array(dtype, shape, digest_of([data]), self._kept(data))
        return Array(dtype, shape, digest_of(pieces(self._file, size)))


def _mapping(flat: list[Any]) -> Mapping:
    return Mapping(list(zip(flat[::2], flat[1::2], strict=True)))


_ENCODE, _STORAGE = Global("_codecs encode"), Global("torch.storage _load_from_bytes")
_LATIN = ("latin1", "latin-1")
_SETS = ("builtins set", "builtins frozenset", "__builtin__ set", "__builtin__ frozenset")
"""How sets are written before protocol 4."""

_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Callable[[], Any]] = {
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": lambda: Mapping([]),
    "EMPTY_SET": lambda: Bag([]),
}


_Step = Callable[[_Machine, Any], None]
_STEPS: dict[str, _Step] = {
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), lambda machine, argument: machine.put(int(argument))),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Machine.get),
    "MEMOIZE": _Machine.memoize,
    "MARK": _Machine.mark,
    "POP": lambda machine, _: machine.take("drop", 1),
    "POP_MARK": lambda machine, _: machine.take("drop", None),
    "DUP": _Machine.duplicate,
    "LIST": lambda machine, _: machine.gather(list),
    "TUPLE": lambda machine, _: machine.gather(tuple),
    "TUPLE1": lambda machine, _: machine.gather(tuple, 1),
    "TUPLE2": lambda machine, _: machine.gather(tuple, 2),
    "TUPLE3": lambda machine, _: machine.gather(tuple, 3),
    "DICT": lambda machine, _: machine.gather(_mapping),
    "FROZENSET": lambda machine, _: machine.gather(Bag),
    "APPEND": lambda machine, _: machine.take("append", 1),
    "APPENDS": lambda machine, _: machine.take("append", None),
    "ADDITEMS": lambda machine, _: machine.take("append", None),
    "SETITEM": lambda machine, _: machine.take("set_items", 2),
    "SETITEMS": lambda machine, _: machine.take("set_items", None),
    "GLOBAL": _Machine.glob,
    "STACK_GLOBAL": _Machine.glob,
    "REDUCE": lambda machine, _: machine.call(2),
    "NEWOBJ": lambda machine, _: machine.call(2),
    "NEWOBJ_EX": lambda machine, _: machine.call(3),
    "INST": _Machine.instance,
    "OBJ": _Machine.object,
    "BUILD": _Machine.build,
    "PERSID": _Machine.persistent,
    "BINPERSID": _Machine.persistent,
}
"""What the opcodes do that are more than a constant."""
