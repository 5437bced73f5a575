"""How `make docs` builds the site: offline, with warnings as errors."""

import re
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from gnomon import __version__, report, run

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "Gnomon"
author = "The Gnomon developers"
copyright = author
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "node_modules", "gallery", "tasks"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "dollarmath"]

# MathJax is one file of the site (package.json says which version); its menu could load more.
mathjax_path = "tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}, "svg": {"fontCache": "global"}}

autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
autodoc_mock_imports = ["anndata"]  # holds pandas below 3, which nothing else here does
autosummary_generate = False  # pages are written by hand: nothing is generated into docs/
default_role = "code"  # `name` in a docstring
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]  # keeps the last _ of components_
napoleon_use_param = False
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": ["tasks", "gallery"],
    "gallery_dirs": ["by-task", "examples"],  # written by every build
    "filename_pattern": r"[/\\]plot_",
    "ignore_pattern": r"^(?!plot_)",  # modules that the scripts share
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("gallery_charts.scrape",),
    "capture_repr": (),  # charts are the scraper's; words are printed
    "reset_modules": (),  # matplotlib is not used
    "abort_on_example_error": True,
    "run_stale_examples": True,  # figures show the package as it is, not as it was
    "download_all_examples": False,
    "notebook_extensions": set(),
    "write_computation_times": False,
    "min_reported_time": float("inf"),
    "show_signature": False,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "Gnomon"
html_context = {"default_mode": "auto"}  # light or dark as the reader's system
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # would be fetched, which a browser refuses for files on a disk
html_static_path = ["_static", "node_modules/mathjax/es5/tex-svg.js"]
html_css_files = ["site.css"]
html_sidebars = {
    page: []
    for page in (
        "index",
        "asked",
        "compared",
        "equations",
        "errata",
        "architecture",
        "references",
        "changelog",
    )
}  # nothing below
highlight_language = "none"  # a block of code that names no language is not Python
toc_object_entries_show_parents = "hide"  # fit(), not PCA.fit(), beside the page of PCA
html_theme_options = {
    "pygments_dark_style": "github-dark-high-contrast",
    "footer_start": ["copyright"],
    "footer_end": [],
    # The tables of equations need the room.
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "equations": [], "errata": []},
    "show_prev_next": False,
    "header_links_before_dropdown": 5,
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


def write_live_page(app: Sphinx, error: Exception | None) -> None:
    """Write the page of the digits, which the front page shows, into the site."""
    if error is None:
        folder = Path(app.outdir) / "live"
        folder.mkdir(exist_ok=True)
        report(run("digits"), title="Handwritten digits").save(folder / "digits.html", force=True)


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.connect("build-finished", write_live_page)
    app.connect("autodoc-skip-member", only_our_own)
    app.connect("autodoc-process-docstring", escape_bars, priority=400)  # before napoleon
