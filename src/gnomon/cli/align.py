"""`gnomon align`: one map laid on another."""

from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli import options
from gnomon.cli.asked import Asked, as_one
from gnomon.cli.run_lines import RunLines

if TYPE_CHECKING:
    from gnomon.cli.pairs import Pairing
    from gnomon.procrustes import Procrustes
    from gnomon.procrustes.align import Alignment


HELP = """Lay one map on another by the rows that they share.

\b
gnomon align new.csv --to old.csv --id name > aligned.csv
gnomon align b_map/map.parquet --to a_map/map.parquet -o aligned.parquet
gnomon align new.csv --to old.csv --id cell --id name   by "cell" and "name"
gnomon align new.csv --to old.csv --scaling yes --robust tukey
gnomon align new/ --to old/ -o aligned.parquet          folders of files

NEW is rotated, mirrored if that helps, and moved onto OLD; rows that only NEW has move along.
Tables are CSV, TSV, Parquet, Feather, .npy or .npz; of a map.parquet by gnomon map, the map is
used. A folder of files is one table. Tables too large for memory are read in blocks; --id is then a
column of numbers that ascends.
"""
SCALINGS: dict[str, bool | str] = {"no": False, "yes": True, "norm-ratio": "norm-ratio"}


@click.command("align", help=HELP)
@options.source("new")
@options.of_table("--to", "old", metavar="OLD", required=True, help="Table that stays in place.")
@options.pairing
@options.out_file
@options.of_method(
    "--scaling",
    type=click.Choice(list(SCALINGS)),
    default="no",
    show_default=True,
    help="Scale NEW by the best factor (yes), or to the spread of OLD (norm-ratio).",
)
@options.of_method(
    "--robust",
    type=click.Choice(["no", "huber", "tukey"]),
    default="no",
    show_default=True,
    help="Give less weight to rows that moved on their own.",
)
@options.of_method(
    "--reflection",
    type=click.Choice(["allow", "forbid", "force"]),
    default="allow",
    show_default=True,
    help="Allow, forbid or force a reflection of NEW.",
)
@options.resources
@options.distributing
@options.writing
@as_one
def command(asked: Asked) -> None:
    """Read, join, move, write."""
    options.new_file(asked.out, force=asked.force)
    options.table_or_json(asked.out, asked.as_json)
    from gnomon.cli import results
    from gnomon.cli.pairs import read_pairing
    from gnomon.cli.workers import in_blocks
    from gnomon.data.refusals import quoted
    from gnomon.procrustes.align import align

    asked, words = asked.beside_workers(), asked.words
    how: dict[str, Any] = {
        "scaling": SCALINGS[asked.scaling],
        "robust": False if asked.robust == "no" else asked.robust,
        "reflection": asked.reflection,
        "n_jobs": asked.threads,
    }
    if in_blocks(asked, asked.new, asked.old):
        found = _align_blocks(asked, words, **how)
        if asked.as_json and asked.out is not None:
            results.say_json("align", [asked.out], found)
        return
    pair = read_pairing(asked.new, asked.old, asked, words)
    pair.say(words)
    with words.warnings() as warned:
        fitted = align(
            pair.left.X,
            pair.right.X,
            pair.ids_left,
            pair.ids_right,
            **how,
        )
        far = int(fitted.residuals.argmax())
        farthest = f"; farthest {quoted(fitted.shared[far])}, {fitted.residuals[far]:.4g}"
        words.say("Fit", fit_words(fitted.model) + farthest)
        words.details("", fitted.lines())
    results.say_versions(words)
    table = moved_table(pair, fitted)
    results.write_table_or_stdout(asked.out, table, force=asked.force, words=words)
    if asked.as_json and asked.out is not None:
        results.say_json("align", [asked.out], numbers(pair, fitted) | {"warnings": warned})


def _align_blocks(asked: Asked, words: RunLines, **how: Any) -> dict[str, Any]:
    """Align tables that are read in blocks; return what was found, for JSON."""
    from gnomon.cli import pair_sources, results
    from gnomon.cli.workers import refuse_copies, refuse_output, watched_engine
    from gnomon.procrustes import Procrustes
    from gnomon.procrustes.verdict import refuse_empty_verdict

    refuse_output(asked.out)
    refuse_copies(asked, asked.new, asked.old)
    assert asked.out is not None
    pair = pair_sources.open_block_pair(asked.new, asked.old, asked, words)
    with watched_engine(asked, words) as engine, words.warnings() as warned:
        model = Procrustes(**how)
        model.fit(pair.left, pair.right, id=pair.by, engine=engine)
        pair.say(words, model.n_samples_)
        refuse_empty_verdict(model.n_samples_, min(model.similarity_.moments.cross.shape))
        words.say("Fit", fit_words(model))
        pair_sources.write_moved(pair, model, asked.out, force=asked.force, engine=engine)
    results.say_versions(words)
    words.say("Wrote", str(asked.out))
    shared = model.n_samples_
    return {
        **pair.numbers(shared, "new", "old"),
        "shared": shared,
        **fit_numbers(model),
        "warnings": warned,
    }


def numbers(pair: "Pairing", found: "Alignment") -> dict[str, Any]:
    """What was laid on what, and how close it came, for JSON."""
    (new, only_new), (old, only_old) = pair.alone()
    return {
        "new": new,
        "old": old,
        "id": pair.by,
        "shared": len(found.shared),
        "only_new": only_new,
        "only_old": only_old,
        **fit_numbers(found.model),
    }


def fit_numbers(model: "Procrustes") -> dict[str, Any]:
    """How close the two came, for JSON."""
    return {
        "disparity": model.disparity_,
        "rmsd": model.rmsd_,
        "scale": model.scale_,
        "reflected": model.reflected_,
        "certificate": model.certificate_.to_dict(),
    }


def fit_words(model: "Procrustes") -> str:
    """How close the two came, in words."""
    turned = {True: ", mirrored", False: "", None: ", of different widths"}[model.reflected_]
    return f"rmsd {model.rmsd_:.4g}, scale {model.scale_:.4g}{turned}"


def moved_table(pair: "Pairing", found: "Alignment") -> dict[str, Any]:
    """All rows of NEW in the frame of OLD, with what they are called.

    Columns are called as in the table whose frame it is: OLD, or NEW where that is wider.
    """
    columns = pair.left.names_of_rows()
    wide = found.aligned.shape[1]
    names = pair.right.columns if len(pair.right.columns) == wide else pair.left.columns
    if set(names) & set(columns):
        names = tuple(f"axis{j + 1}" for j in range(wide))
    return columns | dict(zip(names, found.aligned.T, strict=True))
