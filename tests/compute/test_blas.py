import os
import subprocess
import sys
import textwrap
import threading

import pytest
from threadpoolctl import threadpool_info

from gnomon.compute.blas import hold_blas, one_blas_thread


def blas_threads():
    return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}


def run(code):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
    )


def test_blas_is_held_to_one_thread_inside_and_given_back_after():
    before = blas_threads()
    with one_blas_thread():
        assert blas_threads() == {1}
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_a_blas_that_is_loaded_later_is_held_to_one_thread_too():
    done = run("""
    import numpy
    from gnomon.compute.blas import one_blas_thread
    with one_blas_thread():
        pass
    import scipy.linalg  # brings a BLAS of its own, beside NumPy's
    from threadpoolctl import threadpool_info
    with one_blas_thread():
        counts = [i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"]
    assert set(counts) == {1}, counts
    """)
    assert done.returncode == 0, done.stderr


def test_overlapping_limits_neither_lift_each_other_nor_leave_the_process_at_one_thread():
    before = blas_threads()
    first_in, first_may_leave, seen = threading.Event(), threading.Event(), []

    def first():
        with one_blas_thread():
            first_in.set()
            first_may_leave.wait()

    thread = threading.Thread(target=first)
    thread.start()
    first_in.wait()
    with one_blas_thread():
        first_may_leave.set()
        thread.join()
        seen.append(blas_threads())  # the first has left; we are still inside
    assert seen == [{1}]
    assert blas_threads() == before


def test_ctrl_c_while_the_libraries_are_looked_for_leaves_nothing_undone():
    done = run("""
    import numpy, threadpoolctl
    from gnomon.compute.blas import one_blas_thread

    def held():
        found = threadpoolctl.ThreadpoolController().lib_controllers
        return {lib.num_threads for lib in found if lib.user_api == "blas"}

    real = threadpoolctl.ThreadpoolController
    def torn():
        raise KeyboardInterrupt
    threadpoolctl.ThreadpoolController = torn
    try:
        with one_blas_thread():
            raise AssertionError
    except KeyboardInterrupt:
        threadpoolctl.ThreadpoolController = real
    with one_blas_thread():
        assert held() == {1}, held()
    assert held() == {2}, held()
    """)
    assert done.returncode == 0, done.stderr


def test_an_action_is_held_and_its_result_returned():
    before = blas_threads()
    assert hold_blas(blas_threads) == {1}
    assert blas_threads() == before
    with pytest.raises(ZeroDivisionError):
        hold_blas(lambda: 1 / 0)
    assert blas_threads() == before


def test_a_torn_with_neither_lifts_nor_outlives_what_comes_after_it():
    """Torn on one thread, its clean-up runs on another while the first is inside again."""
    before = blas_threads()
    torn = one_blas_thread()
    torn.__enter__()  # and never left, as after Ctrl-C
    with one_blas_thread():
        thread = threading.Thread(target=torn.gen.close)
        thread.start()
        thread.join()
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_a_torn_inner_with_does_not_keep_a_later_one_from_holding():
    before = blas_threads()
    with one_blas_thread():
        inner = one_blas_thread()
        inner.__enter__()
    inner.gen.close()
    assert blas_threads() == before
    with one_blas_thread():
        assert blas_threads() == {1}
    assert blas_threads() == before
