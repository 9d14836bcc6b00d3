"""An extension of Sphinx: fills in what pages take from the project's data, and makes links and menus of the site."""

from pygments.lexers.data import JsonLexer
from sphinx.application import Sphinx

from docs._generate import code, pages


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_lexer("jsonc", JsonLexer)  # it reads comments too
    app.connect("source-read", _complete)
    app.connect("sphinx-click-process-options", lambda app, context, lines: code.whole_metavars(lines))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _complete(app: Sphinx, name: str, source: list[str]) -> None:
    source[0] = pages.complete(name, source[0])
