"""The table of operations that are known to race, configs/ops.yaml, with the fix for each."""

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
FixedBy = Literal["deterministic-algorithms", "one-thread", "edit"]


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A family of operations on a kind of device; configs/ops.yaml explains the fields."""

    id: str
    framework: OpFramework
    device: Literal["cpu", "gpu"]
    ops: tuple[str, ...]
    fixed_by: FixedBy
    source: str
    when: str = ""
    replacement: str = ""
    measured: bool = False


def load_ops(path: Path | None = None) -> tuple[Row, ...]:
    """Read the table. Raises ConfigError for an invalid file, or for an operation listed twice for a device."""
    path = path or yamlfile.configs_dir() / "ops.yaml"
    rows = tuple(yamlfile.load(path, list[Row]))
    seen: set[tuple[str, str, str]] = set()
    for number, row in enumerate(rows):
        if bool(row.replacement) != (row.fixed_by == "edit"):
            at = yamlfile.place(path, f"[{number}].fixed_by")
            raise ConfigError(
                f"{at}: {row.id!r} must have a `replacement` if `fixed_by` is `edit`, and only then",
                "Add or remove `replacement`.",
            )
        for place, op in enumerate(row.ops):
            if (key := (row.framework, row.device, op)) in seen:
                at = yamlfile.place(path, f"[{number}].ops[{place}]")
                raise ConfigError(f"{at}: duplicate operation {op!r} for the {row.device}", "Remove one of them.")
            seen.add(key)
    return rows


def base_name(op: str) -> str:
    """Return the name of an operation in the table.

    It is ``put_`` for ``aten::put_``, ``aten.put_.default`` and ``torch.ops.aten.put_``, and ``ResourceScatterSub`` for
    ``sgd/ResourceScatterSub_1``.
    """
    of_torch = re.search(r"\baten(?:::|\.)(\w+)", op)
    return of_torch[1] if of_torch else re.sub(r"_\d+$", "", op.rpartition("/")[2])


def known(op: str, framework: str, device: str) -> Row | None:
    """Return the family of an operation that may race on a device such as ``cuda:0``, None if there is none."""
    return _table().get((framework, "gpu" if is_gpu(device) else "cpu", base_name(op)))


def names(frameworks: Iterable[str], devices: Iterable[str]) -> tuple[str, ...]:
    """Return the operations that may race in these frameworks, on devices such as ``cuda:0``, by default the CPU."""
    kinds = {"gpu" if is_gpu(device) else "cpu" for one in devices for device in one.split(",")} or {"cpu"}
    known_by = set(frameworks)
    return tuple(op for framework, device, op in _table() if framework in known_by and device in kinds)


@functools.cache
def _table() -> dict[tuple[str, str, str], Row]:
    return {(row.framework, row.device, op): row for row in load_ops() for op in row.ops}
