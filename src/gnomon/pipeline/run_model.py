"""The model of a run: what places new rows, in memory and as a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnomon.budget import Memory
from gnomon.data.column_options import check_reading
from gnomon.data.preparation import Preparation
from gnomon.engine import as_engine
from gnomon.errors import DataError, ModelFileError, UnavailableError
from gnomon.models import save
from gnomon.pca import PCA
from gnomon.pipeline.placing import PlacedRows, open_new, place_table
from gnomon.records import Record
from gnomon.tsne import TSNE

__all__ = ["RunModel", "restore_run"]


@dataclass(frozen=True, eq=False)
class RunModel(Record):
    """What `gnomon.load` returns for the model of a run: its preparation, components and map.

    Attributes
    ----------
    preparation : Preparation
        Columns of the run's table, and how they were made ready.
    pca : PCA
    tsne : TSNE or None
        None if no map was made. Both models know the columns as they were made ready:
        standardised, if the run did so. `place` takes rows as the file has them.
    """

    preparation: Preparation
    pca: PCA
    tsne: TSNE | None = None

    def place(
        self,
        new: Any,
        *,
        missing: str | None = None,
        memory: Memory = None,
        engine: Any = None,
        n_jobs: int | None = None,
        **reading: Any,
    ) -> PlacedRows:
        """Place new rows on the map, which does not change; the same as `gnomon place`.

        Parameters
        ----------
        new : dataframe, array, path, source or Dask array
            Rows in the units of the run's table. Columns are found by name, in any order; without
            names they must be as many, in the same order.
        missing : {"error", "drop", "mean", "em"}, optional
            Handling of missing values, by default as in the run.
        memory, engine : optional
            As in `gnomon.run`.
        n_jobs : int, optional
            Threads.
        reading : optional
            `label`, `id`, `na`, `decimal` and what else `gnomon.run` takes about the file.

        Returns
        -------
        PlacedRows
            Positions, which rows are unlike the data, and the number and ID of each row.
        """
        check_reading("place", reading)
        if self.tsne is None:
            raise UnavailableError("The run has no map. Run it with `dimensions=2`.")
        workers = as_engine(engine, n_jobs=n_jobs)
        table = open_new(
            new, self.preparation.columns, memory=memory, in_blocks=engine is not None, **reading
        )
        return place_table(
            table, self.preparation, self.tsne, workers, missing=missing, memory=memory
        )

    def save(self, path: Path | str, *, force: bool = False) -> None:
        """Write the model to a file, for `gnomon.load` and ``gnomon place -m``.

        Parameters
        ----------
        path : path
            Conventionally ``"name.gnomon"``.
        force : bool
            Whether a file that exists is replaced.
        """
        save(self.to_parts(), path, force=force)

    def to_parts(self) -> dict[str, Any]:
        """Parts of the model file, by name."""
        preparation = self.preparation
        stored = {"plain": preparation.to_dict(), "arrays": preparation.arrays()}
        parts: dict[str, Any] = {"preparation": stored, "pca": self.pca}
        return parts if self.tsne is None else parts | {"tsne": self.tsne}

    def title(self) -> str:
        """What the model is of."""
        return f"Model of a run on {len(self.preparation.columns):,} columns"

    def lines(self) -> list[tuple[str, str]]:
        """Preparation, components and map."""
        lines = [*self.preparation.lines(), ("PCA", self.pca.certificate_.title())]
        if self.tsne is not None:
            lines.append(("t-SNE", self.tsne.certificate_.title()))
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The readable form."""
        return dict(self.lines())


def restore_run(parts: dict[str, Any], name: str) -> RunModel:
    """Check the parts of a model file called `name` and return the model."""
    stored, pca, tsne = (parts.get(part) for part in ("preparation", "pca", "tsne"))
    if not (
        isinstance(stored, dict)
        and all(isinstance(stored.get(part), dict) for part in ("plain", "arrays"))
        and isinstance(pca, PCA)
        and isinstance(tsne, (TSNE, type(None)))
    ):
        raise ModelFileError(
            f"{name} holds other parts than a run has. Give the model that gnomon map or gnomon "
            "reduce wrote."
        )
    try:
        preparation = Preparation.restore(stored["plain"], stored["arrays"])
    except DataError as error:
        raise ModelFileError(f"{name} is not loaded: {error} Make the model again.") from None
    return RunModel(preparation, pca, tsne)
