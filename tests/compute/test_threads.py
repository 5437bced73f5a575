import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import children
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from gnomon.compute import threads
from gnomon.compute.threads import (
    beside,
    fold_blocks,
    map_blocks,
    row_blocks,
    thread_count,
)
from gnomon.errors import ParameterError, ParameterTypeError


def wait_until(there):
    end = time.monotonic() + 20
    while not there():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.001)


def blas_threads():
    return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}


def test_blocks_cover_all_rows_once_and_depend_on_the_size_only():
    assert row_blocks(10, 4) == [(0, 4), (4, 8), (8, 10)]
    assert row_blocks(0, 4) == []


def test_no_blocks_are_done_at_once():
    assert map_blocks(lambda a, b: a, [], n_jobs=2) == []


@pytest.mark.parametrize("n_jobs", [1, 2, 4, 7])
def test_results_come_back_in_block_order(n_jobs):
    def late_first(start, stop):
        time.sleep(0.002 * (5 - start % 5))
        return start

    assert map_blocks(late_first, row_blocks(40, 1), n_jobs=n_jobs) == list(range(40))


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_sums_have_the_same_bits_for_any_number_of_threads(n_jobs):
    numbers = np.random.default_rng(0).standard_normal(100_000) * 10.0 ** np.arange(100_000).clip(
        0, 12
    )

    def total(jobs):
        box = [0.0]

        def add(part):
            box[0] += part

        fold_blocks(
            lambda a, b: numbers[a:b].sum(), row_blocks(numbers.size, 997), add, n_jobs=jobs
        )
        return box[0]

    assert total(n_jobs) == total(1)


def test_no_thread_runs_far_ahead_of_the_block_that_is_waited_for():
    seen, open_blocks = [], []

    def work(start, stop):
        seen.append(start)
        if start == 0:
            time.sleep(0.2)
            open_blocks.append(len(seen))
        return start

    map_blocks(work, row_blocks(100, 1), n_jobs=2)
    # two threads: while block 0 is held up, no more than three results exist or are on the way
    assert open_blocks[0] <= 3


def test_an_error_in_a_block_is_raised_and_stops_the_others():
    ran = []

    def work(start, stop):
        ran.append(start)
        if start == 3:
            raise ZeroDivisionError("block 3")
        time.sleep(0.001)

    with pytest.raises(ZeroDivisionError, match="block 3"):
        map_blocks(work, row_blocks(1000, 1), n_jobs=2)
    assert len(ran) < 100


def test_while_one_thread_adds_the_other_goes_on():
    second_done = threading.Event()

    def work(start, stop):
        if start == 2:
            second_done.set()
        return start

    def add(start):
        if start == 0:
            assert second_done.wait(10)

    fold_blocks(work, row_blocks(3, 1), add, n_jobs=2)


def test_an_error_while_adding_is_raised_and_stops_the_others():
    ran = []

    def add(start):
        raise ZeroDivisionError("the sum")

    with pytest.raises(ZeroDivisionError, match="the sum"):
        fold_blocks(lambda a, b: ran.append(a), row_blocks(1000, 1), add, n_jobs=3)
    assert len(ran) <= 4


def test_an_inner_call_stays_on_its_thread():
    def inner(start, stop):
        return threading.get_ident()

    def outer(start, stop):
        return {threading.get_ident()} == set(map_blocks(inner, row_blocks(8, 1), n_jobs=4))

    assert all(map_blocks(outer, row_blocks(8, 1), n_jobs=4))


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_work_beside_is_done_at_the_end_and_what_is_inside_too(n_jobs):
    done = np.zeros(40, int)

    def count(start, stop):
        time.sleep(0.001)
        done[start:stop] += 1

    def meanwhile():
        inside = map_blocks(lambda start, stop: start, row_blocks(30, 3), n_jobs=n_jobs)
        return inside, map_blocks(lambda start, stop: stop, row_blocks(30, 3), n_jobs=n_jobs)

    inside, later = beside(count, row_blocks(40, 2), meanwhile, n_jobs=n_jobs)
    assert (done == 1).all()
    assert inside == list(range(0, 30, 3))
    assert later == list(range(3, 31, 3))


def test_others_work_beside_while_this_thread_is_busy():
    here, seen = threading.get_ident(), set()
    begun = threading.Event()

    def note(start, stop):
        seen.add(threading.get_ident())
        begun.set()

    def meanwhile():
        assert begun.wait(10)
        assert here not in seen

    beside(note, row_blocks(4, 1), meanwhile, n_jobs=2)


def test_what_is_handed_out_inside_comes_before_the_work_beside():
    """The helper is in its first block of 100; it takes from ours before its second."""
    order, inside = [], threading.Event()

    def slow(start, stop):
        order.append("beside")
        if start == 0:
            assert inside.wait(10)

    def urgent(start, stop):
        inside.set()
        order.append(threading.get_ident())
        time.sleep(0.05)

    def meanwhile():
        while not order:
            time.sleep(0.001)
        map_blocks(urgent, row_blocks(4, 1), n_jobs=2)

    beside(slow, row_blocks(100, 1), meanwhile, n_jobs=2)
    first = order[: order.index("beside", 1)]
    helper = [each for each in first if each not in ("beside", threading.get_ident())]
    assert helper, "nobody helped"
    assert order.count("beside") == 100


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("where", ["beside", "inside", "handed out"])
def test_an_error_beside_or_inside_is_raised_and_nothing_is_left_behind(n_jobs, where):
    def fail(start, stop):
        raise ZeroDivisionError(where)

    def nothing(start, stop):
        return None

    blocks = row_blocks(50, 1)

    def meanwhile():
        if where == "inside":
            fail(0, 1)
        map_blocks(fail if where == "handed out" else nothing, blocks, n_jobs=n_jobs)

    with pytest.raises(ZeroDivisionError, match=where):
        beside(fail if where == "beside" else nothing, blocks, meanwhile, n_jobs=n_jobs)
    assert map_blocks(lambda start, stop: start, blocks, n_jobs=n_jobs) == list(range(50))


def test_more_helpers_than_the_work_inside_has_use_for_all_leave_it():
    """Seven helpers of the work beside wait for room in work for two; none waits for ever."""
    done = run("""
    import time
    from gnomon.compute.threads import beside, map_blocks, row_blocks

    def slow_first(start, stop):
        time.sleep(0.3 if start == 0 else 0)
        return start

    def meanwhile():
        assert map_blocks(slow_first, row_blocks(12, 1), n_jobs=2) == list(range(12))

    beside(lambda a, b: time.sleep(0.01), row_blocks(200, 1), meanwhile, n_jobs=8)
    print("left")
    """)
    assert (done.stdout, done.returncode) == ("left\n", 0), done.stderr


def test_work_beside_work_stays_on_its_thread():
    """A second one inside has no helpers left to wake, and loses nothing."""
    done = []

    def meanwhile():
        beside(lambda start, stop: done.append(2), row_blocks(3, 1), list, n_jobs=2)
        assert done.count(2) == 3

    beside(lambda start, stop: done.append(1), row_blocks(3, 1), meanwhile, n_jobs=2)
    assert sorted(done) == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_blocks_run_with_one_blas_thread(n_jobs):
    def look(start, stop):
        return blas_threads()

    with threadpool_limits(2, "blas"):
        assert all(seen == {1} for seen in map_blocks(look, row_blocks(6, 1), n_jobs=n_jobs))


def test_many_threads_may_compute_at_once():
    X = np.random.default_rng(0).standard_normal((5000, 20))

    def gram():
        box = np.zeros((20, 20))
        fold_blocks(lambda a, b: X[a:b].T @ X[a:b], row_blocks(5000, 100), box.__iadd__, n_jobs=2)
        return box

    results = []
    threads = [threading.Thread(target=lambda: results.append(gram())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert all(np.array_equal(result, gram()) for result in results)


def test_n_jobs_means_what_it_means_in_scikit_learn(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cpus = len(os.sched_getaffinity(0))
    assert thread_count(None) <= cpus
    assert thread_count(-1) == thread_count(None)
    assert thread_count(3) == 3
    assert thread_count(np.int64(2)) == 2
    assert thread_count(-cpus - 5) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # what joblib and Dask set in their workers
    assert thread_count(None) == 1
    with pytest.raises(ParameterError, match="`n_jobs` must be None or an integer other than 0"):
        thread_count(0)
    for wrong in (True, 2.0, "2", np.array([1, 2])):  # arrays have `__index__`, and raise
        with pytest.raises(ParameterTypeError, match="n_jobs"):
            thread_count(wrong)


def test_cpus_are_counted_once(monkeypatch):
    """joblib reads the container's files: half a millisecond, as long as a small piece of work."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    calls = []
    monkeypatch.setattr("joblib.cpu_count", lambda: calls.append(1) or 2)
    threads._cpu_count.cache_clear()
    try:
        assert [thread_count(None), thread_count(-1), thread_count(None)] == [2, 2, 2]
        assert len(calls) == 1
    finally:
        threads._cpu_count.cache_clear()


def run(code):
    return children.run(["-c"], code=code, timeout=120)


FIT = """
    import os, sys, threading
    import numpy as np
    from gnomon import PCA
    X = np.random.default_rng(0).standard_normal((20_000, 30))
    def fit():
        return PCA(3, n_jobs=2).fit(X).components_
"""


def test_a_forked_child_computes_the_same_bits():
    done = run(
        FIT
        + """
    here = fit()
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(fit(), here) else 1)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    )
    assert done.returncode == 0, done.stderr


def test_a_child_forked_while_another_thread_computes_gets_its_blas_threads_back():
    done = run(
        FIT
        + """
    import warnings
    from threadpoolctl import threadpool_info
    from gnomon.compute.blas import one_blas_thread
    count = lambda: {i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}
    fit(); before = count()
    inside, leave = threading.Event(), threading.Event()
    def hold():
        with one_blas_thread():
            inside.set(); leave.wait()
    thread = threading.Thread(target=hold); thread.start(); inside.wait()
    child = os.fork()
    if child == 0:
        given_back = count() == before
        fit()
        os._exit(0 if given_back and count() == before else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    leave.set(); thread.join(); sys.exit(code)
    """
    )
    assert done.returncode == 0, done.stderr


def test_joblib_workers_compute_the_same_bits():
    done = run(
        FIT
        + """
    from joblib import Parallel, delayed
    def work(_):
        X = np.random.default_rng(0).standard_normal((20_000, 30))
        return PCA(3).fit(X).components_
    here = fit()
    for backend in ("loky", "threading"):
        for result in Parallel(n_jobs=2, backend=backend)(delayed(work)(i) for i in range(4)):
            assert np.array_equal(result, here), backend
    """
    )
    assert done.returncode == 0, done.stderr


def test_ctrl_c_stops_at_the_next_block_and_gives_blas_its_threads_back():
    code = """
        import time
        import numpy as np
        from threadpoolctl import threadpool_info
        from gnomon.compute.blas import one_blas_thread
        from gnomon.compute.threads import map_blocks, row_blocks
        count = lambda: {i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}
        with one_blas_thread():
            pass
        before = count()
        def work(start, stop):
            if start == 2:
                print("ready", flush=True)
            time.sleep(0.05)
        try:
            map_blocks(work, row_blocks(10_000, 1), n_jobs=2)
        except KeyboardInterrupt:
            assert count() == before
            assert map_blocks(lambda a, b: a, row_blocks(3, 1), n_jobs=2) == [0, 1, 2]
            print("stopped", flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=120)[0] == "stopped\n"
    assert process.returncode == 0


# What follows runs `action` and is interrupted in the middle of it; then nothing may be left of it.
INTERRUPTED = """
    import gc, signal, sys, threading, time
    from threadpoolctl import ThreadpoolController
    from gnomon.compute import blas, threads
    from gnomon.compute.blas import one_blas_thread
    from gnomon.compute.threads import beside, fold_blocks, map_blocks, row_blocks

    ran, busy = [], set()  # `busy`: helpers in a block

    def work(start, stop):
        me = threading.get_ident()
        if me != main:
            busy.add(me)
        ran.append(start)
        time.sleep(2e-4)
        busy.discard(me)

    def alone():
        fold_blocks(work, row_blocks(8, 1), repr, n_jobs=3)

    def both():
        four = lambda: map_blocks(work, row_blocks(4, 1), n_jobs=3)
        beside(work, row_blocks(8, 1), four, n_jobs=3)

    def failing():
        def fail(start, stop):
            work(start, stop)
            if start == 3:
                raise ZeroDivisionError

        try:
            map_blocks(fail, row_blocks(20, 1), n_jobs=3)
        except ZeroDivisionError:
            pass

    def holding():
        with one_blas_thread():
            map_blocks(work, row_blocks(2, 1), n_jobs=1)

    main = threading.get_ident()
    holding()
    libraries = [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]
    count = lambda: {lib.get_num_threads() for lib in libraries}
    before = count()

    def look(where):
        assert not busy, (where, "a block is running")
        begun = len(ran)
        time.sleep(1e-3)
        assert len(ran) == begun, (where, "helpers go on")
        assert not threads._helpers.works, (where, "works that are over")
        assert not threads._busy.in_block and threads._busy.beside is None, where

    def look_at_blas(where):
        assert count() == before, (where, count())
        assert not blas._blas.inside and not blas._blas.new_hold().thread.holds, where
"""


def test_an_interrupt_at_any_place_stops_the_work_and_leaves_nothing_behind():
    """Wherever Python looks for signals here: the entry of a function, and after a call of C."""
    done = run(
        INTERRUPTED
        + """
    watched = {threads.__file__, blas.__file__, sys.modules["contextlib"].__file__}

    def interrupted(action, at):
        places = 0

        def profile(frame, event, arg):
            nonlocal places
            here = frame.f_code.co_filename in watched
            # A generator that goes on enters its frame again, where nobody looks for signals.
            again = event == "call" and frame.f_code.co_flags & 0x20 and frame.f_lasti > 6
            if not here or again or event not in ("call", "c_return"):
                return
            places += 1
            if places == at:
                sys.setprofile(None)
                seen.append((action.__name__, event, frame.f_code.co_name, frame.f_lineno))
                raise KeyboardInterrupt

        try:
            sys.setprofile(profile)
            action()
        except KeyboardInterrupt as error:
            return error
        finally:
            sys.setprofile(None)

    gc.disable()
    for action in (alone, both, failing, holding):
        for at in range(1, 10_000):
            seen = []
            error = interrupted(action, at)
            if not seen:
                break
            assert error is not None, (seen, "swallowed")
            look(seen)
            if action is holding:  # its `with` may be torn: then until the exception is forgotten
                error = None
            look_at_blas(seen)
        assert at > 20, at
    """
    )
    assert done.returncode == 0, done.stderr


def test_a_signal_at_any_moment_stops_the_work_and_leaves_nothing_behind():
    """A timer interrupts the main thread, every time a little later, with new helpers each time."""
    done = run(
        INTERRUPTED
        + """
    def interrupt(*_):
        raise KeyboardInterrupt

    interrupted = 0
    signal.signal(signal.SIGALRM, interrupt)
    for action in (alone, both, failing):
        for step in range(300):
            threads._helpers = threads._Helpers()
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 1e-6 + step * 5e-6)
                    action()
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
                look(step)
            look_at_blas(step)
            two = threading.Barrier(2)  # nobody passes it alone
            map_blocks(lambda a, b: two.wait(20), row_blocks(2, 1), n_jobs=2)
    assert interrupted > 100, interrupted
    """
    )
    assert done.returncode == 0, done.stderr


# The helper waits for what this thread has and, torn out of, never gives back.
TORN = """
    import signal, threading, time
    from gnomon.compute import threads
    from gnomon.compute.threads import map_blocks, row_blocks
    main, held, begun = threading.get_ident(), threading.Lock(), threading.Event()
    torn = threading.Event()

    def work(start, stop):
        if threading.get_ident() == main:
            assert begun.wait(20)
            torn.set()
            raise KeyboardInterrupt
        begun.set()
        held.acquire()

    held.acquire()
    begin = time.monotonic()
"""


def test_ctrl_c_does_not_wait_for_ever():
    done = run(
        TORN
        + """
    threads.PATIENCE_SECONDS = 0.2
    try:
        map_blocks(work, row_blocks(50, 1), n_jobs=2)
    except KeyboardInterrupt:
        assert time.monotonic() - begin > 0.2
        two = threading.Barrier(2)  # another helper comes
        map_blocks(lambda a, b: two.wait(20), row_blocks(2, 1), n_jobs=2)
        print("stopped")
    """
    )
    assert (done.stdout, done.returncode) == ("stopped\n", 0), done.stderr


def test_the_second_ctrl_c_does_not_wait():
    done = run(
        TORN
        + """
    threads.PATIENCE_SECONDS = 100.0
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt_again():
        torn.wait(20)
        time.sleep(0.5)  # by then the main thread waits for the helper
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt_again).start()
    try:
        map_blocks(work, row_blocks(50, 1), n_jobs=2)
    except KeyboardInterrupt:
        assert time.monotonic() - begin < 60
        print("stopped")
    """
    )
    assert (done.stdout, done.returncode) == ("stopped\n", 0), done.stderr


def test_ctrl_c_comes_before_an_error_on_another_thread():
    begun, failed = threading.Event(), threading.Event()

    def work(start, stop):
        if threading.current_thread() is threading.main_thread():
            begun.set()
            assert failed.wait(10)
            time.sleep(0.05)  # the error is kept by now
            raise KeyboardInterrupt
        assert begun.wait(10)
        failed.set()
        raise ZeroDivisionError

    with pytest.raises(KeyboardInterrupt):
        map_blocks(work, row_blocks(50, 1), n_jobs=2)


def test_an_error_keeps_nothing_alive_once_it_is_handled():
    data = np.zeros(10)

    def fail(start, stop, data=data):
        raise ZeroDivisionError

    gc.disable()
    try:
        with pytest.raises(ZeroDivisionError):
            map_blocks(fail, row_blocks(4, 1), n_jobs=2)
        gone = weakref.ref(data)
        del data, fail
        wait_until(lambda: gone() is None)
    finally:
        gc.enable()


def test_work_that_busy_helpers_never_came_to_keeps_nothing_alive(monkeypatch):
    """Two blocks wait for each other's thread; the one helper there is does not come to ours."""
    monkeypatch.setattr(threads, "_POOL_SIZE", 1)
    monkeypatch.setattr(threads, "_helpers", threads._Helpers())
    begun, go_on = threading.Barrier(3), threading.Event()

    def long(start, stop):
        begun.wait(10)
        go_on.wait(20)

    other = threading.Thread(target=map_blocks, args=(long, row_blocks(2, 1)), kwargs={"n_jobs": 2})
    other.start()
    begun.wait(10)
    data = np.zeros(10)
    map_blocks(lambda start, stop, data=data: data.sum(), row_blocks(4, 1), n_jobs=2)
    gone = weakref.ref(data)
    del data
    try:
        assert gone() is None
    finally:
        go_on.set()
        other.join()


def test_where_no_thread_can_be_started_the_caller_works_alone(monkeypatch):
    def none(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "start_new_thread", none)
    monkeypatch.setattr(threads, "_helpers", threads._Helpers())
    assert map_blocks(lambda start, stop: start, row_blocks(4, 1), n_jobs=3) == [0, 1, 2, 3]


def test_one_slow_block_beside_holds_nobody_up():
    """Seven helpers have nothing to wait for: results beside are not kept."""
    slow, done = threading.Event(), []

    def block(start, stop):
        if start == 0:
            assert slow.wait(20)
        done.append(start)

    beside(
        block,
        row_blocks(100, 1),
        lambda: wait_until(lambda: len(done) == 99) or slow.set(),
        n_jobs=3,
    )
    assert len(done) == 100


def test_idle_helpers_of_work_beside_serve_what_is_inside(monkeypatch):
    monkeypatch.setattr(threads, "_helpers", threads._Helpers())
    done = []

    def meanwhile():
        wait_until(lambda: len(done) == 8)
        map_blocks(lambda start, stop: None, row_blocks(16, 1), n_jobs=4)

    beside(lambda start, stop: done.append(start), row_blocks(8, 1), meanwhile, n_jobs=4)
    assert threads._helpers.started == 3


def test_no_more_results_exist_than_threads_and_one():
    alive, most, counting = 0, 0, threading.Lock()

    class Result:
        def __init__(self):
            nonlocal alive, most
            with counting:
                alive += 1
                most = max(most, alive)

        def __del__(self):
            nonlocal alive
            with counting:
                alive -= 1

    def slow_first(start, stop):
        result = Result()
        time.sleep(0.02 if start % 4 == 0 else 0.001)
        return result

    fold_blocks(slow_first, row_blocks(40, 1), lambda _: time.sleep(0.001), n_jobs=3)
    assert most <= 4


def test_an_interrupt_while_a_helper_starts_neither_lets_it_go_on_nor_hangs_at_exit():
    done = run("""
    import time
    from gnomon.compute import threads
    from gnomon.compute.threads import map_blocks, row_blocks
    start, ran = threads.start_new_thread, []

    def interrupted(*args):
        start(*args)
        raise KeyboardInterrupt

    def work(a, b):
        ran.append(a)
        time.sleep(0.01)

    threads.start_new_thread = interrupted
    try:
        map_blocks(work, row_blocks(10_000, 1), n_jobs=2)
    except KeyboardInterrupt:
        assert len(ran) < 100, len(ran)
        print("stopped")
    """)
    assert (done.stdout, done.returncode) == ("stopped\n", 0), done.stderr


def test_a_thread_that_outlives_the_main_one_still_has_helpers():
    done = run("""
    import threading, time
    from gnomon.compute.threads import map_blocks, row_blocks

    def late():
        threading.main_thread().join()
        two = threading.Barrier(2)  # nobody passes it alone
        map_blocks(lambda a, b: two.wait(20), row_blocks(2, 1), n_jobs=2)
        print("computed")

    threading.Thread(target=late).start()
    """)
    assert (done.stdout, done.returncode) == ("computed\n", 0), done.stderr
