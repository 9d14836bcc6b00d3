"""What a rule is: why runs differ, the edit that ends it, an example of both, and what it never does."""

import ast
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from detaudit.model import SourceKind
from detaudit.source.text import SourceText, TextEdit


@dataclass(frozen=True)
class Fix:
    """The edits that fix one place, none if no safe ones are known, and the imports that they need."""

    edits: tuple[TextEdit, ...] = ()
    needs: tuple[str, ...] = ()


UNSAFE = Fix()
"""The place is of the requested kind, and no fix is known that breaks nothing."""


class Rule(ABC):
    """One rule. ``before`` and ``after`` are its example: text of the user's, and the same text as the rule leaves it.

    ``kinds`` are those of the lines that it is about. ``message``, which says why, and ``never`` are for people to
    read, and so is the docstring of its class, which says what it does.
    """

    name: ClassVar[str]
    kinds: ClassVar[frozenset[SourceKind]]
    message: ClassVar[str]
    before: ClassVar[str]
    after: ClassVar[str]
    never: ClassVar[str]

    @property
    def title(self) -> str:
        """What it does, without a full stop."""
        return (type(self).__doc__ or self.name).rstrip(".")

    @abstractmethod
    def fix(self, page: SourceText, node: ast.AST) -> Fix | None:
        """Return the fix of a node: None if it is no such place, UNSAFE if no safe fix is known."""
