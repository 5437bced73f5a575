"""`gnomon align`: one map laid on another."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli import options
from gnomon.cli.asked import Asked, as_one

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gnomon.cli.pairs import Pairing
    from gnomon.cli.run_lines import RunLines
    from gnomon.engine import Block
    from gnomon.procrustes import Procrustes
    from gnomon.procrustes.similarity import Similarity


HELP = """Lay one map on another by the rows that they share.

\b
gnomon align new.csv --to old.csv --id name > aligned.csv
gnomon align b_map/map.parquet --to a_map/map.parquet -o aligned.parquet
gnomon align new.csv --to old.csv --id cell --id name   by "cell" and "name"
gnomon align new.csv --to old.csv --scaling yes --robust tukey
gnomon align new.npz --to old.npz --model new_to_old.gnomon -o aligned.parquet
gnomon align new/ --to old/ -o aligned.parquet          folders of files

NEW is rotated, mirrored if that helps, and moved onto OLD; rows that only NEW has move along. The
result has the columns of OLD, whichever table is wider.
Tables are CSV, TSV, Parquet, Feather, .npy or .npz; of a map.parquet by gnomon map, the map is
used. A folder of files is one table. Tables too large for memory are read in blocks; --id is then a
column of numbers that ascends.
"""
SHRUNK = 0.9  # correlation of the tables below which --scaling yes gets a note
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
@options.of_result(
    "--model",
    "model_file",
    metavar="FILE.gnomon",
    type=click.Path(path_type=Path),
    help="File for the fitted map: gnomon.load(FILE).transform(rows) moves further rows.",
)
@options.resources
@options.distributing
@options.writing
@as_one
def command(asked: Asked) -> None:
    """Read, join, move, write."""
    options.new_file(asked.out, force=asked.force)
    options.new_file(asked.model_file, force=asked.force, endings=(".gnomon",), option="--model")
    options.table_or_json(asked.out, asked.as_json)
    from gnomon.cli import results
    from gnomon.cli.pairs import open_pairing
    from gnomon.cli.workers import in_blocks, refuse_output, watched_engine
    from gnomon.procrustes import Procrustes
    from gnomon.procrustes.verdict import refuse_empty_verdict

    asked, words = asked.beside_workers(), asked.words
    if in_blocks(asked, asked.new, asked.old):
        refuse_output(asked.out)
    model = Procrustes(
        scaling=SCALINGS[asked.scaling],
        robust=False if asked.robust == "no" else asked.robust,
        reflection=asked.reflection,
        n_jobs=asked.threads,
    )
    pair = open_pairing(asked.new, asked.old, asked, words, row_names=True)
    with watched_engine(asked, words) as engine:
        with words.warnings() as warned:
            shared = pair.shared()
            model.fit(*shared, id=pair.id, engine=engine)
            pair.say(words, model.n_samples_)
            refuse_empty_verdict(model.n_samples_, min(model.similarity_.moments.cross.shape))
            words.say("Fit", fit_words(model) + _farthest(pair, model, shared))
            say_columns(words, pair, model, shared)
            say_shrunk(words, model)
            words.details("", model.certificate_.lines())
        columns = _move(pair, model, asked, engine)
    results.say_versions(words)
    files = [] if asked.out is None else [asked.out]
    if asked.model_file is not None:
        model.save(asked.model_file, force=asked.force)
        words.say("Model", f"{asked.model_file} (gnomon.load moves further rows)")
        files.append(asked.model_file)
    results.write_table_or_stdout(asked.out, columns, force=asked.force, words=words)
    if asked.as_json and asked.out is not None:
        found = pair.numbers(model.n_samples_, "new", "old") | {"shared": model.n_samples_}
        found |= fit_numbers(model) | pair.lists("new", "old") | {"warnings": warned}
        results.say_json("align", files, found)


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
    turned = ", mirrored" if model.reflected_ else ""
    return (
        f"disparity {model.disparity_:.3g}: {100 * (1 - model.disparity_):.1f} % of the shape "
        f"explained; rmsd {model.rmsd_:.4g}, scale {model.scale_:.4g}{turned}"
    )


def say_columns(
    words: "RunLines", pair: "Pairing", model: "Procrustes", shared: tuple[Any, Any]
) -> None:
    """Which columns the result has where the tables differ in number, and what they do not hold."""
    from gnomon.procrustes.align import share_outside

    if model.reflected_ is not None:
        return
    new, old = (len(table.roles.features) for table in (pair.left, pair.right))
    said = f"{new} of {pair.left.name}, {old} of {pair.right.name}: the result has {old}"
    if new > old and pair.joined is not None:
        outside = share_outside(model, model.similarity_.transform(shared[0]), old)
        said += f", which do not hold {100 * outside:.1f} % of the squared lengths"
    words.say("Columns", said)


def say_shrunk(words: "RunLines", model: "Procrustes") -> None:
    """Warn of rows that least squares draws to the mean, since the tables agree little."""
    correlation = (1 - model.disparity_) ** 0.5
    if model.scaling is True and correlation < SHRUNK:
        words.say(
            "Note",
            f"the best factor draws rows to the mean, to {100 * correlation:.0f} % of the spread "
            "of OLD, since the tables agree no better. To look up neighbours among rows of OLD, "
            "use --scaling no or norm-ratio",
        )


def _farthest(pair: "Pairing", model: "Procrustes", shared: tuple[Any, Any]) -> str:
    """Which of the shared rows is farthest from its partner, of tables in memory."""
    from gnomon.data.refusals import quoted

    if pair.joined is None:
        return ""
    residuals = model.residuals_ if hasattr(model, "residuals_") else model.residuals(*shared)
    far = int(residuals.argmax())
    name = pair.joined.ids_left[pair.joined.rows_left[far]]
    return f"; farthest {quoted(name)}, {residuals[far]:.4g}"


def _move(pair: "Pairing", model: "Procrustes", asked: Asked, engine: Any) -> dict[str, Any]:
    """All rows of NEW in the frame of OLD, with what they are called.

    Columns are those of OLD; a wider NEW has no others in its frame.
    """
    from gnomon.cli.results import compute_rows

    old = pair.right.roles.features
    names = old
    ids = [] if pair.id is None else [str(pair.left.id_name)]
    beside = pair.left.names_of_rows()
    if set(names) & {*beside, *ids}:
        names = tuple(f"axis{j + 1}" for j in range(len(old)))
    at = None if pair.id is None else pair.left.columns.index(pair.id)
    moved = _Moved(model.similarity_, at, len(old))
    return compute_rows(pair.left, moved, [*ids, *names], beside, asked, engine)


@dataclass(frozen=True)
class _Moved:
    """A block carried through the map, with the column `ids` unchanged and in front."""

    model: "Similarity"
    ids: int | None
    columns: int

    def __call__(self, block: "Block") -> "NDArray[Any]":
        import numpy as np

        if self.ids is None:
            return self.model.transform(block.X, n_jobs=1)[:, : self.columns]
        moved = self.model.transform(np.delete(block.X, self.ids, axis=1), n_jobs=1)
        return np.column_stack([block.X[:, self.ids], moved[:, : self.columns]])
