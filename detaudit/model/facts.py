"""Facts: what detaudit found, as kinds with fields. Only ``report`` puts them into words."""

import re

import msgspec


def kind_of(name: str) -> str:
    """Return the ``kind`` of a class in JSON: ``TimedOut`` is ``timed-out``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


class Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=kind_of):
    """A fact; in JSON, ``kind`` names its class."""
