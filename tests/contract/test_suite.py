"""The suite itself: what conftest.py says of files and rounds is true."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import FIRST, LEVELS, TOGETHER

ROOT = Path(__file__).parents[2]


def test_files_that_conftest_names_exist():
    grouped = [path for paths in TOGETHER.values() for path in paths]
    files = [name for name in FIRST if name not in TOGETHER]
    assert set(TOGETHER) <= set(FIRST)
    assert not [path for path in [*files, *grouped] if not (ROOT / path).exists()]


TESTS = """
import pytest

@pytest.mark.rounds(test=1, soak=2, long=3)
def test_repeated():
    pass

@pytest.mark.rounds(test=0, soak=1, long=1)
def test_long():
    pass

@pytest.mark.rounds(test=5, soak=6, long=7)
def test_loop(rounds, request):
    assert rounds == {"test": 5, "soak": 6, "long": 7}[request.config.getoption("--rounds")]

def test_plain():
    pass
"""


@pytest.mark.parametrize(
    ("level", "names"),
    [
        ("test", ["test_repeated[0]", "test_loop", "test_plain"]),
        ("soak", ["test_repeated[0]", "test_repeated[1]", "test_long[0]", "test_loop"]),
        ("long", [*(f"test_repeated[{i}]" for i in range(3)), "test_long[0]", "test_loop"]),
    ],
)
def test_a_level_runs_its_tests_as_often_as_they_say(tmp_path, level, names):
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = rounds: how many rounds\n")
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--rounds", level]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert re.findall(r"^test_it.py::(\S+) PASSED", done.stdout, re.MULTILINE) == names
    assert level in LEVELS
