"""Shared by all tests: how they are drawn, how many rounds they go, and who runs beside whom."""

import gc
import os
import signal
from importlib.util import find_spec

# scikit-learn's check of array API input is skipped without it, and nothing is skipped here.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import pytest
from hypothesis import HealthCheck, settings

# Two noisy cores: a time limit for one example would fail at random. Examples are drawn the same
# way every time, so that a change, not luck, is what makes a test fail.
settings.register_profile(
    "gnomon",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("gnomon")

# A shell has what it starts in the background ignore Ctrl-C, and so would all that is started here.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

LEVELS = ("test", "soak", "long")
# `make test` runs these in an environment of their own, which has scanpy and
# matplotlib.
collect_ignore = [] if find_spec("scanpy") else ["plot", "single_cell"]
collect_ignore += [] if find_spec("jupyterlab") else ["notebook"]  # so does `make soak`


@pytest.fixture
def folders_in_blocks(monkeypatch):
    """Have commands read folders in blocks, as if memory did not hold them."""
    from gnomon.data import open as opening

    fits = opening.fits
    monkeypatch.setattr(opening, "fits", lambda path, *how: not path.is_dir() and fits(path, *how))


@pytest.fixture(scope="session")
def quick_workers():
    """Have workers of clusters here forked from one process that has imported all they need.

    Each would otherwise import it for two seconds; commands that tests start as processes still
    start workers as users have them.
    """
    import dask
    from distributed.utils import get_mp_context

    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        context = get_mp_context()  # sets a list of Dask's own, once
        context.set_forkserver_preload(
            ["distributed", "gnomon.engine.dask", "gnomon.pipeline.flow"]
        )
        yield


# Groups and files of more than a few seconds, the slowest first.
FIRST = [
    "processes",
    "browser",
    "tests/cli/test_examples.py",
    "tests/tsne/test_estimator.py",
    "tests/contract/test_documents.py",
    "tests/pca/test_traps.py",
    "tests/tsne/test_novelty.py",
    "tests/models/test_mutants.py",
    "tests/cli/test_map.py",
    "tests/cli/test_environment.py",
    "tests/compute/test_kernel_cache.py",
    "tests/contract/test_sklearn_checks.py",
    "tests/tsne/test_truncation.py",
    "tests/docs/test_gallery.py",
    "tests/benchmarks/test_tsne.py",
    "tests/compute/test_threads.py",
    "tests/cli/test_everywhere.py",
    "tests/cli/test_audit.py",
    "tests/cli/test_run_folder.py",
    "tests/pca/test_plan.py",
    "tests/pca/test_rank.py",
    "tests/tsne/test_tree.py",
    "tests/benchmarks/test_harness.py",
    "tests/benchmarks/test_command.py",
    "tests/pca/test_limits.py",
    "tests/contract/test_same_bits.py",
    "tests/data/test_arrow.py",
    "tests/tsne/test_forces.py",
    "tests/models/test_file.py",
]


def pytest_addoption(parser):
    parser.addoption(
        "--rounds",
        choices=LEVELS,
        default="test",
        help="test: every test, few rounds. soak, long: only tests marked `rounds`, more rounds.",
    )


def rounds_of(item, level):
    """How many rounds a test goes at a level; None for tests that are not marked `rounds`."""
    marker = item.get_closest_marker("rounds")
    return None if marker is None else marker.kwargs[level]


@pytest.fixture
def rounds(request):
    """How many rounds this test goes: `@pytest.mark.rounds(test=20, soak=200, long=5000)`."""
    return rounds_of(request.node, request.config.getoption("--rounds"))


def pytest_generate_tests(metafunc):
    """Repeat a test that is marked `rounds` and does not take `rounds` itself."""
    count = rounds_of(metafunc.definition, metafunc.config.getoption("--rounds"))
    if count and "rounds" not in metafunc.fixturenames:
        metafunc.fixturenames.append("round_number")
        metafunc.parametrize("round_number", range(count))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what does not belong to this level, and put slow files first."""
    level = config.getoption("--rounds")
    wanted = [item for item in items if is_wanted(item, level)]
    left_out = [item for item in items if not is_wanted(item, level)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    if config.getoption("dist", "no") != "no":
        wanted.sort(key=lambda item: turn_of(item.nodeid))  # stable: files stay whole
    items[:] = wanted


def is_wanted(item, level):
    count = rounds_of(item, level)
    return level == "test" if count is None else count > 0


def pytest_collection_finish():
    """Keep thousands of collected tests out of every later garbage collection."""
    gc.collect()
    gc.freeze()


# Files that are handed to one worker together, one after the other: those that start browsers,
# clusters or processes to be killed would starve each other side by side.
TOGETHER = {
    "processes": (
        "tests/engine/test_faults.py",
        "tests/cli/test_blocks.py",
        "tests/engine/test_dask.py",
        "tests/cli/test_killed.py",
        "tests/cli/test_pair_sources.py",
        "tests/pca/test_source_killed.py",
    ),
    "browser": ("tests/browser/",),
}


def group_of(nodeid):
    """What goes to one worker as a whole: a file, or the files of a group."""
    for group, starts in TOGETHER.items():
        if nodeid.startswith(starts):
            return group
    return nodeid.partition("::")[0]


def turn_of(nodeid):
    """Slow files first, so that no worker ends with one alone."""
    group = group_of(nodeid)
    return FIRST.index(group) if group in FIRST else len(FIRST)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One more than there are CPUs: browsers and clusters are waited for, most of the time."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    return Groups(config, log)
