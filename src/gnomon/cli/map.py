"""`gnomon map`: the whole job on one table, as far as it is built."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli.words import Words

if TYPE_CHECKING:
    from gnomon.pipeline import Result


HELP = """PCA of a bundled sample: digits, iris, wine, breast-cancer, house-prices and others.

\b
gnomon map digits
gnomon map wine -k parallel -o results
"""


@click.command("map", help=HELP)
@click.argument("data", metavar="SAMPLE")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder for the results "
              "(default: SAMPLE_map).")  # fmt: skip
@click.option("-k", "--components", default="0.95", show_default=True,
              help="A number, a fraction of the variance, or a rule: mle, parallel, broken-stick, "
              "gavish-donoho, kaiser.")  # fmt: skip
@click.option("--scale", type=click.Choice(["auto", "none", "standard"]), default="auto",
              show_default=True, help="Divide columns by their standard deviations.")  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="For whatever is drawn at random.")
@click.option("--threads", type=int, help="Threads to use (default: all CPUs).")
@click.option("--force", is_flag=True, help="Overwrite results that exist.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
def command(
    data: str,
    out: Path | None,
    components: str,
    scale: str,
    seed: int,
    threads: int | None,
    force: bool,
    quiet: bool,
) -> None:
    """Run the pipeline and write what it found."""
    from gnomon import pipeline
    from gnomon.data import samples

    words = Words(quiet=quiet)
    out = Path(f"{data}_map") if out is None else out
    if data not in samples.names():
        known = ", ".join(samples.names())
        raise click.BadParameter(
            f"{data!r} is not a bundled sample ({known}).", param_hint="SAMPLE"
        )
    table = samples.load(data)
    refuse_to_overwrite(out, force)
    words.say("Read", f"{data}: {table.X.shape[0]:,} rows × {table.X.shape[1]} columns")

    def told(stage: str, seconds: float, what: Any) -> None:
        if stage == "scale":
            words.say("Scale", f"{'standard' if what.standardize else 'none'}: {what.why}")
        if stage == "pca":
            words.say("PCA", _pca_words(what), seconds)

    result = pipeline.run(
        table,
        n_components=parse_components(components),
        standardize={"auto": None, "none": False, "standard": True}[scale],
        seed=seed,
        n_jobs=threads,
        told=told,
    )
    words.say("Exact", result.pca.certificate_.title())
    out.mkdir(parents=True, exist_ok=True)
    files = write_results(out, result, {"sample": data, "components": components, "scale": scale,
                                        "seed": seed})  # fmt: skip
    words.say("Wrote", ", ".join(str(out / name) for name in files))


OUTPUTS = ("scores.parquet", "scree.svg", "run.json")


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
    """Scores, the scree chart and the record of the run; returns the files written."""
    import importlib.metadata
    import platform

    from gnomon import charts
    from gnomon.data.write import write_json, write_table

    pca, table = result.pca, result.table
    names = [f"pc{i + 1}" for i in range(pca.n_components_)]
    columns = list(result.scores.T)
    if table.labels is not None:
        names.insert(0, table.label_name or "label")
        columns.insert(0, table.labels)
    write_table(out / "scores.parquet", names, columns, force=True)
    charts.scree(pca).save(out / "scree.svg")
    versions = {name: importlib.metadata.version(name) for name in ("gnomon", "numpy", "scipy")}
    record = {
        "settings": settings,
        "rows": table.X.shape[0],
        "columns": list(table.columns),
        "pca": {
            "n_components": pca.n_components_,
            "explained_variance_ratio": pca.explained_variance_ratio_.tolist(),
            "plan": pca.plan_.to_dict(),
            "certificate": pca.certificate_.to_dict(),
        },
        "seconds": result.seconds,
        "versions": {"python": platform.python_version(), **versions},
    }
    write_json(out / "run.json", record, force=True)
    return OUTPUTS


def _pca_words(pca: Any) -> str:
    share = 100 * float(pca.explained_variance_ratio_.sum())
    known = min(pca.n_samples_, pca.n_features_in_)
    return f"{pca.n_components_} of {known} components hold {share:.1f} % of the variance"
