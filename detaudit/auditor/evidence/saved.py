"""Read a file that a run wrote: its tensors decide, what else it holds is only listed if it differs."""

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

from detaudit.auditor.evidence import formats
from detaudit.auditor.evidence.files import digested, is_generator
from detaudit.auditor.evidence.formats import BROKEN, NUMBER, TEXT, Part, UnusableError, pieces

MOST_BYTES = 16 * 2**20
"""Of a file without tensors, the bytes that are compared, with its size."""

MOST_BESIDE = 200
"""Names of what lies beside the tensors of a file; further ones are put together."""

_OTHERS = "…"
_SHOWN = 2
"""Keys by which what lies beside the arrays is named: ``optimizer.param_groups``."""

_MOST_PROBLEM = 300
_TIME = re.compile(r"(times?|timestamps?|seconds|durations?|elapsed)(\.\d+)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Contents:
    """What a file holds: digests of its ``tensors``, and of what lies ``beside`` them, by name.

    A file without tensors has one ``digest`` of its bytes; ``problem`` says why its tensors cannot be read.
    """

    tensors: tuple[tuple[str, str], ...] = ()
    beside: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    raw: str = ""

    @property
    def digest(self) -> str:
        """One digest of all that it is compared by."""
        return hashlib.blake2b(repr(self.tensors).encode(), digest_size=16).hexdigest() if self.tensors else self.raw


def read(path: Path) -> Contents:
    """Return what is in a file. Raises OSError if it cannot be opened."""
    by = ""
    try:
        found = formats.format_of(path)
        by = found.name if found is not None else formats.BYTES
        contents = _contents(path, found) if found is not None else Contents()
    except ModuleNotFoundError as error:
        contents = Contents(problem=f"needs {error.name} to be read"[:_MOST_PROBLEM])
    except UnusableError as error:
        contents = Contents(problem=str(error)[:_MOST_PROBLEM])
    except BROKEN as error:
        contents = Contents(problem=f"cannot be read as {by}: {type(error).__name__}: {error}"[:_MOST_PROBLEM])
    if contents.tensors:
        return contents
    return Contents(beside=contents.beside, problem=contents.problem, raw=_of_bytes(path))


def _contents(path: Path, found: formats.Format) -> Contents:
    tensors: list[tuple[str, str]] = []
    beside: dict[str, str] = {}
    for part, data in digested(found, path, path.stat().st_size):
        if _decides(part):
            tensors.append((part.name, data.digest))
        else:
            name = part.name if part.dtype not in ("", NUMBER, TEXT) else ".".join(part.name.split(".")[:_SHOWN])
            name = name if len(beside) < MOST_BESIDE else _OTHERS
            beside[name] = _joined(beside.get(name, ""), data.digest)
    return Contents(tuple(sorted(tensors)), beside)


def _joined(one: str, other: str) -> str:
    return hashlib.blake2b((one + other).encode(), digest_size=16).hexdigest() if one else other


def _decides(part: Part) -> bool:
    """Whether a part is a tensor: not what lies beside them, nor a generator's state, or times."""
    return part.dtype not in ("", NUMBER, TEXT) and not is_generator(part) and not _TIME.search(part.name)


def _of_bytes(path: Path) -> str:
    digest = hashlib.blake2b(str(path.stat().st_size).encode(), digest_size=16)
    with path.open("rb") as file:
        for piece in pieces(file, min(path.stat().st_size, MOST_BYTES)):
            digest.update(piece)
    return digest.hexdigest()
