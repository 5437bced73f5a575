"""The page of `gnomon compare`, and what is compared where a run or a model is named."""

import shlex
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnomon.cli.run_lines import RunLines

if TYPE_CHECKING:
    from gnomon.cli.asked import Asked
    from gnomon.cli.pairs import Pairing
    from gnomon.procrustes.compare import Comparison

__all__ = [
    "Subject",
    "build_compared_page",
    "compared_tables",
    "page_path",
    "write_compared_page",
]

TABLES = ("map.parquet", "scores.parquet")
MODEL = ".gnomon"
SAME_VARIANCES = 1e-6  # relative; the same table has the same bits, up to versions of libraries


@dataclass(frozen=True)
class Subject:
    """What is compared: as it was typed, the table that is read, and the folder of its run."""

    typed: str
    table: str
    run: Path | None


def _shown_names(subjects: tuple[Subject, Subject], names: tuple[str, str]) -> tuple[str, str]:
    """Names of both on the page: runs and models as they were typed, files by their own name."""
    one, other = (
        Path(subject.typed).resolve().name if subject.typed != subject.table else name
        for subject, name in zip(subjects, names, strict=True)
    )
    return (subjects[0].typed, subjects[1].typed) if one == other else (one, other)


@contextmanager
def compared_tables(a: str, b: str) -> Iterator[tuple[Subject, Subject]]:
    """The table that each argument stands for: a file, that of a run, or the map of a model."""
    with tempfile.TemporaryDirectory(prefix="gnomon-") as place:
        yield _subject(a, Path(place)), _subject(b, Path(place))


def _subject(typed: str, place: Path) -> Subject:
    path = Path(typed)
    is_model = path.suffix.lower() == MODEL and path.is_file()
    folder = path.parent if is_model else path
    if typed == "-" or not (is_model or (path.is_dir() and (path / "run.json").is_file())):
        return Subject(typed, typed, None)
    for name in TABLES:
        if (folder / name).is_file() and (folder / "run.json").is_file():
            return Subject(typed, str(folder / name), folder)
    return Subject(typed, _map_of_model(path, place) if is_model else typed, None)


def _map_of_model(path: Path, place: Path) -> str:
    """The map that a model holds, as a file in `place`."""
    import numpy as np

    from gnomon.data.write import write_table
    from gnomon.errors import DataError
    from gnomon.models import load

    model: Any = load(path)
    tsne = model.get("tsne") if isinstance(model, dict) else getattr(model, "tsne", model)
    Y = getattr(tsne, "embedding_", None)
    if Y is None:
        raise DataError(
            f"{path} holds no map, and a PCA keeps no rows. Give the folder of the run, or tables."
        )
    columns = {f"tsne{j + 1}": axis for j, axis in enumerate(np.asarray(Y, np.float64).T)}
    folder = place / str(len(list(place.iterdir())))
    folder.mkdir()
    file = folder / f"{path.stem}.parquet"
    write_table(file, list(columns), list(columns.values()))
    return str(file)


def page_path(out: Path | None, subjects: tuple[Subject, Subject], *, page: bool) -> Path | None:
    """Where the page goes: -o where that is a page, beside -o, or under the names of both."""
    if out is not None and out.suffix.lower() in (".html", ".htm"):
        return out
    if not page:
        return None
    if out is not None:
        return out.with_suffix(".html")
    stems = [
        "stdin" if each.typed == "-" else Path(each.typed).resolve().name.split(".")[0]
        for each in subjects
    ]
    return Path(f"{stems[0]}_and_{stems[1]}.html")


def build_compared_page(
    subjects: tuple[Subject, Subject],
    asked: "Asked",
    found: "Comparison",
    test: Any,
    pair: "Pairing",
    verdict: str | None,
    words: RunLines,
) -> str:
    """The HTML text of the page."""
    import numpy as np

    from gnomon.procrustes.compare import sampled_rows
    from gnomon.report.compared.pair_content import gather_comparison
    from gnomon.report.compared.pair_page import build_comparison
    from gnomon.report.run_page import labels_of

    names = asked.names or _shown_names(subjects, (pair.left.name, pair.right.name))
    rows = _compared_rows(pair, found)
    ids: Any = None
    if pair.joined is not None and pair.by is not None:
        ids = (pair.by, pair.joined.ids_left[rows])
    elif found.overlap_rows < found.n:
        ids = ("row", sampled_rows(found.n).astype(str).astype(object))
    labels = []
    if rows is not None:
        labels = labels_of(pair.left.with_rows(np.empty((len(rows), 0)), rows))
    content = gather_comparison(
        found,
        names=names,
        title=asked.title,
        ids=ids,
        labels=labels,
        reruns=_reruns(subjects[0], asked, pair, rows, words),
        trust=_trust(subjects),
        same_data=_have_same_data(subjects),
        verdict=verdict,
        notes=_alone(names, (pair.left.n_rows - found.n, pair.right.n_rows - found.n)),
        test=test,
        n_permutations=asked.permutations,
        random_state=asked.seed,
        n_jobs=asked.threads,
        command=f"gnomon {shlex.join(sys.argv[1:])}",
        python=_python(subjects, asked, names),
    )
    return build_comparison(content)


def _python(
    subjects: tuple[Subject, Subject], asked: "Asked", names: tuple[str, str]
) -> str | None:
    """Python code of the same comparison; None for options that only the command has."""
    options = asked.columns, asked.na, asked.decimal, len(asked.ids) > 1, asked.missing != "error"
    if any(options) or any(subject.typed == "-" for subject in subjects):
        return None
    given = [repr(subject.typed) for subject in subjects]
    if asked.ids:
        given.append(f"id={asked.ids[0]!r}")
    if asked.metric == "cosine":
        given.append("metric='cosine'")
    if asked.neighbors != 10:
        given.append(f"n_neighbors={asked.neighbors}")
    return (
        f"import gnomon\n\nfound = gnomon.compare({', '.join(given)})\nprint(found)\n"
        f'found.report(names={names!r}).save("comparison.html")'
    )


def _compared_rows(pair: "Pairing", found: "Comparison") -> Any:
    """Which rows of the left table are compared; None where they are joined by ids in blocks."""
    from gnomon.procrustes.compare import sampled_rows

    if pair.joined is not None:
        return pair.joined.rows_left
    return sampled_rows(found.n) if pair.by is None else None


def _alone(names: tuple[str, str], alone: tuple[int, int]) -> tuple[str, ...]:
    """A sentence about the rows that only one of the tables has, if there are any."""
    from gnomon.charts.words import count, listing
    from gnomon.report.section import shown

    parts = [
        f"{count(rows, 'row')} only in {shown(name)}"
        for rows, name in zip(alone, names, strict=True)
        if rows
    ]
    return (f"Not compared: {listing(parts)}.",) if parts else ()


def write_compared_page(path: Path, html: str, *, force: bool, show: bool, words: RunLines) -> None:
    """Write the page, say how large it is, and open it if asked to."""
    from gnomon.budget import readable_bytes
    from gnomon.files import writing

    with writing(path, force=force) as part:
        part.write_text(html, encoding="utf-8", newline="\n")
    words.say("Page", f"{path} ({readable_bytes(len(html.encode()))}, opens offline)")
    if show:
        webbrowser.open(path.absolute().as_uri())


def _trust(subjects: tuple[Subject, Subject]) -> tuple[float, float] | None:
    """Share of neighbours in the data that each map of a run keeps."""
    import pyarrow.parquet as pq

    shares = []
    for subject in subjects:
        if subject.run is None:
            return None
        with Path(subject.table).open("rb") as octets, pq.ParquetFile(octets) as file:
            if "trust" not in file.schema_arrow.names:
                return None
            trust = file.read(columns=["trust"])["trust"].to_numpy()
        shares.append(float(trust.mean()))
    return shares[0], shares[1]


def _have_same_data(subjects: tuple[Subject, Subject]) -> bool:
    """Whether both runs are of the same numbers: as many rows, the same features and variances."""
    import numpy as np

    from gnomon.cli.pages import read_record

    facts: list[tuple[Any, ...]] = []
    variances: list[Any] = []
    for subject in subjects:
        if subject.run is None:
            return False
        run = read_record(subject.run)
        table, settings, pca = (run.of(name, {}) for name in ("table", "settings", "pca"))
        facts.append((table.get("rows"), table.get("features"), settings.get("metric")))
        variances.append(pca.get("explained_variance_ratio"))
    one, other = variances
    if facts[0] != facts[1] or None in variances or len(one) != len(other):
        return False
    return bool(np.allclose(one, other, rtol=SAME_VARIANCES, atol=0))


def _reruns(
    first: Subject, asked: "Asked", pair: "Pairing", rows: Any, words: RunLines
) -> list[Any]:
    """The map of the first run, made again with other seeds; its rows `rows`."""
    if not asked.reruns:
        return []
    import numpy as np
    from sklearn.base import clone

    from gnomon.cli.stored import load_run
    from gnomon.errors import ParameterError

    tsne = None if first.run is None else load_run(first.run).tsne
    search = None if tsne is None else tsne._search
    if rows is None or tsne is None or search is None:
        raise ParameterError(
            f"--reruns needs a folder of gnomon map (with its model) as A; got '{first.typed}'. "
            "Leave --reruns out, or give such a folder."
        )
    if len(tsne.embedding_) != pair.left.n_rows:
        raise ParameterError(
            f"--reruns needs a map that was made of all rows; that of '{first.typed}' was made of "
            f"{len(tsne.embedding_):,} of {pair.left.n_rows:,}. Leave --reruns out."
        )
    maps, table = [], search.table()
    for run in range(asked.reruns):
        model = clone(tsne).set_params(
            init="random", random_state=asked.seed + run + 1, align_to=None, pca=None
        )
        maps.append(np.asarray(model.fit(table).embedding_)[rows])
        words.say("Rerun", f"{run + 1} of {asked.reruns}")
    return maps
