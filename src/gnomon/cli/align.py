"""`gnomon align`: one map laid on another."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli import options
from gnomon.cli.words import Words

if TYPE_CHECKING:
    from gnomon.cli.pairs import Pairing
    from gnomon.procrustes.align import Alignment


HELP = """One map laid on another by the rows they share.

NEW is rotated, mirrored if that helps, and moved onto OLD; rows that only NEW has move along.
Tables are CSV, TSV, Parquet, Feather, .npy or .npz; of tables by gnomon map, the map is taken.

\b
gnomon align new.csv --to old.csv --id name > aligned.csv
gnomon align b_map/map.parquet --to a_map/map.parquet --id cell -o aligned.parquet
gnomon align new.csv --to old.csv --id name --scaling norm-ratio --robust tukey
"""
SCALINGS: dict[str, bool | str] = {"no": False, "yes": True, "norm-ratio": "norm-ratio"}


@click.command("align", help=HELP)
@click.argument("new", metavar="NEW")
@click.option("--to", "old", metavar="OLD", required=True, help="The table that stays.")
@options.pairing
@click.option("--scaling", type=click.Choice(list(SCALINGS)), default="no", show_default=True,
              help="Stretch or shrink NEW: by the best factor, or to the same spread.")  # fmt: skip
@click.option("--robust", type=click.Choice(["no", "huber", "tukey"]), default="no",
              show_default=True, help="Let rows that moved count less.")  # fmt: skip
@click.option("--reflection", type=click.Choice(["allow", "forbid", "force"]), default="allow",
              show_default=True, help="Mirror NEW.")  # fmt: skip
@options.out_file
@click.option("--threads", type=int, help="Threads to use (default: all CPUs).")
@options.writing
def command(
    new: str,
    old: str,
    id_: str | None,
    columns: tuple[str, ...],
    na: tuple[str, ...],
    missing: str,
    scaling: str,
    robust: str,
    reflection: str,
    out: Path | None,
    threads: int | None,
    force: bool,
    quiet: bool,
) -> None:
    """Read, join, move, write."""
    options.new_file(out, force=force)
    from gnomon.cli.pairs import read_pairing
    from gnomon.cli.results import write_table_or_stdout
    from gnomon.procrustes.align import align

    words = Words(quiet=quiet)
    pair = read_pairing(new, old, id=id_, columns=columns, na=na, missing=missing, words=words)
    pair.say(words)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = align(
            pair.left.X,
            pair.right.X,
            pair.ids_left,
            pair.ids_right,
            scaling=SCALINGS[scaling],
            robust=False if robust == "no" else robust,
            reflection=reflection,
            n_jobs=threads,
        )
    words.say("Fit", fit_words(found))
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        words.say("Warning", text)
    write_table_or_stdout(out, moved_table(pair, found), force=force, words=words)


def fit_words(found: "Alignment") -> str:
    """How close the two came."""
    from gnomon.data.refusals import quoted

    far = int(found.residuals.argmax())
    turned = {True: ", mirrored", False: "", None: ", of different widths"}[found.reflected]
    return (
        f"rmsd {found.rmsd:.4g}, scale {found.scale:.4g}{turned}; farthest "
        f"{quoted(found.shared[far])}, {found.residuals[far]:.4g}"
    )


def moved_table(pair: "Pairing", found: "Alignment") -> dict[str, Any]:
    """All rows of NEW in the frame of OLD, with what they are called.

    Columns are called as in the table whose frame it is: OLD, or NEW where that is wider.
    """
    from gnomon.cli.results import names_of_rows

    columns = names_of_rows(pair.left)
    wide = found.aligned.shape[1]
    names = pair.right.columns if len(pair.right.columns) == wide else pair.left.columns
    if set(names) & set(columns):
        names = tuple(f"axis{j + 1}" for j in range(wide))
    return columns | dict(zip(names, found.aligned.T, strict=True))
