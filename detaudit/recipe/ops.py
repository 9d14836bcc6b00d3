"""The operations known to race, rows of configs/ops.yaml, and what mends each."""

import functools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from detaudit.errors import ConfigError
from detaudit.recipe import yamlfile
from detaudit.recipe.applies import is_gpu

OpFramework = Literal["torch", "tensorflow"]
MendedBy = Literal["deterministic-algorithms", "one-thread", "edit"]


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A family of operations on a kind of device; configs/ops.yaml says what each field means."""

    id: str
    framework: OpFramework
    device: Literal["cpu", "gpu"]
    ops: tuple[str, ...]
    mended_by: MendedBy
    source: str
    when: str = ""
    instead: str = ""
    measured: bool = False


def load_ops(path: Path | None = None) -> tuple[Row, ...]:
    """Read the table. Raises ConfigError for a broken file, or an operation that is there twice for a device."""
    path = path or yamlfile.configs_dir() / "ops.yaml"
    rows = tuple(yamlfile.load(path, list[Row]))
    seen: set[tuple[str, str, str]] = set()
    for number, row in enumerate(rows):
        if bool(row.instead) != (row.mended_by == "edit"):
            at = yamlfile.place(path, f"[{number}].mended_by")
            raise ConfigError(
                f"{at}: {row.id!r} needs `instead` if it is mended by an edit, else none", "Say one thing."
            )
        for place, op in enumerate(row.ops):
            if (key := (row.framework, row.device, op)) in seen:
                at = yamlfile.place(path, f"[{number}].ops[{place}]")
                raise ConfigError(f"{at}: {op!r} is there twice for the {row.device}", "Leave one of them out.")
            seen.add(key)
    return rows


def base_name(op: str) -> str:
    """Return an operation as the table names it.

    ``aten::put_``, ``aten.put_.default`` and ``torch.ops.aten.put_`` are ``put_``, and ``sgd/ResourceScatterSub_1`` is
    ``ResourceScatterSub``.
    """
    of_torch = re.search(r"\baten(?:::|\.)(\w+)", op)
    return of_torch[1] if of_torch else re.sub(r"_\d+$", "", op.rpartition("/")[2])


def known(op: str, framework: str, device: str) -> Row | None:
    """Return the family of an operation that may race on a device such as ``cuda:0``, None for any other."""
    return _table().get((framework, "gpu" if is_gpu(device) else "cpu", base_name(op)))


def names(frameworks: Iterable[str], devices: Iterable[str]) -> tuple[str, ...]:
    """Return what may race in these frameworks, on devices such as ``cuda:0``; on the CPU where none is given."""
    kinds = {"gpu" if is_gpu(device) else "cpu" for one in devices for device in one.split(",")} or {"cpu"}
    known_by = set(frameworks)
    return tuple(op for framework, device, op in _table() if framework in known_by and device in kinds)


@functools.cache
def _table() -> dict[tuple[str, str, str], Row]:
    return {(row.framework, row.device, op): row for row in load_ops() for op in row.ops}
