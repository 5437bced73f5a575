"""Options and arguments that several commands share, and what is checked before any work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click

__all__ = [
    "check_source",
    "components",
    "computing",
    "mapping",
    "model",
    "naming",
    "new_file",
    "new_folder",
    "out_file",
    "out_folder",
    "pairing",
    "parse_components",
    "preparing",
    "reading",
    "writing",
]

F = TypeVar("F", bound=Callable[..., Any])


def _together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several options as one decorator, shown in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


# Which columns name and colour the rows, and what stands for a gap: `label`, `id_`, `na`.
naming = _together(
    click.option("--label", metavar="COLUMN", help="Column to colour by."),
    click.option("--id", "id_", metavar="COLUMN", help="Column that names the rows."),
    click.option("--na", metavar="TEXT", multiple=True, help="What stands for a missing value."),
)
# And which are used: `keep`, `drop`.
reading = _together(
    naming,
    click.option("--keep", metavar="COLUMN", multiple=True, help="Use this column although it "
                 "would be left out. May be given again."),
    click.option("--drop", metavar="COLUMN", multiple=True, help="Leave this column out."),
)  # fmt: skip
# How a table is made ready: `missing`, `scale`.
preparing = _together(
    click.option("--missing", type=click.Choice(["error", "drop", "mean", "em"]), default="error",
                 show_default=True, help="Missing values: refuse them, drop their rows, fill in "
                 "means or what the other columns foretell."),
    click.option("--scale", type=click.Choice(["auto", "none", "standard"]), default="auto",
                 show_default=True, help="Divide columns by their standard deviations."),
)  # fmt: skip
# Which rows and columns of two tables belong together: `id_`, `columns`, `na`, `missing`.
pairing = _together(
    click.option("--id", "id_", metavar="COLUMN", help="Column of both that names the rows "
                 "(default: what names them in both, otherwise their order)."),
    click.option("--columns", metavar="NAME", multiple=True, help="Use only these columns of "
                 "numbers, such as 'pc*'. May be given again."),
    click.option("--na", metavar="TEXT", multiple=True, help="What stands for a missing value."),
    click.option("--missing", type=click.Choice(["error", "drop", "mean", "em"]), default="error",
                 show_default=True, help="Missing values: refuse them, drop their rows, or fill "
                 "them in."),
)  # fmt: skip
components = click.option(
    "-k", "--components", default="0.95", show_default=True,
    help="A number, a fraction of the variance, or a rule: mle, parallel, broken-stick, "
    "gavish-donoho, kaiser.",
)  # fmt: skip
# Of the map: `perplexity`, `dimensions`.
mapping = _together(
    click.option("--perplexity", type=float, help="Effective number of neighbours (default: 30, or "
                 "a third of the rows)."),
    click.option("--dimensions", type=click.IntRange(1, 3), default=2, show_default=True,
                 help="Of the map."),
)  # fmt: skip
# `seed`, `threads`.
computing = _together(
    click.option("--seed", default=0, show_default=True, help="For whatever is drawn at random."),
    click.option("--threads", type=int, help="Threads to use (default: all CPUs)."),
)
# `force`, `quiet`.
writing = _together(
    click.option("--force", is_flag=True, help="Overwrite results that exist."),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors."),
)
model = click.option(
    "-m", "--model", metavar="MODEL", type=click.Path(path_type=Path), required=True,
    help="Model file, or the folder it is in.",
)  # fmt: skip
out_file = click.option(
    "-o", "--out", metavar="FILE", type=click.Path(path_type=Path),
    help="File to write: .csv, .tsv, .parquet, .feather or .npy (default: CSV on standard output).",
)  # fmt: skip


def out_folder(usual: str) -> Callable[[F], F]:
    """``-o`` for a folder that is called `usual` by default."""
    return click.option("-o", "--out", metavar="FOLDER", type=click.Path(path_type=Path),
                        help=f"Folder for the results (default: {usual}).")  # fmt: skip


def parse_components(text: str) -> int | float | str:
    """``"10"`` is a number, ``"0.95"`` a fraction, anything else a rule."""
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


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


def new_folder(out: Path | None, data: str, suffix: str, names: tuple[str, ...], *, force: bool
               ) -> Path:  # fmt: skip
    """Where results go: `out`, or ``cells_map`` for cells.csv.gz; none of `names` is there yet."""
    from gnomon.errors import ExistingFileError

    stem = "stdin" if data == "-" else Path(data).name.split(".")[0] or Path(data).name
    out = Path(f"{stem}_{suffix}") if out is None else out
    if out.exists() and not out.is_dir():
        raise ExistingFileError(f"{out} is a file; -o takes a folder. Choose another name.")
    there = [name for name in names if (out / name).exists()]
    if there and not force:
        raise ExistingFileError(f"{out / there[0]} exists. Use --force to overwrite, or -o FOLDER.")
    return out


def new_file(out: Path | None, *, force: bool, also: tuple[str, ...] = ()) -> None:
    """Refuse, before any work, a file that could not be written in the end."""
    if out is None:
        return
    from gnomon.data.write import TABLES
    from gnomon.errors import ExistingFileError, ParameterError

    endings = (*TABLES, *also)
    if out.suffix.lower() not in endings:
        raise ParameterError(f"-o must end in one of {', '.join(endings)}; got '{out}'.")
    if out.is_dir():
        raise ParameterError(f"{out} is a folder; -o takes a file.")
    if not out.parent.is_dir():
        raise ParameterError(f"There is no folder '{out.parent}'. Create it first.")
    if out.exists() and not force:
        raise ExistingFileError(f"{out} exists. Use --force to overwrite, or -o FILE.")
