"""The names under which archives are stored."""


def is_listed(name: str) -> bool:
    """Return whether this can be the name of an archive: one that starts with a dot is of a file that is not whole."""
    return name != "" and "/" not in name and not name.startswith(".")


def check(name: str) -> None:
    """Raise ValueError if this cannot be the name of an archive."""
    if not is_listed(name):
        raise ValueError(f"not a name to store under: {name!r}")
