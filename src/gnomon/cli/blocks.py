"""What commands do with tables that are read in blocks, here or on a cluster."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli.words import Bar, Words

if TYPE_CHECKING:
    from gnomon.budget import Budget
    from gnomon.engine import Source
    from gnomon.large import LargeResult

__all__ = [
    "beside_workers",
    "engine_for",
    "fits",
    "in_blocks",
    "open_like",
    "open_source",
    "refuse_output",
    "refuse_stability",
    "run",
    "watched_engine",
]

# A table of this share of the memory there is would not fit with what is done to it.
SHARE = 0.5
SMALL = 100e6  # bytes; smaller tables are always held


def in_blocks(data: str, *, dask: str | None, workers: int | None, memory: "Budget | None") -> bool:
    """Whether a table is read in blocks: one too large for memory, or any table on a cluster."""
    if dask is not None and workers is not None:
        from gnomon.errors import ParameterError

        raise ParameterError("--dask and --workers are two ways to one cluster. Give one of them.")
    if dask is not None or workers is not None:
        return True
    return data != "-" and not fits(Path(data), memory)


def fits(path: Path, memory: "Budget | None") -> bool:
    """Whether the table of a file or folder fits into memory, as far as its size can tell."""
    if not (path.is_file() or path.is_dir()):
        return True  # a pipe, a sample, or nothing at all
    from gnomon.budget import Budget
    from gnomon.data.arrow_files import parquet_bytes
    from gnomon.data.folder import files_of

    size = sum(max(file.stat().st_size, parquet_bytes(file)) for file in files_of(path))
    return size < SMALL or size <= SHARE * Budget.from_memory(memory).bytes


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
def engine_for(
    dask: str | None, workers: int | None, *, words: Words, memory: "Budget | None"
) -> Iterator[Any]:
    """A running cluster, one of this machine that is ended afterwards, or None for threads.

    `memory` is what the libraries of its processes leave, as `beside_workers` says. A cluster that
    is lost on the way was no wrong usage: exit code 1, which is that of Click's own errors.
    """
    from gnomon.errors import ClusterError

    if dask is None and workers is None:
        yield None
        return
    from gnomon.engine.cluster import connected, local_cluster

    begun = False
    try:
        with connected(dask) if dask is not None else local_cluster(workers or 1) as engine:
            words.say("Cluster", f"Dask at {dask}" if dask else _processes(workers or 1, memory))
            begun = True
            yield engine
    except ClusterError as error:
        if not begun:
            raise
        asked = "--workers" if dask is None else "--dask"
        raise click.ClickException(str(error.replace(parameter=asked))) from error


@contextmanager
def watched_engine(
    dask: str | None, workers: int | None, *, words: Words, memory: "Budget | None",
    threads: int | None,
) -> Iterator[Any]:  # fmt: skip
    """The same with a bar that says how far each pass over the rows is, on a terminal."""
    from gnomon.engine import as_engine

    cluster = engine_for(dask, workers, words=words, memory=memory)
    with cluster as engine, words.bar("Reading") as bar:
        yield as_engine(engine, n_jobs=threads, on=bar)


def _processes(workers: int, memory: "Budget | None") -> str:
    """How many there are, and what is left of the memory allowed."""
    from gnomon.budget import readable_bytes

    text = f"{workers} process{'' if workers == 1 else 'es'} of this machine"
    if memory is None:
        return text
    return f"{text}; {readable_bytes(memory.bytes)} left{memory.rest()}"


def open_source(
    data: str, *, missing: str, reading: dict[str, Any], memory: "Budget | None" = None
) -> "Source":
    """The table as a source; what needs all rows at once is refused."""
    from gnomon.data.refusals import OptionError, option
    from gnomon.data.sources import source
    from gnomon.data.table import SHOWN
    from gnomon.errors import ParameterError

    if data == "-" or not Path(data).exists():
        raise ParameterError(
            f"Only files and folders are read in blocks; got '{data}'. Leave out --dask and "
            "--workers."
        )
    for name in ("label", "id", *SHOWN):
        if reading.get(name):
            asked = option(name, reading[name], command=True)
            raise OptionError(
                f"{asked} would be ignored: {data} is read in blocks, and results of blocks hold "
                "no ids, labels or texts yet.",
                ("drop", reading[name]),  # so that it is no feature
                f"Leave --{name} out, or save the table as one file that fits into memory.",
            )
    if missing != "error":
        raise ParameterError(
            f"--missing {missing} needs the whole table in memory, and this one is read in blocks. "
            "Fill the gaps in beforehand."
        )
    # Workers have folders of their own: they need to be told where the file is.
    named = {name: value for name, value in reading.items() if name not in SHOWN}
    found = source(Path(data).resolve(), **named)
    # Of the processes whose libraries are counted, this one does not work beside the others.
    return found if memory is None else found.within(memory.each(memory.processes - 1))


def open_like(
    data: str, columns: Sequence[str], *, reading: dict[str, Any], memory: "Budget | None"
) -> "Source":
    """The table with the columns of a model: by name, or in their order where it has no names."""
    from gnomon.data.blocks import AbsentError
    from gnomon.data.refusals import OptionError, lacks_columns
    from gnomon.files import shown_name

    name = shown_name(Path(data)) or data
    try:
        named = {**reading, "columns": list(columns)}
        return open_source(data, missing="error", reading=named, memory=memory)
    except AbsentError as error:
        raise lacks_columns(name, list(error.fields["absent"]), len(columns)) from None
    except OptionError:
        nameless = open_source(data, missing="error", reading=reading, memory=memory)
        if nameless.names is not None:
            raise
        if nameless.columns != len(columns):
            raise lacks_columns(name, list(columns), len(columns)) from None
        return nameless


def refuse_stability(data: str, stability: int | None) -> None:
    """Maps are made again from a table in memory only."""
    from gnomon.errors import ParameterError

    if stability is not None:
        raise ParameterError(
            f"--stability {stability} makes the map again, which needs the whole table in memory, "
            f"and {data} is read in blocks. Leave --stability out, or map a file of some of its "
            "rows."
        )


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


def run(
    data: str,
    *,
    words: Words,
    dask: str | None,
    workers: int | None,
    memory: "Budget | None",
    missing: str,
    wishes: dict[str, Any],
    bar: Bar | None,
    **how: Any,
) -> "LargeResult":
    """Run the pipeline over blocks.

    `wishes` are for `gnomon.source`, `how` is for `gnomon.large.run_blocks`.
    """
    from gnomon.cli.results import reporter
    from gnomon.files import shown_name
    from gnomon.large import run_blocks

    found = open_source(data, missing=missing, reading=wishes)
    name = shown_name(Path(data)) or data
    with engine_for(dask, workers, words=words, memory=memory) as engine:
        return run_blocks(
            found, name=name, memory=memory, engine=engine, on=reporter(words, bar), **how
        )
