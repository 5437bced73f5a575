"""Tables that the command reads in blocks: folders, many rows, several processes."""

import contextlib
import json
import os
import signal
import subprocess
import time

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import COMMAND, environment, first_words, gnomon, refused
from engine.clusters import processes, wait_until, within

from gnomon import TSNE
from gnomon.cli.asked import Asked
from gnomon.cli.workers import in_blocks
from gnomon.engine import LocalEngine
from gnomon.errors import ClusterError, Parameter, Remedy
from gnomon.pipeline.estimate import map_bytes

COLUMNS = ["a", "b", "c", "d"]

pytestmark = pytest.mark.usefixtures("folders_in_blocks", "quick_workers")


def table(n=600, seed=0):
    rng = np.random.default_rng(seed)
    return (7 * rng.integers(3, size=(n, 1)) + rng.normal(size=(n, 4))).astype(np.float32)


def write_folder(folder, X, files=3):
    folder.mkdir()
    for i, part in enumerate(np.array_split(X, files)):
        columns = {name: part[:, j] for j, name in enumerate(COLUMNS)}
        pq.write_table(pa.table(columns), folder / f"part{i}.parquet")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blocks")
    write_folder(folder / "cells", table())
    np.save(folder / "cells.npy", table())
    return folder


def read(path):
    found = pq.read_table(path)
    return {name: found[name].to_numpy() for name in found.column_names}


def test_a_folder_is_reduced_block_by_block_and_restored(here):
    done = gnomon("reduce", "cells", "-k", "4", "-o", "r", folder=here)
    assert done.returncode == 0, done.stderr
    assert first_words(done) == [
        "Read",
        "Features",
        "Blocks",
        "Scale",
        "PCA",
        "Exact",
        "Scores",
        "Page",
        "Wrote",
        "Next",
    ]
    assert "cells: 600 rows × 4 columns " in done.stderr
    assert sorted(os.listdir(here / "r")) == [
        "model.gnomon",
        "report.html",
        "run.json",
        "scores.parquet",
        "scree.svg",
    ]
    assert list(read(here / "r" / "scores.parquet")) == ["pc1", "pc2", "pc3", "pc4"]
    found = json.loads((here / "r" / "run.json").read_text())
    assert found["table"] == {
        "name": "cells",
        "rows": 600,
        "n_columns": 4,
        "features": COLUMNS,
        "label": None,
        "id": None,
        "kept_for_colour": [],
        "ignored": [],
        "notes": [],
        "blocks": 3,
    }
    back = gnomon("restore", "r/scores.parquet", "-m", "r", "-o", "x.npy", folder=here)
    assert back.returncode == 0, back.stderr
    # Four of four components lose nothing but float32's last digits.
    np.testing.assert_allclose(np.load(here / "x.npy"), table(), atol=1e-4)


def test_a_sample_is_mapped_and_the_file_says_which_rows_were_placed(here):
    done = gnomon("map", "cells.npy", "--sample", "200", "--threads", "1", "-o", "m", folder=here)
    assert done.returncode == 0, done.stderr
    assert "Sample   200 rows drawn at random are mapped, the other 400 placed" in done.stderr
    assert "Placed   400 rows, " in done.stderr
    found = read(here / "m" / "map.parquet")
    assert list(found)[:2] == ["tsne1", "tsne2"]
    assert list(found)[-2:] == ["trust", "placed"]
    assert found["placed"].sum() == 400
    X, rows = table(), np.flatnonzero(~found["placed"])
    tsne = TSNE(random_state=0, n_jobs=1).fit(X[rows])
    assert np.array_equal(found["tsne1"][rows], tsne.embedding_[:, 0])
    run = json.loads((here / "m" / "run.json").read_text())
    assert run["settings"]["sample"] == 200
    page = (here / "m" / "report.html").read_text(encoding="utf-8")
    assert "200 rows drawn at random are mapped, the other 400 placed among them" in page
    assert run["sampling"]["mapped"] == 200
    assert run["sampling"]["words"].startswith("200 rows drawn at random are mapped, the other 400")
    whole = gnomon("map", "iris", "--threads", "1", "-o", "whole", folder=here)
    assert whole.returncode == 0, whole.stderr
    assert "placed" not in read(here / "whole" / "map.parquet")
    assert json.loads((here / "whole" / "run.json").read_text())["sampling"] is None


def test_a_folder_is_mapped_by_a_sample(here):
    done = gnomon("map", "cells", "--sample", "150", "--threads", "1", "-o", "f", folder=here)
    assert done.returncode == 0, done.stderr
    assert "Sample   150 rows drawn at random are mapped, the other 450 placed" in done.stderr
    assert "Placed   450 rows, " in done.stderr
    found = read(here / "f" / "map.parquet")
    assert found["placed"].sum() == 450
    page = (here / "f" / "report.html").read_text(encoding="utf-8")
    assert "150 rows drawn at random are mapped, the other 450 placed among them" in page
    assert not np.isnan(found["trust"]).any()
    seen = gnomon("map", "cells.npy", "--sample", "150", "--dry-run", "--json", folder=here)
    assert json.loads(seen.stdout)["sampling"]["placed"] == 450
    assert json.loads(seen.stdout)["estimate"]["place_seconds"] > 0


@pytest.mark.parametrize("order", [["inspect", "cells"], ["map", "cells", "--dry-run"]])
def test_what_a_map_of_a_folder_would_cost_is_said_before(here, order):
    done = gnomon(*order, "--json", folder=here)
    assert done.returncode == 0, done.stderr
    assert first_words(done) == [
        "Read",
        "Features",
        "Blocks",
        "Scale",
        "Table",
        "PCA",
        "Why",
        "t-SNE",
        "Trust",
        "Page",
        "Time",
        "Memory",
    ]
    assert "600 × 4 float32, 9.6 kB" in done.stderr
    found = json.loads(done.stdout)
    assert found["table"]["blocks"] == 3
    assert found["sampling"] is None
    less = gnomon(*order, "--sample", "60", "--memory", "420MB", folder=here)
    assert "Sample   60 rows drawn at random are mapped, the other 540 placed" in less.stderr
    assert "perplexity 19.7, " in less.stderr  # as `gnomon map` takes of 60
    assert "120 MB left of the 420 MB allowed" in less.stderr
    none = gnomon(*order, "--memory", "310MB", folder=here)
    assert refused(none, 4, "10.0 MB may be used", "300 MB are for the libraries")
    assert not (here / "cells_map").exists()


def test_what_columns_of_a_folder_are_for_is_said_and_can_be_changed(tmp_path):
    X = table(60)
    (tmp_path / "cells").mkdir()
    rows = [f"r{i},{i % 2},{'xy'[i % 2]},{a},{b}" for i, (a, b) in enumerate(X[:, :2])]
    (tmp_path / "cells" / "a.csv").write_text("name,year,sex,a,b\n" + "\n".join(rows) + "\n")
    done = gnomon("reduce", "cells", "--drop", "sex", "-o", "r", folder=tmp_path)
    assert (
        "Features 2 numeric columns (a, b)\n"
        "Label    year (few distinct whole numbers: --keep year to use it as a feature)\n"
        "Id       name\n"
        "Ignored  sex (as asked)\n"
        "Blocks   read in 1 block; rows keep their order\n"
    ) in done.stderr
    scores = pq.read_table(tmp_path / "r" / "scores.parquet")
    assert scores.column_names[:2] == ["name", "year"]
    assert scores["name"].to_pylist() == [f"r{i}" for i in range(60)]
    assert scores["year"].to_pylist() == ["0", "1"] * 30
    found = json.loads((tmp_path / "r" / "run.json").read_text())["table"]
    assert (found["features"], found["label"], found["id"]) == (["a", "b"], "year", "name")
    (ignored,) = found["ignored"]
    assert (ignored["column"], ignored["why"]) == ("sex", "as asked")
    done = gnomon("reduce", "cells", "--keep", "year", "-o", "k", folder=tmp_path)
    assert "Features 3 numeric columns (year, a, b)\nLabel    sex\n" in done.stderr


def test_a_map_of_all_rows_of_a_folder_speaks_of_no_sample(tmp_path):
    write_folder(tmp_path / "cells", table(60))
    done = gnomon("map", "cells", "--threads", "1", "-o", "m", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not {"Sample", "Placed"} & {*first_words(done)}
    assert json.loads((tmp_path / "m" / "run.json").read_text())["sampling"] is None
    again = gnomon("report", "m", "-o", "again.html", folder=tmp_path)
    assert again.returncode == 0, again.stderr
    for page in (tmp_path / "m" / "report.html", tmp_path / "again.html"):
        assert "drawn at random are mapped" not in page.read_text(encoding="utf-8")


def test_a_map_of_all_rows_of_a_folder_is_made_again(here):
    done = gnomon("map", "cells", "--stability", "2", "--threads", "1", "-o", "s", folder=here)
    assert done.returncode == 0, done.stderr
    assert json.loads((here / "s" / "run.json").read_text())["table"]["blocks"] > 1
    assert "were aligned by generalised" in (here / "s" / "report.html").read_text("utf-8")


def test_what_cannot_be_done_in_blocks_is_refused(here):
    for command in (["reduce"], ["map"], ["map", "--dry-run"], ["align", "--to", "cells"]):
        options = ("--dask", "x:1", "--workers", "2", "-o", "n.parquet")
        both = gnomon(*command, "cells", *options, folder=here)
        assert refused(both, 2, "--dask and --workers are mutually exclusive")
    gaps = gnomon("compare", "cells", "cells", "--missing", "drop", folder=here)
    assert refused(gaps, 2, "--missing drop needs the whole table in memory")
    sample = gnomon("reduce", "iris", "--workers", "1", "-o", "n", folder=here)
    assert refused(sample, 2, "Only files and folders are read in blocks; got 'iris'")
    assert not (here / "n").exists()


@pytest.mark.parametrize(
    "order",
    [
        ["reduce", "t.csv", "-o", "n"],
        ["map", "-", "-o", "n"],
        ["align", "t.csv", "--to", "cells", "-o", "n.parquet"],
        ["compare", "cells", "texts"],
    ],
    ids=" ".join,
)
def test_workers_elsewhere_cannot_read_copies_of_this_machine(here, order):
    text = "a,b,c,d\n" + "\n".join(",".join(map(str, row)) for row in table(50))
    (here / "t.csv").write_text(text)
    (here / "texts").mkdir(exist_ok=True)
    (here / "texts" / "t.csv").write_text(text)
    done = gnomon(*order, "--dask", "tcp://10.0.0.1:8786", folder=here)
    assert refused(done, 2, "is read from a temporary copy on this machine", "--spool FOLDER")


def test_workers_of_this_machine_read_copies(here, tmp_path):
    lines = [",".join(repr(float(x)) for x in row) for row in table()]
    (here / "t.csv").write_text("\n".join(["a,b,c,d", *lines]) + "\n")
    order = ["reduce", "t.csv", "-k", "2", "--scale", "none"]
    held = gnomon(*order, "-o", "held", folder=here)
    assert held.returncode == 0, held.stderr
    done = gnomon(*order, "-o", "copied", "--workers", "1", "--spool", str(tmp_path), folder=here)
    assert done.returncode == 0, done.stderr
    one, two = (read(here / out / "scores.parquet") for out in ("held", "copied"))
    for name in ("pc1", "pc2"):
        np.testing.assert_array_equal(one[name], two[name])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--label", "--id"])
@pytest.mark.parametrize(
    "order",
    [
        ["map", "cells", "--sample", "60", "-o", "n"],
        ["reduce", "cells", "-o", "n"],
        ["reduce", "named.csv", "--workers", "1", "-o", "n"],
        ["place", "cells", "-m", "m", "-o", "n.parquet"],
        ["restore", "scores", "-m", "m", "-o", "n.parquet"],
    ],
    ids=" ".join,
)
def test_columns_that_name_and_colour_rows_stay_with_them_in_blocks(tmp_path, order, option):
    """Also those that are not guessed: `d` is a feature unless an option names it."""
    X = table(120).round(3)
    groups = 7 if option == "--label" else 120
    X[:, 3] = np.arange(120) % groups
    write_folder(tmp_path / "cells", X)
    lines = [f"{a},{b},{c},{d:.0f}" for a, b, c, d in X]
    (tmp_path / "named.csv").write_text("\n".join(["a,b,c,d", *lines]) + "\n")
    if order[0] in ("place", "restore"):
        made = gnomon("map", "cells", "-k", "3", "--drop", "d", "-o", "m", folder=tmp_path)
        assert made.returncode == 0, made.stderr
        stored = pq.read_table(tmp_path / "m" / "map.parquet")
        kept = stored.select(["pc1", "pc2", "pc3"]).append_column("d", pa.array(X[:, 3]))
        (tmp_path / "scores").mkdir()
        pq.write_table(kept, tmp_path / "scores" / "0.parquet")
    done = gnomon(*order, option, "d", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{option[2:].capitalize():<9}d\n" in done.stderr
    out = tmp_path / order[-1]
    found = read(out if out.is_file() else next(out.glob("[ms]*.parquet")))
    assert found["d"].tolist() == [str(i % groups) for i in range(120)]


class Lost(LocalEngine):
    """An engine whose cluster goes away after some passes."""

    def __init__(self, passes):
        super().__init__(1)
        self.passes = passes

    def write(self, *args, **how):
        self.passes -= 1
        if self.passes < 0:
            raise ClusterError(
                "The Dask cluster is lost: its scheduler is gone.",
                Remedy.START_AGAIN,
                parameter=Parameter("engine"),
            )
        super().write(*args, **how)


@pytest.mark.parametrize(
    "order",
    [["reduce", "cells", "-o", "n"], ["align", "cells", "--to", "cells.npy", "-o", "n.npy"]],
)
@pytest.mark.parametrize("where", [["--workers", "2"], ["--dask", "tcp://somewhere:1"]])
def test_a_cluster_that_is_lost_is_no_wrong_usage(here, monkeypatch, order, where):
    for start in ("local_cluster", "connected"):
        monkeypatch.setattr(
            f"gnomon.engine.cluster.{start}", lambda _: contextlib.nullcontext(Lost(1))
        )
    done = gnomon(*order, *where, folder=here)
    said = f"its scheduler is gone. Start it again, or run without {where[0]}."
    assert refused(done, 1, said), done.stderr
    assert not list(here.glob("n*"))


def test_a_scheduler_that_was_never_there_is_wrong_usage(here, monkeypatch):
    monkeypatch.setattr("gnomon.engine.cluster.CONNECT_SECONDS", 0.5)
    done = gnomon("reduce", "cells", "-o", "n", "--dask", "127.0.0.1:9", folder=here)
    assert refused(done, 2, "No Dask scheduler answers at '127.0.0.1:9'")


COMMANDS = {
    "map": ["map", "cells.npy", "-o", "n"],
    "reduce": ["reduce", "cells", "-o", "n"],
    "align": ["align", "cells", "--to", "cells.npy", "-o", "n.npy"],
    "compare": ["compare", "cells", "cells.npy"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_libraries_of_every_worker_are_counted(here, name, monkeypatch):
    """Before any of them is started."""
    done = gnomon(*COMMANDS[name], "--workers", "2", "--memory", "900MB", folder=here)
    assert refused(
        done,
        4,
        "--memory 900 MB is no more than the libraries of 3 processes take by themselves, "
        "about 900 MB: this one and --workers 2. Use --memory 1.6GB, or fewer workers.",
    )
    monkeypatch.setattr("gnomon.budget.available_bytes", lambda: 10**9)
    done = gnomon(*COMMANDS[name], "--workers", "4", folder=here)
    assert refused(
        done,
        4,
        "--workers 4, for the libraries alone, needs about 1.2 GB of memory; 1.0 GB are "
        "free. Ask for fewer, or work without them.",
    )
    assert not list(here.glob("n*"))


def test_what_the_user_allowed_is_in_every_refusal(here):
    done = gnomon("reduce", "cells", "--memory", "310MB", "-o", "n", folder=here)
    assert refused(
        done,
        4,
        "and 10.0 MB may be used. Allow more memory, or use fewer columns. Of the 310 MB "
        "allowed, 300 MB are for the libraries.",
    )
    np.save(here / "many.npy", table(3000))
    order = ("map", "many.npy", "--perplexity", "300", "--memory")
    done = gnomon(*order, "390MB", "-o", "n", folder=here)
    assert refused(
        done,
        4,
        "many.npy: a map of 1,000 rows needs about 92.0 MB of memory beside the 300 MB of "
        "the libraries, more than the 390 MB that are allowed. Use --memory 431MB.",
    )
    write_folder(here / "many", table(3000))
    done = gnomon("map", "many", *order[2:], "390MB", "-o", "n", folder=here)
    assert refused(done, 4, "many: a map of 1,000 rows", "than the 390 MB that are allowed")
    done = gnomon(*order, "450MB", "--dry-run", folder=here)
    assert done.returncode == 0, done.stderr
    rest = " of the 450 MB allowed: 300 MB are for the libraries, 48.0 kB for the table\n"
    assert f"of memory, and 150 MB may be used{rest}" in done.stderr
    assert f" beyond the table; 150 MB left{rest}" in done.stderr
    done = gnomon(*order, "1.1GB", "--workers", "2", "--dry-run", folder=here)
    assert "200 MB may be used of the 1.1 GB allowed: 900 MB are for the libraries of 3 pr" in (
        done.stderr
    )


def test_files_that_memory_has_no_room_for_are_read_in_blocks(here, monkeypatch):
    def asked(data, memory=None, **more):
        return in_blocks(Asked(memory=memory, **more), str(here / data))

    size = (here / "cells.npy").stat().st_size
    assert asked("cells")
    assert asked("cells.npy", workers=2)
    assert asked("cells.npy", dask="tcp://somewhere:1")
    assert not asked("cells.npy", memory=size)  # small files are read as they are
    monkeypatch.setattr("gnomon.data.open.SMALL_BYTES", 1)
    assert asked("cells.npy", memory=size)
    assert not asked("cells.npy", memory=3 * size)
    assert not asked("cells.npy")
    assert not asked("none.npy", memory=1)


def test_what_counts_of_parquet_is_its_size_once_decoded(here, tmp_path, monkeypatch):
    def asked(path, memory):
        return in_blocks(Asked(memory=memory), str(path))

    same = pa.table({"a": np.zeros(40_000), "b": np.ones(40_000)})
    pq.write_table(same, tmp_path / "t.parquet")
    decoded = 8 * 2 * 40_000
    assert (tmp_path / "t.parquet").stat().st_size < decoded / 50
    assert not asked(tmp_path / "t.parquet", decoded)  # small
    monkeypatch.setattr("gnomon.data.open.SMALL_BYTES", decoded)
    assert asked(tmp_path / "t.parquet", 2 * decoded - 1)
    assert not asked(tmp_path / "t.parquet", 2 * decoded)
    monkeypatch.setattr("gnomon.data.open.SMALL_BYTES", 1)
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1" + bytes(100))
    assert not asked(tmp_path / "damaged.parquet", decoded)  # whoever reads it says so


def test_processes_and_a_cluster_write_the_bytes_of_this_process(here, tmp_path):
    options = ("-k", "3", "--scale", "standard")
    gnomon("reduce", "cells", *options, "-o", "one", folder=here)
    allowed = ("--workers", "2", "--memory", "2GB", "-v")
    done = gnomon("reduce", "cells", *options, "-o", "two", *allowed, folder=here)
    assert done.returncode == 0, done.stderr
    assert (
        "Cluster  2 processes of this machine; 1.1 GB left of the 2.0 GB allowed: 900 MB are for "
        "the libraries of 3 processes\n"
    ) in done.stderr
    assert "; the memory is that of this process and 2 workers\n" in done.stderr
    with within(120), processes(tmp_path) as cluster:  # whose processes work in another folder
        cluster.scheduler()
        cluster.worker()
        address = cluster.address()
        there = gnomon("reduce", "cells", *options, "-o", "three", "--dask", address, folder=here)
    assert there.returncode == 0, there.stderr
    one, two, three = (
        (here / name / "scores.parquet").read_bytes() for name in ("one", "two", "three")
    )
    assert one == two == three


def runs(process):
    """Whether the process still runs; in a container, ended ones may not be collected."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


@contextlib.contextmanager
def working(folder):
    """The command with workers, that are at work on a table whose scores are there already."""
    write_folder(folder / "cells", table(3000), files=60)
    (folder / "out").mkdir()
    (folder / "out" / "scores.parquet").write_bytes(b"the old one")
    command = [COMMAND, "reduce", "cells", "--workers", "2", "-o", "out", "--force"]
    with within(150):
        running = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            for line in running.stderr:
                if line.startswith("Blocks"):
                    break
            workers = psutil.Process(running.pid).children(recursive=True)
            assert len(workers) >= 2
            yield running, workers
        finally:
            running.kill()
            running.wait()
        wait_until(lambda: not any(map(runs, workers)))
    assert os.listdir(folder / "out") == ["scores.parquet"]
    assert (folder / "out" / "scores.parquet").read_bytes() == b"the old one"


@pytest.mark.rounds(test=1, soak=3, long=30)
def test_ctrl_c_stops_the_workers_and_leaves_nothing_torn(tmp_path):
    with working(tmp_path) as (running, _):
        time.sleep(0.3)  # the workers are reading, or importing what they need to
        os.killpg(running.pid, signal.SIGINT)  # as a terminal sends it: to all of them
        _, rest = running.communicate(timeout=90)
        assert running.returncode == 130, rest
        assert rest.splitlines()[-1] == "error: interrupted"
        assert "Traceback" not in rest


@pytest.mark.rounds(test=0, soak=1, long=10)
def test_workers_that_are_killed_again_and_again_are_an_error_within_a_minute(tmp_path):
    with working(tmp_path) as (running, workers):
        end = time.monotonic() + 60
        while running.poll() is None:
            assert time.monotonic() < end, "it hangs"
            for child in psutil.Process(running.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    if "spawn_main" in " ".join(child.cmdline()):  # and not what tracks them
                        child.kill()
                        workers.append(child)
            time.sleep(0.2)
        _, rest = running.communicate()
        assert running.returncode == 1, rest
        assert rest.splitlines()[-1].startswith("error: ")
        assert "Traceback" not in rest


def test_inspect_refuses_what_map_would(here):
    for options in (("--perplexity", "5000"), ("--sample", "20", "--perplexity", "25")):
        for command in ("inspect", "map"):
            assert refused(gnomon(command, "cells", *options, folder=here), 2, "perplexity")


def test_inspect_says_what_was_asked_for_where_there_is_no_room_for_it(tmp_path):
    write_folder(tmp_path / "cells", table(20_000))
    asked = ["cells", "--sample", "10000", "--memory", "370MB"]
    done = gnomon("inspect", *asked, "--json", folder=tmp_path)
    assert "Sample   10,000 rows drawn at random are mapped, the other 10,000" in done.stderr
    assert "Warning  This is more memory than there is" in done.stderr
    assert refused(gnomon("map", *asked, folder=tmp_path), 4, "a map of 10,000 rows needs")
    needed = json.loads(done.stdout)["estimate"]["peak_bytes"]
    fewer = gnomon("inspect", *asked, "--components", "1", "--json", folder=tmp_path)
    # of every row three scores fewer, in four bytes each
    assert json.loads(fewer.stdout)["estimate"]["peak_bytes"] == needed - 20_000 * 3 * 4
    # beside the map: 70 bytes for a place, 4 scores of every row, 4 numbers of each one mapped
    beside = 20_000 * (70 + 4 * 4) + 10_000 * 4 * 8
    assert needed == beside + map_bytes(10_000, 4, 30)
    workers = gnomon("map", *asked[:3], "--workers", "2", "--dry-run", "--json", folder=tmp_path)
    # in each of them the mapped rows, and what finds them
    each = 2 * 10_000 * 4 * 8
    assert json.loads(workers.stdout)["estimate"]["peak_bytes"] == needed + 2 * each
