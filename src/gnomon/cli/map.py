"""`gnomon map`: the whole job on one table."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli.words import Words

if TYPE_CHECKING:
    from gnomon.pipeline import Result


HELP = """PCA and a t-SNE map of a table, or of a bundled sample.

DATA is a CSV or TSV file (also .gz), Parquet, Feather, .npy or .npz; - for standard input; or the
name of a sample: digits, iris, wine, breast-cancer, house-prices and others.

\b
gnomon map cells.csv                      → cells_map/
gnomon map digits                         a first try
gnomon map survey.csv --label region --missing drop
gnomon map wine -k parallel -o results
"""
OUTPUTS = ("map.parquet", "model.gnomon", "run.json", "map.svg", "scree.svg")
READABLE = 0.8  # rank correlation from which distances between far points mean something
MOST_COMPONENTS = 10  # of the scores written beside the map


@click.command("map", help=HELP)
@click.argument("data", metavar="DATA")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder for the results "
              "(default: the data's name and _map).")  # fmt: skip
@click.option("--label", metavar="COLUMN", help="Column to colour by.")
@click.option("--id", "id_", metavar="COLUMN", help="Column that names the rows.")
@click.option("--keep", metavar="COLUMN", multiple=True, help="Use this column although it would "
              "be left out. May be given again.")  # fmt: skip
@click.option("--drop", metavar="COLUMN", multiple=True, help="Leave this column out.")
@click.option("--na", metavar="TEXT", multiple=True, help="What stands for a missing value.")
@click.option("--missing", type=click.Choice(["error", "drop", "mean", "em"]), default="error",
              show_default=True, help="Missing values: refuse them, drop their rows, fill in means "
              "or what the other columns foretell.")  # fmt: skip
@click.option("--scale", type=click.Choice(["auto", "none", "standard"]), default="auto",
              show_default=True, help="Divide columns by their standard deviations.")  # fmt: skip
@click.option("-k", "--components", default="0.95", show_default=True,
              help="A number, a fraction of the variance, or a rule: mle, parallel, broken-stick, "
              "gavish-donoho, kaiser.")  # fmt: skip
@click.option("--perplexity", type=float, help="Effective number of neighbours (default: 30, or a "
              "third of the rows).")  # fmt: skip
@click.option("--dimensions", type=click.IntRange(1, 3), default=2, show_default=True,
              help="Of the map.")  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="For whatever is drawn at random.")
@click.option("--threads", type=int, help="Threads to use (default: all CPUs).")
@click.option("--force", is_flag=True, help="Overwrite results that exist.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
def command(
    data: str,
    out: Path | None,
    label: str | None,
    id_: str | None,
    keep: tuple[str, ...],
    drop: tuple[str, ...],
    na: tuple[str, ...],
    missing: str,
    scale: str,
    components: str,
    perplexity: float | None,
    dimensions: int,
    seed: int,
    threads: int | None,
    force: bool,
    quiet: bool,
) -> None:
    """Run the pipeline and write what it found."""
    from gnomon import pipeline
    from gnomon.data import samples

    words = Words(quiet=quiet)
    if data != "-" and data not in samples.names() and not Path(data).exists():
        known = ", ".join(samples.names())
        raise click.BadParameter(
            f"{data!r} is neither a file nor a bundled sample ({known}).", param_hint="DATA"
        )
    out = Path(f"{_stem(data)}_map") if out is None else out
    refuse_to_overwrite(out, force)
    settings = {
        "data": data, "label": label, "id": id_, "keep": list(keep), "drop": list(drop),
        "na": list(na), "missing": missing, "scale": scale, "components": components,
        "perplexity": perplexity, "dimensions": dimensions, "seed": seed,
    }  # fmt: skip
    with words.bar() as progress:
        result = pipeline.run(
            data,
            n_components=parse_components(components),
            dimensions=dimensions,
            perplexity=perplexity,
            missing=missing,
            scale=scale,
            seed=seed,
            n_jobs=threads,
            told=lambda stage, seconds, what: _say(words, stage, seconds, what),
            progress=progress,
            label=label,
            id=id_,
            keep=list(keep) or None,
            drop=list(drop) or None,
            na=list(na) or None,
        )
    for text in result.warnings:
        words.say("Warning", text)
    out.mkdir(parents=True, exist_ok=True)
    files = write_results(out, result, settings)
    words.say("Wrote", ", ".join(str(out / name) for name in files))
    if result.interrupted:
        sys.exit(130)


def _stem(data: str) -> str:
    """``cells`` for cells.csv.gz and ``stdin`` for standard input."""
    name = Path(data).name
    return "stdin" if data == "-" else name.split(".")[0] or name


def _say(words: Words, stage: str, seconds: float, what: Any) -> None:
    """One line or more for a stage that has ended."""
    if stage == "read":
        words.say("Read", what.title(), seconds)
        for name, text in what.words(command=True):
            words.say({"using": "Using", "left out": "Left out", "note": "Note"}[name], text)
    elif stage == "prepare":
        for name, text in what.preparation.lines():
            words.say(name.capitalize(), text)
    elif stage == "pca":
        words.say("PCA", _pca_words(what), seconds)
        words.say("Exact", what.certificate_.title())
    elif stage == "tsne":
        c = what.certificate_
        cut = "" if c.n_iter == what.max_iter else f" ({c.stop_reason})"
        text = (
            f"perplexity {what.perplexity:g}, {c.n_iter} iterations{cut}, KL {c.kl_divergence:.3g}"
        )
        words.say("t-SNE", text, seconds)
    elif stage == "trust":
        kept, scores = what
        far = scores.distances.value
        text = f"neighbours kept {kept.mean():.2f} · far distances {far:.2f}"
        words.say("Trust", text + (", do not read them" if far < READABLE else ""), seconds)


def refuse_to_overwrite(out: Path, force: bool) -> None:
    """Results that exist are overwritten only with --force."""
    if out.exists() and not out.is_dir():
        raise click.UsageError(f"{out} is a file; -o takes a folder.")
    there = [name for name in OUTPUTS if (out / name).exists()]
    if there and not force:
        raise click.UsageError(f"{out / there[0]} exists. Use --force to overwrite, or -o FOLDER.")


def parse_components(text: str) -> int | float | str:
    """``"10"`` is a number, ``"0.95"`` a fraction, anything else a rule."""
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


def write_results(out: Path, result: "Result", settings: dict[str, Any]) -> tuple[str, ...]:
    """Map, model, charts and the record of the run; returns the files written."""
    from gnomon import charts
    from gnomon.data.write import write_json, write_table
    from gnomon.models import save

    assert result.tsne is not None
    table, preparation = result.prepared.table, result.prepared.preparation
    columns: dict[str, Any] = {}
    for name, values in ((table.id_name, table.ids), (table.label_name, table.labels)):
        if values is not None:
            columns[str(name)] = values
    for j, axis in enumerate(result.tsne.embedding_.T):
        columns[f"tsne{j + 1}"] = axis
    for j, axis in enumerate(result.components.T[:MOST_COMPONENTS]):
        columns[f"pc{j + 1}"] = axis
    if result.trust is not None:
        columns["trust"] = result.trust
    write_table(out / "map.parquet", list(columns), list(columns.values()), force=True)
    stored = {"plain": preparation.to_dict(), "arrays": preparation.arrays()}
    parts = {"preparation": stored, "pca": result.pca, "tsne": result.tsne}
    save(parts, out / "model.gnomon", force=True)
    write_json(out / "run.json", _record(result, settings), force=True)
    charts.scatter(result.tsne, table.labels, title=f"{table.name} by t-SNE").save(out / "map.svg")
    charts.scree(result.pca).save(out / "scree.svg")
    return OUTPUTS


def _record(result: "Result", settings: dict[str, Any]) -> dict[str, Any]:
    """Settings, versions, timings, warnings and certificates."""
    import importlib.metadata
    import platform

    pca, tsne = result.pca, result.tsne
    assert tsne is not None
    versions = {name: importlib.metadata.version(name) for name in ("gnomon", "numpy", "scipy")}
    return {
        "settings": settings,
        "table": result.table.to_dict(),
        "preparation": result.prepared.preparation.to_dict(),
        "pca": {
            "n_components": pca.n_components_,
            "explained_variance_ratio": pca.explained_variance_ratio_.tolist(),
            "plan": pca.plan_.to_dict(),
            "certificate": pca.certificate_.to_dict(),
        },
        "tsne": {"certificate": tsne.certificate_.to_dict(), "seconds": tsne.timings_},
        "trust": None if result.quality is None else result.quality.to_dict(),
        "seconds": result.seconds,
        "warnings": list(result.warnings),
        "versions": {"python": platform.python_version(), **versions},
    }


def _pca_words(pca: Any) -> str:
    share = 100 * float(pca.explained_variance_ratio_.sum())
    known = min(pca.n_samples_, pca.n_features_in_)
    return f"{pca.n_components_} of {known} components hold {share:.1f} % of the variance"
