"""Print the tree of the package: every file with the first line of its head.

``python tools/tree.py`` prints all rooms, ``python tools/tree.py tsne`` one of them.
"""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "gnomon"


@cache
def head_of(path: Path) -> str:
    """First line of a module's docstring, without its full stop."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0].rstrip(".")


def lines_of(folder: Path, depth: int = 0) -> Iterator[str]:
    """The files of a folder, its own modules first, then its subfolders."""
    indent = "  " * depth
    yield f"{indent}{folder.name}/".ljust(32) + head_of(folder / "__init__.py")
    modules = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
    for path in modules:
        yield f"{indent}  {path.name}".ljust(32) + head_of(path)
    for inner in sorted(folder.iterdir()):
        if (inner / "__init__.py").exists():
            yield from lines_of(inner, depth + 1)


def main() -> None:
    """Print the tree of the package, or of the room named on the command line."""
    room = PACKAGE / sys.argv[1] if len(sys.argv) > 1 else PACKAGE
    if not (room / "__init__.py").exists():
        rooms = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
        sys.exit(f"There is no room {sys.argv[1]}; there are {', '.join(rooms)}.")
    print("\n".join(lines_of(room)))


if __name__ == "__main__":
    main()
