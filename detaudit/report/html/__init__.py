"""A report as one HTML file: it loads nothing, and says the same if no script may run."""

import hashlib
from base64 import b64encode
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from detaudit import __version__
from detaudit.model import Report
from detaudit.model.figures import NO_FIGURES, Figures
from detaudit.notebooks.cells import line_within, location_of
from detaudit.report.groups import capitalized
from detaudit.report.html import captions as captions
from detaudit.report.html.page import page
from detaudit.report.plain import plain

_HERE = Path(__file__).parent


def render(report: Report, figures: Figures = NO_FIGURES) -> str:
    """See Reporter.render; ``figures`` are drawn too."""
    style, script = (_HERE / name for name in ("style.css", "script.js"))
    css, js = style.read_text("utf-8"), script.read_text("utf-8")
    return (
        _environment()
        .get_template("page.html")
        .render(
            page=page(report, figures),
            version=__version__,
            about=captions.FILE,
            style=Markup(css),  # noqa: S704  # our own file, and its digest is in the page's policy
            script=Markup(js),  # noqa: S704
            policy="; ".join(
                (
                    "default-src 'none'",
                    f"style-src '{_digest(css)}'",
                    f"script-src '{_digest(js)}'",
                    "base-uri 'none'",
                    "form-action 'none'",
                )
            ),
        )
    )


def _digest(text: str) -> str:
    """Return the name of an inline style or script in a content security policy."""
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_plain,
    )
    environment.filters["prose"] = _prose
    environment.filters["sentence"] = lambda text: _prose(capitalized(text))
    environment.filters["header"] = _header
    environment.filters |= {"place": location_of, "line_within": line_within}
    return environment


def _header(text: str) -> str:
    """Return the header of a column of the text report as a page writes it: ``LOSS A`` is ``Loss A``."""
    words = [word if len(word) == 1 else word.lower() for word in text.split()]
    return capitalized(" ".join(words))


def _plain(value: Any) -> Any:
    """Return a value as a template writes it: all but markup becomes plain text, which is escaped afterwards."""
    return value if isinstance(value, Markup) else plain(str(value))


def _prose(text: str) -> Markup:
    """Return a sentence in which what is between backticks is shown as code."""
    parts = plain(text).split("`")
    if len(parts) % 2 == 0:  # one without a partner
        return Markup("{}").format(plain(text))
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(part) if index % 2 else part for index, part in enumerate(parts))
