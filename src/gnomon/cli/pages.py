"""Pages of runs: what a folder of results still knows, and how its page is written."""

import shlex
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnomon.cli.asked import READING
from gnomon.cli.results import warnings_of
from gnomon.cli.run_lines import RunLines

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gnomon.cli.asked import Asked
    from gnomon.cli.stored import StoredRun
    from gnomon.pipeline.result import Result
    from gnomon.pipeline.stages import Stages
    from gnomon.report import Report

__all__ = [
    "FILE",
    "RunRecord",
    "StoredRows",
    "as_typed",
    "build_page",
    "read_record",
    "read_stored",
    "refuse_page",
    "say_page",
    "settings_of",
    "write_page",
]

FILE = "report.html"
RECORD = "run.json"
TABLES = ("map.parquet", "scores.parquet")
FILES_STAGES = ("write", "page")
MANY = ("features", "keep", "drop", "na")  # options that may be given again
# Defaults of the settings.
USUAL = {
    "missing": "error",
    "scale": "auto",
    "components": "0.95",
    "perplexity": None,
    "metric": "euclidean",
    "dimensions": 2,
    "sample": None,
    "seed": 0,
    "stability": None,
    "vary": "rows",
    "pixels": None,
    "image_root": None,
}
# Settings that `gnomon.run` has under the same names.
CALLED = ("missing", "scale", "perplexity", "metric", "dimensions", "sample", "seed")


@dataclass(frozen=True)
class RunRecord:
    """What run.json says; an empty one where there is none."""

    folder: Path
    content: dict[str, Any]

    def of(self, name: str, usual: Any) -> Any:
        """A part of the record, or `usual` where it is of another kind."""
        value = self.content.get(name)
        return value if isinstance(value, type(usual)) else usual

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the run."""
        return dict(self.of("settings", {}))

    @property
    def name(self) -> str:
        """What the data were called."""
        return str(self.of("table", {}).get("name", "data"))

    def command(self, stability: int | None, vary: str) -> str | None:
        """What makes the same page, but for where the results go."""
        kind = "map" if "tsne" in self.content else "reduce"
        settings = self.settings
        return (
            as_typed(kind, settings | {"stability": stability, "vary": vary}) if settings else None
        )

    def call(self) -> dict[str, Any] | None:
        """Arguments of `gnomon.run` for the same result."""
        from gnomon.cli.options import parse_components

        if not (settings := self.settings):
            return None
        call: dict[str, Any] = {} if settings.get("data") == "-" else {"source": settings["data"]}
        if settings.get("components", "0.95") != "0.95":
            call["n_components"] = parse_components(settings["components"])
        if "tsne" not in self.content:
            call["dimensions"] = None
        for name in (*READING, *CALLED):
            if (value := settings.get(name)) not in (None, [], USUAL.get(name)):
                call[name] = value
        return call | ({"replay": True} if settings.get("replay") else {})

    @property
    def notes(self) -> tuple[str, ...]:
        """What the page says of a map that was made of a part of the rows."""
        stored = self.of("sampling", {})
        words = [stored.get("words"), stored.get("placed_words")] if stored.get("placed") else []
        return tuple(str(said) for said in words if said)

    def seconds(self) -> dict[str, float]:
        """Times of the stages before the files, as the page of the run had them."""
        known = self.of("seconds", {}).items()
        return {
            name: float(took)
            for name, took in known
            if name not in FILES_STAGES and isinstance(took, (int, float))
        }

    def warnings(self) -> tuple[str, ...]:
        """Warnings of the run."""
        return tuple(map(str, self.of("warnings", [])))

    def reading(self) -> dict[str, Any]:
        """How the data were read."""
        return {name: self.settings.get(name) or None for name in READING}

    def roles(self) -> tuple[tuple[str, str], ...]:
        """What columns were used for, in words; none where the record says less, as in 0.1."""
        from gnomon.data.table import ColumnRoles

        try:
            return tuple(ColumnRoles.from_dict(self.of("table", {})).lines())
        except (KeyError, TypeError):
            return ()

    def pictures(self) -> dict[str, Any]:
        """How pictures are to be found, as `gather_run` takes it."""
        root = self.settings.get("image_root")
        return {
            "pixels": self.settings.get("pixels"),
            "image_root": Path(root) if isinstance(root, str) else None,
        }

    def names(self) -> dict[str, Any]:
        """The columns that named and coloured the rows, and how cells were read."""
        table, reading = self.of("table", {}), self.reading()
        found = {name: reading[name] for name in ("na", "decimal", "layer", "use_rep", "normalize")}
        return found | {name: table.get(name) for name in ("label", "id")}

    def data(self) -> str | None:
        """Where the data are: where they were, or beside the folder; None if they are gone."""
        from gnomon.data import samples

        named = self.settings.get("data")
        if not isinstance(named, str) or named == "-":
            return None
        for place in (Path(named), self.folder.absolute().parent / named):
            if place.is_file() or place.is_dir():
                return str(place)
        return named if named in samples.names() else None


def read_record(folder: Path) -> RunRecord:
    """The record of the run in `folder`."""
    import json

    from gnomon.errors import DataError

    path = folder / RECORD
    if not path.exists():
        return RunRecord(folder, {})
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}). Make the results again.") from None
    if not isinstance(stored, dict):
        raise DataError(f"{path} is no record of a run. Make the results again.")
    return RunRecord(folder, stored)


@dataclass(frozen=True, eq=False)
class StoredRows:
    """What a folder's table says of each row; None where it says nothing."""

    scores: "NDArray[np.float64]"
    positions: "NDArray[np.float64] | None"
    trust: "NDArray[np.float64] | None"
    ids: "tuple[str, NDArray[np.object_]] | None"
    labels: "NDArray[np.object_] | None"
    label_name: str
    rows: "NDArray[np.int64] | None"  # their numbers in the file, where some were dropped

    def refuse_others(self, scores: Any, name: str, tolerance: float) -> None:
        """Refuse a table with other rows than these."""
        import numpy as np

        from gnomon.errors import DataError

        known = self.scores
        if len(scores) != len(known):
            raise DataError(f"{name} has {len(scores):,} rows for this run's {len(known):,}.")
        away = np.abs(scores[:, : known.shape[1]] - known).max(axis=1)
        if away.max() > tolerance * np.abs(known).max():
            row = int(away.argmax())
            raise DataError(f"{name} holds other numbers than this run's, first seen in row {row}.")


def read_stored(folder: Path, run: "StoredRun") -> StoredRows:
    """The rows of the run in `folder`, from the table beside its model."""
    import numpy as np
    import pyarrow as pa

    from gnomon.data.file_content import open_content
    from gnomon.data.formats.arrow import read_parquet
    from gnomon.errors import DataError

    path = next((folder / name for name in TABLES if (folder / name).exists()), None)
    if path is None:
        raise DataError(f"There is neither {' nor '.join(TABLES)} in '{folder}'.")
    other = DataError(f"{path} is not of the same run as {run.path}. Make the results again.")
    columns = read_parquet(open_content(path)).columns
    stored = read_record(folder).of("table", {})
    rows = len(next(iter(columns.values())))

    def numbers(name: str) -> Any:
        try:
            return columns[name].cast(pa.float64()).to_numpy()
        except pa.ArrowException:
            raise other from None

    def texts(part: str) -> Any:
        name = stored.get(part)
        if f"{name} (file)" in columns:  # a result has the name itself
            name = f"{name} (file)"
        if not isinstance(name, str) or name not in columns:
            return None
        values = np.empty(rows, dtype=object)
        values[:] = [None if v is None else str(v) for v in columns[name].to_pylist()]
        return values

    def together(name: str, most: int) -> Any:
        known = [f"{name}{j + 1}" for j in range(most) if f"{name}{j + 1}" in columns]
        return np.column_stack([numbers(one) for one in known]) if known else None

    scores = together("pc", run.pca.n_components_)
    positions = None if run.tsne is None else together("tsne", int(run.tsne.n_components))
    whole = scores is not None and (run.tsne is None or positions is not None)
    if not whole or rows != run.pca.n_samples_ or not _are_scores(scores, run.pca):
        raise other
    ids = texts("id")
    return StoredRows(
        scores=scores,
        positions=positions,
        trust=numbers("trust") if "trust" in columns else None,
        ids=None if ids is None else (str(stored["id"]), ids),
        labels=texts("label"),
        label_name=str(stored.get("label")),
        rows=_row_numbers(columns, stored),
    )


def _row_numbers(columns: Any, stored: dict[str, Any]) -> "NDArray[np.int64] | None":
    """The column of row numbers, which runs write that dropped rows of a table."""
    import numpy as np

    from gnomon.data.table import ROW

    users = ROW in (stored.get("id"), stored.get("label"), stored.get("text"))
    if ROW not in columns or (users and f"{ROW} (file)" not in columns):
        return None
    return np.asarray(columns[ROW].to_numpy(), np.int64)


def _are_scores(scores: "NDArray[np.float64]", pca: Any) -> bool:
    """Whether these are the first components of the model: as many, and spread as they are."""
    import numpy as np

    from gnomon.pipeline.map_budget import MOST_COMPONENTS

    if scores.shape[1] < min(pca.n_components_, MOST_COMPONENTS):
        return False
    spreads = np.sqrt(pca.explained_variance_[: scores.shape[1]])
    largest = spreads.max(initial=0.0)
    if not np.isfinite(largest):  # beyond the largest float
        return bool(np.isfinite(scores).all())
    with np.errstate(over="ignore", invalid="ignore"):
        return np.allclose(scores.std(axis=0, ddof=1), spreads, 1e-3, 1e-4 * largest)


def as_typed(command: str, settings: dict[str, Any]) -> str:
    """The command that makes the same results, without what is usual."""
    parts = ["gnomon", command, str(settings.get("data", "-"))]
    for name in (name for name in READING if name not in MANY):
        if settings.get(name) is not None:
            parts += [f"--{name.replace('_', '-')}", str(settings[name])]
    for name in MANY:
        values = settings.get(name)
        for value in values if isinstance(values, list) else ():
            parts += [f"--{name}", str(value)]
    for name, usual in USUAL.items():
        value = settings.get(name, usual)
        if value != usual:
            option = "-k" if name == "components" else f"--{name.replace('_', '-')}"
            parts += [option, str(value)]
    if settings.get("replay"):
        parts.append("--replay")
    return shlex.join(parts)


def settings_of(asked: "Asked", names: Sequence[str]) -> dict[str, Any]:
    """Settings for the record of a run; of pictures only those that were given."""
    root = asked.image_root
    pictures = {"pixels": asked.pixels, "image_root": None if root is None else str(root)}
    return {
        "data": asked.data,
        **asked.typed,
        **{name: getattr(asked, name) for name in names},
        **{name: value for name, value in pictures.items() if value is not None},
    }


def refuse_page(path: Path, *, force: bool) -> None:
    """Refuse, before any work, a page that could not be written in the end."""
    from gnomon.cli.options import new_file

    new_file(path, force=force, endings=(".html", ".htm"))


def write_page(
    folder: Path, result: "Result", command: str, stage: "Stages", asked: "Asked", words: RunLines
) -> "Report":
    """Build the page of a run that has just ended and write it: two stages."""
    with stage("page") as ended:
        ended.result = page = build_page(result, command, asked, words)
    with stage("write"):
        page.save(folder / FILE)
    return page


def build_page(result: "Result", command: str, asked: "Asked", words: RunLines) -> "Report":
    """The page of a run that has just ended."""
    from gnomon.report.report import build_report
    from gnomon.report.run_page import gather_result

    stability = asked.stability
    if stability is not None and result.sampling is not None:
        words.say("Left out", "stability: the map is of a part of the rows")
        stability = None
    content = gather_result(
        result,
        title=asked.title,
        n_jobs=asked.threads,
        command=command,
        warnings=warnings_of(result),
        stability=stability,
        vary=asked.vary,
        pixels=asked.pixels,
        image_root=asked.image_root,
    )
    assert asked.page_budget is not None
    return build_report(content, asked.page_budget)


def say_page(page: "Report", path: Path, stage: "Stages", *, show: bool, words: RunLines) -> None:
    """Say where the page is and how long it took to build, and open it if asked to."""
    from gnomon.budget import readable_bytes

    size = readable_bytes(len(page.html.encode()))
    words.say("Page", f"{path} ({size}, opens offline)", stage.seconds["page"])
    if show:
        webbrowser.open(path.absolute().as_uri())
