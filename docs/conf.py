"""The configuration of Sphinx; ``make docs`` builds the site."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from detaudit import __version__

project = "detaudit"
author = "the authors of detaudit"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click", "docs._generate.extension"]
exclude_patterns = ["__pycache__"]
nitpicky = True
default_role = "code"  # as in the help of an option
smartquotes = False  # `--flag` is no dash

myst_heading_anchors = 4  # links to headings work on a code host, so they have to work here

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say what a function takes

html_theme = "furo"
html_title = f"detaudit {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}

linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_ignore = [r"https://HOST/.*"]
linkcheck_anchors_ignore_for_url = [r"https://github\.com/.*"]  # its pages make lines and headings by script
