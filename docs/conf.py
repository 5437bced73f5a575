"""How `make docs` builds the site: offline, with warnings as errors."""

import re
from typing import Any

from sphinx.application import Sphinx

from gnomon import __version__

project = "Gnomon"
author = "The Gnomon developers"
copyright = author
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
autosummary_generate = False  # pages are written by hand: nothing is generated into docs/
default_role = "code"  # `name` in a docstring
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]  # keeps the last _ of components_
napoleon_use_param = False
napoleon_use_rtype = False

html_theme = "pydata_sphinx_theme"
html_title = "Gnomon"
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("guide/*", "architecture", "references")}  # nothing below
html_theme_options = {
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}


def only_our_own(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool:
    """Leave out what scikit-learn's base classes bring: its documentation describes them."""
    home = str(getattr(member, "__module__", None) or "gnomon")
    return skip or not home.startswith("gnomon")


def escape_bars(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Absolute values such as |cosine| are not substitutions."""
    lines[:] = [re.sub(r"(?<![\\\w`])\|(?=\w)", r"\\|", line) for line in lines]


def setup(app: Sphinx) -> None:
    """Connect the two functions above."""
    app.connect("autodoc-skip-member", only_our_own)
    app.connect("autodoc-process-docstring", escape_bars, priority=400)  # before napoleon
