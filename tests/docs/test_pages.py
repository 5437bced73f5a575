"""Pages of the site as they are written: what they begin with, and the order of their headings."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(
    page
    for page in DOCS.rglob("*.md")
    if not {"node_modules", "_build", "examples", "by-task"} & set(page.parts)
)
FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", sorted((DOCS / "guide").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_of_the_guide_begins_with_what_the_reader_has_and_wants(page):
    first = page.read_text("utf-8").split("\n\n")[1]
    assert first.startswith(("You ", "Your ")) or page.stem == "index"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_no_level_of_headings_is_skipped(page):
    text = FENCED.sub("", page.read_text("utf-8"))
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, re.MULTILINE)]
    assert levels.count(1) == 1 or page.stem in ("architecture", "changelog")  # of the root
    assert all(after <= before + 1 for before, after in pairwise(levels))
