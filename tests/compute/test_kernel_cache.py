"""Compiled loops where nothing can be kept: case 33."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import children
import numpy as np
import pytest
from numba import njit

import gnomon
from gnomon.compute import kernels
from gnomon.compute.kernels import ignoring_cache_errors
from gnomon.errors import GnomonWarning

COMMAND = "from gnomon.cli import main; main()"
SAID = "cannot be cached"


@pytest.fixture(scope="module")
def read_only(tmp_path_factory):
    """A copy of the package into which nothing can be written, whoever runs the tests.

    Permissions do not hold the superuser back, so a file stands where the cache would be.
    """
    root = tmp_path_factory.mktemp("read-only")
    copy = root / "gnomon"
    shutil.copytree(
        Path(gnomon.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__")
    )
    folders = [copy, *(path for path in copy.rglob("*") if path.is_dir())]
    for folder in folders:
        (folder / "__pycache__").touch()
        folder.chmod(0o555)
    yield root
    for folder in folders:
        folder.chmod(0o755)


@pytest.fixture
def table(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 3))
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,c", *(",".join(f"{x:.4f}" for x in row) for row in rows)]))
    return path


def run(package, table, *order, code=COMMAND, **changes):
    """The command by this copy of the package, with no other home than the one given."""
    dropped = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    # What Numba and Python have read of the environment before the process was forked.
    prepare = (
        "import sys, numba.core.config\n"
        f"sys.path.insert(0, {str(package)!r})\n"
        "sys.dont_write_bytecode = True\n"
        "numba.core.config.CACHE_DIR = ''\n"
    )
    return children.run(
        ["gnomon", *order], {**environment, **changes}, folder=table.parent, code=prepare + code
    )


def lines_about_it(done):
    return [line for line in done.stderr.splitlines() if SAID in line]


@pytest.mark.parametrize("home", ["unset", "missing", "a file"])
def test_where_nothing_can_be_kept_the_command_works_and_says_so_once(
    tmp_path, read_only, table, home
):
    nowhere = table if home == "a file" else tmp_path / "missing" / "home"
    (tmp_path / "missing").write_text("a file, so that no folder can be made in it")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    told = {"XDG_CACHE_HOME" if home == "unset" else "HOME": str(nowhere)}
    done = run(read_only, table, "reduce", "t.csv", "-k", "2", TMPDIR=str(temporary), **told)
    assert done.returncode == 0, done.stderr
    (said,) = lines_about_it(done)
    assert said.startswith("Warning  Compiled loops cannot be cached")
    assert "NUMBA_CACHE_DIR" in said
    assert (tmp_path / "t_reduced" / "scores.parquet").exists()
    assert os.listdir(temporary) == []  # the temporary cache is gone


def test_what_is_said_is_not_said_to_whoever_wants_quiet(tmp_path, read_only, table):
    done = run(read_only, table, "inspect", "t.csv", "-q", HOME=str(table))
    assert (done.returncode, done.stderr) == (0, "")


def test_the_users_cache_folder_is_used_where_the_package_cannot_be_written_to(
    tmp_path, read_only, table
):
    done = run(read_only, table, "inspect", "t.csv", HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert lines_about_it(done) == []
    assert list((tmp_path / ".cache" / "numba").iterdir())


def test_a_user_without_a_home_gets_no_folder_called_tilde(tmp_path, read_only, table):
    """Where a user is in no list of users, "~" stands for nothing and is a name like others."""
    code = f"import os; os.path.expanduser = lambda path: path\n{COMMAND}"
    done = run(read_only, table, "inspect", "t.csv", code=code)
    assert done.returncode == 0, done.stderr
    assert len(lines_about_it(done)) == 1
    assert [name for name in os.listdir(tmp_path) if "~" in name] == []


def test_in_python_it_is_one_warning(tmp_path, read_only):
    code = (
        "import warnings, numpy as np\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    from gnomon import PCA, TSNE\n"
        "    X = np.random.default_rng(0).normal(size=(40, 3))\n"
        "    TSNE(perplexity=5, max_iter=5).fit(PCA(2).fit_transform(X))\n"
        "print([type(w.message).__name__ for w in caught], caught[0].message)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(read_only),
            "HOME": "/dev/null/none",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
    )
    assert done.stdout.startswith("['GnomonWarning'] Compiled loops cannot be cached"), done.stderr


def _twice(x):
    return x + x


def test_a_cache_that_is_full_or_damaged_costs_time_and_nothing_else(tmp_path, monkeypatch):
    """A full disk, or a file that lost its end, ended every call of the kernel."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))

    def compiled():
        return ignoring_cache_errors(njit(cache=True)(_twice))

    assert compiled()(3) == 6
    (index,) = tmp_path.rglob("*.nbi")
    whole = index.read_bytes()
    for damage in (b"", whole[:-5], b"nonsense"):
        index.write_bytes(damage)
        assert compiled()(3) == 6
        assert index.read_bytes() != damage  # it was made anew
    again = compiled()
    assert (again(3), sum(again.stats.cache_hits.values())) == (6, 1)
    shutil.rmtree(tmp_path)
    tmp_path.write_text("a file where the cache was")
    assert again(3.5) == 7.0


def test_without_any_temporary_folder_loops_are_compiled_all_the_same(monkeypatch):
    def full(**_):
        raise FileNotFoundError("No usable temporary directory found")

    def nowhere(cache=False, **_):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(cache=False)

    monkeypatch.setattr("tempfile.mkdtemp", full)
    monkeypatch.setattr(kernels, "njit", nowhere)
    monkeypatch.setattr(
        kernels, "_cache_in_temporary_folder", kernels._cache_in_temporary_folder.__wrapped__
    )
    with pytest.warns(GnomonWarning, match="cannot be cached"):
        made = kernels.kernel(_twice)
    assert made(3) == 6
