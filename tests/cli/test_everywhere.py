"""What all commands share: help, JSON, exit codes, memory, words for whoever wants more or less."""

import errno
import gc
import json
import os
import subprocess
import sys
import textwrap
import time
from importlib import import_module

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from commands import gnomon, refused

from gnomon.budget import LIBRARY_BYTES, parse_bytes
from gnomon.cli import COMMANDS, HELP
from gnomon.cli.options import LEAST_PAGE
from gnomon.cli.results import _far_words
from gnomon.report.report import LEAST_BUDGET

DATA = "cells.csv"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two tables of the same rows, and a map and a reduction of the first."""
    folder = tmp_path_factory.mktemp("everywhere")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) + 6 * np.eye(4)[np.arange(60) % 2]
    for name, Z in ((DATA, X), ("more.csv", X[::-1] + rng.normal(size=X.shape) / 9)):
        rows = [f"r{i}" for i in range(60)]
        named = {"id": rows if name == DATA else rows[::-1]}
        pc.write_csv(pa.table(named | {f"v{j}": Z[:, j] for j in range(4)}), folder / name)
    for order in (("map", DATA), ("reduce", DATA, "-k", "2")):
        done = gnomon(*order, folder=folder)
        assert done.returncode == 0, done.stderr
    return folder


# Each command as it must work with --json, and what its object says.
ORDERS = {
    "map": (["map", DATA, "--force"], {"interrupted": False}),
    "dry run": (["map", DATA, "--dry-run"], {}),
    "reduce": (["reduce", DATA, "-k", "2", "--force"], {}),
    "restore": (
        ["restore", "cells_reduced/scores.parquet", "-m", "cells_reduced", "-o", "back.csv"],
        {"rows": 60, "n_components": 2, "columns": ["id", "v0", "v1", "v2", "v3"]},
    ),
    "place": (
        ["place", "more.csv", "-m", "cells_map", "-o", "placed.csv"],
        {"rows": 60, "dropped": 0, "warnings": []},
    ),
    "align": (
        ["align", "more.csv", "--to", DATA, "--id", "id", "-o", "aligned.csv"],
        {"new": "more.csv", "old": DATA, "id": "id", "shared": 60, "only_new": [], "warnings": []},
    ),
    "compare": (["compare", DATA, "more.csv", "--id", "id"], {"a": DATA, "b": "more.csv"}),
    "inspect": (["inspect", DATA], {}),
    "audit": (["audit", "cells_map", "--force"], {}),
}


@pytest.mark.parametrize("name", ORDERS)
def test_json_is_the_only_thing_on_standard_output_and_names_every_file(made, name):
    order, says = ORDERS[name]
    done = gnomon(*order, "--json", "--force" if "-o" in order else "-q", folder=made)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["command"] == {"dry run": "inspect"}.get(name, name)
    for key, value in says.items():
        assert found[key] == value
    if "-o" in order:
        assert found["files"] == [order[order.index("-o") + 1]]
    assert all((made / file).exists() for file in found["files"])
    if name in ("map", "reduce"):
        folder = {"map": "cells_map", "reduce": "cells_reduced"}[name]
        assert sorted(found["files"]) == sorted(f"{folder}/{f}" for f in os.listdir(made / folder))
        record = json.loads((made / folder / "run.json").read_text(encoding="utf-8"))
        assert {key: found[key] for key in record} == record


@pytest.mark.parametrize(
    "order",
    [
        ["restore", "cells_reduced/scores.parquet", "-m", "cells_reduced"],
        ["place", "more.csv", "-m", "cells_map"],
        ["align", "more.csv", "--to", DATA, "--id", "id"],
        ["reduce", "-", "-k", "2"],
    ],
    ids=lambda order: order[0],
)
def test_json_and_a_table_never_share_standard_output(made, order):
    done = gnomon(*order, "--json", folder=made, stdin="a,b\n1,2\n3,5\n4,1\n")
    assert refused(done, 2, "would both go to standard output", "-o")


@pytest.mark.parametrize("name", ORDERS)
def test_more_is_said_to_whoever_asks_and_nothing_to_whoever_wants_quiet(made, name):
    order = [*ORDERS[name][0], *(["--force"] if "-o" in ORDERS[name][0] else [])]
    usual, more = gnomon(*order, folder=made), gnomon(*order, "-v", folder=made)
    assert usual.returncode == more.returncode == 0, more.stderr
    said = more.stderr.splitlines()
    assert len(said) > len(usual.stderr.splitlines())
    (versions,) = [line for line in said if line.startswith("Versions")]
    assert f"numpy {np.__version__}" in versions
    assert "Versions" not in usual.stderr
    quiet = gnomon(*order, "-q", "-v", folder=made)
    assert (quiet.returncode, quiet.stderr) == (0, "")


def test_plan_and_certificates_are_what_more_is(made):
    said = gnomon("map", DATA, "--force", "-v", folder=made).stderr
    for text in ("Plan     solver: covariance", "orthogonality:", "force error:", "recall"):
        assert text in said
        assert text not in gnomon("map", DATA, "--force", folder=made).stderr


SMALL = {
    "map": ["map", DATA, "-o", "m"],
    "reduce": ["reduce", DATA, "-o", "m"],
    "restore": ["restore", "cells_reduced/scores.parquet", "-m", "cells_reduced"],
    "place": ["place", DATA, "-m", "cells_map"],
    "align": ["align", DATA, "--to", "more.csv", "--id", "id"],
    "compare": ["compare", DATA, "more.csv", "--id", "id"],
    "inspect": ["inspect", DATA],
}


@pytest.mark.parametrize("name", SMALL)
def test_too_little_memory_is_refused_with_how_much_is_needed(made, name):
    done = gnomon(*SMALL[name], "--memory", str(LIBRARY_BYTES + 500), folder=made)
    last = done.stderr.splitlines()[-1]
    assert refused(done, 4, " of memory beside the 300 MB of the libraries, more than the 300 MB ")
    assert not (made / "m").exists()
    enough = last.split("Use --memory ")[1].split(". ")[0]
    done = gnomon(*SMALL[name], "--memory", enough, folder=made)
    # The table fits then; what is made of it may need more, and says so in turn.
    assert done.returncode == 0 or refused(done, 4, " 60 × 4 numbers needs about ")


@pytest.mark.parametrize("size", ["500B", "20MB", str(LIBRARY_BYTES)])
def test_memory_that_the_libraries_alone_take_is_refused_before_anything_is_read(made, size):
    done = gnomon("map", DATA, "-o", "m", "--memory", size, folder=made)
    assert refused(done, 4, f"--memory {size} is no more than", "about 300 MB", "--memory 1GB")
    assert len(done.stderr.splitlines()) == 1
    assert not (made / "m").exists()


def test_the_libraries_take_about_what_is_counted_for_them():
    """Resident in a process that has imported what `gnomon map` works with, and nothing else."""
    code = """
        import pyarrow.csv, pyarrow.parquet, gnomon.pipeline.flow, gnomon.report.run_page
        print([line for line in open("/proc/self/status") if line.startswith("VmRSS")][0])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    resident = 1024 * int(done.stdout.split()[1])
    # Other versions of them take more or less; --memory is off by no more than half of it.
    assert 0.5 * LIBRARY_BYTES < resident < 1.5 * LIBRARY_BYTES


def test_a_map_that_does_not_fit_is_refused_before_it_begins(made, monkeypatch):
    done = gnomon("map", DATA, "-o", "m", "--memory", "320MB", folder=made)
    assert refused(
        done,
        4,
        "cells.csv: PCA of 60 × 4 numbers needs about 64.0 MB of memory beside the 300 MB "
        "of the libraries, more than the 320 MB that are allowed. Use --memory 400MB.",
    )
    assert "PCA  " not in done.stderr
    assert not (made / "m").exists()
    monkeypatch.setattr("gnomon.budget.available_bytes", lambda: 30_000_000)
    done = gnomon("map", DATA, "-o", "m", folder=made)
    assert refused(done, 4, "more than the 30.0 MB that are free. Take fewer rows or columns.")
    done = gnomon("inspect", DATA, folder=made)
    assert done.returncode == 0
    done = gnomon("map", DATA, "-o", "m", "--memory", "1GiB", folder=made)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("size", ["0", "-1", "lots", "2 potatoes", "nan", ""])
def test_a_size_that_is_none_is_wrong_usage(made, size):
    assert refused(gnomon("map", DATA, f"--memory={size}", folder=made), 2, "such as 2GB")


def test_a_page_too_small_for_anything_is_refused_before_any_work(made):
    assert parse_bytes(LEAST_PAGE) == LEAST_BUDGET
    done = gnomon("map", DATA, "-o", "small", "--page-budget", "99kB", folder=made)
    assert refused(done, 2, "--page-budget", "'99kB' is less than 100kB")
    assert "Read" not in done.stderr


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (["maps", DATA], "No such command 'maps'. Did you mean 'map'? See gnomon --help."),
        (["quux", DATA], "No such command 'quux'. See gnomon --help."),
        (["map", DATA, DATA], "Got unexpected extra argument (cells.csv). See gnomon map --help."),
    ],
)
def test_wrong_usage_is_told_in_whole_sentences(made, order, says):
    assert refused(gnomon(*order, folder=made), 2, says)


@pytest.mark.parametrize(
    ("k", "says"),
    [
        (1, "1 of 4 components holds"),
        (2, "% of the variance; 95 % needs 3"),
        (4, "4 of 4 components hold 100.0 % of the variance "),
    ],
)
def test_what_the_components_hold_and_how_many_would_hold_almost_all(made, k, says):
    done = gnomon("reduce", DATA, "-k", str(k), "-o", f"k{k}", folder=made)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("PCA")]
    assert says in line


def test_a_map_without_distances_says_so_instead_of_nan():
    assert _far_words(float("nan")) == "far distances do not differ"
    assert _far_words(0.5) == "far distances 0.50"
    assert _far_words(0.9) == "far distances 0.90"


def test_what_numpy_cannot_allocate_is_too_little_memory_too(made, monkeypatch):
    def full(*_, **__):
        np.empty(2**62, np.uint8)

    monkeypatch.setattr("gnomon.pipeline.flow.run", full)
    done = gnomon("map", DATA, "-o", "n", folder=made)
    assert refused(done, 4, "not enough memory (Unable to allocate 4.00 EiB")


def test_a_full_disk_is_neither_usage_nor_data(made, monkeypatch):
    full = iter([False])  # when it is looked at before the work, and full by the end of it

    def fsync(_):
        if next(full, True):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    order = ["restore", "cells_reduced/scores.parquet", "-m", "cells_reduced", "-o", "full.csv"]
    done = gnomon(*order, folder=made)
    assert refused(done, 1, "full.csv could not be written (No space left on device)", "another")
    assert not [name for name in os.listdir(made) if "full.csv" in name]


def test_what_nobody_foresaw_is_one_sentence_unless_debugged(made, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("the sky fell")

    monkeypatch.setattr("gnomon.pipeline.flow.run", broken)
    assert refused(gnomon("map", DATA, "-o", "n", folder=made), 1, "the sky fell (--debug shows")
    for order in (["map", DATA, "-o", "n", "--debug"], ["--debug", "map", DATA, "-o", "n"]):
        done = gnomon(*order, folder=made)
        assert done.returncode == 1
        assert "Traceback" in done.stderr
        assert 'raise RuntimeError("the sky fell")' in done.stderr
        assert done.stderr.splitlines()[-1].startswith("error: the sky fell")


def test_debug_keeps_the_exit_codes(made):
    done = gnomon("map", "nothing.csv", "--debug", folder=made)
    assert done.returncode == 2
    assert "ParameterError" in done.stderr
    assert gnomon("map", DATA, "--label", "nope", "-o", "n", "--debug", folder=made).returncode == 2


def test_ctrl_c_before_there_is_a_map_ends_with_130_and_no_files(made, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("gnomon.pipeline.flow.run", interrupted)
    assert refused(gnomon("map", DATA, "-o", "n", folder=made), 130, "interrupted")
    assert not (made / "n").exists()


def test_ctrl_c_within_a_callback_of_the_garbage_collector_is_not_lost(made, monkeypatch):
    def interrupts(*_):
        gc.callbacks.remove(interrupts)
        raise KeyboardInterrupt  # which Python reports to sys.unraisablehook, and drops

    def collects(*_, **__):
        gc.callbacks.append(interrupts)
        gc.collect()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            time.sleep(0.01)
        raise AssertionError("the interrupt was lost")

    before = sys.unraisablehook
    monkeypatch.setattr("gnomon.pipeline.flow.run", collects)
    assert refused(gnomon("map", DATA, "-o", "n", folder=made), 130, "interrupted")
    assert sys.unraisablehook is before


@pytest.mark.parametrize(
    ("order", "code", "says"),
    [
        (["map", "iris", "--perplexity", "500"], 2, "--perplexity must be a number from 1 to 149"),
        (["map", "iris", "-k", "9"], 2, "-k must be an integer from 0 to 4; got 9."),
        (["reduce", "iris", "-k", "9"], 2, "-k must be an integer from 0 to 4; got 9."),
        (["map", "iris", "--threads", "0"], 2, "0 threads do no work"),
        (["map", "iris", "--seed", "-1"], 2, "'--seed': -1 is not in the range"),
        (["map", "iris", "--drop", "species"], 2, "--drop is for files; iris is in memory"),
        (["place", "inf.csv", "-m", "cells_map"], 3, "infinite value at line 2. Use --na inf."),
        (["place", "words.csv", "-m", "cells_map"], 3, 'holds text in 1 row (first: line 3, "x")'),
        (["map", "two.csv"], 3, "two.csv: 2 rows, but a map needs 3 or more."),
        (["inspect", "two.csv"], 3, "two.csv: 2 rows, but a map needs 3 or more."),
        (["reduce", "one.csv"], 3, "one.csv: 1 row, but PCA needs 2 or more."),
        (["map", "same.csv"], 3, "same.csv: all rows are the same in the columns in use"),
        (["inspect", "same.csv"], 3, "same.csv: all rows are the same in the columns in use"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_speak_of_options_that_the_command_has(made, order, code, says):
    (made / "inf.csv").write_text("v0,v1,v2,v3\ninf,1,2,3\n1,2,3,4\n")
    (made / "words.csv").write_text("v0,v1,v2,v3\n5,1,2,3\nx,2,3,4\n5,2,1,3\n")
    (made / "two.csv").write_text("a,b\n1,2\n3,5\n")
    (made / "one.csv").write_text("a,b\n1,2\n")
    (made / "same.csv").write_text("a,b\n" + "1.5,2\n" * 200)
    done = gnomon(*order, folder=made)
    assert refused(done, code, says)
    last = done.stderr.splitlines()[-1]
    assert "`" not in last
    assert order[0] != "place" or "--drop" not in last


def test_warnings_name_columns_lines_and_options(made):
    rows = [f"{i * 1e-9},{i % 7}.5,{i}.25" for i in range(40)]
    (made / "wild.csv").write_text("\n".join(["a,b,c", *rows, "1,2.5,1e12"]) + "\n")
    said = gnomon("reduce", "wild.csv", "--scale", "none", "--force", folder=made).stderr
    assert 'Warning  Column "c" varies' in said
    assert "Use --scale standard" in said
    assert "Warning  Line 42 is so far from all others" in said


def test_help_leads_with_examples_of_every_command(made):
    text = gnomon("--help", folder=made, COLUMNS="80").stdout
    examples = [line for line in HELP.splitlines() if line.startswith("gnomon ")]
    assert {line.split()[1] for line in examples} == set(COMMANDS)
    assert all(f" {line} " in text for line in examples)  # none is broken at 80 columns
    assert text.index(examples[-1]) < text.index("Options") < text.index("Exit codes")
    panels = ("table", "result", "page", "computed", "machine", "Options")
    for name, module in COMMANDS.items():
        text = gnomon(name, "--help", folder=made, COLUMNS="80").stdout
        assert 0 < text.index(f" gnomon {name} ", text.index("OPTIONS")) < text.index("─ Options")
        _, _, shown = import_module(module).HELP.partition("\b\n")
        examples = shown.partition("\n\n")[0].splitlines()
        assert examples
        assert all(f" {line} " in text for line in examples)  # none of these is broken either
        heads = [line.strip("╭╮─ ").split()[-1] for line in text.splitlines() if "╭" in line]
        assert heads == [panel for panel in panels if panel in heads]  # in this order
        for option in ("--json", "--memory", "--quiet", "--verbose", "--debug", "--threads"):
            assert option in text


def test_help_of_every_command_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from gnomon.cli import COMMANDS, main\n"
        "for order in ([], *([name] for name in COMMANDS)):\n"
        "    sys.argv = ['gnomon', *order, '--help']\n"
        "    try:\n        main()\n    except SystemExit:\n        pass\n"
        "heavy = ('numpy', 'scipy', 'sklearn', 'numba', 'pyarrow', 'jinja2')\n"
        "print('HEAVY', [name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "HEAVY []", done.stderr
    assert done.stdout.count("Usage:") == 1 + len(COMMANDS)
