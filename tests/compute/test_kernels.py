import ast
import threading
from pathlib import Path

import numpy as np
import pytest

import gnomon
from gnomon.compute.kernels import FASTMATH, kernel
from gnomon.pca.solvers.operator import _csr_times

SOURCE = Path(gnomon.__file__).parent


@kernel
def _row_sums(X, out, start, stop):
    """out[start:stop] = sums of the rows of X."""
    for i in range(start, stop):
        total = 0.0
        for j in range(X.shape[1]):
            total += X[i, j]
        out[i] = total


@kernel
def _ratios(a, b, out):
    for i in range(a.size):
        out[i] = a[i] / b[i]


def test_a_kernel_lets_go_of_the_gil_and_is_cached():
    assert _csr_times.targetoptions["nogil"] is True
    assert type(_csr_times._cache).__name__ == "FunctionCache"
    assert not _csr_times.targetoptions.get("parallel", False)


def test_a_kernel_divides_as_numpy_does():
    assert _csr_times.targetoptions["error_model"] == "numpy"
    out = np.empty(3)
    _ratios(np.array([1.0, -1.0, 0.0]), np.zeros(3), out)
    assert out[0] == np.inf
    assert out[1] == -np.inf
    assert np.isnan(out[2])


def test_sums_may_be_reordered_but_nan_and_infinity_are_never_promised_away():
    flags = _csr_times.targetoptions["fastmath"]
    assert set(flags) == FASTMATH
    assert not {"nnan", "ninf", "nsz", "afn", "fast"} & set(flags)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("at", [0, 17, 99])
def test_a_nan_survives_a_kernel_wherever_it_stands(dtype, at):
    X = np.ones((3, 100), dtype)
    X[1, at] = np.nan
    out = np.zeros(3, dtype)
    _row_sums(X, out, 0, 3)
    assert np.isnan(out[1])
    assert out[[0, 2]].tolist() == [100, 100]


def test_an_infinity_survives_and_two_opposite_ones_are_nan():
    X = np.ones((2, 64))
    X[0, 5] = np.inf
    X[1, [5, 60]] = np.inf, -np.inf
    out = np.zeros(2)
    _row_sums(X, out, 0, 2)
    assert out[0] == np.inf
    assert np.isnan(out[1])


def test_a_kernel_does_its_range_only():
    out = np.full(5, -1.0)
    _row_sums(np.ones((5, 3)), out, 1, 4)
    assert out.tolist() == [-1, 3, 3, 3, -1]


def test_two_threads_run_a_kernel_at_once_and_get_what_one_gets():
    X = np.random.default_rng(0).standard_normal((2000, 50))
    expected, out = np.empty(2000), np.empty(2000)
    _row_sums(X, expected, 0, 2000)
    halves = ((0, 1000), (1000, 2000))
    threads = [threading.Thread(target=_row_sums, args=(X, out, *half)) for half in halves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(out, expected)


def test_the_python_function_and_its_words_stay():
    assert _row_sums.__name__ == "_row_sums"
    assert _row_sums.__doc__ == "out[start:stop] = sums of the rows of X."
    out = np.empty(2)
    _row_sums.py_func(np.ones((2, 4)), out, 0, 2)
    assert out.tolist() == [4, 4]


def test_only_this_module_knows_numba():
    importing = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if any(name.split(".")[0] == "numba" for name in names):
                importing.add(path.relative_to(SOURCE).as_posix())
    assert importing == {"compute/kernels.py"}
