"""Leave secrets out of what is stored and printed: ``***`` takes their place in command lines and in printed lines.

The recorder imports this module too, so it uses only the standard library, without ``re``, and runs on Python 3.9.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

HIDDEN = "***"

_SECRETS = ("secret", "password", "passwd", "passphrase", "credential", "apikey", "accesskey", "privatekey")
"""A name that contains one of these, whatever its case, hyphens and underscores, is that of a secret."""

_OF_TEXT = ("bos", "cls", "end", "eos", "image", "mask", "pad", "per", "sep", "start", "stop", "unk")
"""Words before ``token`` in names of hyperparameters."""

_SHORTEST = 4
"""Characters of a secret that is looked for in texts; a shorter one is in many."""


def is_secret(name: str) -> bool:
    """Return whether this is the name of a secret: ``--hf-token`` and ``API_KEY`` are, ``--max-tokens`` is not."""
    words = "".join([one if one.isalnum() else " " for one in name.lower()]).split()
    plain = "".join(words)
    if plain.endswith("token"):
        return len(words) < 2 or words[-2] not in _OF_TEXT
    return any(part in plain for part in _SECRETS)


def command(words: Iterable[str]) -> tuple[str, ...]:
    """Return a command line without its secrets: values of options and variables, users and passwords in URLs."""
    redacted, follows = [], False
    for word in words:
        redacted.append(HIDDEN if follows and not word.startswith("-") else text(word))
        follows = word.startswith("-") and "=" not in word and is_secret(word)
    return tuple(redacted)


def text(words: str) -> str:
    """Return a word, or a line of them, without secrets."""
    name, equals, _ = words.partition("=")  # an argument may be a secret with spaces, so nothing after it is kept
    if equals and " " not in name and is_secret(name):
        return name + equals + HIDDEN
    return " ".join(command(words.split(" "))) if " " in words else _without_user(words)


def secrets(words: Sequence[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secrets in a command line and among the values of variables; those in URLs are left out."""
    candidates = [value for name, value in variables.items() if is_secret(name)]
    for word, shown in zip(words, command(words)):
        if shown.endswith(HIDDEN):
            candidates.append(word[len(shown) - len(HIDDEN) :])
    return tuple([one for one in candidates if len(one) >= _SHORTEST])


def _without_user(word: str) -> str:
    scheme, mark, rest = word.partition("://")
    host, slash, path = rest.partition("/")
    _, at, server = host.rpartition("@")
    return scheme + mark + (HIDDEN + at if at else "") + server + slash + (_without_user(path) if path else "")
