import ast
import re
import subprocess
import sys
from pathlib import Path

import children
import pytest

import gnomon

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gnomon"

# Lowest first. A module may import from its own layer and those before it.
LAYERS = [
    ["errors", "events", "typing"],
    ["compute", "progress", "records", "budget", "files", "late", "models"],
    ["inputs", "engine"],
    ["numeric", "neighbors"],
    ["scores"],
    ["procrustes"],
    ["pca"],
    ["tsne"],
    ["charts", "data"],
    ["report"],
    ["anndata", "plot"],
    ["pipeline"],
    ["cli"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def modules():
    return sorted(SOURCE.rglob("*.py"))


def room(path):
    """`pca` for src/gnomon/pca/solvers/krylov.py, `budget` for src/gnomon/budget.py."""
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_rooms(path):
    tree = ast.parse(path.read_text())
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("gnomon.")} & LEVEL.keys()


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_layer_imports_only_from_those_below_it(path):
    if path == SOURCE / "__init__.py":  # names every layer, imports none
        return
    if path == SOURCE / "__main__.py":  # calls the command, which may import all
        return
    here = LEVEL[room(path)]
    above = {name for name in imported_rooms(path) if LEVEL[name] > here}
    assert not above, f"{path.name} imports {above}, which stand above it"


def test_no_file_name_stands_for_two_things():
    places: dict[str, list[str]] = {}
    for path in modules():
        if path.stem not in {"__init__", "estimator"} and room(path) != "cli":
            places.setdefault(path.stem, []).append(path.relative_to(SOURCE).as_posix())
    assert not [where for where in places.values() if len(where) > 1]
    # A file of the command may have the name of what it runs, if it is a command.
    commands = {path.stem for path in (SOURCE / "cli").glob("*.py")} & places.keys()
    assert commands <= {"align", "audit", "compare", "map", "place", "report"}


def test_the_top_level_has_at_most_ten_modules():
    assert len(list(SOURCE.glob("*.py"))) <= 10


def test_every_public_name_resolves_and_is_documented():
    for name in gnomon.__all__:
        assert getattr(gnomon, name).__doc__, name
    assert set(gnomon.__all__) <= set(dir(gnomon))
    with pytest.raises(AttributeError, match="no attribute 'PCAA'"):
        _ = gnomon.PCAA


def test_the_documentation_lists_exactly_the_public_names():
    text = "".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    documented = set(re.findall(r"^\.\. auto\w+:: gnomon\.(\w+)$", text, re.MULTILINE))
    submodules = {"anndata", "charts", "plot", "samples", "scores", "errors"}
    assert documented - submodules == set(gnomon.__all__) - submodules
    assert "gnomon.charts" in text
    assert "gnomon.scores" in text
    assert "samples" in text


def run_python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_has_no_effects():
    heavy = run_python(
        "import sys, gnomon; print([m for m in ('numpy', 'scipy', 'sklearn', 'numba', "
        "'matplotlib', 'anywidget') if m in sys.modules])"
    )
    assert heavy.strip() == "[]"


def test_help_imports_nothing_heavy():
    out = run_python(
        "import sys\n"
        "sys.argv = ['gnomon', '--help']\n"
        "from gnomon.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('HEAVY', [m for m in ('numpy', 'scipy', 'sklearn', 'numba', 'pyarrow') "
        "if m in sys.modules])"
    )
    assert "gnomon map" in out
    assert out.strip().endswith("HEAVY []")


def test_a_map_and_its_page_import_no_estimators_of_scikit_learn():
    """They take long to import, and only an export or a page with texts needs them."""
    done = children.run(
        ["-c"],
        code="""
        import sys
        import gnomon.pipeline.flow, gnomon.report.build
        slow = ("decomposition", "feature_extraction", "linear_model", "metrics", "neighbors")
        print([name for name in slow if f"sklearn.{name}" in sys.modules])
        """,
    )
    assert done.stdout == "[]\n", done.stderr


def test_the_version_is_the_packages():
    from importlib.metadata import version

    assert gnomon.__version__ == version("gnomon")
