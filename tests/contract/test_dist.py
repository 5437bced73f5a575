"""What goes into the sdist and the wheel: the package, and nothing that lies beside it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.dist import BESIDE, copy_tracked, differences, tracked_files

ROOT = Path(__file__).parents[2]


@pytest.fixture
def repository(tmp_path):
    """A repository with one tracked module, and files that git does not track."""
    package = tmp_path / "src" / "gnomon"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    (package / "secret.csv").write_text("name,salary")
    (tmp_path / "notes.txt").write_text("")
    return tmp_path


def test_only_tracked_files_are_copied(repository, tmp_path_factory):
    copy = tmp_path_factory.mktemp("copy")
    copy_tracked(repository, copy)
    found = [path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()]
    assert found == tracked_files(repository) == ["src/gnomon/__init__.py"]


TRACKED = [
    "README.md",
    "src/gnomon/__init__.py",
    "src/gnomon/pca/rank.py",
    "tests/test_a.py",
]
SDIST = {*BESIDE, "src/gnomon/__init__.py", "src/gnomon/pca/rank.py"}
WHEEL = {"gnomon/__init__.py", "gnomon/pca/rank.py"}


def test_archives_that_hold_the_package_alone_pass():
    assert differences(SDIST, WHEEL, TRACKED) == []


@pytest.mark.parametrize(
    ("sdist", "wheel", "says"),
    [
        (SDIST, WHEEL | {"gnomon/secret.csv"}, "the wheel must not hold gnomon/secret.csv"),
        (SDIST, WHEEL | {"tests/test_a.py"}, "the wheel must not hold tests/test_a.py"),
        (SDIST, WHEEL - {"gnomon/pca/rank.py"}, "the wheel lacks gnomon/pca/rank.py"),
        (SDIST | {"tests/test_a.py"}, WHEEL, "the sdist must not hold tests/test_a.py"),
        (SDIST - {"LICENSE"}, WHEEL, "the sdist lacks LICENSE"),
    ],
)
def test_what_is_too_much_or_too_little_is_named(sdist, wheel, says):
    assert differences(sdist, wheel, TRACKED) == [says]


@pytest.mark.rounds(test=0, soak=1, long=1)
def test_an_untracked_file_in_the_package_gets_into_neither_archive(tmp_path):
    copy_tracked(ROOT, tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    (tmp_path / "src" / "gnomon" / "secret.csv").write_text("name,salary")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "dist.py", "--root", tmp_path, "--no-install"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "hold the package and nothing else" in done.stdout
