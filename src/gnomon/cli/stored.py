"""Models that `gnomon map` and `gnomon reduce` wrote, for the commands that use them again."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnomon.cli.run_lines import RunLines

if TYPE_CHECKING:
    from gnomon.data.preparation import Preparation
    from gnomon.pca import PCA
    from gnomon.tsne import TSNE

__all__ = ["StoredRun", "load_run"]

FILE = "model.gnomon"


@dataclass(frozen=True, eq=False)
class StoredRun:
    """What a model file of a run holds; `tsne` is None if no map was made."""

    path: Path
    preparation: "Preparation"
    pca: "PCA"
    tsne: "TSNE | None"

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
    from gnomon.data.preparation import Preparation
    from gnomon.errors import DataError, ModelFileError, ParameterError
    from gnomon.models import load

    file = path / FILE if path.is_dir() else path
    if not file.exists():
        what = (
            f"There is no {FILE} in '{path}'." if path.is_dir() else f"There is no file '{path}'."
        )
        raise ParameterError(f"{what} gnomon map and gnomon reduce make models.")
    parts: Any = load(file)
    if not isinstance(parts, dict):
        raise ModelFileError(
            f"{file} holds a {type(parts).__name__} alone, without the columns it was made from. "
            "Give the model that gnomon map or gnomon reduce wrote."
        )
    stored: Any = parts.get("preparation")
    pca: Any = parts.get("pca")
    tsne: Any = parts.get("tsne")
    sound = (
        isinstance(stored, dict)
        and all(isinstance(stored.get(name), dict) for name in ("plain", "arrays"))
        and type(pca).__name__ == "PCA"
        and type(tsne).__name__ in ("TSNE", "NoneType")
    )
    if not sound:
        raise ModelFileError(
            f"{file} holds other parts than a run has. Give the model that gnomon map or gnomon "
            "reduce wrote."
        )
    try:
        preparation = Preparation.restore(stored["plain"], stored["arrays"])
    except DataError as error:
        raise ModelFileError(f"{file} is not loaded: {error} Make the model again.") from None
    return StoredRun(file, preparation, pca, tsne)
