"""Models that `gnomon map` and `gnomon reduce` wrote, for the commands that use them again."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnomon.cli.run_lines import RunLines

if TYPE_CHECKING:
    from gnomon.data.preparation import Preparation
    from gnomon.pca import PCA
    from gnomon.pipeline.run_model import RunModel
    from gnomon.tsne import TSNE

__all__ = ["StoredRun", "load_run"]


@dataclass(frozen=True, eq=False)
class StoredRun:
    """What a model file of a run holds; `tsne` is None if no map was made."""

    path: Path
    model: "RunModel"

    @property
    def preparation(self) -> "Preparation":
        """Preparation of the run's rows."""
        return self.model.preparation

    @property
    def pca(self) -> "PCA":
        """Components."""
        return self.model.pca

    @property
    def tsne(self) -> "TSNE | None":
        """The map, if there is one."""
        return self.model.tsne

    def say(self, words: RunLines) -> None:
        """Describe the model, with --verbose."""
        parts = [self.preparation, self.pca.plan_, self.pca.certificate_]
        if self.tsne is not None:
            parts.append(self.tsne.certificate_)
        words.details(
            "Model",
            [
                ("file", str(self.path)),
                *((type(part).__name__.lower(), part.title()) for part in parts),
            ],
        )


def load_run(path: Path) -> StoredRun:
    """The run stored in a model file, or in the one of a folder."""
    from gnomon.errors import ModelFileError, ParameterError
    from gnomon.models import load
    from gnomon.models.file import RUN_FILE
    from gnomon.pipeline.run_model import RunModel, restore_run

    file = path / RUN_FILE if path.is_dir() else path
    if not file.exists():
        what = (
            f"There is no {RUN_FILE} in '{path}'."
            if path.is_dir()
            else f"There is no file '{path}'."
        )
        raise ParameterError(f"{what} gnomon map and gnomon reduce make models.")
    found: Any = load(file)
    if isinstance(found, dict):
        found = restore_run(found, str(file))  # which refuses it
    if not isinstance(found, RunModel):
        raise ModelFileError(
            f"{file} holds a {type(found).__name__} alone, without the columns it was made from. "
            "Give the model that gnomon map or gnomon reduce wrote."
        )
    return StoredRun(file, found)
