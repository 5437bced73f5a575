"""The registry of classes that may be stored, and the protocol that they follow.

A file names classes by the keys of this table. Nothing else is ever imported because of a file.
"""

from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

__all__ = ["CLASSES", "Saved", "Stored", "class_named", "name_of"]

CLASSES = {
    "PCA": "gnomon.pca",
    "TSNE": "gnomon.tsne",
    "Procrustes": "gnomon.procrustes",
}


@runtime_checkable
class Stored(Protocol):
    """A storable object: it returns its state as plain values and arrays, and is restored from it.

    A state holds None, booleans, numbers, text, lists, tuples, dictionaries, arrays, NumPy's
    random generators and other stored objects (`gnomon.models.plain`). `_from_state` must accept
    untrusted input: it checks every shape, type and index and raises
    `gnomon.models.fields.UnfitError` (`fields.py` does nearly all of it).
    """

    def _to_state(self) -> dict[str, Any]: ...

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Self: ...


class Saved:
    """Mixin that adds `save` to an estimator."""

    __slots__: ClassVar[tuple[str, ...]] = ()

    def save(self, path: Path | str, *, force: bool = False) -> None:
        """Write the fitted model to a file that `gnomon.load` reads back; see `gnomon.save`.

        Parameters
        ----------
        path : path
            Conventionally ``"name.gnomon"``.
        force : bool
            Whether a file that exists is replaced.
        """
        from gnomon.models.file import save

        save(self, path, force=force)


def name_of(value: object) -> str | None:
    """Name of the class of `value` in the table; None if it is not in it."""
    kind = type(value)
    known = kind.__name__ in CLASSES and isinstance(value, Stored)
    return kind.__name__ if known and class_named(kind.__name__) is kind else None


def class_named(name: str) -> type[Stored] | None:
    """Class registered as `name`, imported on demand."""
    if name not in CLASSES:
        return None
    found: type[Stored] | None = getattr(import_module(CLASSES[name]), name, None)
    return found
