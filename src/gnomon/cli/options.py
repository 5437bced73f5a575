"""Options and arguments that several commands share, and what is checked before any work."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from gnomon.budget import Budget
    from gnomon.cli.run_folder import RunFolder

__all__ = [
    "check_source",
    "compared_page",
    "components",
    "computing",
    "distributing",
    "features",
    "mapping",
    "missing",
    "model",
    "naming",
    "new_file",
    "new_folder",
    "numbers",
    "of_cells",
    "of_method",
    "of_table",
    "out_file",
    "out_folder",
    "page",
    "pairing",
    "parse_components",
    "plain_page",
    "preparing",
    "reading",
    "replaying",
    "resources",
    "sampling",
    "showing",
    "source",
    "speaking",
    "table_or_json",
    "until_the_end",
    "writing",
]

F = TypeVar("F", bound=Callable[..., Any])

# Options under headings of their own; the others stand below them, under "Options".
of_table = partial(click.option, panel="The table")
of_method = partial(click.option, panel="What is computed")
of_machine = partial(click.option, panel="The machine")
of_page = partial(click.option, panel="The page")
of_result = partial(click.option, panel="The result")


def _together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several options as one decorator, shown in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


LEAST_PAGE = "100kB"  # as `gnomon.report.report.LEAST_BUDGET`, which takes long to import


class _Size(click.ParamType[int]):
    """``2GB``, ``500MB`` or ``1.5GiB``, as bytes."""

    name = "size"

    def __init__(self, least: str | None = None) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes; anything else is wrong usage."""
        from gnomon.budget import parse_bytes
        from gnomon.errors import ParameterError

        try:
            size = parse_bytes(value)
        except ParameterError:
            self.fail(f"'{value}' is no size above 0, such as 2GB or 500MB.", param, ctx)
        if self.least is not None and size < parse_bytes(self.least):
            self.fail(f"'{value}' is less than {self.least}, the least there can be.", param, ctx)
        return size


class _Memory(click.ParamType["Budget"]):
    """What the command may take in all, as what its libraries leave of it for the work."""

    name = "size"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "Budget":
        """Bytes beside those of the libraries; fewer than these are too little for anything."""
        allowed = _Size().convert(value, param, ctx)
        from gnomon.budget import LIBRARY_BYTES, Budget, readable_bytes
        from gnomon.errors import TooLargeError

        budget = Budget(allowed, asked=True).shared(1)
        if budget.bytes <= 0:
            raise TooLargeError(
                f"--memory {value} is no more than the command's libraries take by themselves, "
                f"about {readable_bytes(LIBRARY_BYTES)}. Use --memory 1GB."
            )
        return budget


def _some(ctx: click.Context, param: click.Parameter, value: int | None) -> int | None:
    if value == 0:
        raise click.BadParameter("0 threads do no work; use 1 or more, or -1 for all CPUs.")
    return value


def _complete_source(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Files, by the shell itself, and the bundled samples."""
    from gnomon.data.samples import names

    samples = [CompletionItem(name) for name in names() if name.startswith(incomplete)]
    return [*samples, CompletionItem(incomplete, type="file")]


def source(name: str, metavar: str | None = None) -> Callable[[F], F]:
    """The argument for a table: a file, standard input or a sample."""
    return click.argument(name, metavar=metavar or name.upper(), shell_complete=_complete_source)


# How numbers are written in text: `na`, `decimal`.
numbers = _together(
    of_table(
        "--na",
        metavar="TEXT",
        multiple=True,
        help="Text that means a missing value, besides an empty cell, NA, NaN and null. "
        "May be given again.",
    ),
    of_table(
        "--decimal",
        type=click.Choice([".", ","]),
        help="Decimal mark in text; the other mark may then separate thousands (default: guessed).",
    ),
)
# How cells are read: `na`, `decimal`, `sheet`.
_cells = _together(
    numbers,
    of_table("--sheet", metavar="NAME", help="Sheet of an Excel workbook (default: the first)."),
)
# Which columns go along with the rows of a result: `label`, `id_`; how their cells are read.
naming = _together(
    of_table("--id", "id_", metavar="COLUMN", help="Column that names the rows, for the result."),
    of_table("--label", metavar="COLUMN", help="Column of groups, for the result."),
    _cells,
)
# Which columns are features: `features`, `keep`, `drop`.
features = _together(
    of_table(
        "--features",
        metavar="NAME",
        multiple=True,
        help="Use only these columns as features: a name, or a pattern such as 'pc*' "
        "(default: guessed, and printed). May be given again.",
    ),
    of_table(
        "--keep",
        metavar="COLUMN",
        multiple=True,
        help="Use this column as a feature, too: a name or a pattern. May be given again.",
    ),
    of_table(
        "--drop",
        metavar="COLUMN",
        multiple=True,
        help="Do not use this column as a feature: a name or a pattern. May be given again.",
    ),
)
# What of an AnnData file is used: `layer`, `use_rep`, `normalize`.
of_cells = _together(
    of_table("--layer", metavar="NAME", help="Layer of an .h5ad file to use instead of X."),
    of_table(
        "--use-rep",
        metavar="NAME",
        help="Key of obsm in an .h5ad file to use, or X, of which the genes in "
        "var['highly_variable'] are used, if there are such; all of them by --features '*' "
        "(default: as in scanpy, X_pca if it exists and there are more than 50 genes).",
    ),
    of_table(
        "--normalize",
        type=click.Choice(["log1p"]),
        help="Normalize the counts of an .h5ad file: scale each cell to 10,000, then log(1 + x).",
    ),
)
# The options that most tables need: `label`, `id_`, `features`, `keep`, `drop`.
reading = _together(
    of_table("--label", metavar="COLUMN", help="Column of groups, which colours the rows."),
    of_table("--id", "id_", metavar="COLUMN", help="Column that names the rows."),
    features,
)
# What a page shows of each row: `text`, `image`, `link`.
showing = _together(
    of_page("--text", metavar="COLUMN", help="Column of text to show for each row, and to search."),
    of_page(
        "--image",
        metavar="COLUMN",
        help="Column of pictures to show: bytes, or paths relative to the data's folder "
        "(PNG, JPEG, WebP, GIF).",
    ),
    of_page(
        "--image-root",
        metavar="FOLDER",
        type=click.Path(path_type=Path, file_okay=False),
        help="Folder that the paths of pictures are relative to.",
    ),
    of_page("--link", metavar="COLUMN", help="Column of web links to show."),
    of_page(
        "--pixels",
        metavar="SHAPE",
        help="Shape of the picture that the features of a row form: 28x28, 32x32x3, 3x32x32 "
        "(plane by plane); add ,F for column order. Or none (default: recognised).",
    ),
)
missing = of_table(
    "--missing",
    type=click.Choice(["error", "drop", "mean", "em"]),
    default="error",
    show_default=True,
    help="Missing values: refuse them, drop their rows, fill in the column's mean, or (em) "
    "estimate them from the row's other columns.",
)
# How a table is made ready: `missing`, `scale`; how its cells are read; which part of an AnnData.
preparing = _together(
    missing,
    of_table(
        "--scale",
        type=click.Choice(["auto", "none", "standard"]),
        default="auto",
        show_default=True,
        help="Divide columns by their standard deviations (auto: if they differ tenfold).",
    ),
    _cells,
    of_cells,
)
# Which rows and columns of two tables belong together: `id_`, `columns`; how their cells are read:
# `na`, `decimal`, `missing`.
pairing = _together(
    of_table(
        "--id",
        "ids",
        metavar="COLUMN",
        multiple=True,
        help="Column that names the rows of both tables; give it twice where the names of the "
        "columns differ (default: a column of IDs in both, otherwise the order of the rows).",
    ),
    of_table(
        "--columns",
        metavar="NAME",
        multiple=True,
        help="Use only these columns: a name, or a pattern such as 'pc*'. May be given again.",
    ),
    numbers,
    of_table(
        "--missing",
        type=click.Choice(["error", "drop", "mean", "em"]),
        default="error",
        show_default=True,
        help="Missing values: refuse them, drop their rows, or fill them in.",
    ),
)
components = of_method(
    "-k",
    "--components",
    metavar="K",
    default="0.95",
    show_default=True,
    help="Number of components, share of the variance, or rule: mle, parallel, broken-stick, "
    "gavish-donoho, kaiser.",
)
# Of the map: `perplexity`, `metric`, `dimensions`.
mapping = _together(
    of_method(
        "--perplexity",
        type=float,
        metavar="NUMBER",
        help="Effective number of neighbours of a row (default: 30, or a third of the rows).",
    ),
    of_method(
        "--metric",
        type=click.Choice(["euclidean", "cosine"]),
        default="euclidean",
        show_default=True,
        help="Distance between rows: cosine for embeddings.",
    ),
    of_method(
        "--dimensions",
        type=click.IntRange(1, 3),
        metavar="N",
        default=2,
        show_default=True,
        help="Dimensions of the map, 1 to 3.",
    ),
)
# What may be used: `threads`, `memory`.
resources = _together(
    of_machine(
        "--threads",
        type=int,
        callback=_some,
        metavar="N",
        help="Number of threads (default: all CPUs).",
    ),
    of_machine(
        "--memory",
        type=_Memory(),
        metavar="SIZE",
        help="Memory limit, such as 2GB, of which the libraries take about 0.3GB per process "
        "(default: what is free).",
    ),
)
# How many rows a map is made of: `sample`.
sampling = of_method(
    "--sample",
    type=click.IntRange(3),
    metavar="N",
    help="Map N random rows and place all others on the map (default: all rows, or as many "
    "as there is memory for).",
)
# Who works through a table that is read in blocks: `dask`, `workers`; where it is copied: `spool`.
distributing = _together(
    of_machine("--dask", metavar="ADDRESS", help="Use the Dask cluster with this scheduler."),
    of_machine(
        "--workers",
        type=click.IntRange(1),
        metavar="N",
        help="Number of worker processes on this machine.",
    ),
    of_machine(
        "--spool",
        type=click.Path(file_okay=False, exists=True),
        metavar="FOLDER",
        help="Folder for temporary copies of CSV and compressed files that do not fit into "
        "memory (default: the system's temporary folder). With --dask, one that all workers "
        "share.",
    ),
)
# `seed`, and those.
computing = _together(
    of_method(
        "--seed",
        type=click.IntRange(0),
        metavar="N",
        default=0,
        show_default=True,
        help="Seed of the random numbers: samples and solvers. A map of all rows starts from the "
        "principal components and does not depend on it; --stability N --vary start varies starts.",
    ),
    resources,
)
# What is said: `quiet`, `verbose`, `as_json`.
speaking = _together(
    click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
    click.option(
        "-v", "--verbose", is_flag=True, help="Print more: plans, certificates, versions."
    ),
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print the record of the run as JSON on standard output.",
    ),
    click.option(
        "--debug", is_flag=True, expose_value=False, help="Print the traceback of an error."
    ),
)
# `force`, and those.
writing = _together(
    of_result("--force", is_flag=True, help="Overwrite existing results."),
    speaking,
)
_title = of_page("--title", metavar="TEXT", help="Title of the page (default: the data's name).")
_open = of_page("--open", "show", is_flag=True, help="Open the page in the browser.")
# The page of a comparison: `title`, `show`.
compared_page = _together(_title, _open)
# The page: `title`, `page_budget`, `show`.
plain_page = _together(
    _title,
    of_page(
        "--page-budget",
        type=_Size(LEAST_PAGE),
        metavar="SIZE",
        default="3MB",
        show_default=True,
        help="Size limit of the page; what is left out is listed on it.",
    ),
    _open,
)
# `stability`, and those.
replaying = of_page(
    "--replay", is_flag=True, help="Show on the page how the map developed, in about 40 frames."
)
page = _together(
    of_page(
        "--stability",
        type=click.IntRange(2),
        metavar="N",
        help="Make the map N more times, and show on the page which points stay in place.",
    ),
    of_page(
        "--vary",
        type=click.Choice(["rows", "start"]),
        default="rows",
        show_default=True,
        help="What --stability varies: a tenth of the rows left out each time, or random starts.",
    ),
    plain_page,
)
model = of_table(
    "-m",
    "--model",
    metavar="MODEL",
    type=click.Path(path_type=Path),
    required=True,
    help="Model file, or the folder of the run that wrote it.",
)
out_file = of_result(
    "-o",
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File to write: .csv, .tsv, .parquet, .feather or .npy (default: CSV on standard output).",
)


def out_folder(usual: str) -> Callable[[F], F]:
    """``-o`` for a folder that is called `usual` by default."""
    return of_result(
        "-o",
        "--out",
        metavar="FOLDER",
        type=click.Path(path_type=Path),
        help=f"Folder for the results (default: {usual}).",
    )


def parse_components(text: str) -> int | float | str:
    """``"10"`` is a number, ``"0.95"`` a fraction, anything else a rule; 0 is refused."""
    try:
        number = float(text) if "." in text else int(text)
    except ValueError:
        return text
    if number == 0:
        from gnomon.errors import ParameterError

        raise ParameterError(f"-k {text} keeps no component. Use 1 or more.")
    return number


def check_source(data: str, name: str = "DATA") -> None:
    """Refuse what is neither a file, nor standard input, nor a bundled sample."""
    if data == "-" or Path(data).exists():
        return
    from gnomon.data import samples
    from gnomon.errors import ParameterError

    if data not in samples.names():
        known = ", ".join(samples.names())
        raise ParameterError(
            f"{name} '{data}' is neither a file nor a bundled sample ({known}). Check the name."
        )


def new_folder(
    out: Path | None, data: str, suffix: str, names: tuple[str, ...], *, force: bool
) -> "RunFolder":
    """Where results go: `out`, or ``cells_map`` for cells.csv.gz; none of `names` is there yet.

    The folder is locked until the command ends.
    """
    from gnomon.cli.run_folder import RESULTS, RunFolder
    from gnomon.errors import ExistingFileError
    from gnomon.files import refuse_lost_link

    stem = "stdin" if data == "-" else Path(data).name.split(".")[0] or Path(data).name
    out = Path(f"{stem}_{suffix}") if out is None else out
    refuse_lost_link(out)
    if out.exists() and not out.is_dir():
        raise ExistingFileError(f"{out} is a file; -o takes a folder. Choose another name.")
    for name in RESULTS:
        there = out / name
        if there.is_symlink() or there.is_dir():
            what = "link" if there.is_symlink() else "folder"
            raise ExistingFileError(
                f"{there} is a {what}, and results are files. Remove it, or use -o FOLDER."
            )
        if there.exists() and name in names and not force:
            raise ExistingFileError(f"{there} exists. Use --force to overwrite, or -o FOLDER.")
    _refuse_unwritable(out)
    return until_the_end(RunFolder(out, names))


def until_the_end(folder: "RunFolder") -> "RunFolder":
    """Lock a folder until the command ends, however it does."""
    context = click.get_current_context()
    assert context is not None
    return context.with_resource(folder)


def _refuse_unwritable(folder: Path) -> None:
    """Before any work, a folder that could not be made or written to in the end.

    Permissions do not tell: disks are full or read-only, quotas used up. A file without a name is
    written into it, or into the one that it would be made in.
    """
    import tempfile

    from gnomon.errors import WriteError

    there = folder.absolute()
    while not there.exists():
        there = there.parent
    why = "is no folder"
    if there.is_dir():
        try:
            with tempfile.TemporaryFile(dir=there, buffering=0) as probe:
                probe.write(bytes(4096))
                os.fsync(probe.fileno())
        except OSError as error:
            why = f"cannot be written to ({error.strerror or type(error).__name__})"
        else:
            return
    raise WriteError(f"'{there}' {why}, so '{folder}' cannot be written. Use another name with -o.")


def table_or_json(out: Path | None, as_json: bool) -> None:
    """Refuse a table and JSON that would both go to standard output."""
    if as_json and out is None:
        from gnomon.errors import ParameterError

        raise ParameterError(
            "The table and --json would both go to standard output. Write the table to a file by "
            "-o, or leave --json out."
        )


def new_file(
    out: Path | None,
    *,
    force: bool,
    also: tuple[str, ...] = (),
    endings: tuple[str, ...] | None = None,
    option: str = "-o",
) -> None:
    """Refuse, before any work, a file that could not be written in the end.

    It may end in what tables end in, or `also` in something else; or only in `endings`.
    """
    if out is None:
        return
    from gnomon.data.write import TABLES
    from gnomon.errors import ExistingFileError, ParameterError
    from gnomon.files import refuse_lost_link

    endings = (*TABLES, *also) if endings is None else endings
    if out.suffix.lower() not in endings:
        raise ParameterError(f"{option} must end in one of {', '.join(endings)}; got '{out}'.")
    refuse_lost_link(out)
    if out.is_dir():
        raise ParameterError(f"{out} is a folder; {option} takes a file.")
    if not out.parent.is_dir():
        raise ParameterError(f"There is no folder '{out.parent}'. Create it first.")
    if out.exists() and not force:
        raise ExistingFileError(f"{out} exists. Use --force to overwrite, or -o FILE.")
    _refuse_unwritable(out.parent)
