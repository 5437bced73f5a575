"""docs/equations.md and docs/errata.md name what exists, and leave nothing out."""

import ast
import contextlib
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LAWS = ROOT / "tests" / "laws"
PAGES = {page: ROOT / "docs" / f"{page}.md" for page in ("equations", "errata")}

# What each note numbers, or what its parts are called in the first column.
NUMBERED = {"Selitskii 2025": range(1, 67), "Crumbs": range(1, 27)}
PARTS = {
    "Selitskii 2025": ["Section 2", "Section 3"],
    "Trace": ["$\\pi$", "(∗)", "①", "②", "argmax", "ℒ", "KKT", "Λ", "D*"],
    "Crumbs": ["Crumbs on the floor", "Crumbs on the table"],
    "Derivation": [f"§{section}" for section in range(1, 8)],
    "Lecture": [
        "Idea of PCA",
        "Motivation",
        "10.1",
        "10.2",
        "10.2.1",
        "10.2.2",
        "(1)",
        'Digit "8"',
        "Overall",
        "10.3.1",
        "10.3.2",
        "10.3.3",
        "10.5",
        "10.6",
    ],
}
NOTES = list(PARTS)
KEYS = re.compile(rf"(?=\[(?:{'|'.join(NOTES)})\])")
RANGE = re.compile(r"\((\d+)\)(?:–\((\d+)\))?")
FUNCTION = re.compile(r"\[`(gnomon[\w.]+)`\]\(\.\./(src/[\w/]+\.py)\)")
TEST = re.compile(r"\[([\w ]+)\]\(\.\./(tests/[\w/]+\.py)\)")


def sections(page: str) -> dict[str, list[list[str]]]:
    """Cells of the table under each note's heading, without the head of the table."""
    text = PAGES[page].read_text(encoding="utf-8")
    found = {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, *lines = part.splitlines()
        table = [line for line in lines if line.startswith("|")]
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
        found[heading.strip("[]")] = cells[2:]
    return found


def rows(page: str) -> Iterator[tuple[str, list[str]]]:
    """Every row of a page, with its note."""
    return ((note, row) for note, table in sections(page).items() for row in table)


def numbers(text: str) -> set[int]:
    """The equations of "(1)–(3), (7)"."""
    found: set[int] = set()
    for first, last in RANGE.findall(text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def test_both_pages_speak_of_every_note():
    for page in PAGES:
        assert sorted(sections(page)) == sorted(NOTES)


@pytest.mark.parametrize("page", PAGES)
def test_every_row_has_four_cells_and_none_is_empty(page: str):
    assert not [(note, row) for note, row in rows(page) if len(row) != 4 or not all(row)]


@pytest.mark.parametrize("note", NUMBERED)
def test_every_numbered_equation_has_a_row(note: str):
    first_cells = [row[0] for row in sections("equations")[note]]
    covered = set().union(*(numbers(cell) for cell in first_cells if cell.startswith("(")))
    assert covered == set(NUMBERED[note])


@pytest.mark.parametrize("note", PARTS)
def test_every_part_of_a_note_has_a_row(note: str):
    first_cells = [row[0] for row in sections("equations")[note]]
    said = {part.strip() for cell in first_cells for part in [cell, *cell.split(",")]}
    assert not [part for part in PARTS[note] if part not in said]


@pytest.mark.parametrize("page", PAGES)
def test_every_function_and_test_that_is_named_exists(page: str):
    absent = []
    for note, (where, _, computed, held) in rows(page):
        functions, tests = FUNCTION.findall(computed), named_tests(held)
        absent += [path for path, file in functions if home(path) != file]
        absent += [test for test in tests if docstring(test) is None]
        if page == "equations" and not (functions and tests):
            absent.append(f"anything in the row {where} of [{note}]")
    assert not absent


@pytest.mark.parametrize("page", PAGES)
def test_a_law_cites_the_notes_that_name_it(page: str):
    """And of numbered equations at least one of the row's, so that the way leads back."""
    silent = []
    for note, row in rows(page):
        for test in named_tests(row[3]):
            cited = KEYS.split(docstring(test) or "")
            mine = "".join(part for part in cited if part.startswith(f"[{note}]"))
            numbered = page == "equations" and note in NUMBERED and row[0].startswith("(")
            known = mine and (not numbered or numbers(row[0]) & numbers(mine))
            if test.startswith("tests/laws/") and not known:
                silent.append(f"{test} does not cite [{note}] {row[0]}")
    assert not silent


@pytest.mark.parametrize("page", PAGES)
def test_every_law_and_every_slip_is_named_in_its_page(page: str):
    slips, this = LAWS / "test_errata.py", LAWS / "test_table.py"
    files = [slips] if page == "errata" else sorted({*LAWS.glob("test_*.py")} - {slips, this})
    laws = {f"{f.relative_to(ROOT).as_posix()}::{name}" for f in files for name in docstrings(f)}
    named = {test for _, row in rows(page) for test in named_tests(row[3])}
    assert len(laws) > 30
    assert not sorted(laws - named)


def named_tests(cell: str) -> list[str]:
    """tests/FILE.py::NAME of every test that a cell links to by its sentence."""
    return [f"{file}::test_{words.replace(' ', '_')}" for words, file in TEST.findall(cell)]


@functools.cache
def docstrings(file: Path) -> dict[str, str]:
    """What a file's tests say about themselves, by name."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {f.name: ast.get_docstring(f) or "" for f in functions if f.name.startswith("test_")}


def docstring(test: str) -> str | None:
    """That of tests/FILE.py::NAME, or None if there is no such test."""
    file, _, name = test.partition("::")
    return docstrings(ROOT / file).get(name) if (ROOT / file).is_file() else None


def home(path: str) -> str | None:
    """The file of the function, class or property that a dotted path leads to, or None."""
    parts = path.split(".")
    found: Any = None
    for end in range(1, len(parts) + 1):
        with contextlib.suppress(ModuleNotFoundError):
            found = importlib.import_module(".".join(parts[:end]))
            continue
        found = getattr(found, parts[end - 1], None)
    found = found.fget if isinstance(found, property) else found
    if not inspect.isroutine(found) and not inspect.isclass(found):
        return None
    file = Path(inspect.getsourcefile(inspect.unwrap(found)) or "")
    return file.relative_to(ROOT).as_posix()
