"""How `make docs` builds the site: offline, with warnings as errors."""

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
napoleon_use_ivar = True
napoleon_use_param = False
napoleon_use_rtype = False

html_theme = "pydata_sphinx_theme"
html_title = "Gnomon"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
