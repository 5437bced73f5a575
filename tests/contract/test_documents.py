"""What the documents say is true: their code runs, their paths exist, their keys are explained."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from contract.test_package import LAYERS

import gnomon
from tools.tree import head_of, lines_of

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "gnomon").rglob("*.py"))
GUIDE = ROOT / "docs" / "guide"
OF_SINGLE_CELLS = GUIDE / "single-cell.md"  # its code runs in tests/single_cell
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "index.md",
    *sorted(page for page in GUIDE.glob("*.md") if page.name != "index.md"),
]
# The first word may be a directive: its closing line must not be taken for an opening one.
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# [Horn 1965], [Musco & Musco 2015], [Lê, Josse & Husson 2008], also across a line's end
NAME = r"[^\W\d_][\w.'’-]*"
KEY = re.compile(rf"\[({NAME}(?:(?:,|\s+&|\s+et)?\s+{NAME})*\s+\d{{4}}[a-z]?)\]")
FILE_LIKE = re.compile(
    r"^[\w.-]+(/[\w.-]+)*\.(md|py|toml|cff|svg|json|csv|html)$|^[\w.-]+/[\w./-]*$"
)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


RUN_HERE = [page for page in PAGES if page != OF_SINGLE_CELLS]


@pytest.mark.parametrize("page", RUN_HERE, ids=name_of)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page)


def run_page(page):
    """Run a page's blocks of Python, and compare what they print with what the page says."""
    blocks = FENCE.findall(page.read_text(encoding="utf-8"))
    assert any(kind == "python" for kind, _ in blocks)
    variables: dict[str, object] = {}
    printed = ""
    for kind, text in blocks:
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, name_of(page), "exec"), variables)
            printed = out.getvalue()
        elif kind == "output":  # the exact output of the block before; `text` is an example only
            assert printed == text


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_python_on_a_page_is_found(page):
    text = page.read_text(encoding="utf-8")
    found = [kind for kind, _ in FENCE.findall(text)]
    assert found.count("python") == len(re.findall(r"^```python$", text, re.MULTILINE))


def test_every_picture_is_shown_on_a_page():
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    pictures = {path.name for path in (ROOT / "docs" / "pictures").iterdir()}
    assert pictures == set(re.findall(r"pictures/([\w.-]+)", pages))


def test_the_readme_shows_ten_lines_of_python():
    (code,) = [text for kind, text in FENCE.findall(read("README.md")) if kind == "python"]
    assert sum(bool(line.strip()) for line in code.splitlines()) == 10


def test_the_tree_in_the_architecture_is_the_tree():
    (tree,) = [t for _, t in FENCE.findall(read("ARCHITECTURE.md")) if t.startswith("src/gnomon/")]
    named = set(paths_of_tree(tree))
    assert not sorted(path for path in named if not (ROOT / path).exists())
    rooms = {name_of(path.parent) for path in SOURCES if path.name == "__init__.py"}
    top = {name_of(path) for path in SOURCES if path.parent.name == "gnomon"}
    assert not sorted({*rooms, *top} - {path.rstrip("/") for path in named} - {"src/gnomon"})


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_file_says_in_its_first_line_what_it_does(path):
    head = head_of(path)
    assert 10 <= len(head) <= 110
    assert head in "\n".join(lines_of(path.parent))


def test_the_architecture_fits_on_two_screens():
    assert read("ARCHITECTURE.md").count("\n") <= 130


def test_the_layers_in_the_architecture_are_those_that_are_tested():
    lines = re.findall(r"^\d+\. (`.*`)$", read("ARCHITECTURE.md"), re.MULTILINE)
    said = [sorted(re.findall(r"`(\w+)`", line)) for line in lines]
    assert said == [sorted(names) for names in LAYERS]


def test_every_key_in_a_docstring_is_in_the_references():
    explained = {one_line(key) for key in KEY.findall(read("docs/references.md"))}
    cited = {one_line(key) for path in SOURCES for key in KEY.findall(path.read_text("utf-8"))}
    assert "Musco & Musco 2015" in cited
    assert not sorted(cited - explained)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_a_page_names_only_files_that_exist(page):
    prose = FENCE.sub("", read(page))
    links = [link for link in re.findall(r"\]\(([^)#]+)", prose) if "://" not in link]
    code = [word for word in re.findall(r"`([^`\s]+)`", prose) if FILE_LIKE.match(word)]
    assert links
    # What stands for any name, and what `make docs` builds, need not be there.
    named = {path for path in [*links, *code] if "NAME" not in path and "_build" not in path}
    places = (ROOT, ROOT / "src" / "gnomon")
    assert not sorted(path for path in named if not any((at / path).exists() for at in places))


def test_every_decision_is_listed_and_numbered_without_gaps():
    pages = sorted(path.stem for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [int(page[:4]) for page in pages] == list(range(1, len(pages) + 1))
    listed = re.findall(r"^(\d{4}-[\w-]+)$", read("docs/decisions/index.md"), re.MULTILINE)
    assert listed == pages


def test_every_version_has_a_section_of_the_changelog_and_the_newest_release_is_cited():
    sections = re.findall(r"^## \[([\d.]+)\] - (.+)$", read("CHANGELOG.md"), re.MULTILINE)
    assert sections[0] == (gnomon.__version__.removesuffix(".dev0"), "unreleased")
    numbers = [tuple(map(int, version.split("."))) for version, _ in sections]
    assert numbers == sorted(numbers, reverse=True)
    version, date = sections[1]
    assert f'\nversion: "{version}"\ndate-released: "{date}"\n' in read("CITATION.cff")


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def one_line(key: str) -> str:
    return " ".join(key.split())


def paths_of_tree(tree: str) -> list[str]:
    """Paths of an indented tree: two spaces a level, the name first, folders end in a slash."""
    folders: list[str] = []
    paths = []
    for line in tree.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        name = line.split()[0]
        paths.append("".join([*folders[:depth], name]))
        folders = [*folders[:depth], name]
    return paths
