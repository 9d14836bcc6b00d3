"""What ``detaudit doctor`` sees of a machine."""

from typing import Any

import msgspec


class Threat(msgspec.Struct, frozen=True, kw_only=True):
    """Something here by which runs may differ; ``flag`` holds it still, ``""`` where none does."""

    what: str
    cure: str
    flag: str = ""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """A machine: all that bears on the bits of a training, by name, and what threatens them on it."""

    schema_version: int
    python: str
    environment: dict[str, Any]
    bearing: dict[str, str]
    threats: tuple[Threat, ...]
