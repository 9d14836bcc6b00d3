"""What ``detaudit doctor`` finds on a machine."""

from typing import Any, TypeAlias

import msgspec

from detaudit.model.facts import Fact


class VariablesUnset(Fact, frozen=True, kw_only=True):
    """Variables that must be set before Python starts are not set; the flag ``flag`` sets them."""

    variables: tuple[str, ...]
    flag: str
    title: str
    by_hand: str


class RandomAddresses(Fact, frozen=True, kw_only=True):
    """Memory addresses change in every process; ``flag`` prevents that."""

    flag: str
    title: str
    by_hand: str


class RetiredSetting(Fact, frozen=True, kw_only=True):
    """A variable is set that no longer helps, and why; ``replacement`` is what helps today."""

    variable: str
    value: str
    why: str
    replacement: str


class ThreadsFollowMachine(Fact, frozen=True, kw_only=True):
    """Libraries use as many threads as there are processors."""

    cpus: int


Risk: TypeAlias = VariablesUnset | RandomAddresses | RetiredSetting | ThreadsFollowMachine
"""Why runs may differ on a machine."""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="doctor"):
    """A machine: everything on it that affects determinism, by name, and its risks."""

    schema_version: str
    python: str
    environment: dict[str, Any]
    relevant: dict[str, str]
    risks: tuple[Risk, ...]
