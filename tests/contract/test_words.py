"""The words that we dropped do not come back; a docstring names what it is about."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "gnomon"

# Persons for machines, and inverted order. Whole words, in any case.
DROPPED = (
    "nobody|somebody|anybody|everybody|whoever|told|foretold|"
    "has not the|have not the|says not|are rebuilt|is rebuilt worst"
)
# Clauses for which there is a term; in the guide "asked for" may be what a person did.
DROPPED_IN_SOURCE = r"asked for|asks for|as good as 0|is another than|fmt: skip|in no time"
# Clauses for which the field has a name: what users read about tables, in every room.
FIELD_NAMES = {
    r"lines? of names": "header row",
    r"names of (?:its |their )?columns and no rows": "columns but no rows",
    r"(?:columns|thousands) are divided by (?!their)": "are delimited by, are separated by",
    r"what stands for a missing": "text that means a missing value",
    r"rebuilt (?:worst|best)": "largest reconstruction error",
    r"rebuilding error": "reconstruction error",
}
# A docstring stands alone: these begin in the middle of a sentence, or name nothing.
OPENINGS = re.compile(r"(Of|As|Its|Their|Theirs|The same|Those|In all)\b|One sentence\.")

# The callbacks of 0.1, which are deprecated, by the names that users gave them.
ALLOWED = {
    "events.py": {"told"},
    "pipeline/flow.py": {"told"},
}

FILES = sorted(PACKAGE.rglob("*.py"))
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "docs" / "guide").glob("*.md"),
    *(ROOT / "docs" / "api").glob("*.md"),
]


def dropped_in(text: str, words: str) -> list[str]:
    return [" ".join(found.split()) for found in re.findall(rf"(?i)\b(?:{words})\b", text)]


def dropped_in_code(source: str) -> list[str]:
    """Words in names, comments, docstrings and messages."""
    kinds = {tokenize.NAME, tokenize.COMMENT, tokenize.STRING}
    kinds |= {getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}  # from Python 3.12 on
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    words = f"{DROPPED}|{DROPPED_IN_SOURCE}"
    return [
        f"line {token.start[0]}: {word}"
        for token in tokens
        if token.type in kinds
        for word in dropped_in(token.string.replace("_", " "), words)
    ]


def openings_in(source: str) -> list[str]:
    """First lines of docstrings that leave out their noun."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [
        ast.get_docstring(node) for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)
    ]
    return [text.splitlines()[0] for text in texts if text and OPENINGS.match(text)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_code_has_none_of_the_words_that_we_dropped(file):
    source = file.read_text()
    allowed = ALLOWED.get(file.relative_to(PACKAGE).as_posix(), set())
    found = [each for each in dropped_in_code(source) if each.split(": ")[1].lower() not in allowed]
    assert not found
    assert not openings_in(source)


@pytest.mark.parametrize(
    "file",
    [*sorted(PACKAGE.rglob("*.py")), *sorted(DOCUMENTS)],
    ids=lambda file: file.relative_to(ROOT).as_posix(),
)
def test_tables_are_spoken_of_by_the_names_of_the_field(file):
    # Texts that are broken over lines of code are joined.
    text = re.sub(r'"\s*\n\s*f?"', "", file.read_text())
    found = {name: dropped_in(text, each) for each, name in FIELD_NAMES.items()}
    assert not {name: said for name, said in found.items() if said}


@pytest.mark.parametrize("page", sorted(DOCUMENTS), ids=lambda page: page.name)
def test_documents_have_none_of_the_words_that_we_dropped(page):
    assert not dropped_in(page.read_text(), DROPPED)


@pytest.mark.parametrize(
    "code",
    [
        "x = 1  # nobody looks",
        'raise ValueError("b.csv has not the columns")',
        'def f():\n    """Whoever calls\n    this."""',
        "told = []",
        "def _told(): ...",
        "f(\n    1, 2,\n)  # fmt: skip",
        'text = f"{n} were asked for"',
    ],
)
def test_a_dropped_word_is_found_wherever_it_stands(code):
    assert dropped_in_code(code)


@pytest.mark.parametrize(
    "text", ["Of every file.", "The same, with …", "Its own.", "One sentence."]
)
def test_a_docstring_without_its_noun_is_found(text):
    assert openings_in(f'def f():\n    """{text}"""')
    assert openings_in(f'class C:\n    """{text}\n\n    More.\n    """')


def test_words_of_the_field_are_not_found():
    code = 'def fold():\n    """Offsets of the rows; as folded."""  # toldo, unfolded'
    assert not dropped_in_code(code)
    assert not openings_in(code)
