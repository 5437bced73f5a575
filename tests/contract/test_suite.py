"""The suite itself: what conftest.py says of files and rounds is true."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import children
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


def test_a_forked_process_is_like_a_new_one(tmp_path):
    """It has nothing of Gnomon, no more files open, and what it was given."""
    code = """
        import json, os, signal, sys
        json.dump({
            "gnomon": [name for name in sys.modules if name.startswith("gnomon")],
            "main": [__name__, sys.argv[1:], "marker" in globals(), sys.stdin.read()],
            "environment": dict(os.environ), "folder": os.getcwd(),
            "files": sorted(map(int, os.listdir("/dev/fd"))),
            "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        }, sys.stdout)
        marker = True
    """
    order = ["-c", "a", "\udce9"]
    for _ in range(2):
        done = children.run(order, {"A": "1"}, folder=tmp_path, code=code, stdin="in")
        assert json.loads(done.stdout) == {
            "gnomon": [],
            "main": ["__main__", order[1:], False, "in"],
            "environment": {"A": "1"},
            "folder": str(tmp_path),
            "files": [0, 1, 2, 3],  # the last one lists them
            "interrupt": True,
        }, done.stderr
    failed = children.run(["-c"], code="import sys\nsys.stdout.write('x')\n1 / 0")
    assert (failed.returncode, failed.stdout) == (1, "x")
    assert failed.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert children.run(["-c"], code="import os; os.kill(os.getpid(), 9)").returncode == -9
