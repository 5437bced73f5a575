"""Saving and loading models.

1. The model returns its state as plain values and arrays (`registry.py`, `fields.py`).
2. Values become JSON, arrays stay arrays (`plain.py`), stored as safetensors.
3. Both go into one archive (`archive.py`), with checksums (`document.py`), written atomically.

Loading reverses this and trusts nothing: sizes are checked against the file before memory
is allocated, checksums before anything is parsed, and every value against the schema of the model.
It briefly needs about twice the file's size in memory.
"""

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import GnomonError, ModelFileError, refuse
from gnomon.files import refuse_existing, writing
from gnomon.late import late
from gnomon.models.archive import read_archive, write_archive
from gnomon.models.document import read_document, write_document
from gnomon.models.fields import UnfitError
from gnomon.models.plain import Packed, pack, unpack_value
from gnomon.models.registry import CLASSES, Stored, name_of

__all__ = ["load", "read_model", "save"]

SAVE_AGAIN = "Save the model again."
RUN_FILE = "model.gnomon"  # in the folder of a run
RUN_PARTS = frozenset({"preparation", "pca"})  # and "tsne", if there is a map


def save(model: Any, path: Path | str, *, force: bool = False) -> None:
    """Write a fitted model, or several as one, to a file.

    The file is a zip archive of JSON and safetensors. It holds everything that the model needs to
    continue: the same bits from `transform`, `partial_fit`, `merge` and `resume`. A
    `TSNE` therefore holds its training rows: do not share it with people who may not see them. For
    a map in `align_to` only the positions and keys of its rows are stored. Callbacks are not.

    Parameters
    ----------
    model : PCA, TSNE or Procrustes, or dict
        Fitted. A dictionary of named parts becomes one file: models, or plain values and arrays.
    path : path
        Conventionally ``"name.gnomon"``.
    force : bool, default=False
        Whether a file that exists is replaced. Either way it is written atomically.

    Examples
    --------
    >>> import os, tempfile
    >>> from gnomon import PCA, load, samples, save
    >>> X = samples.load("iris").X
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.gnomon")
    ...     save(PCA(2).fit(X), path)
    ...     pca = load(path)
    >>> pca.transform(X).shape
    (150, 2)
    """
    if not isinstance(model, dict) and name_of(model) is None:
        refuse(
            "model",
            f"be a {', '.join(CLASSES)} or a dictionary of parts",
            type(model).__name__,
            kind=True,
        )
    refuse_existing(path, force=force)  # before any work
    packed = Packed()
    content = pack(model, packed)
    arrays = _serialised(packed.arrays)
    document = write_document(content, arrays)
    with writing(path, force=force) as part:
        write_archive(part, document, arrays)


def _serialised(arrays: dict[str, NDArray[Any]]) -> bytes:
    from safetensors.numpy import save as serialise

    return serialise(arrays)


def load(path: Path | str) -> Any:
    """Load what `save` wrote: a model, or a dictionary of parts; or the model of a run.

    No code from the file is run, and none is imported by a name in it: untrusted files are safe.
    A file that is not a model, or is damaged, raises `gnomon.errors.ModelFileError`.

    Parameters
    ----------
    path : path
        A model file, or the folder of a run.

    Returns
    -------
    PCA, TSNE, Procrustes, dict or RunModel
        The model of `gnomon map`, `gnomon reduce` or `Result.save` is a `RunModel`, whose `place`
        takes new rows as the file has them.
    """
    path = Path(path)
    path = path / RUN_FILE if path.is_dir() else path
    try:
        with path.open("rb") as file:
            model = read_model(file, str(path))
    except OSError as error:
        why = error.strerror or str(error)
        raise ModelFileError(f"{path} cannot be read ({why}). Check the name.") from error
    return late("restore_run")(model, str(path)) if _is_run(model) else model


def _is_run(model: Any) -> bool:
    """Whether parts are those of a run, rather than some that a user named alike."""
    if not isinstance(model, dict) or not RUN_PARTS <= model.keys() <= {*RUN_PARTS, "tsne"}:
        return False
    stored = model["preparation"]
    return isinstance(stored, dict) and stored.keys() == {"plain", "arrays"}


def read_model(file: BinaryIO, name: str) -> Any:
    """Load a model from an open file called `name`."""
    _refuse_by_magic(file, name)
    try:
        document, arrays = read_archive(file)
        model = unpack_value(read_document(document, arrays), _arrays(arrays))
        if not isinstance(model, (dict, Stored)):
            raise UnfitError("it holds neither a model nor parts")
        return model
    except UnfitError as error:
        raise ModelFileError(f"{name} is not loaded, because {error}. {error.way_out}") from None
    except GnomonError as error:  # raised by a parameter check, or by a part that checks itself
        raise ModelFileError(f"{name} is not loaded, because of what it holds: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        # A value that no check caught and a constructor rejected.
        raise ModelFileError(
            f"{name} is not loaded, because it holds values that no model has. {SAVE_AGAIN}"
        ) from None


def _refuse_by_magic(file: BinaryIO, name: str) -> None:
    magic = file.read(4)
    if magic == b"PK\x03\x04":
        return
    if not magic:
        raise ModelFileError(f"{name} is empty. {SAVE_AGAIN}")
    if magic[0] == 0x80 and magic[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise ModelFileError(
            f"{name} is a pickle, which could run any code and is never opened. Save the model "
            "with gnomon.save where it was made."
        )
    raise ModelFileError(f"{name} is not a Gnomon model file. Give a file that gnomon.save wrote.")


def _arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """Arrays by name; safetensors checks every length against the size of the file."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as deserialise

    try:
        found = deserialise(content)
    except (SafetensorError, LookupError, TypeError, ValueError) as error:
        raise UnfitError(f"its arrays cannot be read ({error})") from None
    # Copied into NumPy's memory, aligned like any other array.
    return {name: np.array(array, order="C") for name, array in found.items()}
