"""Edits of the arguments of a call by libcst, which keeps their layout and their comments.

libcst takes longer to import than ``detaudit --help``, and ten times as long as ``ast`` to say where things are: it is
imported when it is needed, and reads nothing but the call.
"""

import ast
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from detaudit.rules.rule import UNSAFE, Fix
from detaudit.source.text import SourceText, TextEdit, argument_of

if TYPE_CHECKING:
    import libcst as cst

_LINE_END = re.compile(r"\r\n|\r|\n")


def with_first(page: SourceText, call: ast.Call, value: str) -> tuple[TextEdit, ...]:
    """Return the edit that passes a value before all keywords."""
    import libcst as cst

    def change(node: "cst.Call") -> "cst.Call":
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")) if node.args else cst.MaybeSentinel.DEFAULT
        return node.with_changes(args=[cst.Arg(cst.parse_expression(value), comma=comma), *node.args])

    return _changed(page, call, change)


def with_keyword(page: SourceText, call: ast.Call, name: str, value: str) -> tuple[TextEdit, ...]:
    """Return the edit that passes a keyword: at the end of the call, or in place of its value if it is passed."""
    known = argument_of(call, name)
    return (
        page.instead(known, value)
        if known is not None
        else _changed(page, call, lambda node: _longer(node, name, value))
    )


def without(page: SourceText, call: ast.Call, name: str) -> tuple[TextEdit, ...]:
    """Return the edit that leaves a keyword out that is False, or says the opposite if comments stand in the way."""
    value, commented = argument_of(call, name), False

    def change(node: "cst.Call") -> "cst.Call":
        nonlocal commented
        at = next(n for n, one in enumerate(node.args) if one.keyword is not None and one.keyword.value == name)
        one, above = node.args[at], node.args[max(0, at - 1) : at]
        commented = any(map(_has_comment, (one, *above)))
        kept = [other.with_changes(comma=one.comma, whitespace_after_arg=one.whitespace_after_arg) for other in above]
        return node.with_changes(args=[*node.args[: max(0, at - 1)], *kept, *node.args[at + 1 :]])

    edits = _changed(page, call, change)
    return page.instead(value, "True") if commented and value is not None else edits


def fixed(edits: tuple[TextEdit, ...], *needs: str) -> Fix:
    """Return a fix with these edits, UNSAFE without any."""
    return Fix(edits, needs) if edits else UNSAFE


def _longer(node: "cst.Call", name: str, value: str) -> "cst.Call":
    import libcst as cst

    bare = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    new = cst.Arg(cst.parse_expression(value), keyword=cst.Name(name), equal=bare)
    if not node.args:
        return node.with_changes(args=[new])
    *others, last = node.args
    gaps = [one.comma.whitespace_after for one in others if isinstance(one.comma, cst.Comma)]
    gap = gaps[-1] if gaps else node.whitespace_before_args
    if isinstance(gap, cst.SimpleWhitespace):
        gap = cst.SimpleWhitespace(" ")
    trailing = isinstance(last.comma, cst.Comma)
    comma = last.comma if isinstance(last.comma, cst.Comma) else cst.Comma()
    end = comma.whitespace_after if trailing else last.whitespace_after_arg
    if isinstance(end, cst.ParenthesizedWhitespace) and (end.first_line.comment or end.empty_lines):
        above = gap if isinstance(gap, cst.ParenthesizedWhitespace) else end
        gap = above.with_changes(first_line=end.first_line, empty_lines=end.empty_lines)
        end = end.with_changes(first_line=cst.TrailingWhitespace(newline=end.first_line.newline), empty_lines=[])
    elif isinstance(gap, cst.ParenthesizedWhitespace):
        gap = gap.with_changes(first_line=cst.TrailingWhitespace(newline=gap.first_line.newline), empty_lines=[])
    last = last.with_changes(
        comma=comma.with_changes(whitespace_after=gap), whitespace_after_arg=cst.SimpleWhitespace("")
    )
    new = (
        new.with_changes(comma=cst.Comma(whitespace_after=end))
        if trailing
        else new.with_changes(whitespace_after_arg=end)
    )
    return node.with_changes(args=[*others, last, new])


def _has_comment(node: "cst.CSTNode") -> bool:
    import libcst as cst

    return isinstance(node, cst.Comment) or any(map(_has_comment, node.children))


def _changed(page: SourceText, call: ast.Call, change: "Callable[[cst.Call], cst.Call]") -> tuple[TextEdit, ...]:
    """Return the edit that changes a call so, without what stays; nothing if libcst cannot read the call."""
    import libcst as cst

    start, end = page.span(call)
    text = page.text(start, end)
    ends = _LINE_END.search(text)
    module = cst.Module([], default_newline=ends[0] if ends else "\n")
    try:
        node = cst.parse_expression(f"({text}\n)")
    except cst.ParserSyntaxError:
        return ()
    if not isinstance(node, cst.Call):
        return ()
    node = node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])
    if module.code_for_node(node) != text:
        return ()
    return page.difference(start, end, module.code_for_node(change(node)))
