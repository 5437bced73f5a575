"""Who works for a command: threads of this process, processes of this machine, a Dask cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli.run_lines import RunLines

if TYPE_CHECKING:
    from gnomon.budget import Budget
    from gnomon.cli.asked import Asked
    from gnomon.data.table import Table

__all__ = [
    "beside_workers",
    "engine_for",
    "in_blocks",
    "limit_reading",
    "refuse_copies",
    "refuse_for_workers",
    "refuse_output",
    "watched_engine",
]


def refuse_for_workers(asked: "Asked", *inputs: str) -> None:
    """Refuse two clusters at once, and `inputs` that processes other than this cannot read."""
    from gnomon.errors import ParameterError

    if asked.dask is not None and asked.workers is not None:
        raise ParameterError("--dask and --workers are mutually exclusive. Give one of them.")
    for data in inputs if asked.cluster else ():
        if data != "-" and not Path(data).exists():
            raise ParameterError(
                f"Only files and folders are read in blocks; got '{data}'. Leave out --dask and "
                "--workers."
            )
    refuse_copies(asked, *inputs)


def refuse_copies(asked: "Asked", *inputs: str) -> None:
    """Refuse `inputs` that are copied to this machine's disk where workers of a cluster read them.

    Workers of this machine see the copies, and all see those in a folder that the user names.
    """
    from gnomon.errors import ParameterError

    if asked.dask is None or asked.spool is not None:
        return
    for data in inputs:
        if _is_copied(data):
            raise ParameterError(
                f"'{data}' is read from a temporary copy on this machine, which the workers of "
                f"--dask {asked.dask} may not see. Name a folder on a disk that all of them share "
                "with --spool FOLDER, or save the table as Parquet."
            )


def _is_copied(data: str) -> bool:
    """Whether a file, or one of a folder, is read in blocks from a temporary copy."""
    from gnomon.data.file_content import COPIED, kind_of_file
    from gnomon.data.folder import files_of
    from gnomon.data.formats.h5ad import is_h5ad

    if data == "-":
        return True
    files = files_of(Path(data))  # a 10x folder is one
    return any(not is_h5ad(f) and (f.is_dir() or kind_of_file(f) in COPIED) for f in files)


def in_blocks(asked: "Asked", *inputs: str) -> bool:
    """Whether one of these tables is read in blocks: too large for memory, or for a cluster."""
    from gnomon.data import open as opening

    files = (Path(data) for data in inputs if data != "-")
    return asked.cluster or any(not opening.fits(path, asked.memory) for path in files)


def limit_reading(table: "Table", asked: "Asked") -> "Table":
    """The table, of which blocks take no more than each process may use of the memory allowed."""
    if not table.in_blocks or asked.memory is None:
        return table
    # Of the processes whose libraries are counted, this one does not work beside the others.
    limit = asked.memory.each(asked.memory.processes - 1)
    return replace(table, X=table.X.limit(limit))


def beside_workers(memory: "Budget | None", workers: int | None) -> "Budget | None":
    """What is left of `memory` by the libraries of `workers` too; refused where nothing is."""
    if workers is None:
        return memory
    from gnomon.budget import LIBRARY_BYTES, check_free, libraries_of, readable_bytes
    from gnomon.errors import TooLargeError

    if memory is None:
        way_out = "Ask for fewer, or work without them."
        what = f"--workers {workers}, for the libraries alone,"
        check_free(what, workers * LIBRARY_BYTES, way_out)
        return None
    budget = memory.shared(workers)
    if budget.bytes <= 0:
        taken = budget.allowed - budget.bytes
        raise TooLargeError(
            f"--memory {readable_bytes(budget.allowed)} is no more than "
            f"{libraries_of(budget.processes)} take by themselves, about {readable_bytes(taken)}: "
            f"this one and --workers {workers}. Use --memory "
            f"{readable_bytes(taken + 0.7e9).replace(' ', '')}, or fewer workers."
        )
    return budget


@contextmanager
def engine_for(asked: "Asked", words: RunLines) -> Iterator[Any]:
    """A running cluster, one of this machine that is ended afterwards, or None for threads.

    A cluster that is lost on the way was no wrong usage: exit code 1, which is that of Click's own
    errors.
    """
    from gnomon.errors import ClusterError

    if not asked.cluster:
        yield None
        return
    from gnomon.engine.cluster import connected, local_cluster

    begun, workers = False, asked.workers or 1
    try:
        with connected(asked.dask) if asked.dask else local_cluster(workers) as engine:
            words.say(
                "Cluster",
                f"Dask at {asked.dask}" if asked.dask else _processes(workers, asked.memory),
            )
            begun = True
            yield engine
    except ClusterError as error:
        if not begun:
            raise
        option = "--workers" if asked.dask is None else "--dask"
        raise click.ClickException(str(error.replace(parameter=option))) from error


@contextmanager
def watched_engine(asked: "Asked", words: RunLines) -> Iterator[Any]:
    """An engine that shows a progress bar for each pass over the rows, on a terminal."""
    from gnomon.engine import as_engine

    with engine_for(asked, words) as engine, words.bar("Reading") as bar:
        yield as_engine(engine, n_jobs=asked.threads, on=bar)


def _processes(workers: int, memory: "Budget | None") -> str:
    """How many there are, and what is left of the memory allowed."""
    from gnomon.budget import readable_bytes

    text = f"{workers} process{'' if workers == 1 else 'es'} of this machine"
    if memory is None:
        return text
    return f"{text}; {readable_bytes(memory.bytes)} left{memory.rest()}"


def refuse_output(out: Path | None) -> None:
    """What cannot be written block by block, before any work."""
    from gnomon.engine.sink import ENDINGS
    from gnomon.errors import ParameterError

    if out is None or out.suffix.lower() not in ENDINGS:
        raise ParameterError(
            f"Tables that are read in blocks are written to a file that ends in "
            f"{' or '.join(ENDINGS)}; got {'none' if out is None else repr(str(out))}. Name one "
            "with -o."
        )
